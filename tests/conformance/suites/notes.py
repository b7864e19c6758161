"""Notes of agents about users."""

from __future__ import annotations

import anyio
import pytest

from reactor_memory.database.database import Database
from reactor_memory.features.notes import operations as note_rows
from reactor_memory.features.notes.models import Notes
from reactor_memory.testing.log import TEXTS

USER, AGENT = "ann", "travel"


def version(number: int, text: str = "", *, user_id: str = USER, agent_name: str = AGENT) -> Notes:
    return Notes(
        user_id=user_id,
        agent_name=agent_name,
        version=number,
        text=text or f"version {number}",
        author=None if number % 2 else "agent",
        created_at=1_000 + number,
    )


@pytest.mark.anyio
class NotesRules:
    """The fixture `database` gives an opened, empty one."""

    async def test_there_are_no_notes_at_first(self, database: Database) -> None:
        none = Notes(user_id=USER, agent_name=AGENT)
        assert await database.read(note_rows.read_notes, USER, AGENT) == none
        assert await database.read(note_rows.read_notes, USER, AGENT, version=0) == none
        assert await database.read(note_rows.read_notes, USER, AGENT, version=1) == none
        assert await database.read(note_rows.list_notes, USER, AGENT) == ()

    async def test_the_newest_version_holds_and_the_others_stay(self, database: Database) -> None:
        versions = [version(number) for number in (1, 2, 3)]
        for each in versions:
            assert await database.write(note_rows.put_notes, each)
        assert await database.read(note_rows.read_notes, USER, AGENT) == versions[2]
        for each in versions:
            assert await database.read(note_rows.read_notes, USER, AGENT, version=each.version) == each
        assert (await database.read(note_rows.read_notes, USER, AGENT, version=0)).version == 0
        assert (await database.read(note_rows.read_notes, USER, AGENT, version=4)).version == 0
        assert await database.read(note_rows.list_notes, USER, AGENT) == tuple(reversed(versions))
        assert await database.read(note_rows.list_notes, USER, AGENT, limit=2) == (versions[2], versions[1])

    @pytest.mark.parametrize("number", [0, 1, 2, 4, 9])
    async def test_only_the_next_version_is_stored(self, database: Database, number: int) -> None:
        await database.write(note_rows.put_notes, version(1))
        await database.write(note_rows.put_notes, version(2))
        assert not await database.write(note_rows.put_notes, version(number, "late"))
        assert [each.text for each in await database.read(note_rows.list_notes, USER, AGENT)] == [
            "version 2",
            "version 1",
        ]

    async def test_the_first_version_is_version_one(self, database: Database) -> None:
        assert not await database.write(note_rows.put_notes, version(2))
        assert not await database.write(note_rows.put_notes, version(0))
        assert await database.write(note_rows.put_notes, version(1))

    async def test_of_many_who_write_the_next_version_one_succeeds(self, database: Database) -> None:
        await database.write(note_rows.put_notes, version(1))
        stored: list[str] = []

        async def put(text: str) -> None:
            if await database.write(note_rows.put_notes, version(2, text)):
                stored.append(text)

        async with anyio.create_task_group() as tasks:
            for number in range(20):
                tasks.start_soon(put, f"writer {number}")
        assert len(stored) == 1
        assert [each.text for each in await database.read(note_rows.list_notes, USER, AGENT)] == [
            stored[0],
            "version 1",
        ]

    async def test_no_update_is_lost_between_writers_who_read_again(self, database: Database) -> None:
        async def add(number: int) -> None:
            while True:
                newest = await database.read(note_rows.read_notes, USER, AGENT)
                if await database.write(note_rows.put_notes, version(newest.version + 1, f"{newest.text}\n{number}")):
                    return

        async with anyio.create_task_group() as tasks:
            for number in range(10):
                tasks.start_soon(add, number)
        lines = (await database.read(note_rows.read_notes, USER, AGENT)).text.split()
        assert sorted(map(int, lines)) == list(range(10))

    async def test_users_and_agents_do_not_meet_in_their_notes(self, database: Database) -> None:
        owners = [(USER, AGENT), (USER, "shop"), ("bob", AGENT)]
        for user_id, agent_name in owners:
            assert await database.write(
                note_rows.put_notes, version(1, f"{user_id}/{agent_name}", user_id=user_id, agent_name=agent_name)
            )
        for user_id, agent_name in owners:
            assert (await database.read(note_rows.read_notes, user_id, agent_name)).text == f"{user_id}/{agent_name}"
            assert len(await database.read(note_rows.list_notes, user_id, agent_name)) == 1
        assert (await database.read(note_rows.read_notes, "bob", "shop")).version == 0

    @pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS.keys())
    async def test_any_text_of_notes_comes_back(self, database: Database, text: str) -> None:
        notes = Notes(user_id=USER, agent_name=AGENT, version=1, text=text, author=text[:50] or None, created_at=1)
        assert await database.write(note_rows.put_notes, notes)
        assert await database.read(note_rows.read_notes, USER, AGENT) == notes
