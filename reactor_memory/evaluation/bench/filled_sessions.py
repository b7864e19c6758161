"""Makes the sessions of a run, as an import does: large batches first, then the background work until none is left."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Sequence
from itertools import islice
from time import perf_counter

import anyio

from reactor_memory.evaluation.bench.bench_sessions import SAMPLE, TURN, Wanted, session_of
from reactor_memory.evaluation.bench.memories import BUDGET, USER, Memories
from reactor_memory.evaluation.bench.results import Filling
from reactor_memory.models import Message

BATCH = 1000
"""Messages in an append; the most that the default settings allow."""

LOOK_SECONDS = 0.25

Advance = Callable[[int], None]
"""Told how many messages were done since the last call."""


async def fill(
    memories: Memories, wanted: Sequence[Wanted], texts: Sequence[Message], *, seed: int, advance: Advance
) -> Filling:
    """Store all sessions, then let their memories grow, and move their windows."""
    await memories.take_last.save_history(SAMPLE, TURN, user_id=USER, idempotency_key="bench:0")
    messages, storing = await _timed(_store(memories, each, texts, seed, advance) for each in wanted)
    remembered = [each for each in wanted if each.memory]
    summarized, summarizing = await _timed(_summarize(memories, each, advance) for each in remembered)
    return Filling(
        messages=messages,
        messages_per_second=round(messages / storing),
        summarized_messages=summarized,
        summarized_messages_per_second=round(summarized / summarizing),
    )


async def _timed(works: Iterable[Awaitable[int]]) -> tuple[int, float]:
    """The sum, and the seconds that it took."""
    start = perf_counter()
    done = sum([await work for work in works])
    return done, perf_counter() - start


async def _store(memories: Memories, wanted: Wanted, texts: Sequence[Message], seed: int, advance: Advance) -> int:
    messages = session_of(texts, wanted.size, seed=seed)
    while batch := list(islice(messages, BATCH)):
        await memories.take_last.save_history(wanted.session_id, batch, user_id=USER)
        advance(len(batch))
    return wanted.size


async def _summarize(memories: Memories, wanted: Wanted, advance: Advance) -> int:
    """Do the background work; the load at the end moves the window, so that every measured one is just behind that."""
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(_follow, memories, wanted, advance)
        await memories.working.summarize(wanted.session_id, user_id=USER, timeout_seconds=float("inf"))
        tasks.cancel_scope.cancel()
    await memories.hierarchical.load_history(wanted.session_id, user_id=USER, budget=BUDGET, query="")
    return wanted.size


async def _follow(memories: Memories, wanted: Wanted, advance: Advance) -> None:
    """Tell how far the memory reaches, and at the end the rest."""
    told = 0
    try:
        while True:
            await anyio.sleep(LOOK_SECONDS)
            summary = await memories.working.get_summary(wanted.session_id, user_id=USER)
            covered = summary.covered_seq if summary else 0
            advance(covered - told)
            told = covered
    finally:
        advance(wanted.size - told)
