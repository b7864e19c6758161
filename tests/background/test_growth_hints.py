"""A save that cannot have completed a segment starts no work, and every other one does."""

from __future__ import annotations

from collections.abc import Awaitable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reactor_memory import open_memory
from reactor_memory.background import growth_hints
from reactor_memory.background.growth_hints import GrowthHints
from reactor_memory.database.sqlite import SqliteDatabase
from reactor_memory.models import Message
from reactor_memory.models.leases import Lease
from reactor_memory.settings.settings import Settings

pytestmark = pytest.mark.anyio


class Sealing:
    """Seals a session in runs of `every` messages, as far as it is; a row at a time."""

    def __init__(self, every: int) -> None:
        self.every = every
        self.length = 0
        self.covered = 0

    async def step(self, lease: Lease) -> int | None:
        if self.length < self.covered + self.every:
            return None
        self.covered += self.every
        return self.covered

    async def reached(self, session_id: str) -> int:
        return self.covered


def lease(session_id: str = "s") -> Lease:
    return Lease(session_id=session_id, kind="summarize", fence=1, lease_until=0, attempts=0)


async def attempt(hints: GrowthHints) -> None:
    reached: int | None = await hints.reached("s")
    while reached is not None:
        reached = await hints.step(lease())


def hints_of(work: Sealing, *, trigger: int = 20) -> GrowthHints:
    return GrowthHints(work.step, work.reached, trigger=trigger, every=work.every)


async def test_save_that_completes_nothing_is_no_hint() -> None:
    work = Sealing(10)
    hints = hints_of(work)
    assert not hints.wants("s", 20)
    work.length = 24
    assert hints.wants("s", 24)
    await attempt(hints)
    assert [length for length in range(25, 32) if hints.wants("s", length)] == [30, 31]


async def test_session_that_changed_and_did_not_grow_is_looked_at() -> None:
    work = Sealing(10)
    hints = hints_of(work)
    work.length = 24
    await attempt(hints)
    assert not hints.wants("s", 25)
    assert hints.wants("s", 25)


async def test_change_right_after_the_first_save_is_looked_at() -> None:
    work = Sealing(10)
    hints = hints_of(work)
    work.length = 24
    assert hints.wants("s", 24)
    await attempt(hints)
    assert hints.wants("s", 24), "withdrawn or erased: as long as it was"


async def test_forgotten_session_is_looked_at() -> None:
    work = Sealing(10)
    hints = hints_of(work)
    work.length = 24
    await attempt(hints)
    hints.forget(["s", "another"])
    assert hints.wants("s", 25)


async def test_session_that_lost_its_summary_is_looked_at() -> None:
    work = Sealing(10)
    hints = hints_of(work)
    work.length = 40
    await attempt(hints)
    work.covered = 0
    assert await hints.reached("s") == 0
    assert hints.wants("s", 41)


async def test_memory_of_sessions_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(growth_hints, "MOST_SESSIONS", 3)
    work = Sealing(10)
    hints = hints_of(work)
    work.length = work.covered = 20
    for name in "abcd":
        await hints.reached(name)
    assert hints.wants("a", 22), "of too many sessions the oldest are forgotten"
    assert not hints.wants("d", 22)


@given(every=st.integers(1, 12), trigger=st.integers(0, 30), saves=st.lists(st.integers(1, 7), max_size=30))
async def test_whatever_is_due_is_done_after_each_save(every: int, trigger: int, saves: list[int]) -> None:
    work = Sealing(every)
    hints = hints_of(work, trigger=trigger)
    for count in saves:
        work.length += count
        if hints.wants("s", work.length):
            await attempt(hints)
        assert work.length <= trigger or work.length < work.covered + every


async def test_turns_that_complete_no_segment_claim_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    claimed: list[str] = []
    write: Any = SqliteDatabase.write_relaxed

    def counting(self: SqliteDatabase, operation: Any, *args: Any, **values: Any) -> Awaitable[Any]:
        claimed.append(operation.__name__)
        return write(self, operation, *args, **values)

    monkeypatch.setattr(SqliteDatabase, "write_relaxed", counting)
    async with open_memory(Settings(store={"url": f"sqlite:///{tmp_path}/a.db"})) as memory:
        for turn in range(30):
            said = [Message.user(f"I paid bill {turn} today."), Message.assistant("Thank you.")]
            await memory.save_history("s", said, user_id="u")
            await memory.drain()
    assert 5 <= claimed.count("claim") <= 8, "five segments and some looks, not one for each of twenty saves"
