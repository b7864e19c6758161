"""One loop finds the work of all kinds, and no kind waits for another."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any

import anyio
import pytest
from dependency_injector import providers

from reactor_memory import Container, open_container
from reactor_memory.core.log.summary_store import SqlSummaryStore
from reactor_memory.features.search import wiring
from reactor_memory.models.requests import ERASE, ERASE_USER, FORGET, INDEX_SEARCH, SCRUB, SUMMARIZE, Ahead
from reactor_memory.testing import FakeClock, ScriptedSummarizer, append_messages
from tests.acceptance.scenes import USER, eventually, scripted, settings, talk

pytestmark = pytest.mark.anyio

LEASE = 60
KINDS = (SUMMARIZE, INDEX_SEARCH, ERASE)
POLLING = {"poll_seconds": 0.02, "lease_seconds": LEASE}
"""Looks often for what is due; nothing else finds work, for a sweep comes once an hour."""


@asynccontextmanager
async def polling(clock: FakeClock, summarizer: ScriptedSummarizer, **background: Any) -> AsyncGenerator[Container]:
    def configure(container: Container) -> None:
        container.clock.override(providers.Object(clock))
        container.summarizer.override(providers.Object(summarizer))

    chosen = settings(search={"enabled": True}, background={**POLLING, **background})
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(wiring, "SWEEP_SECONDS", 3600)
        async with open_container(chosen, configure=configure) as container:
            yield container


async def save_unseen(container: Container, session_id: str, *, work_every: int | None = 10) -> None:
    """As another process saves: no hint is given here."""
    now = container.clock()()
    await append_messages(container.message_store(), session_id, talk(30), user_id=USER, now=now, work_every=work_every)


async def hold(container: Container, session_id: str, kind: str) -> None:
    """Take the lease as a process does that is killed then."""
    lease = await container.summary_store().claim(
        session_id, kind, now=container.clock()(), lease_microseconds=LEASE * 1_000_000
    )
    assert lease is not None


async def left(container: Container, session_id: str, kinds: Sequence[str]) -> Mapping[str, object]:
    """When which of these kinds is due, of those that have a row."""
    states = [await container.summary_store().work_state(session_id, kind) for kind in kinds]
    return {state.kind: state.due_at for state in states if state is not None and state.due_at is not None}


async def test_expired_lease_of_any_kind_is_found_by_next_look() -> None:
    clock = FakeClock()
    async with polling(clock, scripted()) as container:
        await save_unseen(container, "s", work_every=None)
        for kind in KINDS:
            await hold(container, "s", kind)
        assert (await left(container, "s", KINDS)).keys() == {*KINDS}
        clock.advance(LEASE + 1)
        for kind in KINDS:
            await eventually_none(container, "s", kind)


async def eventually_none(container: Container, session_id: str, kind: str) -> None:
    with anyio.fail_after(30):
        while await left(container, session_id, [kind]):  # noqa: ASYNC110 - no event tells of it
            await anyio.sleep(0.01)


async def test_a_backlog_of_one_kind_holds_up_no_other() -> None:
    """More sessions wait for a summarizer that does not answer than are found at a time."""
    clock, slow = FakeClock(), scripted()
    slow.hold()
    async with polling(clock, slow, close_grace_seconds=0) as container:
        for number in range(60):
            await save_unseen(container, f"s{number}")
        await eventually(lambda: slow.running > 0)
        await hold(container, "s59", ERASE)
        clock.advance(LEASE + 1)
        await eventually_none(container, "s59", ERASE)


async def test_one_question_asks_for_all_kinds(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple[str, ...]] = []
    due = SqlSummaryStore.due

    async def recorded(
        self: SqlSummaryStore, kinds: Sequence[str], *, now: int, limit: int, ahead: Ahead
    ) -> Mapping[str, tuple[str, ...]]:
        asked.append(tuple(kinds))
        return await due(self, kinds, now=now, limit=limit, ahead=ahead)

    monkeypatch.setattr(SqlSummaryStore, "due", recorded)
    async with polling(FakeClock(), scripted()):
        await eventually(lambda: len(asked) >= 3)
    assert set(asked) == {(SUMMARIZE, INDEX_SEARCH, ERASE, FORGET, ERASE_USER, SCRUB)}


@pytest.mark.slow
async def test_once_finds_more_than_is_found_at_a_time() -> None:
    async with polling(FakeClock(), scripted(), poll_seconds=3600) as container:
        for number in range(120):
            await save_unseen(container, f"s{number}")
        done = await container.background_work().run_once()
        assert done == 120 * 2, "summarised, and made searchable"
        assert await container.background_work().run_once() == 0
