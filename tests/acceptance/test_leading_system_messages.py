"""System messages that a session begins with stand in every context, first, and the newest later one stands, too."""

from __future__ import annotations

from typing import Any

import pytest

from reactor_memory import Memory, Message, Settings, open_memory
from reactor_memory.core.context.context import Context
from reactor_memory.core.context.verification import verify

pytestmark = pytest.mark.anyio

INSTRUCTIONS = ("You are Ada. Never quote a price.", "Answer in one sentence.")


def settings(strategy: str, **sections: Any) -> Settings:
    return Settings(history={"strategy": strategy}, **({"store": {"url": "memory://"}} | sections))


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


RULING = "From now on, answer in French."


def ruled(context: Context) -> list[str]:
    return [message.content for message in context.messages if message.role == "system" and message.seq]


@pytest.mark.parametrize("strategy", ["auto", "take_last", "progressive"])
async def test_a_later_one_stands_until_another_takes_its_place(url: str, strategy: str) -> None:
    async with open_memory(settings(strategy, store={"url": url})) as memory:
        await talked(memory, head=INSTRUCTIONS[:1], turns=3)
        await memory.save_history("s", [Message.system(RULING)])
        await talked(memory, head=(), turns=1)
        context = checked(memory, await memory.load_history("s"))
        assert context.report.parts == ("system", *["window"] * 9)
        assert context.messages[7].content == RULING
        await talked(memory, head=())
        for budget in (60, 300, 800):
            context = checked(memory, await memory.load_history("s", budget=budget, message="Well?"))
            assert ruled(context) == [INSTRUCTIONS[0], RULING]
            assert context.report.parts[:2] == ("system", "system")
            assert context.report.why(8).reason == "protected"
        fork = await memory.fork("s", at_seq=100)
        early = await memory.fork("s", at_seq=8)
        await memory.save_history("s", [Message.system("Answer in German again.")])
        await talked(memory, head=())
        context = checked(memory, await memory.load_history("s", budget=300, message="Well?"))
        assert ruled(context) == [INSTRUCTIONS[0], "Answer in German again."]
        assert (context.report.why(8).reason, context.report.superseded) == ("superseded", (8,))
        assert not [message for message in context.messages if RULING in message.content]
        for session_id, left in ((fork.session_id, [INSTRUCTIONS[0], RULING]), (early.session_id, [INSTRUCTIONS[0]])):
            assert ruled(checked(memory, await memory.load_history(session_id, budget=300, message="Well?"))) == left


async def test_of_each_name_the_newest_stands(url: str) -> None:
    async with open_memory(settings("auto", store={"url": url})) as memory:
        await talked(memory, head=(), turns=1)
        for text in ("Be brief.", "We open at 9.", "Be kind.", "We open at 8."):
            name = "tone" if text.startswith("Be") else "hours"
            await memory.save_history("s", [Message(role="system", content=text, name=name)])
        await talked(memory, head=())
        context = checked(memory, await memory.load_history("s", budget=300, message="Well?"))
        assert ruled(context) == ["Be kind.", "We open at 8."]
        assert [context.report.why(seq).reason for seq in (3, 4, 5, 6)] == ["superseded"] * 2 + ["protected"] * 2
        assert not [each for each in context.messages if "Be brief." in each.content or "at 9" in each.content]


async def test_a_ruling_that_was_withdrawn_or_erased_stands_no_more(url: str) -> None:
    async with open_memory(settings("auto", store={"url": url})) as memory:
        await talked(memory, head=(), turns=1)
        await memory.save_history("s", [Message.system("Be brief.")])
        await memory.save_history("s", [Message.system(RULING)])
        await talked(memory, head=())
        assert ruled(await memory.load_history("s", budget=300)) == [RULING]
        await memory.erasure.erase("s", seq=4)
        assert ruled(checked(memory, await memory.load_history("s", budget=300))) == ["Be brief."]
        await memory.save_history("s", [Message.system(RULING)])
        await memory.withdraw("s")
        assert ruled(checked(memory, await memory.load_history("s", budget=300))) == ["Be brief."]


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
