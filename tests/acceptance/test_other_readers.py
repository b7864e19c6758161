"""What an agent keeps for itself is in no context and no report of another reader, and takes nothing from them."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from reactor_memory import InvalidInputError, Memory, Message, ToolCall
from reactor_memory.core.context.context import Context
from reactor_memory.core.context.verification import verify
from tests.acceptance.scenes import USER, agent_memory, scripted
from tests.acceptance.test_turns_at_once import STRATEGIES

pytestmark = pytest.mark.anyio

SECRET = "zeppelin"


def own(role: Any, author: str = "b", **fields: Any) -> Message:
    """A message that an agent keeps for itself."""
    return Message(role=role, content=f"the {SECRET} flies", visibility="agent", author_id=author, **fields)


def rounds(name: str, count: int) -> list[Message]:
    said = [(Message.user(f"What of {name} {n}?"), Message.assistant(f"It is on shelf {n}.")) for n in range(count)]
    return [message for pair in said for message in pair]


TRAFFIC = [
    Message.assistant(visibility="agent", author_id="b", tool_calls=[ToolCall(id="z", name=SECRET, arguments={})]),
    own("tool", tool_call_id="z"),
]
LOGS: dict[str, list[Message]] = {
    "a thought": [*rounds("box", 3), own("assistant"), *rounds("bag", 12)],
    "the newest": [*rounds("box", 14), own("assistant")],
    "the first": [own("system"), *rounds("box", 14)],
    "calls": [*rounds("box", 3), Message.user("Look!"), *TRAFFIC, Message.assistant("Done."), *rounds("bag", 12)],
    "calls of the newest turn": [*rounds("box", 12), Message.user("Look!"), *TRAFFIC],
    "instructions": [*rounds("box", 1), own("system"), own("system"), *rounds("bag", 14)],
    "all around": [own("assistant"), *rounds("box", 9), *TRAFFIC, own("agent"), *rounds("bag", 4), own("assistant")],
}


def check_kept_secret(memory: Memory, context: Context, secret: set[int]) -> None:
    assert verify(context, count=memory.container.message_counter().of) == []
    assert SECRET not in str(context.messages)
    assert SECRET not in msgspec.json.encode(context.report).decode()
    assert not secret & set(context.report.seqs)
    assert not secret & set(context.report.superseded)
    assert not secret & {seq for lines in context.report.sources.values() for line in lines for seq in line}
    for entry in (*context.report.kept, *context.report.clamped, *context.report.dropped):
        assert entry.by == "position" or not {entry.first, entry.last} & secret
    for fate in context.report.why_each(secret):
        assert (fate.outcome, fate.parts, fate.lines) == ("dropped", (), ())


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("log", LOGS)
async def test_reports_name_nothing_that_others_keep(strategy: str, log: str) -> None:
    async with agent_memory(scripted(), **STRATEGIES[strategy]) as memory:
        await memory.save_history("s", LOGS[log], user_id=USER)
        await memory.drain()
        secret = {seq for seq, message in enumerate(LOGS[log], 1) if message.visibility == "agent"}
        for budget in (None, 60, 150, 400, 4000):
            for query in (None, f"the {SECRET} flies"):
                context = await memory.load_history("s", user_id=USER, budget=budget, reader_id="a", query=query)
                check_kept_secret(memory, context, secret)
        async with memory.turn("s", f"Where is the {SECRET[:4]}?", user_id=USER, reader_id="a", budget=400) as turn:
            await turn.add(*rounds("more", 1)[1:])
            check_kept_secret(memory, turn.current_context(), secret)
            turn.answer("I do not know.")
        mine = await memory.load_history("s", user_id=USER, budget=4000, reader_id="b")
        assert SECRET in str(mine.messages)


async def test_what_others_keep_takes_the_place_of_no_instruction(url: str) -> None:
    async with agent_memory(scripted(), url) as memory:
        log = [*rounds("box", 1), Message.system("Answer in French."), own("system"), own("system", "c")]
        await memory.save_history("s", [*log, *rounds("bag", 14)], user_id=USER)
        await memory.drain()
        context = await memory.load_history("s", user_id=USER, budget=150, reader_id="a")
        assert [message.seq for message in context.messages if message.role == "system" and message.seq] == [3]
        mine = await memory.load_history("s", user_id=USER, budget=150, reader_id="b")
        assert [message.seq for message in mine.messages if message.role == "system" and message.seq] == [3, 4]


async def test_what_an_agent_keeps_for_itself_is_not_pinned() -> None:
    async with agent_memory(scripted()) as memory:
        await memory.save_history("s", [*rounds("box", 1), own("assistant")], user_id=USER)
        with pytest.raises(InvalidInputError, match="keeps for itself"):
            await memory.pins.add("s", seq=3, user_id=USER)


async def test_superseded_instructions_are_known_however_many(url: str) -> None:
    """Also one of another name that hundreds of others followed."""
    async with agent_memory(scripted(), url) as memory:
        named = Message(role="system", content="We open at 9.", name="hours")
        await memory.save_history("s", [Message.user("Hello."), named], user_id=USER)
        rulings = [Message.system(f"From now on, speak {number} words.") for number in range(200)]
        await memory.save_history("s", [*rulings, *rounds("bag", 20)], user_id=USER)
        await memory.drain()
        context = await memory.load_history("s", user_id=USER, budget=150)
        assert [message.seq for message in context.messages if message.role == "system" and message.seq] == [2, 202]
        assert context.report.superseded == tuple(range(3, 202))
        assert {fate.reason for fate in context.report.why_each(range(3, 202))} == {"superseded"}
