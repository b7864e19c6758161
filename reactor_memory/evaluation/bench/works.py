"""The works, each as calls that do the same through the library and through the bare driver."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Sequence
from itertools import cycle
from typing import Any, NamedTuple, TypeAlias

from reactor_memory.evaluation.bench.bench_sessions import TURN, appended, crowd, loaded
from reactor_memory.evaluation.bench.memories import BUDGET, USER, Memories
from reactor_memory.evaluation.bench.raw import Raw, Turns, new_keys
from reactor_memory.evaluation.bench.results import Work
from reactor_memory.settings.settings import Settings
from reactor_memory.wiring.opening import open_container

Begin: TypeAlias = Callable[[], Awaitable[object]]
"""Prepares a call; awaiting what it returns is what is measured."""

COLD_EVERY = 10
"""Opening takes so much longer than anything else that it is done in every tenth round only."""


class Case(NamedTuple):
    """A work on sessions of one length. `sync` is measured while it is called."""

    work: Work
    size: int
    strategy: str
    ours: Begin
    raw: Begin | None = None
    sync: Callable[[], Callable[[], object]] | None = None
    every: int = 1


class Bench(NamedTuple):
    """What is measured: the library and, if there is one, the bare driver."""

    memories: Memories
    raw: Raw | None
    cold_settings: Settings
    keys: Iterator[str]


def opened_bench(memories: Memories, raw: Raw | None, cold_settings: Settings) -> Bench:
    return Bench(memories, raw, cold_settings, new_keys())


def cases(bench: Bench, works: Sequence[Work], sizes: Sequence[int], calls: int) -> Iterator[Case]:
    """Everything but `concurrent_32`, work by work, for each length of session."""
    for work in works:
        for size in sizes:
            if work == "append_turn":
                yield _append(bench, size, calls)
            elif work in _LOADS:
                yield _LOADS[work](bench, size)


def _append(bench: Bench, size: int, calls: int) -> Case:
    raw, manager = bench.raw, bench.memories.take_last
    ours, theirs, sync = (cycle(appended(size, calls)) for _ in range(3))
    return Case(
        "append_turn",
        size,
        "take_last",
        lambda: save_turn(bench, manager, next(ours)),
        raw and (lambda: raw.append(raw.turns.rows(next(theirs)))),
        raw and raw.sync_turns and _sync_append(raw, raw.sync_turns, sync),
    )


def _sync_append(raw: Raw, turns: Turns, sessions: Iterator[str]) -> Callable[[], Callable[[], object]]:
    return lambda: _bound(raw.sync_append, turns.rows(next(sessions)))


def save_turn(bench: Bench, manager: Any, session: str) -> Awaitable[object]:
    return manager.save_history(session, TURN, user_id=USER, idempotency_key=next(bench.keys))


def _last_20(bench: Bench, size: int) -> Case:
    return _newest(
        bench, "load_last_20", size, 20, lambda: bench.memories.take_last.load_history(loaded(size), user_id=USER)
    )


def _last_200(bench: Bench, size: int) -> Case:
    manager = bench.memories.take_200
    return _newest(
        bench, "load_200_trim", size, 200, lambda: manager.load_history(loaded(size), user_id=USER, budget=BUDGET)
    )


def _newest(bench: Bench, work: Work, size: int, messages: int, ours: Begin) -> Case:
    raw = bench.raw
    return Case(
        work,
        size,
        "take_last",
        ours,
        raw and (lambda: raw.last(loaded(size), messages)),
        raw and raw.sync_last and (lambda: _bound(raw.sync_last, loaded(size), messages)),
    )


def _hierarchical(bench: Bench, size: int) -> Case:
    raw = bench.raw
    return Case(
        "load_hierarchical",
        size,
        "hierarchical",
        lambda: load_memory(bench.memories.hierarchical, loaded(size)),
        raw and (lambda: raw.memory(loaded(size), BUDGET)),
        raw and raw.sync_memory and (lambda: _bound(raw.sync_memory, loaded(size), BUDGET)),
    )


def load_memory(manager: Any, session: str) -> Awaitable[Any]:
    """A context with memory; nothing is recalled."""
    return manager.load_history(session, user_id=USER, budget=BUDGET, query="")


def _cold(bench: Bench, size: int) -> Case:
    raw = bench.raw

    async def ours() -> None:
        async with open_container(bench.cold_settings) as container:
            await container.conversation_manager().load_history(loaded(size), user_id=USER)

    return Case("cold_load", size, "take_last", ours, raw and (lambda: raw.cold(loaded(size), 20)), every=COLD_EVERY)


_LOADS: dict[Work, Callable[[Bench, int], Case]] = {
    "load_last_20": _last_20,
    "load_hierarchical": _hierarchical,
    "load_200_trim": _last_200,
    "cold_load": _cold,
}


def _bound(call: Callable[..., object] | None, *values: object) -> Callable[[], object]:
    assert call is not None
    return lambda: call(*values)


# 32 sessions at once


class Crowd(NamedTuple):
    """A turn (a load and an append) of the session with this number, in the library and in the bare driver."""

    strategy: str
    ours: Callable[[int], Awaitable[object]]
    raw: Callable[[int], Awaitable[object]] | None
    background: bool = False


def crowds(bench: Bench) -> tuple[Crowd, ...]:
    """With memory, what is loaded stays as it is just after its window moved, and the turn goes to another session of
    the same user: as if other processes did the background work in no time. Where this process does it itself, both go
    to the same session.
    """
    memories, raw = bench.memories, bench.raw
    read, written, live = map(crowd, ("read", "written", "live"))

    async def take_last(number: int) -> None:
        await memories.take_last.load_history(written[number], user_id=USER)
        await save_turn(bench, memories.take_last, written[number])

    async def hierarchical(number: int) -> None:
        await load_memory(memories.hierarchical, read[number])
        await save_turn(bench, memories.hierarchical, written[number])

    async def working(number: int) -> None:
        await load_memory(memories.working, live[number])
        await save_turn(bench, memories.working, live[number])

    async def raw_last(number: int) -> None:
        assert raw is not None
        await raw.last(written[number], 20)
        await raw.commit(raw.turns.rows(written[number]))

    async def raw_memory(number: int) -> None:
        assert raw is not None
        await raw.memory(read[number], BUDGET)
        await raw.commit(raw.turns.rows(written[number]))

    return (
        Crowd("take_last", take_last, raw and raw_last),
        Crowd("hierarchical", hierarchical, raw and raw_memory),
        Crowd("hierarchical", working, raw and raw_memory, background=True),
    )
