"""Active sessions of users."""

from __future__ import annotations

import anyio
import pytest

from reactor_memory.database.database import Database
from reactor_memory.features.active_sessions import operations as active_rows
from reactor_memory.features.active_sessions.models import ActiveSession

USER, AGENT = "ann", "travel"


def active(session_id: str | None, *, used_at: int, created_at: int | None = None) -> ActiveSession:
    return ActiveSession(
        user_id=USER,
        agent_name=AGENT,
        session_id=session_id,
        last_active_at=used_at,
        created_at=used_at if created_at is None else created_at,
    )


async def begin(database: Database, session_id: str = "s", *, now: int = 10) -> ActiveSession:
    return await database.write(active_rows.get_or_create_active, USER, AGENT, session_id, now=now)


@pytest.mark.anyio
class ActiveSessionRules:
    """The fixture `database` gives an opened, empty one."""

    async def test_nobody_has_an_active_session_at_first(self, database: Database) -> None:
        assert await database.read(active_rows.get_active, USER, AGENT) is None
        assert await database.read(active_rows.list_active, USER) == ()

    async def test_the_first_candidate_becomes_active(self, database: Database) -> None:
        assert await begin(database) == active("s", used_at=10)
        assert await database.read(active_rows.get_active, USER, AGENT) == active("s", used_at=10)

    async def test_later_candidate_gets_what_is_active_and_notes_the_use(self, database: Database) -> None:
        await begin(database)
        assert await begin(database, "other", now=20) == active("s", used_at=20, created_at=10)
        assert await database.read(active_rows.get_active, USER, AGENT) == active("s", used_at=20, created_at=10)

    async def test_all_who_create_at_once_agree_on_one(self, database: Database) -> None:
        answers: list[str | None] = []

        async def create(number: int) -> None:
            found = await begin(database, f"s{number}", now=number)
            answers.append(found.session_id)

        async with anyio.create_task_group() as tasks:
            for number in range(50):
                tasks.start_soon(create, number)
        assert len(answers) == 50
        assert len(set(answers)) == 1
        assert [row.session_id for row in await database.read(active_rows.list_active, USER)] == answers[:1]

    async def test_the_time_of_use_never_goes_back(self, database: Database) -> None:
        await begin(database, now=30)
        await begin(database, now=20)
        assert await database.write_relaxed(active_rows.touch_active, USER, AGENT, "s", now=10)
        switched = await database.write(active_rows.switch_active, USER, AGENT, expected="s", new="t", now=5)
        assert switched == active("t", used_at=30)

    async def test_users_and_agents_do_not_meet(self, database: Database) -> None:
        for user_id, agent_name in ((USER, AGENT), (USER, "shop"), ("bob", AGENT)):
            await database.write(
                active_rows.get_or_create_active, user_id, agent_name, f"{user_id}/{agent_name}", now=1
            )
        for user_id, agent_name in ((USER, AGENT), (USER, "shop"), ("bob", AGENT)):
            found = await database.read(active_rows.get_active, user_id, agent_name)
            assert found is not None
            assert found.session_id == f"{user_id}/{agent_name}"
        assert await database.read(active_rows.get_active, "bob", "shop") is None
        assert (
            await database.write(active_rows.switch_active, "bob", AGENT, expected=f"{USER}/{AGENT}", new="mine", now=2)
            is None
        )
        assert not await database.write_relaxed(active_rows.touch_active, "bob", AGENT, f"{USER}/{AGENT}", now=2)
        assert [row.session_id for row in await database.read(active_rows.list_active, "bob")] == [f"bob/{AGENT}"]

    async def test_a_switch_from_what_is_active(self, database: Database) -> None:
        await begin(database)
        switched = await database.write(active_rows.switch_active, USER, AGENT, expected="s", new="t", now=20)
        assert switched == active("t", used_at=20, created_at=10)
        assert await database.read(active_rows.get_active, USER, AGENT) == switched

    @pytest.mark.parametrize("expected", ["other", None])
    async def test_a_switch_from_something_else_changes_nothing(self, database: Database, expected: str | None) -> None:
        await begin(database)
        assert await database.write(active_rows.switch_active, USER, AGENT, expected=expected, new="t", now=20) is None
        assert await database.read(active_rows.get_active, USER, AGENT) == active("s", used_at=10)

    async def test_a_switch_from_nothing(self, database: Database) -> None:
        assert await database.write(active_rows.switch_active, USER, AGENT, expected="s", new="t", now=5) is None
        assert await database.read(active_rows.get_active, USER, AGENT) is None
        assert await database.write(active_rows.switch_active, USER, AGENT, expected=None, new="t", now=10) == active(
            "t", used_at=10
        )

    async def test_a_switch_to_nothing_and_back(self, database: Database) -> None:
        await begin(database)
        none = active(None, used_at=20, created_at=10)
        assert await database.write(active_rows.switch_active, USER, AGENT, expected="s", new=None, now=20) == none
        assert await database.read(active_rows.get_active, USER, AGENT) == none
        assert not await database.write_relaxed(active_rows.touch_active, USER, AGENT, "s", now=25)
        again = await database.write(active_rows.switch_active, USER, AGENT, expected=None, new="s", now=30)
        assert again == active("s", used_at=30, created_at=10)

    async def test_of_many_switches_at_once_one_succeeds(self, database: Database) -> None:
        await begin(database)
        done: list[ActiveSession] = []

        async def switch(number: int) -> None:
            switched = await database.write(
                active_rows.switch_active, USER, AGENT, expected="s", new=f"t{number}", now=20
            )
            if switched is not None:
                done.append(switched)

        async with anyio.create_task_group() as tasks:
            for number in range(20):
                tasks.start_soon(switch, number)
        assert len(done) == 1
        assert await database.read(active_rows.get_active, USER, AGENT) == done[0]

    async def test_a_touch_notes_the_use_of_what_is_active_only(self, database: Database) -> None:
        assert not await database.write_relaxed(active_rows.touch_active, USER, AGENT, "s", now=5)
        await begin(database)
        assert await database.write_relaxed(active_rows.touch_active, USER, AGENT, "s", now=20)
        assert not await database.write_relaxed(active_rows.touch_active, USER, AGENT, "other", now=30)
        assert await database.read(active_rows.get_active, USER, AGENT) == active("s", used_at=20, created_at=10)

    async def test_the_list_begins_with_the_agent_used_last(self, database: Database) -> None:
        for agent_name, now in (("b", 20), ("a", 20), ("old", 10), ("new", 30)):
            await database.write(active_rows.get_or_create_active, USER, agent_name, f"of {agent_name}", now=now)
        assert [row.agent_name for row in await database.read(active_rows.list_active, USER)] == [
            "new",
            "a",
            "b",
            "old",
        ]

    async def test_what_was_unused_for_long_is_deactivated_for_all_users(self, database: Database) -> None:
        for user_id, now in (("a", 10), ("b", 19), ("c", 20)):
            await database.write(active_rows.get_or_create_active, user_id, AGENT, f"of {user_id}", now=now)
        assert await database.write(active_rows.deactivate_active, before=20) == 2
        found = [await database.read(active_rows.get_active, user_id, AGENT) for user_id in "abc"]
        assert [row and row.session_id for row in found] == [None, None, "of c"]
        assert [row and row.last_active_at for row in found] == [10, 19, 20]
        assert await database.write(active_rows.deactivate_active, before=20) == 0

    async def test_after_a_deactivation_the_next_candidate_becomes_active(self, database: Database) -> None:
        await begin(database)
        await database.write(active_rows.deactivate_active, before=20)
        assert await begin(database, "t", now=30) == active("t", used_at=30, created_at=10)
