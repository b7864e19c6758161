"""With a plug-in's store that is no SQL database, what needs one is refused, and what to do instead is said."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from dependency_injector import providers

from reactor_memory import Container, Memory, Message, Settings, open_container, open_memory
from reactor_memory.core.context.verification import verify
from reactor_memory.core.joined_context_source import JoinedContextSource
from reactor_memory.database.absent import NEEDS_DATABASE
from reactor_memory.errors import ConfigurationError
from reactor_memory.features.facts.wiring import sql_summary_store
from reactor_memory.features.search.models import MessageSearch
from tests.doubles.plugged_store import PLAIN, RECORDS, plug_in_plain_store, plug_in_records
from tests.scenes.stores import memory_database
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


REFUSED_DEEDS: dict[str, Callable[[Memory], Any]] = {
    "pins": lambda memory: memory.pins.add("s", seq=1),
    "notes": lambda memory: memory.notes,
    "corrections": lambda memory: memory.facts.correct("s", fact=("the user", "name"), value="Jon"),
    "archives": lambda memory: memory.archive("s"),
    "posted summaries": lambda memory: memory.post_summary("s", text="short", until_seq=1),
    "tiers": lambda memory: memory.container.tiers(),
    "chat memory": lambda memory: memory.chat_memory,
    "active sessions": lambda memory: memory.sessions,
    "overview": lambda memory: memory.overview,
    "replay": lambda memory: memory.replay("s", seq=1),
    "erasure": lambda memory: memory.erasure.erase("s", seq=1),
    "search": lambda memory: memory.container.message_search().search(MessageSearch(text="cat", user_id="ann")),
}


async def test_what_doctor_lists_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    assert {*REFUSED_DEEDS, "sharing"} == set(NEEDS_DATABASE)
    plug_in_records(monkeypatch)
    async with open_memory(Settings(store={"url": RECORDS})) as memory:
        await memory.save_history("s", [Message.user("I am John."), Message.assistant("Hello John.")])
        for name, deed in REFUSED_DEEDS.items():
            with pytest.raises(ConfigurationError, match=r"^store\.url: records:// keeps the log and summaries only"):
                await made_of(deed, memory, name)


async def made_of(deed: Callable[[Memory], Any], memory: Memory, name: str) -> None:
    await deed(memory)
    raise AssertionError(name)


async def test_records_hold_a_whole_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    plug_in_records(monkeypatch)
    async with open_memory(Settings(store={"url": RECORDS})) as memory:
        for number in range(20):
            said = [Message.user(f"I booked table {number} for {number + 2} people."), Message.assistant("Noted.")]
            await memory.save_history("s", said, user_id="ann")
        await memory.drain()
        context = await memory.load_history("s", user_id="ann", budget=300)
        assert context.messages[0].content.startswith("Conversation Facts:")
        assert verify(context, count=memory.container.message_counter().counted) == []
        assert await memory.recall("s", "table 3", user_id="ann")
        fork = await memory.fork("s", at_seq=5, user_id="ann")
        assert [each.seq for each in await memory.read_messages(fork.session_id, user_id="ann")] == [1, 2, 3, 4]
        assert (await memory.withdraw("s", user_id="ann")).seq == 40
        assert len((await memory.delete("s", user_id="ann")).session_ids) == 2


async def test_a_load_reads_the_records_of_a_session_once(monkeypatch: pytest.MonkeyPatch) -> None:
    records = plug_in_records(monkeypatch)
    async with open_memory(Settings(store={"url": RECORDS}, background={"poll_seconds": 3600})) as memory:
        await memory.save_history("s", [Message.user(f"text {number}") for number in range(10)])
        await memory.drain()
        records.asked.clear()
        await memory.load_history("s")
        assert [records.asked.count(name) for name in ("log/s", "made/s")] == [1, 1]

    def configure(container: Container) -> None:
        container.summary_store.override(providers.Object(sql_summary_store(memory_database())))

    async with open_container(Settings(store={"url": RECORDS}), configure=configure) as container:
        assert isinstance(container.context_source(), JoinedContextSource)


async def test_what_a_user_left_cannot_be_erased() -> None:
    async with open_container(on_plain()) as container:
        with pytest.raises(ConfigurationError, match=REFUSED):
            await container.erasure().erase_user("ann")
