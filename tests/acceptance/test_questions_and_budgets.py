"""A question never shows less than no question, a larger budget never less than a smaller one, and no context is half
empty while something of the session is left out.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from reactor_memory import Context, Memory, Message, Settings, open_memory, sync
from reactor_memory.evaluation.generator import generate_sessions
from reactor_memory.evaluation.probes import Probe, find
from reactor_memory.evaluation.sessions import split_turns
from reactor_memory.evaluation.units import context_units
from tests.acceptance.scenes import USER, save

pytestmark = pytest.mark.anyio

BUDGETS = (600, 1_000, 2_000, 4_000)
IN_THOUSAND = 0.001
"""None was lost when it was measured; a line that the reader will write otherwise may hold what no passage does."""
LARGE = 16_000
FULL = 0.95
"""What waits for the next batch of the window is free: at most so much of a large budget."""

LEAST_FILL = {600: 0.95, 1_000: 0.95, 1_500: 0.95}
"""What is left holds neither a message nor the beginning of one, or waits for the next line of memory."""

TEXT = "harbour ledger copper window season basket thunder village engine marble orchard signal"
WORDS = TEXT.split()


def prose(seed: int, words: int) -> str:
    return " ".join(f"{WORDS[(seed * 7 + n * n) % len(WORDS)]}{'.' * (n % 11 == 10)}" for n in range(words))


def errands(count: int = 40, paste: int = 0) -> list[Message]:
    """Turns that each tell one detail, every ninth with a long answer or a paste."""
    said: list[Message] = []
    for number in range(count):
        long = prose(number, paste if number % 9 == 4 and paste else 60 if number % 9 == 4 else 12)
        said.append(
            Message.user(f"The {WORDS[number % 12]} permit of site {number} has the code KX-{4000 + number}. {long}")
        )
        said.append(Message.assistant(f"Noted for site {number}: {prose(number + 50, 15)}"))
    return said


def probes(count: int = 40, every: int = 5) -> list[Probe]:
    return [
        Probe(
            question=f"What was the code of the permit of site {n}?", anchor=(f"site {n}",), value=(f"KX-{4000 + n}",)
        )
        for n in range(0, count, every)
    ]


def shows(context: Context, probe: Probe) -> bool:
    return find(probe, context_units(context)) is not None


async def worse(memory: Memory, session_id: str, asked: Sequence[Probe], budgets: Sequence[int]) -> list[str]:
    """The questions whose answer is shown without them, and not with them. Each budget has its own window, so that each
    question finds one that has not moved for another.
    """
    lost: list[str] = []
    for about in budgets:
        for budget, probe in enumerate(asked, start=about):
            load: dict[str, Any] = {"user_id": USER, "budget": budget, "message": probe.question}
            without = await memory.load_history(session_id, query="", **load)
            if shows(without, probe) and not shows(await memory.load_history(session_id, **load), probe):
                lost.append(f"{session_id} {budget}: {probe.question}")
    return lost


@pytest.mark.parametrize("paste", [0, 700])
async def test_a_question_never_shows_less_than_none(paste: int) -> None:
    async with open_memory("memory://") as memory:
        await save(memory, "s", errands(paste=paste))
        await memory.drain()
        assert await worse(memory, "s", probes(), BUDGETS) == []


async def test_a_large_context_is_full_while_something_is_left_out() -> None:
    async with open_memory("memory://") as memory:
        await save(memory, "s", errands(180, paste=300))
        await memory.drain()
        for query in ("", None, "permit codes"):
            context = await memory.load_history(
                "s", user_id=USER, budget=LARGE, message="Which permits are there?", query=query
            )
            assert (context.report.window_start_seq or 1) > 1
            assert context.report.total_tokens >= FULL * LARGE


@pytest.mark.parametrize("characters", [3_000, 25_000])
async def test_a_paste_leaves_no_context_half_empty(characters: int) -> None:
    async with open_memory("memory://") as memory:
        for place in range(4):
            said = errands(16)
            said[4 + 7 * place] = Message.user(f"See this log: {prose(place, characters // 7)}")
            await save(memory, f"s{place}", said)
        await memory.drain()
        for place in range(4):
            for budget, least in LEAST_FILL.items():
                context = await memory.load_history(
                    f"s{place}", user_id=USER, budget=budget, message="Go on.", query=""
                )
                assert context.report.total_tokens >= least * budget


async def test_a_long_newest_turn_leaves_room_to_what_answers() -> None:
    async with open_memory("memory://") as memory:
        said = errands(24)
        said[-1] = Message.assistant(f"Here is the log: {prose(1, 1_500)}")
        await save(memory, "s", said)
        await memory.drain()
        for budget in (600, 1_000):
            context = await memory.load_history("s", user_id=USER, budget=budget, query="permit code of site 3")
            assert context.report.tokens.keys() >= {"facts", "window", "recalled"}
            assert context.report.total_tokens >= 0.9 * budget


@pytest.fixture(scope="module", params=[2, 3])
def generated(request: pytest.FixtureRequest) -> Iterator[sync.Memory]:
    (session,) = generate_sessions(1, seed=request.param)
    with sync.open_memory("memory://") as memory:
        for turn in split_turns(session.messages[:260]):
            memory.save_history("s", turn, user_id=USER)
        memory.drain()
        yield memory


def whole(context: Context) -> set[int]:
    """The messages that a context shows as they are."""
    cut = {seq for entry in context.report.clamped for seq in range(entry.first, entry.last + 1)}
    return {message.seq for message in context.messages if message.seq} - cut


@settings(max_examples=8, deadline=None)
@example(909, 20)
@example(1_643, 1_643)
@example(4_022, 20)
@given(st.integers(600, 4_500), st.integers(1, 4_500))
def test_a_larger_budget_shows_no_message_less(generated: sync.Memory, budget: int, more: int) -> None:
    small, large = (
        generated.load_history("s", user_id=USER, budget=size, query="") for size in (budget, budget + more)
    )
    assert whole(small) <= whole(large)


# -- the development data, where they lie beside the repository -----------------------------------------------------


def development() -> Path | None:
    found = (parent / "shared" / "data" for parent in Path(__file__).resolve().parents)
    return next((path for path in found if (path / "agents-dev.jsonl.gz").is_file()), None)


def sessions() -> Iterator[dict[str, Any]]:
    folder = development()
    for name in ("agents-dev.jsonl.gz", "languages-dev.jsonl.gz") if folder else ():
        with gzip.open(folder / name, "rt", encoding="utf-8") as lines:  # type: ignore[operator]
            yield from map(json.loads, lines)


def stored(said: dict[str, Any]) -> dict[str, Any]:
    given = {key: value for key, value in said.items() if key not in ("at", "tool_calls")}
    if said.get("at"):
        given["created_at"] = int(datetime.fromisoformat(said["at"]).timestamp() * 1e6)
    if said.get("tool_calls"):
        given["tool_calls"] = [
            {
                "id": call["id"],
                "type": "function",
                "function": {"name": call["name"], "arguments": _text(call["arguments"])},
            }
            for call in said["tool_calls"]
        ]
    return given


def _text(arguments: Any) -> str:
    return arguments if isinstance(arguments, str) else json.dumps(arguments, ensure_ascii=False)


def probes_of(session: dict[str, Any]) -> list[Probe]:
    return [
        Probe(question=each["question"], anchor=tuple(each["anchor"]), value=tuple(each["value"]))
        for each in session["probes"]
    ]


PATIENT = Settings(store={"url": "memory://", "timeout_seconds": 120})
"""A session of development data is one batch."""

IN_TWO = 0.005
"""Of the details, memory tells so many in one line ("taken back: ...") that a larger window shows in two messages."""


@pytest.mark.slow
@pytest.mark.timeout(1_800)
@pytest.mark.skipif(development() is None, reason="the development data do not lie beside the repository")
async def test_a_larger_budget_shows_no_less_of_the_development_data() -> None:
    lost, shown = list[str](), 0
    for session in sessions():
        async with open_memory(PATIENT) as memory:
            await memory.save_history(session["id"], [stored(each) for each in session["messages"]], user_id=USER)
            await memory.drain()
            before: tuple[set[int], list[Probe]] = (set(), [])
            for budget in (600, 800, 1_000, 1_500, 2_000, 3_000, 4_000, 6_000, 8_000, 12_000, LARGE):
                context = await memory.load_history(session["id"], user_id=USER, budget=budget, query="")
                assert before[0] <= whole(context), f"{session['id']} {budget}"
                lost += [f"{session['id']} {budget}: {each.question}" for each in before[1] if not shows(context, each)]
                before = whole(context), [each for each in probes_of(session) if shows(context, each)]
                shown += len(before[1])
    assert len(lost) <= IN_TWO * shown, lost


@pytest.mark.slow
@pytest.mark.timeout(1_800)
@pytest.mark.skipif(development() is None, reason="the development data do not lie beside the repository")
async def test_a_question_shows_no_less_of_the_development_data() -> None:
    """What leaves the context for what comes back, and answers, comes back with it."""
    lost, asked = list[str](), 0
    for session in sessions():
        async with open_memory(PATIENT) as memory:
            await memory.save_history(session["id"], [stored(each) for each in session["messages"]], user_id=USER)
            await memory.drain()
            probes, budgets = probes_of(session)[::2], (*BUDGETS, 8_000, LARGE)
            lost += await worse(memory, session["id"], probes, budgets)
            asked += len(probes) * len(budgets)
    assert len(lost) <= IN_THOUSAND * asked, lost
