"""Turns that run at once in a session: memory tells of them as if one had followed the other."""

from __future__ import annotations

import json
import random
import re
from collections import Counter
from collections.abc import Collection, Sequence
from itertools import chain
from typing import Any, NamedTuple

import pytest

from reactor_memory import Memory, Message, ToolCall, open_memory
from reactor_memory.features.facts.quoting.quotation_lines import quotation_lines
from reactor_memory.models.ledger import Fact
from reactor_memory.testing.recall import found
from tests.acceptance.at_once import AtOnce, order_of
from tests.acceptance.scenes import USER, settings
from tests.doubles.plugged_store import RECORDS, plug_in_records

pytestmark = pytest.mark.anyio

PEOPLE = ("Aino", "Bruno", "Carla", "Dorin", "Emil", "Frida", "Goran", "Hanna")
TOOLS = ("book_ferry", "refund_order", "update_address", "cancel_trip", "reserve_room")
Turn = list[list[Message]]
"""The batches that it stores, one after the other."""


def asks(name: str) -> list[Message]:
    return [Message.user(f"Which seat did {name} take, and what is the fare?")]


def calls(name: str, *ids: str, says: str = "") -> list[Message]:
    tool = TOOLS[(PEOPLE.index(name) + len(ids)) % len(TOOLS)]
    made = [ToolCall(id=each, name=tool, arguments={"traveller": name, "leg": each[-1]}) for each in ids]
    return [Message.assistant(says, tool_calls=made)]


def gives(name: str, call_id: str) -> list[Message]:
    told = {"booking_id": f"{name[:2].upper()}-{len(name)}{call_id[-1]}7", "seat": f"{call_id[-1]}{name[0]}"}
    return [Message.tool(json.dumps(told), tool_call_id=call_id)]


def answers(name: str) -> list[Message]:
    return [Message.assistant(f"{name} took seat {len(name)}{name[0]}, the fare is {40 + PEOPLE.index(name)} euros.")]


def turn_of(name: str, exchanges: int, *, ids: str = "") -> Turn:
    """With `ids` those of calls are the same in all turns."""
    told = [(f"{ids or name}-{number}") for number in range(exchanges)]
    steps = [batch for each in told for batch in (calls(name, each), gives(name, each))]
    return [asks(name), *steps, answers(name)]


def streamed(name: str, ids: Sequence[str]) -> Turn:
    """Calls that are made at once, each result stored when it comes, the last one first."""
    return [asks(name), calls(name, *ids), *(gives(name, each) for each in reversed(ids)), answers(name)]


def interrupted(name: str) -> Turn:
    return [asks(name), calls(name, f"{name}-0"), gives(name, f"{name}-0"), calls(name, f"{name}-1")]


class Told(NamedTuple):
    """What memory has of the turns: its lines, and its records with names of messages that do not tell their order."""

    lines: list[str]
    records: Counter[tuple[Any, ...]]
    segments: list[tuple[int, int]]


async def told(
    url: str, turns: Sequence[Turn], order: Sequence[int], *, drained: Collection[int] = (), reopened: int = -1
) -> Told:
    """Of turns of which one stores its next batch for each number of the order; memory is made after some of them, by
    another process from one on.
    """
    names = _names(turns, order)
    before, after = (order, ()) if reopened < 0 else (order[:reopened], order[reopened:])
    running: AtOnce | None = None
    for part in filter(None, (before, after)):
        async with open_memory(settings(url)) as memory:
            running = running or AtOnce(memory, turns)
            running.go_on(memory)
            for place, number in enumerate(part):
                await running.store([number])
                if place in drained:
                    await memory.drain()
            await memory.drain()
            if part is (after or before):
                await _talk_on(memory)
                return await _told(memory, names)
    raise AssertionError


async def _talk_on(memory: Memory) -> None:
    talk = (
        [Message.user(f"Thanks for {number}, go on please."), Message.assistant("The weather is sunny.")]
        for number in range(25)
    )
    await memory.save_history("s", list(chain.from_iterable(talk)), user_id=USER)
    await memory.drain()


def _names(turns: Sequence[Turn], order: Sequence[int]) -> dict[int, str]:
    """Of each message of the log its turn, and the batch and the place in that."""
    names: dict[int, str] = {}
    batches: Counter[int] = Counter()
    for number in order:
        batch = turns[number][batches[number]]
        names |= {len(names) + 1: f"{number}.{batches[number]}.{place}" for place in range(len(batch))}
        batches[number] += 1
    return names


async def _told(memory: Memory, names: dict[int, str]) -> Told:
    session = await memory.get_session("s", user_id=USER)
    ledger = await memory.container.summary_store().read_ledger("s", session.branch)
    facts = tuple(fact for fact in ledger.facts if fact.source_seq in names)
    lines = [each.line.text for each in quotation_lines(facts, len)]
    records = Counter(_record(fact, names) for fact in facts)
    return Told(lines, records, [(each.start_seq, each.end_seq) for each in ledger.segments])


def _record(fact: Fact, names: dict[int, str]) -> tuple[Any, ...]:
    key = re.sub(r"\.to_(\d+)", lambda found: "" if fact.key[0] == "c" else names[int(found[1])], fact.key)
    key = re.sub(r"\.said_\w+$", "", key)
    anchor = re.sub(r" #(\d+)", lambda found: f" #{names[int(found[1])]}", fact.anchor)
    return names[fact.source_seq], anchor, key, fact.value, fact.failed, fact.act, fact.salience


def in_sequence(turns: Sequence[Turn], order: Sequence[int]) -> list[int]:
    """The same turns, one after the other, in the order in which they began."""
    return [number for number in dict.fromkeys(order) for _ in turns[number]]


CASES: dict[str, tuple[list[Turn], str]] = {
    "step by step": ([turn_of("Aino", 3), turn_of("Bruno", 3)], "ab ab ab ab ab ab ab ab"),
    "one inside another": ([turn_of("Aino", 3), turn_of("Bruno", 2)], "aaaa bbbbbb aaaa"),
    "equal ids of calls": (
        [turn_of("Aino", 4, ids="call"), turn_of("Bruno", 4, ids="call")],
        "ab ba ab ba ab ba ab ba ab ba",
    ),
    "results of three come one by one": (
        [streamed(name, [f"{name}-{number}" for number in range(3)]) for name in PEOPLE[:3]],
        "abc abc abc bca cab abc",
    ),
    "one is interrupted beside one that ends": ([interrupted("Aino"), turn_of("Bruno", 2)], "ab ab ab ab bb"),
    "a call waits while another turn is sealed": (
        [turn_of("Aino", 1), turn_of("Bruno", 26)],
        "aa " + "b" * 54 + "aa",
    ),
    "all begin before one is answered": ([turn_of(name, 6, ids="call") for name in PEOPLE[:4]], "abcd" * 14),
}


def case(name: str) -> tuple[list[Turn], list[int]]:
    turns, order = CASES[name]
    return turns, ["abcdefgh".index(each) for each in order if each != " "]


@pytest.mark.parametrize("name", CASES)
async def test_memory_tells_turns_at_once_one_by_one(name: str) -> None:
    turns, order = case(name)
    at_once = await told("memory://", turns, order)
    one_by_one = await told("memory://", turns, in_sequence(turns, order))
    assert at_once.lines == one_by_one.lines
    if name != "a call waits while another turn is sealed":
        assert at_once.records == one_by_one.records
    assert len(at_once.segments) > 1


OFTEN = ("equal ids of calls", "results of three come one by one")


@pytest.mark.parametrize(
    "name", [name if name in OFTEN else pytest.param(name, marks=pytest.mark.slow) for name in CASES]
)
async def test_memory_of_turns_at_once_is_alike_everywhere(
    name: str, shared_by_processes: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever makes it and whenever, and in a store of records."""
    plug_in_records(monkeypatch)
    turns, order = case(name)
    whole = await told("memory://", turns, order)
    chance = random.Random(name)
    drained = chance.sample(range(len(order)), 3)
    assert await told(shared_by_processes, turns, order, drained=drained, reopened=len(order) // 2) == whole
    assert await told(RECORDS, turns, order, drained=drained) == whole


async def test_answer_stands_with_its_question_beside_another_turn() -> None:
    turns, order = case("step by step")
    lines = (await told("memory://", turns, order)).lines
    assert any('(to "Which seat did Aino take' in line and "Aino took seat 4A" in line for line in lines), lines
    assert any('(to "Which seat did Bruno take' in line and "Bruno took seat 5B" in line for line in lines), lines


async def test_late_result_is_told_with_its_call() -> None:
    turns, order = case("a call waits while another turn is sealed")
    at_once = await told("memory://", turns, order)
    assert at_once.segments[0][1] < len(order) - 2, "the call was sealed without its result"
    (line,) = [line for line in at_once.lines if "traveller=Aino" in line]
    assert "AI-407" in line
    assert "interrupted" not in line


async def test_recall_finds_results_with_calls_of_their_turn() -> None:
    turns, order = case("equal ids of calls")
    names = _names(turns, order)
    async with open_memory(settings()) as memory:
        await AtOnce(memory, turns).store(order)
        await _talk_on(memory)
        store, index = memory.container.message_store(), memory.container.recall_index()
        hits = (await found(store, index, "s", "booking_id seat")).found  # type: ignore[arg-type]
    called = {names[hit.passage.seq]: names[hit.passage.call_seq] for hit in hits if hit.passage.call_seq}
    results = {given: made for given, made in called.items() if given != made}
    assert results == {f"{turn}.{2 + 2 * leg}.0": f"{turn}.{1 + 2 * leg}.0" for turn in (0, 1) for leg in range(4)}


async def check_random(seed: int) -> None:
    chance = random.Random(seed)
    turns = [
        turn_of(name, chance.choice((0, 1, 2, 4, 14)), ids=("", "call")[seed % 2]) for name in PEOPLE[: 2 + seed % 7]
    ]
    order = order_of(turns, chance, 2 + seed % 3)
    drained = chance.sample(range(len(order)), min(5, len(order)))
    at_once = await told("memory://", turns, order, drained=drained)
    assert at_once.lines == (await told("memory://", turns, in_sequence(turns, order))).lines, seed
    assert at_once == await told("memory://", turns, order), seed


@pytest.mark.parametrize("seed", range(2))
async def test_memory_of_random_turns_at_once_is_sequential(seed: int) -> None:
    await check_random(seed)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(2, 40))
async def test_memory_of_many_random_turns_at_once(seed: int) -> None:
    await check_random(seed)
