"""A turn: load, let the model run, save what happened, whatever happened."""

from __future__ import annotations

import runpy
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Literal

import anyio
import msgspec
import pytest

from reactor_memory import IdempotencyConflictError, InvalidInputError, Message, SessionOwnershipError, ToolCall
from reactor_memory.adapters.middleware import ModelCall, memory_middleware
from reactor_memory.core.context.verification import verify
from tests.acceptance.scenes import USER, agent_memory, save, scripted, talk, texts

pytestmark = pytest.mark.anyio

EXAMPLES = Path(__file__).parents[2] / "examples"
QUESTION = Message.user("what now?")


async def stored(memory: object) -> list[str]:
    return texts(await memory.read_messages("s", user_id=USER))  # type: ignore[attr-defined]


async def test_a_turn_stored_at_its_end_is_one_batch() -> None:
    call = ToolCall(id="c1", name="look", arguments={"at": "it"})
    async with agent_memory(scripted()) as memory:
        async with memory.turn("s", QUESTION, user_id=USER, idempotency_key="turn-1", durable="end") as turn:
            await turn.add(Message.assistant(tool_calls=[call]), Message.tool("seen", tool_call_id="c1"))
            assert await stored(memory) == []
            turn.answer("this")
        messages = await memory.read_messages("s", user_id=USER)
    assert [message.role for message in messages] == ["user", "assistant", "tool", "assistant"]
    assert messages[1].tool_calls == (call,)


class TestATurnThatIsLoadedAgain:
    """`load_history` for who calls the model again and again and saves at the end, as frameworks do."""

    TRAFFIC = (
        Message.assistant(tool_calls=[ToolCall(id="c1", name="look", arguments={})]),
        Message.tool("seen " * 60, tool_call_id="c1"),
    )

    async def test_the_traffic_follows_the_message_and_nothing_is_saved(self) -> None:
        async with agent_memory(scripted()) as memory:
            await memory.save_history("s", talk(4), user_id=USER)
            context = await memory.load_history("s", user_id=USER, message=QUESTION, traffic=self.TRAFFIC)
            assert texts(context.messages)[-3:] == ["what now?", "", "seen " * 60]
            assert len(await stored(memory)) == 4

    async def test_it_is_the_context_that_a_turn_gives(self) -> None:
        async with agent_memory(scripted()) as memory:
            await memory.save_history("s", talk(12), user_id=USER)
            context = await memory.load_history(
                "s", user_id=USER, message=QUESTION, traffic=iter(self.TRAFFIC), budget=150
            )
            async with memory.turn("s", QUESTION, user_id=USER, budget=150) as turn:
                turn.add(*self.TRAFFIC)
                assert context.messages == turn.messages()
            assert verify(context, count=memory.container.message_counter().of) == []
            assert len(context.messages) < 15

    async def test_traffic_belongs_to_a_message_and_is_checked(self) -> None:
        async with agent_memory(scripted()) as memory:
            with pytest.raises(InvalidInputError, match="traffic: "):
                await memory.load_history("s", user_id=USER, traffic=self.TRAFFIC)
            bad = [self.TRAFFIC[0], Message.assistant("", created_at=2**70)]
            with pytest.raises(InvalidInputError, match=r"traffic\[1\]\.created_at"):
                await memory.load_history("s", user_id=USER, message=QUESTION, traffic=bad)


async def test_turn_that_fails_saves_question_only_and_passes_error_on() -> None:
    async with agent_memory(scripted()) as memory:
        with pytest.raises(ZeroDivisionError):
            async with memory.turn("s", QUESTION, user_id=USER) as turn:
                turn.add(Message.assistant(str(1 // 0)))
        assert await stored(memory) == ["what now?"]


async def test_turn_that_fails_under_the_longest_key_saves_the_question() -> None:
    async with agent_memory(scripted()) as memory:
        for _ in range(2):
            with pytest.raises(ZeroDivisionError):
                async with memory.turn("s", QUESTION, user_id=USER, idempotency_key="k" * 255):
                    raise ZeroDivisionError
        assert await stored(memory) == ["what now?"]


async def test_a_stored_message_that_was_changed_is_counted_again() -> None:
    """What the store said of it holds for its old text."""
    async with agent_memory(scripted()) as memory:
        memory, counter = memory, memory.container.message_counter()
        await save(memory, "s", [Message.user("short"), Message.assistant("yes")])
        (asked, _) = await memory.read_messages("s", user_id=USER)
        longer = msgspec.structs.replace(asked, content="long " * 500)
        async with memory.turn("s", longer, user_id=USER, budget=200) as turn:
            call, result = (
                Message.assistant(tool_calls=[ToolCall(id="c", name="t")]),
                Message.tool("", tool_call_id="c"),
            )
            turn.add(
                call, msgspec.structs.replace(result, content="long " * 500, token_count=1, tokenizer=counter.name)
            )
            contexts = [turn.context, turn.current_context()]
    assert [verify(context, count=counter.counted) for context in contexts] == [[], []]


async def test_a_turn_that_is_cancelled_saves_the_question_only() -> None:
    async with agent_memory(scripted()) as memory:
        with anyio.CancelScope() as scope:
            async with memory.turn("s", QUESTION, user_id=USER):
                scope.cancel()
                await anyio.sleep_forever()
        assert await stored(memory) == ["what now?"]


async def test_turn_whose_traffic_cannot_be_stored_saves_the_question_only() -> None:
    async with agent_memory(scripted()) as memory:
        with pytest.raises(InvalidInputError, match="created_at"):
            async with memory.turn("s", QUESTION, user_id=USER) as turn:
                turn.answer(Message.assistant("so it is", created_at=2**70))
        assert await stored(memory) == ["what now?"]


async def test_a_failed_turn_can_be_repeated_under_its_key() -> None:
    async with agent_memory(scripted()) as memory:
        for _ in range(2):
            with pytest.raises(ZeroDivisionError):
                async with memory.turn("s", QUESTION, user_id=USER, idempotency_key="k"):
                    raise ZeroDivisionError
        async with memory.turn("s", QUESTION, user_id=USER, idempotency_key="k") as turn:
            turn.answer("this")
        assert await stored(memory) == ["what now?", "this"]
        with pytest.raises(IdempotencyConflictError):
            await memory.save_history("s", [Message.user("another")], user_id=USER, idempotency_key="k")


async def words(*parts: str, breaks: bool = False) -> AsyncIterator[str]:
    for part in parts:
        yield part
    if breaks:
        raise ConnectionError


async def test_a_streamed_answer_is_saved_once_it_is_complete() -> None:
    async with agent_memory(scripted()) as memory:
        async with memory.turn("s", QUESTION, user_id=USER) as turn:
            received = [chunk async for chunk in turn.stream(words("do ", "this"))]
        assert received == ["do ", "this"]
        assert await stored(memory) == ["what now?", "do this"]


CALL = {"id": "c1", "type": "function", "function": {"name": "find", "arguments": "{}"}}
GIVEN: dict[str, tuple[object, list[str]]] = {
    "OpenAI's message, with what is null": (
        {
            "role": "assistant",
            "content": "In Lyon.",
            "refusal": None,
            "tool_calls": None,
            "function_call": None,
            "audio": None,
        },
        ["assistant In Lyon."],
    ),
    "OpenAI's message with parts": (
        {"role": "assistant", "content": [{"type": "text", "text": "In "}, {"type": "text", "text": "Lyon."}]},
        ["assistant In Lyon."],
    ),
    "OpenAI's call, whose content is null": (
        [
            {"role": "assistant", "content": None, "tool_calls": [CALL]},
            {"role": "tool", "tool_call_id": "c1", "content": "Lyon"},
            {"role": "assistant", "content": "In Lyon."},
        ],
        ["assistant ", "tool Lyon", "assistant In Lyon."],
    ),
    "OpenAI's responses": (
        [
            {"type": "reasoning", "id": "r1", "summary": []},
            {"type": "function_call", "call_id": "c1", "name": "find", "arguments": "{}"},
            {"type": "function_call_output", "call_id": "c1", "output": "Lyon"},
            {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "In Lyon."}]},
        ],
        ["assistant ", "tool Lyon", "assistant In Lyon."],
    ),
    "Anthropic's blocks": (
        {"role": "assistant", "content": [{"type": "text", "text": "In Lyon.", "citations": None}]},
        ["assistant In Lyon."],
    ),
    "Anthropic's tool use": (
        [
            {"role": "assistant", "content": [{"type": "tool_use", "id": "c1", "name": "find", "input": {}}]},
            {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "c1", "content": "Lyon"}]},
            {"role": "assistant", "content": "In Lyon."},
        ],
        ["assistant ", "tool Lyon", "assistant In Lyon."],
    ),
    "Gemini's content": ({"role": "model", "parts": [{"text": "In Lyon."}]}, ["assistant In Lyon."]),
    "Gemini's contents": ([{"role": "model", "parts": [{"text": "In Lyon."}]}], ["assistant In Lyon."]),
    "a message": (Message.assistant("In Lyon."), ["assistant In Lyon."]),
}


@pytest.mark.parametrize("name", GIVEN)
async def test_an_answer_is_taken_as_people_have_it(name: str) -> None:
    given, stored_as = GIVEN[name]
    async with agent_memory(scripted()) as memory:
        async with memory.turn("s", QUESTION, user_id=USER) as turn:
            turn.answer("an earlier answer")
            turn.answer(given)  # type: ignore[arg-type]
        _, *messages = await memory.read_messages("s", user_id=USER)
        assert [f"{message.role} {message.content}" for message in messages] == stored_as


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ([], "answer: is empty"),
        ([Message.user("q"), Message.assistant("a")], "role user; give only what the model and its tools said"),
        (Message.tool("x", tool_call_id="c1"), "tool traffic goes to add()"),
        (None, "answer: is a NoneType"),
        ({"choices": [{"message": {}}]}, "choices[0].message"),
    ],
)
async def test_a_wrong_answer_is_told_what_would_be_right(given: object, told: str) -> None:
    async with agent_memory(scripted()) as memory:
        with pytest.raises(InvalidInputError) as raised:
            async with memory.turn("s", QUESTION, user_id=USER) as turn:
                turn.answer(given)  # type: ignore[arg-type]
        assert told in str(raised.value)
        assert await stored(memory) == ["what now?"]


async def test_a_broken_stream_is_no_answer() -> None:
    async with agent_memory(scripted()) as memory:
        with pytest.raises(ConnectionError):
            async with memory.turn("s", QUESTION, user_id=USER) as turn:
                _ = [chunk async for chunk in turn.stream(words("do ", breaks=True))]
        assert await stored(memory) == ["what now?"]


async def test_an_empty_stream_is_no_answer() -> None:
    async with agent_memory(scripted()) as memory:
        async with memory.turn("s", QUESTION, user_id=USER) as turn:
            assert [chunk async for chunk in turn.stream(words("", ""))] == ["", ""]
        assert await stored(memory) == ["what now?"]


async def test_inside_tool_loop_every_context_fits_and_keeps_its_pairs() -> None:
    async with agent_memory(scripted()) as memory:
        counter = memory.container.message_counter()
        await save(memory, "s", talk(60))
        await memory.drain()
        async with memory.turn("s", QUESTION, user_id=USER, budget=600) as turn:
            for step in range(30):
                call = ToolCall(id=f"c{step}", name="look", arguments={"page": step})
                turn.add(
                    Message.assistant(tool_calls=[call]),
                    Message.tool(f"page {step}: " + "text " * 40, tool_call_id=call.id),
                )
                context = turn.current_context()
                assert context.report.total_tokens <= 600
                assert verify(context, count=counter.of) == []
                assert QUESTION.content in texts(turn.messages())
                assert turn.messages()[-1].content.startswith(f"page {step}:")


async def test_a_stranger_has_no_turn() -> None:
    async with agent_memory(scripted()) as memory:
        await save(memory, "s", talk(2))
        with pytest.raises(SessionOwnershipError):
            async with memory.turn("s", QUESTION, user_id="mallory"):
                pytest.fail("the block must not run")
        assert len(await stored(memory)) == 2


@pytest.mark.parametrize("durable", ["step", "end"])
async def test_twenty_turns_at_once_stay_whole(durable: Literal["step", "end"]) -> None:
    async with agent_memory(scripted(), summary={"enabled": False}, history={"max_conversation_turns": 30}) as memory:

        async def run(number: int) -> None:
            message = Message.user(f"question {number}")
            async with memory.turn("s", message, user_id=USER, durable=durable) as turn:
                await anyio.sleep(0.001 * (number % 5))
                turn.answer(f"answer {number}")

        async with anyio.create_task_group() as group:
            for number in range(20):
                group.start_soon(run, number)
        context = await memory.load_history("s", user_id=USER)
        assert verify(context, count=memory.container.message_counter().of) == []
        contents = texts(context.messages)
    pairs = list(zip(contents[::2], contents[1::2], strict=True))
    assert len(pairs) == 20
    assert all(answer == question.replace("question", "answer") for question, answer in pairs)


async def test_middleware_gives_the_model_its_memory_and_saves_the_turn() -> None:
    seen: list[int] = []

    async def model(call: ModelCall) -> Message:
        seen.append(len(call.messages))
        return Message.assistant("noted")

    async with agent_memory(scripted()) as memory:
        remember = memory_middleware(memory, budget=500)
        for text in ("one", "two"):
            await remember(ModelCall(session_id="s", message=Message.user(text), user_id=USER), model)
        assert await stored(memory) == ["one", "noted", "two", "noted"]
    assert seen == [1, 3]


WITH_A_FRAMEWORK = {"langchain_agent.py", "langgraph_store.py", "mcp_client.py", "openai_agents.py"}
"""They take seconds to import."""


@pytest.mark.parametrize(
    "name",
    sorted({path.name for path in EXAMPLES.glob("*.py")} - WITH_A_FRAMEWORK - {"chat_server.py", "service_agent.py"}),
)
def test_the_examples_run_offline(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    runpy.run_path(str(EXAMPLES / name), run_name="__main__")
    assert capsys.readouterr().out.strip()


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(WITH_A_FRAMEWORK))
def test_the_examples_with_a_framework_run_offline(name: str, tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, str(EXAMPLES / name)],
        cwd=tmp_path,
        env={"PYTHONPATH": str(EXAMPLES.parent), "PATH": "", "HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=200,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip()
