"""A turn of many steps stays in its budget, keeps its prefix, and can be read again."""

from __future__ import annotations

import re
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

import pytest

from reactor_memory import Memory, Message, Settings, ToolCall, open_memory
from reactor_memory.adapters.session_tools import session_tools
from reactor_memory.core.context.verification import verify

pytestmark = pytest.mark.anyio

QUESTION = "Which port does service 7 listen on?"
BUDGET = 3_000


def step(number: int) -> list[Message]:
    call = ToolCall(id=f"call-{number}", name="read_file", arguments={"path": f"conf/service_{number}.toml"})
    filling = "".join(f"option_{line} = {line}\n" for line in range(60))
    result = f"[service {number}]\n{filling}port = {8_000 + number}\n"
    return [
        Message.assistant(f"I read service {number}.", tool_calls=[call]),
        Message.tool(result, tool_call_id=call.id),
    ]


def settings(store: str) -> Settings:
    return Settings(store={"url": store})


async def test_every_step_fits_and_the_prefix_mostly_stays() -> None:
    async with open_memory(settings("memory://")) as memory:
        count = memory.container.message_counter().counted
        before, reuse = list[Message](), list[float]()
        async with memory.turn("s", QUESTION, budget=8_000) as turn:
            for number in range(90):
                turn.add(*step(number))
                context = turn.current_context()
                assert verify(context, count=count) == []
                assert context.messages[-2:] == step(number)
                same = next(
                    (at for at, pair in enumerate(zip(before, context.messages, strict=False)) if pair[0] != pair[1]),
                    len(before),
                )
                reuse.append(sum(count(each) + 4 for each in context.messages[:same]) / context.report.total_tokens)
                before = context.messages
            turn.answer("8007")
        report = turn.current_context().report
        assert sum(reuse) / len(reuse) > 0.75
        assert report.compaction is not None
        assert report.compaction.folded
        assert report.compaction.cleared


async def named_by_stubs(memory: Memory, shown: Sequence[Message]) -> list[Message]:
    """The messages whose numbers stand in the stubs of a turn: each is the one that its stub stands for."""
    stubs = [message for message in shown if message.content.startswith("[cleared: ")]
    assert stubs
    originals: list[Message] = []
    for stub in stubs:
        handle = re.search(r"memory_read\((\d+)\)", stub.content)
        assert handle is not None
        originals += await memory.read_messages("s", after=int(handle[1]) - 1, until=int(handle[1]))
        assert originals[-1].tool_call_id == stub.tool_call_id
    assert len(originals) == len(stubs)
    return originals


async def test_what_a_stub_names_is_what_is_read_again() -> None:
    async with open_memory(settings("memory://")) as memory:
        await memory.save_history("s", [Message.user("hello"), Message.assistant("hi")])
        async with memory.turn("s", QUESTION, budget=BUDGET) as turn:
            for number in range(20):
                turn.add(*step(number))
            shown = turn.messages()
            turn.answer("8007")
        read = session_tools(memory, "s")[0]
        for original in await named_by_stubs(memory, shown):
            assert original.content in await read(seq=original.seq)


async def test_a_stub_names_its_message_whoever_saves_meanwhile() -> None:
    async with open_memory(settings("memory://")) as memory:
        async with memory.turn("s", QUESTION, budget=BUDGET) as turn:
            for number in range(20):
                await turn.add(*step(number))
                await memory.save_history("s", [Message.assistant("from elsewhere")])
                shown = turn.messages()
            turn.answer("8007")
        await named_by_stubs(memory, shown)


async def test_another_process_shows_the_same_bytes(tmp_path: Path) -> None:
    store = f"sqlite:///{tmp_path / 'memory.db'}"
    traffic = [message for number in range(40) for message in step(number)]
    async with open_memory(settings(store)) as memory:
        await memory.save_history("s", [Message.user("hello"), Message.assistant("hi")])
        async with memory.turn("s", QUESTION, budget=BUDGET, idempotency_key="k") as turn:
            for number in range(40):
                turn.add(*step(number))
                turn.messages()
            shown = turn.current_context().to_anthropic()
            async with open_memory(settings(store)) as other:
                context = await other.load_history("t", message=QUESTION, traffic=traffic, budget=BUDGET)
                assert context.report.compaction is not None
                await other.save_history("t", [Message.user("hello"), Message.assistant("hi")])
                context = await other.load_history("t", message=QUESTION, traffic=traffic, budget=BUDGET)
                assert context.to_anthropic() == shown
            turn.answer("8007")


async def test_an_interrupted_turn_goes_on_with_the_same_bytes(tmp_path: Path) -> None:
    store = f"sqlite:///{tmp_path / 'memory.db'}"
    async with open_memory(settings(store)) as memory:
        await memory.save_history("s", [Message.user("hello"), Message.assistant("hi")])
        with suppress(KeyboardInterrupt):
            async with memory.turn("s", QUESTION, budget=BUDGET) as turn:
                for number in range(40):
                    await turn.add(*step(number))
                    shown = turn.current_context().to_anthropic()
                raise KeyboardInterrupt
    async with open_memory(settings(store)) as memory, memory.turn("s", resume=True, budget=BUDGET) as turn:
        assert turn.current_context().to_anthropic() == shown
        await turn.add(*step(40))
        assert turn.current_context().report.compaction is not None
        turn.answer("8007")


async def test_what_was_erased_is_in_no_stub_and_no_line(tmp_path: Path) -> None:
    store = f"sqlite:///{tmp_path / 'memory.db'}"
    async with open_memory(settings(store)) as memory:
        with suppress(KeyboardInterrupt):
            async with memory.turn("s", QUESTION, budget=BUDGET) as turn:
                for number in range(40):
                    await turn.add(*step(number))
                assert "8033" in str(turn.messages())
                raise KeyboardInterrupt
        await memory.erasure.erase("s", seq=69)
    async with open_memory(settings(store)) as memory, memory.turn("s", resume=True, budget=BUDGET) as turn:
        assert "8033" not in str(turn.messages())
        assert "8034" in str(turn.messages())
        turn.answer("8007")
