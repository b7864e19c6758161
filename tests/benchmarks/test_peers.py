"""The comparison with other libraries, without any of them: its pure parts, our adapter, and an invented library."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from benchmarks.peers.adapters.ours import ReactorMemory
from benchmarks.peers.addresses import sqlalchemy_url
from benchmarks.peers.checking import WrongAnswerError, problem_of_last, problem_of_trimmed
from benchmarks.peers.contender import EVERYTHING, Ability, MakeContender, Said, Turn
from benchmarks.peers.conversation import conversation, real_turns, turns_of
from benchmarks.peers.families import FAMILIES
from benchmarks.peers.interleaving import WARM_UP, interleave, microseconds, run_together
from benchmarks.peers.measuring import Measurement
from benchmarks.peers.plan import Effort
from benchmarks.peers.results import Profile, Report, Row, joined
from benchmarks.peers.table import GOALS, OURS, goal_of, is_missed, lines, surroundings
from benchmarks.peers.trimming import OVERHEAD, count_tokens, newest_that_fit

pytestmark = pytest.mark.anyio

ROOT = Path(__file__).parents[2]

TINY = Effort(sizes=(40,), most_calls=2, least_calls=1, seconds=10.0, rounds=2, round_seconds=0.01)


class Invented:
    """A library that keeps lists in memory, shared by everybody who opens the same place."""

    name = "invented"
    setting = "as it is"
    durability = "none"
    abilities: frozenset[Ability] = EVERYTHING

    def __init__(self, place: str, places: dict[str, dict[str, list[Said]]]) -> None:
        self._sessions = places.setdefault(place, {})
        self.open_now = False

    async def prepare(self) -> None: ...

    async def open(self) -> None:
        self.open_now = True

    async def close(self) -> None:
        self.open_now = False

    async def fill(self, session: str, messages: Sequence[Said]) -> None:
        self._sessions[session] = list(messages)

    async def append_turn(self, session: str, turn: Turn) -> None:
        self._sessions[session] += turn

    async def load_last(self, session: str, count: int) -> Sequence[Any]:
        return self._sessions[session][-count:]

    async def load_trimmed(self, session: str, count: int, budget: int) -> Sequence[Any]:
        return newest_that_fit(self._sessions[session][-count:], self.text_of, budget)

    def text_of(self, message: Any) -> str:
        return message.text


class Forgetful(Invented):
    """Loads one message less."""

    name = "forgetful"

    async def load_last(self, session: str, count: int) -> Sequence[Any]:
        return await super().load_last(session, count - 1)


class SteppingClock:
    """Each look at it, a call says how long it takes."""

    def __init__(self) -> None:
        self.now = 0

    def __call__(self) -> int:
        return self.now

    def call(self, nanoseconds: int) -> Any:
        async def take_time() -> None:
            self.now += nanoseconds

        return take_time


# -- the whole measurement ----------------------------------------------------------------------------------------


async def measured(folder: Path, peer: type[Invented]) -> tuple[list[Row], Measurement]:
    makers: list[MakeContender] = [partial(ReactorMemory, store="sqlite"), partial(peer, places={})]
    measurement = Measurement("sqlite", TINY)
    rows = await measurement.run(zip(makers, [str(folder / "ours.db"), str(folder / "peer.db")], strict=True))
    return rows, measurement


@pytest.mark.slow
async def test_every_work_of_everybody_is_measured(tmp_path: Path) -> None:
    rows, measurement = await measured(tmp_path, Invented)
    works = ["load_last_20", "load_hierarchical", "load_200_trim", "cold_load", "append_turn", "concurrent_32"]
    assert [(row.work, row.contender) for row in rows] == [
        (work, name) for work in works for name in (OURS, "invented")
    ]
    assert all(row.ratio == 1 for row in rows if row.contender == OURS)
    assert {profile.name for profile in measurement.profiles} == {OURS, "invented"}


@pytest.mark.slow
async def test_what_is_compared_is_the_median_of_the_same_rounds(tmp_path: Path) -> None:
    rows, _ = await measured(tmp_path, Invented)
    for row in rows:
        if row.work != "concurrent_32":
            assert row.ratio == row.median_us / row.ours_median_us


@pytest.mark.slow
async def test_who_loads_something_else_is_not_measured(tmp_path: Path) -> None:
    with pytest.raises(WrongAnswerError, match="forgetful, a conversation of 40 messages: loaded 19 messages"):
        await measured(tmp_path, Forgetful)


async def test_our_adapter_keeps_what_it_is_given(tmp_path: Path) -> None:
    ours = ReactorMemory(str(tmp_path / "ours.db"), "sqlite")
    await ours.prepare()
    await ours.open()
    try:
        said = conversation(30)
        await ours.fill("one", said[:28])
        await ours.append_turn("one", (said[28], said[29]))
        assert [ours.text_of(message) for message in await ours.load_last("one", 20)] == [
            each.text for each in said[10:]
        ]
        trimmed = await ours.load_trimmed("one", 200, 300)
        shown = [ours.text_of(message).partition("\n[… ")[0] for message in trimmed]  # the head of what was cut
        assert all(each.text.startswith(head) for each, head in zip(said[-len(trimmed) :], shown, strict=True))
        assert 0 < len(trimmed) < 30
    finally:
        await ours.close()


# -- interleaving -------------------------------------------------------------------------------------------------


async def test_each_call_is_timed_alone_and_warm_ups_are_ignored() -> None:
    clock = SteppingClock()
    calls = {"fast": clock.call(10), "slow": clock.call(1000)}
    effort = TINY._replace(most_calls=5)
    times = await interleave(calls, effort, Random(1), after=clock.call(7), clock=clock)
    assert times == {"fast": [10] * 5, "slow": [1000] * 5}
    assert clock.now == (WARM_UP + 5) * (10 + 1000 + 2 * 7)


async def test_a_peer_out_of_time_stops_and_others_go_on() -> None:
    clock = SteppingClock()
    calls = {"fast": clock.call(1), "slow": clock.call(2_000_000_000)}
    effort = Effort(sizes=(), most_calls=9, least_calls=3, seconds=1.0, rounds=0, round_seconds=0)
    times = await interleave(calls, effort, Random(1), clock=clock)
    assert {name: len(taken) for name, taken in times.items()} == {"fast": 9, "slow": 3}


async def test_sessions_talk_until_the_time_is_over() -> None:
    clock = SteppingClock()
    taken: list[str] = []

    async def turn(session: str) -> None:
        taken.append(session)
        clock.now += 100_000_000

    done = await run_together(["a", "b"], turn, 1.0, clock=clock)
    assert taken == ["a"] * 10 + ["b"], "who comes late on a busy machine takes a turn all the same"
    assert done.turns == len(done.latencies) == 11
    assert done.rate == 10.0


def test_median_and_tail_in_microseconds() -> None:
    assert microseconds([1000, 3000, 2000]) == (2.0, 3.0)
    assert microseconds([1500]) == (1.5, 1.5)


# -- the same work ------------------------------------------------------------------------------------------------


def test_talk_is_real_and_alternates() -> None:
    said = conversation(1200)
    assert len(said) == 1200
    assert [each.role for each in said] == ["user", "assistant"] * 600
    assert said[: 2 * len(real_turns())] != said[1:]
    assert said[2 * len(real_turns())] == said[0]


def test_an_answer_begins_with_what_the_tools_returned() -> None:
    messages: list[dict[str, Any]] = [
        {"role": "user", "content": "never answered"},
        {"role": "user", "content": "q"},
        {"role": "assistant", "content": "", "tool_calls": []},
        {"role": "tool", "content": "result"},
        {"role": "assistant", "content": "a"},
    ]
    assert list(turns_of(messages)) == [(Said("user", "q"), Said("assistant", "result\na"))]


@given(st.lists(st.integers(0, 50)), st.integers(0, 300))
def test_trimming_by_hand_keeps_the_longest_end_that_fits(sizes: list[int], budget: int) -> None:
    kept = newest_that_fit(sizes, "x".__mul__, budget, len)
    assert list(kept) == sizes[len(sizes) - len(kept) :]
    assert sum(size + OVERHEAD for size in kept) <= budget
    if len(kept) < len(sizes):
        assert sum(size + OVERHEAD for size in sizes[len(sizes) - len(kept) - 1 :]) > budget


def test_answers_are_compared_with_what_was_said() -> None:
    said = conversation(60)
    texts = [each.text for each in said]
    assert not problem_of_last(texts[-20:], said[-20:])
    assert problem_of_last(texts[-21:-1], said[-20:])

    def problem(loaded: list[str], budget: int) -> str:
        return problem_of_trimmed(loaded, said, budget, count_tokens, slack=0.25)

    assert not problem(texts, 100_000)
    assert not problem(list(newest_that_fit(texts, str, 1000)), 1000)
    assert "not the end" in problem(texts[:5], 1000)
    assert "not the end" in problem([], 1000)
    assert "do not fit" in problem(texts, 1000)
    assert "leave too much" in problem(texts[-1:], 1000)


@pytest.mark.parametrize(
    ("oldest", "is_refused"),
    [
        ("begin\n[… 7 characters left out; message 3 …]\nend", False),
        ("begin\n[… 9 characters left out; message 3 …]\n", False),
        ("begin\n[… 9 characters left out; message 3 …]\nother", True),
        ("other\n[… 9 characters left out; message 3 …]\nend", True),
        ("begin", True),
    ],
)
def test_only_the_middle_of_the_oldest_may_lack(oldest: str, is_refused: bool) -> None:
    said = [Said("user", "begin " + "middle " * 40 + "end"), Said("assistant", "answer")]

    def problem(loaded: list[str]) -> str:
        return problem_of_trimmed(loaded, said, 1000, count_tokens, slack=1)

    assert bool(problem([oldest, "answer"])) is is_refused
    assert problem([said[0].text, oldest]), "the newest must be whole"


def test_who_keeps_files_has_no_row_for_postgresql() -> None:
    assert [name for name, family in FAMILIES.items() if "postgres" not in family.stores] == ["strands-agents"]


# -- the table ----------------------------------------------------------------------------------------------------


def row(contender: str, ratio: float, **changes: Any) -> Row:
    made = Row(
        work="load_last_20",
        store="sqlite",
        size=100,
        contender=contender,
        calls=10,
        median_us=100.0 * ratio,
        p99_us=100.0 * ratio,
        ours_median_us=100.0,
        ratio=ratio,
    )
    return replace(made, **changes)


def test_the_table_lists_ours_then_the_best_peers_with_verdicts() -> None:
    rows = [
        row(OURS, 1.0),
        row(OURS, 1.0, median_us=120.0),
        row("other", 12.4),
        row("openai-agents SQLiteSession", 1.5),
        row(OURS, 1.0, size=1000),
        row("openai-agents SQLiteSession", 2.5, size=1000),
    ]
    assert list(lines(rows)) == [
        "| work | store | library | 100 | 1,000 | goal |  |",
        "| --- | --- | --- | --: | --: | --: | --- |",
        "| load the last 20 | SQLite | **reactor-memory** | 110 us | 100 us |  |  |",
        "|  |  | openai-agents SQLiteSession | 1.50 | 2.50 | 2 | missed |",
        "|  |  | other | 12 |  |  |  |",
    ]


def test_of_sessions_at_once_the_table_tells_turns_per_second() -> None:
    rows = [
        row(OURS, 1.0, work="concurrent_32", turns_per_second=7000.0),
        row("other", 4.0, work="concurrent_32", turns_per_second=1750.0),
    ]
    table = list(lines(rows))
    assert "7,000 turns/s" in table[2]
    assert table[3] == "|  |  | other | 4.00 | 4 | met |"


def test_goals_of_anybody_and_of_one_library() -> None:
    assert goal_of("append_turn", "postgres", "whoever") == 1.0
    assert goal_of("load_last_20", "postgres", "openai-agents SQLAlchemySession") == 5.0
    assert goal_of("load_last_20", "postgres", "whoever") is None
    assert is_missed([row("x", 2.0), row("x", 1.9)], 2.0)
    assert not is_missed([row("x", 2.0)], 2.0)
    assert not is_missed([row("x", 0.1)], None)


def test_reports_are_joined_and_ours_is_described_once() -> None:
    profile = Profile(name=OURS, store="sqlite", setting="", durability="")
    first = Report(rows=(row(OURS, 1.0),), profiles=(profile,), versions={"a": "1"}, python="3.11.7", cores=2)
    second = Report(rows=(row("x", 2.0),), profiles=(profile,), versions={"b": "2"}, postgres="18.6")
    both = joined([first, second])
    assert both.rows == (*first.rows, *second.rows)
    assert both.profiles == (profile,)
    assert both.versions == {"a": "1", "b": "2"}
    assert surroundings(both) == "CPython 3.11.7, 2 cores, PostgreSQL 18.6, a 1, b 2"
    assert surroundings(first) == "CPython 3.11.7, 2 cores, a 1"


# -- the environments ---------------------------------------------------------------------------------------------


def test_each_family_has_pinned_requirements_and_an_environment() -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    listed = re.search(r"^PEER_FAMILIES := (.*)$", makefile, re.MULTILINE)
    assert listed is not None
    assert listed[1].split() == list(FAMILIES)
    for name in FAMILIES:
        pinned = requirements(f"requirements-{name}.txt")
        assert all("==" in line for line in pinned)
        wanted = {re.sub(r"\[.*?\]", "", line) for line in requirements(f"requirements-{name}.in")}
        assert {line for line in wanted if "==" in line} <= set(pinned)
        missing = required() - {line.partition("==")[0] for line in pinned}
        assert not missing, f"compile requirements-{name}.txt anew: what is measured beside it needs {missing}"


def test_goals_name_works_and_stores_that_are_measured() -> None:
    assert {store for _, store, _ in GOALS} == {"sqlite", "postgres"}


def required() -> set[str]:
    """The packages that ours needs."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    return {re.split(r"[^\w.-]", each, maxsplit=1)[0].lower() for each in project["dependencies"]}


def requirements(name: str) -> list[str]:
    text = (ROOT / "benchmarks" / "peers" / name).read_text(encoding="utf-8")
    return [line for line in text.splitlines() if line and not line.startswith("#")]


def test_addresses_of_sqlalchemy() -> None:
    assert sqlalchemy_url("/data/x.db", "sqlite") == "sqlite+aiosqlite:////data/x.db"
    assert sqlalchemy_url("postgresql://me@host/name", "postgres") == "postgresql+asyncpg://me@host/name"
