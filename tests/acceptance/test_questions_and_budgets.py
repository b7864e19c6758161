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

from reactor_memory import Context, Memory, Message, open_memory
from reactor_memory.evaluation.probes import Probe, find
from reactor_memory.evaluation.units import context_units
from tests.acceptance.scenes import USER, save

pytestmark = pytest.mark.anyio

BUDGETS = (600, 1_000, 2_000, 4_000)
LARGE = 16_000
FULL = 0.95
"""What waits for the next batch of the window is free: at most so much of a large budget."""

LEAST_FILL = {600: 0.97, 1_000: 0.97, 1_500: 0.97}
"""What is left holds neither a message nor the beginning of one."""

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


@pytest.mark.slow
@pytest.mark.timeout(1_800)
@pytest.mark.skipif(development() is None, reason="the development data do not lie beside the repository")
async def test_a_question_shows_no_less_of_the_development_data() -> None:
    lost: list[str] = []
    for session in sessions():
        asked = [
            Probe(question=each["question"], anchor=tuple(each["anchor"]), value=tuple(each["value"]))
            for each in session["probes"]
        ]
        async with open_memory("memory://") as memory:
            await memory.save_history(session["id"], [stored(each) for each in session["messages"]], user_id=USER)
            await memory.drain()
            lost += await worse(memory, session["id"], asked[::2], (*BUDGETS, 8_000, LARGE))
    assert lost == []
