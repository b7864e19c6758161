"""System messages that a session begins with stand in every context, first, and are reported as what they are."""

from __future__ import annotations

from typing import Any

import pytest

from reactor_memory import Memory, Message, Settings, open_memory
from reactor_memory.core.context.context import Context
from reactor_memory.core.context.verification import verify

pytestmark = pytest.mark.anyio

INSTRUCTIONS = ("You are Ada. Never quote a price.", "Answer in one sentence.")


def settings(strategy: str, **sections: Any) -> Settings:
    return Settings(store={"url": "memory://"}, history={"strategy": strategy}, **sections)


async def talked(memory: Memory, *, head: tuple[str, ...] = INSTRUCTIONS, turns: int = 60) -> None:
    if head:
        await memory.save_history("s", [Message.system(text) for text in head])
    for number in range(turns):
        said = [Message.user(f"And item {number}?"), Message.assistant(f"Item {number} lies on shelf {number}.")]
        await memory.save_history("s", said)
    await memory.drain()


def checked(memory: Memory, context: Context) -> Context:
    assert verify(context, count=memory.container.message_counter().counted) == []
    return context


@pytest.mark.parametrize("strategy", ["auto", "take_last", "progressive"])
async def test_they_stand_first_in_every_context_of_every_strategy(strategy: str) -> None:
    async with open_memory(settings(strategy)) as memory:
        await talked(memory)
        for budget in (None, 60, 300, 2_000):
            context = checked(memory, await memory.load_history("s", budget=budget, message="Well?"))
            assert [message.content for message in context.messages[:2]] == list(INSTRUCTIONS)
            assert context.report.parts[:2] == ("system", "system")
            for seq in (1, 2):
                fate = context.report.why(seq)
                assert (fate.outcome, fate.reason, fate.parts) == ("kept", "protected", ("system",))
            assert not any(first <= 2 for first, _ in context.report.unread)


async def test_a_short_session_has_them_before_its_window() -> None:
    async with open_memory(settings("auto")) as memory:
        await talked(memory, turns=2)
        context = checked(memory, await memory.load_history("s"))
        assert context.report.parts == ("system", "system", *["window"] * 4)


async def test_only_what_the_session_begins_with_is_protected() -> None:
    async with open_memory(settings("auto")) as memory:
        await talked(memory, head=INSTRUCTIONS[:1], turns=1)
        await memory.save_history("s", [Message.system("The shop is closed today.")])
        await talked(memory, head=())
        context = checked(memory, await memory.load_history("s", budget=300))
        assert context.messages[0].content == INSTRUCTIONS[0]
        assert context.report.why(4).reason != "protected"


async def test_one_that_leaves_the_turn_too_little_is_cut() -> None:
    async with open_memory(settings("auto")) as memory:
        await talked(memory, head=("Be kind. " * 400,))
        context = checked(memory, await memory.load_history("s", budget=300, message="Well?"))
        assert "characters left out; message 1" in context.messages[0].content
        assert context.messages[-1].content == "Well?"
        assert context.report.why(1).outcome == "clamped"


async def test_a_fork_has_those_of_its_origin() -> None:
    async with open_memory(settings("auto")) as memory:
        await talked(memory)
        fork = await memory.fork("s", at_seq=100)
        context = checked(memory, await memory.load_history(fork.session_id, budget=400))
        assert context.report.parts[:2] == ("system", "system")
        early = await memory.fork("s", at_seq=2)
        context = checked(memory, await memory.load_history(early.session_id))
        assert [message.content for message in context.messages] == [INSTRUCTIONS[0]]


async def test_what_was_cleared_or_erased_stands_no_more() -> None:
    async with open_memory(settings("auto")) as memory:
        await talked(memory)
        await memory.erasure.erase("s", seq=1)
        context = checked(memory, await memory.load_history("s", budget=300))
        assert INSTRUCTIONS[0] not in [message.content for message in context.messages]
