"""Scenarios of the arc-reactor project in which many things happen at once. `README.md` beside this file lists them."""

from __future__ import annotations

from collections.abc import Awaitable
from itertools import cycle, islice

import anyio
import pytest

from reactor_memory import Memory, SessionDeletedError, SessionNotFoundError
from reactor_memory.core.context.context import Context
from reactor_memory.core.context.verification import verify
from reactor_memory.core.log import background_work
from tests.acceptance.scenes import USER, agent_memory, save, scripted, talk, texts
from tests.scenes.fixtures_stores import memory_or_sqlite

pytestmark = pytest.mark.anyio
url = memory_or_sqlite


async def test_a_hundred_sessions_begin_at_once_and_none_is_dropped(url: str) -> None:
    async with agent_memory(scripted(), url) as memory:
        async with anyio.create_task_group() as group:
            for number in range(100):
                group.start_soon(save, memory, f"s{number}", talk(2))
        page = await memory.list_sessions(user_id=USER, limit=200)
        assert {row.session_id for row in page.sessions} == {f"s{number}" for number in range(100)}
        for number in (0, 99):
            assert len((await memory.load_history(f"s{number}", user_id=USER)).messages) == 2


async def test_a_hundred_saves_to_one_session_are_all_kept(url: str) -> None:
    async with agent_memory(scripted(), url) as memory:
        async with anyio.create_task_group() as group:
            for number in range(100):
                group.start_soon(save, memory, "s", talk(1, start=2 * number + 1))
        messages = await memory.read_messages("s", user_id=USER)
    assert [message.seq for message in messages] == list(range(1, 101))
    assert sorted(texts(messages)) == sorted(talk(1, start=2 * number + 1)[0].content for number in range(100))


async def test_writers_and_readers_at_once_see_whole_histories(url: str) -> None:
    """Every snapshot is a gap-free prefix of turns; every context fits its report."""
    async with agent_memory(scripted(delay_seconds=0.001), url) as memory:
        count = memory.container.message_counter().of
        await save(memory, "s", talk(2))
        lengths: list[int] = []

        async def read() -> None:
            snapshot = await memory.read_messages("s", user_id=USER)
            assert [message.seq for message in snapshot] == list(range(1, len(snapshot) + 1))
            assert [message.role for message in snapshot] == ["user", "assistant"] * (len(snapshot) // 2)
            lengths.append(len(snapshot))
            check(await memory.load_history("s", user_id=USER), count)

        async with anyio.create_task_group() as group:
            for number in range(50):
                group.start_soon(save, memory, "s", talk(2, start=2 * number + 3))
                group.start_soon(read)
        await memory.drain()
        check(await memory.load_history("s", user_id=USER), count)
        assert len(await memory.read_messages("s", user_id=USER)) == 102
    assert len(lengths) == 50
    assert min(lengths) >= 2


def check(context: Context, count: object) -> None:
    assert verify(context, count=count) == []  # type: ignore[arg-type]
    window = [message.seq or 0 for message in context.messages if message.seq is not None]
    assert window == list(range(window[0], window[-1] + 1))
    assert context.report.unread == () or context.report.freshness in ("catching_up", "failed", "none", "stale")


async def test_simultaneous_loads_of_a_fresh_session_agree_and_ask_nobody(url: str) -> None:
    summarizer = scripted(delay_seconds=0.01)
    async with agent_memory(summarizer, url) as memory:
        await save(memory, "s", talk(40))
        await memory.drain()
        calls = len(summarizer.calls)
        digests: list[str] = []

        async def load() -> None:
            digests.append((await memory.load_history("s", user_id=USER)).report.digest)

        async with anyio.create_task_group() as group:
            for _ in range(10):
                group.start_soon(load)
    assert len(digests) == 10
    assert len(set(digests)) == 1
    assert len(summarizer.calls) == calls


async def test_saves_to_five_sessions_at_once_make_five_whole_summaries(url: str) -> None:
    async with agent_memory(scripted(delay_seconds=0.001), url) as memory:
        async with anyio.create_task_group() as group:
            for number in range(20):
                group.start_soon(save, memory, f"s{number % 5}", talk(8, start=number // 5 * 8 + 1))
        await memory.drain()
        for number in range(5):
            summary = await memory.get_summary(f"s{number}", user_id=USER)
            assert summary is not None
            assert summary.covered_seq == 30
            facts = {fact.value for fact in await memory.facts.list(f"s{number}", user_id=USER)}
            stored = await memory.read_messages(f"s{number}", user_id=USER, until=30)
            assert facts == {message.content.split()[-1] for message in stored if message.role == "user"}


async def test_saves_of_three_users_keep_lists_and_owners_apart(url: str) -> None:
    users = ("alice", "bob", "carol")
    owners = dict(zip([f"s{number}" for number in range(12)], cycle(users), strict=False))
    async with agent_memory(scripted(), url, summary={"enabled": False}) as memory:
        async with anyio.create_task_group() as group:
            for number, session_id in enumerate(islice(cycle(owners), 240)):
                group.start_soon(save, memory, session_id, talk(1, start=2 * number + 1), owners[session_id])
        for user_id in users:
            own = {session_id for session_id, owner in owners.items() if owner == user_id}
            page = await memory.list_sessions(user_id=user_id)
            assert {row.session_id: row.last_seq for row in page.sessions} == dict.fromkeys(own, 20)
            for session_id in own:
                assert (await memory.get_session(session_id, user_id=user_id)).owner_id == user_id
        assert (await memory.list_sessions(user_id="dave")).sessions == ()


async def attempt(step: Awaitable[object]) -> None:
    """A session that is gone, or not there yet, is said so, and nothing else goes wrong."""
    try:
        await step
    except (SessionDeletedError, SessionNotFoundError):
        return


async def live(memory: Memory, session_id: str) -> None:
    async with anyio.create_task_group() as group:
        for start in range(1, 41, 8):
            group.start_soon(attempt, save(memory, session_id, talk(8, start=start)))
            group.start_soon(attempt, memory.load_history(session_id, user_id=USER))
            await anyio.sleep(0.001)
        group.start_soon(attempt, memory.delete(session_id, user_id=USER))
        group.start_soon(attempt, save(memory, session_id, talk(2)))


async def test_saves_loads_and_deletion_in_any_order_end_deleted(url: str) -> None:
    async with agent_memory(scripted(delay_seconds=0.002), url) as memory:
        async with anyio.create_task_group() as group:
            for number in range(5):
                group.start_soon(live, memory, f"s{number}")
        await memory.drain()
        for number in range(5):
            with pytest.raises(SessionDeletedError):
                await memory.load_history(f"s{number}", user_id=USER)
            assert await memory.container.summary_store().get_summary(f"s{number}") is None
        assert (await memory.list_sessions(user_id=USER)).sessions == ()


async def test_ten_sessions_made_loaded_and_deleted_leave_no_summary(url: str) -> None:
    async with agent_memory(scripted(), url) as memory:
        memory, store = memory, memory.container.summary_store()
        for number in range(10):
            session_id = f"s{number}"
            await save(memory, session_id, talk(32))
            await memory.drain()
            assert (await memory.load_history(session_id, user_id=USER)).report.freshness == "fresh"
            session = await memory.get_session(session_id, user_id=USER)
            await memory.delete(session_id, user_id=USER)
            assert await store.get_summary(session_id) is None
            ledger = await store.read_ledger(session_id, session.branch)
            assert (ledger.segments, ledger.facts) == ((), ())
        assert await memory.container.database().read(background_work.list_work, "summarize") == ()


async def test_five_saves_and_five_loads_pass_while_a_summary_runs(url: str) -> None:
    """However slow the summarizer, a load shows what its budget holds."""
    summarizer = scripted()
    summarizer.hold()
    async with agent_memory(
        summarizer, url, summary={"lazy_timeout_seconds": 0.02}, background={"close_grace_seconds": 0}
    ) as memory:
        await save(memory, "s", talk(20))
        for start in range(21, 31, 2):
            await save(memory, "s", talk(2, start=start))
            context = await memory.load_history("s", user_id=USER)
            assert texts(context.messages) == texts(talk(start + 1))
