"""Measures one family of libraries and ourselves over one store, in one process."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import cycle
from random import Random
from statistics import median

from msgspec.structs import replace

from benchmarks.peers.adapters.ours import ReactorMemory
from benchmarks.peers.checking import WrongAnswerError, problem_of_last, problem_of_trimmed
from benchmarks.peers.contender import Ability, Contender, MakeContender, Store
from benchmarks.peers.conversation import conversation, real_turns
from benchmarks.peers.databases import vacuum
from benchmarks.peers.interleaving import Call, Nanoseconds, Slice, interleave, microseconds, run_together
from benchmarks.peers.plan import BUDGET, CONCURRENT_SIZE, LAST, MANY, Effort, Work, concurrent_sessions, session_of
from benchmarks.peers.results import Profile, Row
from benchmarks.peers.trimming import count_tokens

OURS = ReactorMemory.name

SLACK = 0.25
"""Some flush in steps, count nothing for a message, or estimate: so far off the budget may be what they show."""


class Measurement:
    """Everybody over a database of their own, filled with the same conversations."""

    def __init__(self, store: Store, effort: Effort) -> None:
        self._store: Store = store
        self._effort = effort
        self._random = Random(4)
        self._turns = cycle(real_turns())
        self._makers: dict[str, tuple[MakeContender, str]] = {}
        self._contenders: dict[str, Contender] = {}

    async def run(self, makers: Iterable[tuple[MakeContender, str]]) -> list[Row]:
        """Each maker with the place of its empty database. Ours must be among them."""
        try:
            for make, place in makers:
                await self._add(make, place)
            rows = [row for size in self._effort.sizes for row in await self._measure(size)]
            return rows + await self._measure_concurrently()
        finally:
            for contender in self._contenders.values():
                await contender.close()

    @property
    def profiles(self) -> tuple[Profile, ...]:
        return tuple(
            Profile(name=name, store=self._store, setting=contender.setting, durability=contender.durability)
            for name, contender in self._contenders.items()
        )

    # -- getting ready ------------------------------------------------------------------------------------------

    async def _add(self, make: MakeContender, place: str) -> None:
        first = make(place)
        await first.prepare()
        await first.close()
        contender = make(place)
        self._makers[contender.name], self._contenders[contender.name] = (make, place), contender
        await contender.open()
        await self._fill(contender)
        for size in self._effort.sizes:
            await check(contender, size)

    async def _fill(self, contender: Contender) -> None:
        for size in self._effort.sizes:
            await contender.fill(session_of(size), conversation(size))
            if isinstance(contender, ReactorMemory):
                await contender.summarize(session_of(size))
        for session in concurrent_sessions():
            await contender.fill(session, conversation(CONCURRENT_SIZE))
        if self._store == "postgres":
            await vacuum(self._makers[contender.name][1])

    def _able(self, *abilities: Ability) -> dict[str, Contender]:
        return {name: found for name, found in self._contenders.items() if found.abilities.issuperset(abilities)}

    # -- one conversation ---------------------------------------------------------------------------------------

    async def _measure(self, size: int) -> list[Row]:
        """Loads first: what is appended makes it a conversation of another size."""
        trims = await self._time_trims(size)
        hierarchical = trims.pop("hierarchical")
        return [
            *self._compared("load_last_20", size, await self._time_loads(size)),
            *self._compared("load_hierarchical", size, trims | {OURS: hierarchical}),
            *self._compared("load_200_trim", size, trims),
            *self._compared("cold_load", size, await self._time_cold_loads(size)),
            *self._compared("append_turn", size, await self._time_appends(size)),
        ]

    async def _time_loads(self, size: int) -> dict[str, list[Nanoseconds]]:
        calls = {name: partial(found.load_last, session_of(size), LAST) for name, found in self._able("last").items()}
        return await interleave(calls, self._effort, self._random)

    async def _time_trims(self, size: int) -> dict[str, list[Nanoseconds]]:
        session = session_of(size)
        calls: dict[str, Call] = {
            name: partial(found.load_trimmed, session, MANY, BUDGET) for name, found in self._able("trimmed").items()
        }
        ours = self._contenders[OURS]
        assert isinstance(ours, ReactorMemory)
        calls["hierarchical"] = partial(ours.load_hierarchical, session, BUDGET)
        return await interleave(calls, self._effort, self._random)

    async def _time_cold_loads(self, size: int) -> dict[str, list[Nanoseconds]]:
        """A new connection or engine and its first load. Closing it is not timed."""
        opened: list[Contender] = []

        async def open_and_load(name: str) -> None:
            make, place = self._makers[name]
            contender = make(place)
            opened.append(contender)
            await contender.open()
            await contender.load_last(session_of(size), LAST)

        async def close() -> None:
            await opened.pop().close()

        calls = {name: partial(open_and_load, name) for name in self._able("last")}
        return await interleave(calls, self._effort, self._random, after=close)

    async def _time_appends(self, size: int) -> dict[str, list[Nanoseconds]]:
        async def append(contender: Contender) -> None:
            await contender.append_turn(session_of(size), next(self._turns))

        calls = {name: partial(append, found) for name, found in self._able("append").items()}
        return await interleave(calls, self._effort, self._random)

    def _compared(self, work: Work, size: int, times: Mapping[str, Sequence[Nanoseconds]]) -> Iterator[Row]:
        return (self._row(work, size, name, taken, times[OURS]) for name, taken in times.items())

    def _row(self, work: Work, size: int, name: str, taken: Sequence[Nanoseconds], ours: Sequence[Nanoseconds]) -> Row:
        (median_us, p99_us), (ours_median_us, _) = microseconds(taken), microseconds(ours)
        return Row(
            work=work,
            store=self._store,
            size=size,
            contender=name,
            calls=len(taken),
            median_us=median_us,
            p99_us=p99_us,
            ours_median_us=ours_median_us,
            ratio=median_us / ours_median_us,
        )

    # -- many conversations at once -----------------------------------------------------------------------------

    async def _measure_concurrently(self) -> list[Row]:
        """Everybody has the machine alone for a stretch, again and again in random order."""
        names = list(self._able("append", "last"))
        slices: dict[str, list[Slice]] = {name: [] for name in names}
        for _ in range(self._effort.rounds):
            for name in self._random.sample(names, len(names)):
                turn = partial(self._load_and_append, self._contenders[name])
                slices[name].append(await run_together(concurrent_sessions(), turn, self._effort.round_seconds))
        return [self._concurrent_row(name, slices[name], slices[OURS]) for name in names]

    async def _load_and_append(self, contender: Contender, session: str) -> None:
        await contender.load_last(session, LAST)
        await contender.append_turn(session, next(self._turns))

    def _concurrent_row(self, name: str, slices: Sequence[Slice], ours: Sequence[Slice]) -> Row:
        latencies = [taken for each in slices for taken in each.latencies]
        row = self._row("concurrent_32", CONCURRENT_SIZE, name, latencies, [t for each in ours for t in each.latencies])
        return _with_rates(row, [each.rate for each in slices], [each.rate for each in ours])


def _with_rates(row: Row, rates: Sequence[float], ours: Sequence[float]) -> Row:
    """The rates are compared round by round."""
    return replace(
        row,
        ratio=median(own / other for own, other in zip(ours, rates, strict=True)),
        turns_per_second=round(median(rates)),
        ours_turns_per_second=round(median(ours)),
    )


async def check(contender: Contender, size: int) -> None:
    """Raises `WrongAnswerError` unless the contender loads what it was filled with."""
    session, said = session_of(size), conversation(size)
    if "last" in contender.abilities:
        loaded = await contender.load_last(session, LAST)
        _refuse(contender, size, problem_of_last([contender.text_of(message) for message in loaded], said[-LAST:]))
    if "trimmed" in contender.abilities:
        loaded = await contender.load_trimmed(session, MANY, BUDGET)
        texts = [contender.text_of(message) for message in loaded]
        _refuse(contender, size, problem_of_trimmed(texts, said[-MANY:], BUDGET, count_tokens, slack=SLACK))
    if isinstance(contender, ReactorMemory):
        loaded = await contender.load_hierarchical(session, BUDGET)
        window = [contender.text_of(message) for message in loaded][-LAST // 2 :]
        _refuse(contender, size, problem_of_last(window, said[-LAST // 2 :]))


def _refuse(contender: Contender, size: int, problem: str) -> None:
    if problem:
        raise WrongAnswerError(contender.name, size, problem)
