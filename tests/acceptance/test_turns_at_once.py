"""Turns that run at once in a session: wherever a window begins, each question stands beside its answer."""

from __future__ import annotations

import random
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from itertools import pairwise
from typing import Any

import pytest

from reactor_memory import Memory, Message, ToolCall
from reactor_memory.core.context.context import Context
from reactor_memory.core.context.verification import verify
from reactor_memory.models.requests import ContextQuery
from tests.acceptance.at_once import AtOnce, order_of
from tests.acceptance.scenes import USER, agent_memory, scripted
from tests.proofs.provider_rules import provider_problems

pytestmark = pytest.mark.anyio

BUDGETS = (None, 150, 400, 1000, 4000)
STRATEGIES: dict[str, dict[str, Any]] = {
    "hierarchical": {},
    "take_last": {"summary": {"enabled": False}},
    "progressive": {"history": {"strategy": "progressive"}, "summary": {"enabled": False}},
}


def name_of(message: Message) -> str:
    """The turn that a message was said in."""
    return message.content.split()[0].partition(".")[0] if message.content else message.tool_calls[0].name


def called(turn: str, *ids: str) -> Message:
    return Message.assistant(tool_calls=[ToolCall(id=each, name=turn, arguments={"of": turn}) for each in ids])


def told(turn: str, call_id: str, words: int = 5) -> Message:
    return Message.tool(f"{turn}.{call_id} says " + "and so on " * words, tool_call_id=call_id)


def turn_of(name: str, exchanges: int, *, at_once: int = 1, ids: str = "") -> list[list[Message]]:
    """The batches of a turn: what the user said, each call, each result, the answer. With `ids` those of calls are the
    same in all turns.
    """
    batches = [[Message.user(f"{name} asks for page after page")]]
    for number in range(exchanges):
        names = [f"{ids or name}-{number}-{each}" for each in range(at_once)]
        batches += [[called(name, *names)], *([told(name, each)] for each in names)]
    return [*batches, [Message.assistant(f"{name} is answered")]]


async def problems(memory: Memory, context: Context, *, before_seq: int | None = None) -> list[str]:
    found = [*verify(context, count=memory.container.message_counter().of), *provider_problems(context)]
    question = ""
    shown = [message for message in context.messages if message.seq is not None]
    questions = {name_of(message) for message in shown if message.role == "user"}
    for message in shown:
        question = name_of(message) if message.role == "user" else question
        if name_of(message) != question and (question or name_of(message) in questions):
            found.append(f"{message.seq} of {name_of(message)} stands beside {question}")
    seqs = {message.seq or 0 for message in shown}
    last = before_seq - 1 if before_seq else (await memory.get_session("s", user_id=USER)).last_seq
    for seq in range(min(seqs, default=last + 1), last + 1):
        if seq not in seqs and context.report.why(seq).reason == "unknown":
            found.append(f"nothing tells of {seq}")
    return found


@asynccontextmanager
async def memory_of(strategy: str, url: str = "memory://") -> AsyncGenerator[Memory]:
    async with agent_memory(scripted(), url, **STRATEGIES[strategy]) as memory:
        yield memory


async def check_at_once(memory: Memory, seed: int) -> None:
    """Eight turns, two to four of them at once, with contexts of every size while they run."""
    chance = random.Random(seed)
    turns = [
        turn_of(f"t{n}", chance.choice((0, 1, 3, 12)), at_once=chance.choice((1, 2)), ids=("", "call")[seed % 2])
        for n in range(8)
    ]
    order = order_of(turns, chance, 2 + seed % 3)
    running = AtOnce(memory, turns)
    stops = [0, *sorted(chance.sample(range(1, len(order)), 4)), len(order)]
    for done, until in pairwise(stops):
        await running.store(order[done:until])
        await memory.drain()
        for budget in BUDGETS:
            context = await memory.load_history("s", user_id=USER, budget=budget)
            assert await problems(memory, context) == [], (seed, until, budget)


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("seed", [1, 6])
async def test_turns_at_once_stand_turn_by_turn(strategy: str, seed: int) -> None:
    async with memory_of(strategy) as memory:
        await check_at_once(memory, seed)


@pytest.mark.slow
@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("seed", range(7, 30))
async def test_many_turns_at_once_stand_turn_by_turn(strategy: str, seed: int) -> None:
    async with memory_of(strategy) as memory:
        await check_at_once(memory, seed)


ORDERS = {
    "a window from the middle": "ab ab ab ab ab ab ab ab ab ab ab ab",
    "two after two": "aabb aabb aabb aabb aabb aabb",
    "one begins late": "aaa b ab ab ab aa bbbb aaa bbbb",
    "one waits long": "ab bbbbbb bbb aaaaaaa bb aaaa",
    "three at once": "abc cba abc bca abc cba abc abc bca abc",
}


@pytest.mark.parametrize("order", ORDERS)
async def test_a_window_may_begin_anywhere_in_turns_at_once(order: str) -> None:
    await check_every_window("memory://", order)


async def test_windows_of_turns_at_once_are_alike_everywhere(url: str) -> None:
    await check_every_window(url, "a window from the middle")


async def check_every_window(url: str, order: str) -> None:
    """Contexts after each step, which go on from the layouts of those before."""
    turns = [turn_of(name, 5, ids="call" if len(order) % 2 else "") for name in "abc"]
    numbers = ["abc".index(each) for each in ORDERS[order] if each != " "]
    async with memory_of("hierarchical", url) as memory:
        running = AtOnce(memory, turns)
        await running.store(numbers[:14])
        for number in numbers[14:]:
            await running.store([number])
            await memory.drain()
            for budget in (60, 110, 180):
                context = await memory.load_history("s", user_id=USER, budget=budget, query="")
                assert await problems(memory, context) == [], budget
        before = await memory.load_history("s", user_id=USER, budget=110, before_seq=12, query="")
        assert await problems(memory, before, before_seq=12) == []


async def test_turns_that_messages_do_not_tell_apart_are_known(url: str) -> None:
    """Turns that began before: neither their questions nor open calls are among what is read."""
    async with memory_of("take_last", url) as memory:
        await AtOnce(memory, [turn_of("a", 3), turn_of("b", 3)]).store([0, 1, 0, 0, 1, 1, 0, 0, 1, 1])
        store = memory.container.message_store()
        rows = await store.read_context(ContextQuery(session_id="s", user_id=USER, last_count=4))
        assert dict(rows.steps) == {7: 1, 8: 1, 9: 2, 10: 2}


@pytest.mark.parametrize("most", range(1, 9))
async def test_newest_messages_begin_between_turns_at_once(most: int) -> None:
    history = {"max_conversation_turns": most}
    async with agent_memory(scripted(), summary={"enabled": False}, history=history) as memory:
        await AtOnce(memory, [turn_of(name, 12) for name in "ab"]).store([0, 1] * 20)
        context = await memory.load_history("s", user_id=USER)
        assert await problems(memory, context) == []


async def test_a_call_of_a_dead_turn_beside_another_is_interrupted() -> None:
    async with memory_of("take_last") as memory:
        await AtOnce(memory, [turn_of("a", 1), turn_of("b", 1)]).store([0, 1, 0, 1, 1, 1])
        shown = (await memory.load_history("s", user_id=USER)).messages
    assert [name_of(message) for message in shown] == ["a", "a", "[no", "b", "b", "b", "b"]


async def test_resumed_turn_has_none_of_those_that_run_beside_it(url: str) -> None:
    """The turn that began first stores its result and its answer when the other one, which dies, has begun."""
    turns = [turn_of("a", 1, ids="call"), turn_of("b", 2, ids="call")]
    async with memory_of("take_last", url) as memory:
        await AtOnce(memory, turns).store([0, 0, 1, 1, 0, 1, 0])
        async with memory.turn("s", resume=True, user_id=USER) as turn:
            assert [name_of(message) for message in turn.saved_messages()] == ["b"] * 3
            assert provider_problems(turn.context) == []
            turn.answer("b is answered late")
        context = await memory.load_history("s", user_id=USER)
        assert await problems(memory, context) == []


async def test_repeated_turn_stores_nothing_again_beside_another() -> None:
    step = (called("a", "call"), told("a", "call"))
    async with memory_of("take_last") as memory:
        for part in (1, 2):
            async with memory.turn("s", "a asks", user_id=USER, idempotency_key="job") as turn:
                await turn.add(step[0])
                if part == 1:
                    await AtOnce(memory, [turn_of("b", 1)]).store([0, 0, 0])
                await turn.add(step[1])
                turn.answer("a is answered")
        stored = await memory.read_messages("s", user_id=USER)
        assert "".join(name_of(message) for message in stored) == "aabbbaa"
