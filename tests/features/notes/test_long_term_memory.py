"""Notes as versions: no update is lost, everything can be undone, and the size is limited."""

from collections.abc import Awaitable, Callable
from typing import Any

import anyio
import pytest

from reactor_memory.database.database import Database
from reactor_memory.errors import InvalidInputError, StoreUnavailableError
from reactor_memory.features.erasure import operations as erasure
from reactor_memory.features.notes.long_term_memory import LongTermMemory
from reactor_memory.features.notes.models import Notes
from reactor_memory.testing import FakeClock
from tests.doubles.faulty_database import FaultyDatabase
from tests.scenes.stores import SqlStore

pytestmark = pytest.mark.anyio

USER, AGENT = "ann", "travel"


class Interrupted(FaultyDatabase):
    """Somebody else writes the next version before each of the first `times` writes."""

    def __init__(self, database: Database, times: int) -> None:
        super().__init__(database, at=1, mode="before", for_ever=True, operations={"put_notes"})
        self._memory = memory_on(database)
        self._times = times

    async def _fail(self, work: Callable[[], Awaitable[Any]]) -> Any:
        if self.calls <= self._times:
            await self._memory.apply(USER, AGENT, "append", content="other\n", separator="")
        return await work()


def memory_on(database: Database, *, max_chars: int = 4000, allow_destructive: bool = True) -> LongTermMemory:
    return LongTermMemory(
        database=database, clock=FakeClock(), max_chars=max_chars, allow_destructive=allow_destructive
    )


@pytest.fixture
def memory(store: SqlStore) -> LongTermMemory:
    return memory_on(store.database)


async def write(memory: LongTermMemory, *texts: str) -> None:
    for text in texts:
        assert (await memory.apply(USER, AGENT, "overwrite", content=text)).status == "ok"


async def text_of(memory: LongTermMemory) -> str:
    return (await memory.read(USER, AGENT)).text


class TestVersions:
    async def test_nothing_at_first(self, memory: LongTermMemory) -> None:
        result = await memory.apply(USER, AGENT, "read")
        assert (result.status, result.notes) == ("ok", Notes(user_id=USER, agent_name=AGENT))
        assert await memory.read(USER, AGENT) == result.notes
        assert await memory.versions(USER, AGENT) == ()

    async def test_every_change_is_the_next_version(self, memory: LongTermMemory) -> None:
        result = await memory.apply(USER, AGENT, "append", content="tea", author="agent")
        assert (result.notes.version, result.notes.text, result.notes.author) == (1, "tea", "agent")
        assert result.notes.created_at == FakeClock()()
        await memory.apply(USER, AGENT, "append", content="figs")
        assert [notes.text for notes in await memory.versions(USER, AGENT)] == ["tea\n\nfigs", "tea"]
        assert [notes.version for notes in await memory.versions(USER, AGENT, limit=1)] == [2]

    async def test_what_changes_nothing_makes_no_version(self, memory: LongTermMemory) -> None:
        await write(memory, "tea")
        for operation, content in (("read", None), ("overwrite", "tea"), ("erase", None), ("append", None)):
            result = await memory.apply(USER, AGENT, operation, content=content)
            assert result.notes.version == 1
        assert (await memory.apply(USER, AGENT, "overwrite", content="tea")).status == "unchanged"

    async def test_deleting_all_keeps_the_versions_and_may_be_repeated(self, memory: LongTermMemory) -> None:
        await write(memory, "tea")
        assert (await memory.apply(USER, AGENT, "delete_all_notes")).notes.version == 2
        assert (await memory.apply(USER, AGENT, "delete_all_notes")).status == "unchanged"
        assert [notes.text for notes in await memory.versions(USER, AGENT)] == ["", "tea"]

    async def test_users_and_agents_have_their_own(self, memory: LongTermMemory) -> None:
        await write(memory, "tea")
        assert (await memory.read("bob", AGENT)).text == (await memory.read(USER, "shop")).text == ""

    @pytest.mark.parametrize(("user_id", "agent_name"), [("", "a"), ("u", ""), (None, "a"), ("u", "a\n")])
    async def test_a_user_and_an_agent_are_needed(self, memory: LongTermMemory, user_id: Any, agent_name: Any) -> None:
        for call in (memory.read, memory.undo, memory.versions):
            with pytest.raises(InvalidInputError):
                await call(user_id, agent_name)
        with pytest.raises(InvalidInputError):
            await memory.apply(user_id, agent_name, "read")
        with pytest.raises(InvalidInputError):
            memory.tool(user_id, agent_name)


class TestSeveralWriters:
    async def test_change_that_came_second_is_made_on_what_came_first(self, store: SqlStore) -> None:
        memory = memory_on(Interrupted(store.database, 1))
        result = await memory.apply(USER, AGENT, "append", content="mine")
        assert (result.status, result.notes.version) == ("ok", 2)
        assert await text_of(memory) == "other\n\nmine"

    async def test_it_is_tried_twice_and_then_given_up(self, store: SqlStore) -> None:
        memory = memory_on(Interrupted(store.database, 2))
        result = await memory.apply(USER, AGENT, "append", content="mine")
        assert result.status == "conflict"
        assert await text_of(memory) == "other\nother\n"

    async def test_no_update_of_many_is_lost(self, memory: LongTermMemory) -> None:
        async def add(number: int) -> None:
            while (await memory.apply(USER, AGENT, "append", content=f"n{number}")).status == "conflict":
                pass

        async with anyio.create_task_group() as tasks:
            for number in range(20):
                tasks.start_soon(add, number)
        assert sorted((await text_of(memory)).split()) == sorted(f"n{number}" for number in range(20))

    async def test_an_undo_does_not_undo_what_came_meanwhile(self, store: SqlStore) -> None:
        await write(memory_on(store.database), "tea", "coffee")
        memory = memory_on(Interrupted(store.database, 1))
        assert (await memory.undo(USER, AGENT)).status == "conflict"
        assert await text_of(memory) == "coffeeother\n"

    async def test_a_store_that_fails_is_not_hidden(self, store: SqlStore) -> None:
        memory = memory_on(FaultyDatabase(store.database, at=1, mode="before", for_ever=True))
        with pytest.raises(StoreUnavailableError):
            await memory.apply(USER, AGENT, "read")


class TestUndo:
    async def test_the_version_before_holds_again_as_a_new_one(self, memory: LongTermMemory) -> None:
        await write(memory, "tea", "coffee")
        result = await memory.undo(USER, AGENT)
        assert (result.status, result.notes.version, result.notes.text) == ("ok", 3, "tea")
        assert len(await memory.versions(USER, AGENT)) == 3

    async def test_twice_brings_it_back(self, memory: LongTermMemory) -> None:
        await write(memory, "tea", "coffee")
        await memory.undo(USER, AGENT)
        await memory.undo(USER, AGENT)
        assert await text_of(memory) == "coffee"

    async def test_the_first_version_is_undone_to_nothing(self, memory: LongTermMemory) -> None:
        await write(memory, "tea")
        assert (await memory.undo(USER, AGENT)).notes.text == ""

    async def test_nothing_to_undo(self, memory: LongTermMemory) -> None:
        assert (await memory.undo(USER, AGENT)).status == "unchanged"

    async def test_back_to_any_version(self, memory: LongTermMemory) -> None:
        await write(memory, "a", "b", "c")
        assert (await memory.undo(USER, AGENT, to_version=1)).notes.text == "a"
        assert (await memory.undo(USER, AGENT, to_version=4)).status == "unchanged"
        assert (await memory.undo(USER, AGENT, to_version=0)).notes.text == ""
        for version in (-1, 6):
            with pytest.raises(InvalidInputError, match="no version"):
                await memory.undo(USER, AGENT, to_version=version)

    async def test_not_to_what_was_erased(self, store: SqlStore, memory: LongTermMemory) -> None:
        await write(memory, "a", "b")
        await store.database.write(erasure.forget_user, USER, now=1)
        assert (await memory.undo(USER, AGENT)).status == "unchanged"
        await write(memory, "c")
        with pytest.raises(InvalidInputError, match="no version"):
            await memory.undo(USER, AGENT, to_version=1)
        assert await text_of(memory) == "c"

    async def test_a_deletion(self, memory: LongTermMemory) -> None:
        await write(memory, "# Food\nfigs\n\n# Travel\nsea\n")
        await memory.apply(USER, AGENT, "delete_section_by_header", section_header="Food")
        await memory.undo(USER, AGENT)
        assert await text_of(memory) == "# Food\nfigs\n\n# Travel\nsea\n"


class TestSize:
    async def test_what_is_too_long_is_refused(self, store: SqlStore) -> None:
        memory = memory_on(store.database, max_chars=10)
        await write(memory, "1234567890")
        result = await memory.apply(USER, AGENT, "append", content="x")
        assert (result.status, result.notes.version) == ("too_large", 1)
        assert "13 characters" in result.message
        assert await text_of(memory) == "1234567890"

    async def test_or_cut_when_asked_for_which_is_told(self, store: SqlStore) -> None:
        memory = memory_on(store.database, max_chars=10)
        result = await memory.apply(USER, AGENT, "overwrite", content="1234567890xyz", truncate=True)
        assert (result.status, result.notes.text) == ("ok", "1234567890")
        assert "3 characters at the end were cut off" in result.message

    async def test_notes_over_a_lowered_limit_can_be_read_and_shortened(self, store: SqlStore) -> None:
        await write(memory_on(store.database), "# A\n12345678\n# B\n12345678\n# C\n12345678\n")
        memory = memory_on(store.database, max_chars=10)
        assert (await memory.apply(USER, AGENT, "read")).status == "ok"
        assert (await memory.apply(USER, AGENT, "delete_section_by_header", section_header="A")).status == "ok"
        assert (await memory.apply(USER, AGENT, "append", content="x")).status == "too_large"


class TestDestructiveOperations:
    @pytest.mark.parametrize(
        "operation", ["overwrite", "delete_section_by_header", "replace_section_by_header", "delete_all_notes"]
    )
    async def test_can_be_switched_off(self, store: SqlStore, operation: str) -> None:
        await write(memory_on(store.database), "# A\na\n")
        memory = memory_on(store.database, allow_destructive=False)
        result = await memory.apply(USER, AGENT, operation, content="x", section_header="A")
        assert (result.status, result.notes.version) == ("forbidden", 1)
        assert operation in result.message

    @pytest.mark.parametrize("operation", ["read", "append", "prepend"])
    async def test_the_others_stay(self, store: SqlStore, operation: str) -> None:
        memory = memory_on(store.database, allow_destructive=False)
        assert (await memory.apply(USER, AGENT, operation, content="x")).status == "ok"
