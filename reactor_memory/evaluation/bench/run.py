"""A run from the empty database to its results."""

from __future__ import annotations

import os
import platform
import sqlite3
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from datetime import UTC, datetime
from functools import partial
from importlib.metadata import version
from pathlib import Path
from random import Random
from statistics import median
from typing import Any, NamedTuple, TypeAlias

from reactor_memory.evaluation.bench.bench_sessions import crowd, crowd_size, loaded, wanted_sessions
from reactor_memory.evaluation.bench.databases import Database, OpenRaw, database
from reactor_memory.evaluation.bench.filled_sessions import fill
from reactor_memory.evaluation.bench.measurement import (
    Advance,
    Counts,
    Slices,
    Times,
    hop_us,
    rounds_of,
    take_counts,
    take_slices,
    take_times,
)
from reactor_memory.evaluation.bench.memories import USER, Memories, SettingsOf, memories, take_last_settings
from reactor_memory.evaluation.bench.results import Filling, Result, Run, Store, Work, growth, median_us, p99_us, ratio
from reactor_memory.evaluation.bench.statement_counter import counted
from reactor_memory.evaluation.bench.works import Bench, Case, Crowd, cases, crowds, load_memory, opened_bench
from reactor_memory.models import Message, Value
from reactor_memory.settings.settings import Settings
from reactor_memory.version import __version__

Stage: TypeAlias = Callable[[str, int], Advance]
"""Begins a part of the run, with its title and how much there is to do."""

PACKAGES = ("aiosqlite", "asyncpg", "msgspec", "tiktoken", "anyio")


class Plan(Value, frozen=True, kw_only=True):
    """What to measure. `calls` of each latency, `slices` of `seconds` each for the concurrent sessions. `texts` is what
    sessions are made of.
    """

    store: Store
    works: tuple[Work, ...]
    sizes: tuple[int, ...]
    calls: int
    seconds: float
    slices: int
    seed: int
    texts: tuple[Message, ...]
    url: str | None = None
    folder: Path | None = None


class Remembered(NamedTuple):
    """The memory of a session."""

    facts: int
    tokens: int


async def run(plan: Plan, settings_of: SettingsOf, stage: Stage) -> Run:
    async with database(plan.store, url=plan.url, folder=plan.folder) as made:
        return await _Runner(plan, made, partial(_settings_at, settings_of, made.url), stage).run()


def _settings_at(settings_of: SettingsOf, url: str, **sections: Any) -> Settings:
    return settings_of(store={"url": url, "auto_migrate": True}, **sections)


class _Runner:
    def __init__(self, plan: Plan, made: Database, settings_of: SettingsOf, stage: Stage) -> None:
        self._plan = plan
        self._database = made
        self._settings_of = settings_of
        self._stage = stage
        self._random = Random(plan.seed)  # noqa: S311 (the order of calls)

    async def run(self) -> Run:
        filling, remembered, opened_at = await self._fill()
        open_raw = await self._database.copy() if self._database.copy is not None else None
        counts = await self._count(open_raw)
        async with self._opened(open_raw) as bench:
            results, hops = await self._latencies(bench, counts, remembered)
            results += await self._throughputs(bench, remembered)
        return Run(
            results=tuple(results),
            growth=growth(results),
            store=self._plan.store,
            date=opened_at,
            machine=machine(),
            versions=versions(self._server),
            empty_hop_us=hops,
            filling=filling,
        )

    # -- sessions -----------------------------------------------------------------------------------------------

    async def _fill(self) -> tuple[Filling, Mapping[str, Remembered], str]:
        plan = self._plan
        wanted = tuple(wanted_sessions(plan.works, plan.sizes, plan.calls))
        total = sum(each.size * (1 + each.memory) for each in wanted)
        async with memories(self._settings_of, self._database.kept) as opened:
            self._server = dict((await opened.store.check()).details).get("store", "")
            advance = self._stage("making sessions", total)
            filling = await fill(opened, wanted, plan.texts, seed=plan.seed, advance=advance)
            remembered = {each.session_id: await _remembered(opened, each.session_id) for each in wanted if each.memory}
            date = datetime.fromtimestamp(opened.now() / 1e6, UTC).date().isoformat()
        return filling, remembered, date

    @asynccontextmanager
    async def _opened(self, open_raw: OpenRaw | None) -> AsyncGenerator[Bench]:
        async with AsyncExitStack() as stack:
            opened = await stack.enter_async_context(memories(self._settings_of, self._database.kept))
            raw = await stack.enter_async_context(open_raw()) if open_raw is not None else None
            yield opened_bench(opened, raw, take_last_settings(self._settings_of))

    def _cases(self, bench: Bench) -> list[Case]:
        works: list[Work] = [work for work in self._plan.works if work != "cold_load" or self._database.kept is None]
        return list(cases(bench, works, self._plan.sizes, self._plan.calls))

    # -- measuring ----------------------------------------------------------------------------------------------

    async def _count(self, open_raw: OpenRaw | None) -> list[Counts]:
        """What every case carries; a store without a driver carries nothing."""
        if open_raw is None:
            return []
        with counted() as carried:
            async with self._opened(open_raw) as bench:
                return await take_counts(self._cases(bench), carried)

    async def _latencies(
        self, bench: Bench, counts: Sequence[Counts], remembered: Mapping[str, Remembered]
    ) -> tuple[list[Result], float | None]:
        measured = self._cases(bench)
        if not measured:
            return [], None
        times, hops = await take_times(
            measured,
            bench.raw and bench.raw.hop,
            rounds=self._plan.calls,
            random=self._random,
            advance=self._stage("measuring calls", rounds_of(measured, self._plan.calls)),
        )
        found = [
            latency(case, taken, self._plan.store, counts[at] if counts else None, remembered.get(loaded(case.size)))
            for at, (case, taken) in enumerate(zip(measured, times, strict=True))
        ]
        return found, hop_us(hops)

    async def _throughputs(self, bench: Bench, remembered: Mapping[str, Remembered]) -> list[Result]:
        if "concurrent_32" not in self._plan.works:
            return []
        all_crowds = crowds(bench)
        slices = self._plan.slices * sum(1 + (each.raw is not None) for each in all_crowds)
        taken = await take_slices(
            all_crowds,
            rounds=self._plan.slices,
            seconds=self._plan.seconds,
            random=self._random,
            rest=bench.memories.working.drain,
            advance=self._stage("measuring 32 sessions", slices),
        )
        memory = remembered[crowd("read")[0]]
        return [throughput(each, found, self._plan, memory) for each, found in zip(all_crowds, taken, strict=True)]


async def _remembered(opened: Memories, session_id: str) -> Remembered:
    summary = await opened.hierarchical.get_summary(session_id, user_id=USER)
    context = await load_memory(opened.hierarchical, session_id)
    tokens = context.report.tokens
    return Remembered(len(summary.facts()) if summary else 0, tokens.get("facts", 0) + tokens.get("narrative", 0))


def latency(case: Case, times: Times, store: Store, counts: Counts | None, memory: Remembered | None) -> Result:
    """The row of a case."""
    raw = median_us(times.raw) if times.raw else None
    ours = median_us(times.ours)
    return Result(
        work=case.work,
        store=store,
        size=case.size,
        strategy=case.strategy,
        calls=len(times.ours),
        median_us=ours,
        p99_us=p99_us(times.ours),
        raw_median_us=raw,
        raw_p99_us=p99_us(times.raw) if times.raw else None,
        ratio_to_raw=ratio(ours, raw),
        sync_sqlite3_median_us=median_us(times.sync) if times.sync else None,
        rows_read=counts and counts.rows,
        raw_rows_read=counts and counts.raw_rows,
        queries=counts and counts.queries,
        facts=memory and memory.facts,
        memory_tokens=memory and memory.tokens,
    )


def throughput(each: Crowd, slices: Slices, plan: Plan, memory: Remembered) -> Result:
    """The row of a crowd. The ratio is the median of those of the rounds."""
    turns = [time for taken in slices.ours for time in taken.turns]
    raw_turns = [time for taken in slices.raw for time in taken.turns]
    rates = [taken.turns_per_second for taken in slices.ours]
    raw_rates = [taken.turns_per_second for taken in slices.raw]
    shares = [ours / raw for ours, raw in zip(rates, raw_rates, strict=False)]
    return Result(
        work="concurrent_32",
        store=plan.store,
        size=crowd_size(plan.sizes),
        strategy=each.strategy,
        calls=len(turns),
        median_us=median_us(turns),
        p99_us=p99_us(turns),
        raw_median_us=median_us(raw_turns) if raw_turns else None,
        raw_p99_us=p99_us(raw_turns) if raw_turns else None,
        ratio_to_raw=ratio(median(shares), 1) if shares else None,
        facts=memory.facts if each.strategy == "hierarchical" else None,
        memory_tokens=memory.tokens if each.strategy == "hierarchical" else None,
        turns_per_second=round(median(rates)),
        raw_turns_per_second=round(median(raw_rates)) if raw_rates else None,
        background=each.background,
    )


def machine() -> dict[str, str]:
    """What may be told about the machine: what it can do, not what it is called."""
    return {
        "system": f"{platform.system()} {platform.release()}",
        "processor": platform.machine(),
        "cores": str(os.cpu_count() or 0),
    }


def versions(server: str) -> dict[str, str]:
    own = {
        "reactor-memory": __version__,
        "python": platform.python_version(),
        "sqlite": sqlite3.sqlite_version,
        "store": server,
    }
    return own | {package: version(package) for package in PACKAGES}
