"""With a plug-in's store that is no SQL database, what needs one is refused, and what to do instead is said."""

from __future__ import annotations

from typing import Any

import pytest
from dependency_injector import providers

from reactor_memory import Message, Settings, open_container
from reactor_memory.container import OWN_PARTS
from reactor_memory.errors import ConfigurationError
from reactor_memory.plugins import Plugin, evaluate
from reactor_memory.storage.message_store import SqlMessageStore
from reactor_memory.storage.summary_store import SqlSummaryStore
from tests.stores import memory_database
from tests.tables import each_row

pytestmark = pytest.mark.anyio

REFUSED = r"store\.url: shelf:// keeps the log and summaries only: use sqlite:///file\.db or postgresql://"


def shelf(sections: dict[str, Any]) -> tuple[Settings, Any]:
    """Settings that name the store, and what puts it into the container."""
    settings = Settings(store={"url": "shelf://"}, tokens={"counter": "estimate"}, **sections)
    database = memory_database()
    stores = {
        "message_store": {"shelf": lambda _: SqlMessageStore(database)},
        "summary_store": {"shelf": lambda _: SqlSummaryStore(database)},
    }
    report = evaluate([OWN_PARTS, Plugin(name="shelf", provides=stores)], settings)
    return settings, lambda container: container.conditions.override(providers.Object(report))


async def test_the_log_is_kept() -> None:
    settings, configure = shelf({})
    async with open_container(settings, configure=configure) as container:
        manager = container.conversation_manager()
        await manager.save_history("s", [Message.user("hello")])
        assert [message.content for message in await manager.read_messages("s")] == ["hello"]


@each_row("part", ["long_term_memory", "session_directory", "tiers", "chat_memory", "needed_database"])
async def test_a_part_that_needs_a_database_is_not_made(part: str) -> None:
    settings, configure = shelf({})
    async with open_container(settings, configure=configure) as container:
        with pytest.raises(ConfigurationError, match=REFUSED):
            getattr(container, part)()


@each_row(
    "sections",
    [
        {"notes": {"enabled": True}},
        {"history": {"strategy": "progressive"}},
        {"chat_memory": {"strategy": "summarize"}},
    ],
)
async def test_settings_that_need_a_database_are_refused_at_once(sections: dict[str, Any]) -> None:
    settings, configure = shelf(sections)
    with pytest.raises(ConfigurationError, match=REFUSED):
        async with open_container(settings, configure=configure):
            pass


async def test_what_a_user_left_cannot_be_erased() -> None:
    settings, configure = shelf({})
    async with open_container(settings, configure=configure) as container:
        with pytest.raises(ConfigurationError, match=REFUSED):
            await container.conversation_manager().erase_user("ann")
