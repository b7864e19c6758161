"""With a plug-in's store that is no SQL database, what needs one is refused, and what to do instead is said."""

from __future__ import annotations

from typing import Any

import pytest

from reactor_memory import Settings, open_container
from reactor_memory.errors import ConfigurationError
from tests.doubles.plugged_store import PLAIN, plug_in_plain_store
from tests.scenes.tables import each_row

pytestmark = pytest.mark.anyio

REFUSED = r"store\.url: plain:// keeps the log and summaries only: use sqlite:///file\.db or postgresql://"


@pytest.fixture(autouse=True)
def plain(monkeypatch: pytest.MonkeyPatch) -> None:
    plug_in_plain_store(monkeypatch)


def on_plain(**sections: Any) -> Settings:
    return Settings(store={"url": PLAIN}, tokens={"counter": "estimate"}, **sections)


@each_row("part", ["long_term_memory", "session_directory", "tiers", "chat_memory", "needed_database"])
async def test_a_part_that_needs_a_database_is_not_made(part: str) -> None:
    async with open_container(on_plain()) as container:
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
    with pytest.raises(ConfigurationError, match=REFUSED):
        async with open_container(on_plain(**sections)):
            pass


async def test_what_a_user_left_cannot_be_erased() -> None:
    async with open_container(on_plain()) as container:
        with pytest.raises(ConfigurationError, match=REFUSED):
            await container.erasure().erase_user("ann")
