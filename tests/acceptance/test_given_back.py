"""What a provider gave is given back to it from every store: by a turn, a fork, a copy of the file, an export."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from reactor_memory import Context, LimitExceededError, Memory, Settings, forms, open_memory
from reactor_memory.evaluation.transcripts import read_lines, to_line
from tests.forms.provider_histories import DATA, Json, as_json
from tests.forms.test_given_back import APART, QUESTION

pytestmark = pytest.mark.anyio

PICTURE = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": DATA * 10}}
CITED = {"type": "char_location", "cited_text": "x", "document_index": 0, "start_char_index": 0, "end_char_index": 1}
ANTHROPIC: list[Json] = [
    {"role": "user", "content": [{"type": "text", "text": "Which is it?"}, PICTURE, {"type": "text", "text": "This."}]},
    {
        "role": "assistant",
        "content": [
            {"type": "thinking", "thinking": "I look.", "signature": DATA},
            {"type": "text", "text": "A moment.", "citations": [CITED]},
            {"type": "thinking", "thinking": "Then.", "signature": DATA},
            {"type": "tool_use", "id": "toolu_1", "name": "look", "input": {"at": "a\0b"}},
        ],
    },
    {
        "role": "user",
        "content": [
            {"type": "tool_result", "tool_use_id": "toolu_1", "content": "no", "is_error": True},
            {"type": "text", "text": "And now?", "cache_control": {"type": "ephemeral"}},
        ],
    },
    {"role": "assistant", "content": "A cat."},
]
OPENAI: list[Json] = [
    {"role": "user", "content": "Where is it?"},
    {
        "role": "assistant",
        "content": None,
        "reasoning_content": "I look it up.",
        "tool_calls": [
            {
                "id": "c1",
                "type": "function",
                "function": {"name": "find", "arguments": '{ "a": 1 }'},
                "extra_content": {"google": {"thought_signature": DATA}},
            }
        ],
    },
    {"role": "tool", "tool_call_id": "c1", "content": [{"type": "text", "text": "here"}], "name": "find"},
    {"role": "assistant", "content": "Here.", "reasoning_details": [{"type": "reasoning.text", "text": "hm"}]},
]
RESPONSES: list[Json] = [
    {"role": "user", "content": "What is new?"},
    {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": DATA},
    {"type": "web_search_call", "id": "ws_1", "status": "completed", "action": {"type": "search", "query": "q"}},
    {
        "type": "message",
        "id": "msg_1",
        "role": "assistant",
        "status": "completed",
        "content": [{"type": "output_text", "text": "This.", "annotations": [], "logprobs": []}],
    },
]
GEMINI: list[Json] = [
    {"role": "user", "parts": [{"text": "a"}, {"inlineData": {"mimeType": "image/png", "data": DATA}}, {"text": "b"}]},
    {"role": "model", "parts": [{"functionCall": {"name": "f", "args": {}}, "thoughtSignature": DATA}]},
    {"role": "user", "parts": [{"functionResponse": {"name": "f", "response": {"found": [1]}}}]},
    {"role": "model", "parts": [{"text": "Found.", "thoughtSignature": DATA}]},
]
OLLAMA: list[Json] = [
    {"role": "user", "content": "Look.", "images": [DATA]},
    {
        "role": "assistant",
        "content": "",
        "thinking": "hm",
        "tool_calls": [{"function": {"name": "f", "arguments": {"n": n}}} for n in range(2)],
    },
    {"role": "tool", "content": "0", "tool_name": "f"},
    {"role": "tool", "content": "1", "tool_name": "f"},
    {"role": "assistant", "content": "Both."},
]
HISTORIES = {
    "anthropic": ANTHROPIC,
    "openai": OPENAI,
    "openai_responses": RESPONSES,
    "gemini": GEMINI,
    "ollama": OLLAMA,
}


def shown(context: Context, form: str) -> list[Json]:
    return listed(getattr(context, f"to_{form}")())


def listed(written: Any) -> list[Json]:
    return written if isinstance(written, list) else written.get("messages") or written["contents"]


@pytest.mark.parametrize("form", HISTORIES)
async def test_every_way_gives_it_back(form: str, url: str, tmp_path: Path) -> None:
    history = HISTORIES[form]
    async with open_memory(url) as memory:
        saved = await memory.save_history("saved", history, idempotency_key="k")
        assert await memory.save_history("saved", history, idempotency_key="k") == replayed(saved)
        async with memory.turn("turn", history[0]) as turn:
            for item in history[1:-1]:
                turn.add(item)
            turn.answer(history[-1])
        fork = await memory.fork("saved", at_seq=saved.last_seq)
        await memory.save_history(fork.session_id, [each async for each in memory.stream_messages("saved")][-1:])
        file = tmp_path / "exported.jsonl"
        file.write_bytes(to_line("exported", [each async for each in memory.stream_messages("saved")]))
        for line in read_lines(file):
            await memory.save_history(line.session_id, line.messages)
        for session_id in ("saved", "turn", fork.session_id, "exported"):
            context = await memory.load_history(session_id, budget=100_000)
            assert as_json(shown(context, form)) == as_json(history), session_id
        await gives_back_what_is_loaded(memory, form)


@pytest.mark.parametrize("form", HISTORIES)
async def test_replay_and_forks_of_forks_give_it_back(form: str, url: str) -> None:
    history = HISTORIES[form]
    async with open_memory(Settings(store={"url": url}, context={"record": "turns"})) as memory:  # type: ignore[arg-type]
        await memory.save_history("s", history)
        async with memory.turn("s", history[0], budget=100_000) as turn:
            turn.answer(history[-1])
        replay = await memory.replay("s", seq=(await memory.get_session("s")).last_seq)
        assert replay.is_exact
        again: Any = getattr(forms, f"to_{form}")(replay.messages)
        assert as_json(listed(again)) == as_json(shown(turn.context, form)) == as_json([*history, history[0]])
        fork = await memory.fork("s", at_seq=(await memory.get_session("s")).last_seq)
        second = await memory.fork(fork.session_id, at_seq=fork.last_seq)
        assert as_json(shown(await memory.load_history(second.session_id, budget=100_000), form)) == as_json(history)


@pytest.mark.parametrize("apart", APART)
async def test_results_that_name_no_call_are_saved_apart(apart: str, url: str) -> None:
    asked, told = APART[apart]
    async with open_memory(url) as memory:
        for number, item in enumerate((QUESTION, asked, *told)):
            await memory.save_history("saved", item, idempotency_key=f"k{number}")
            assert (await memory.save_history("saved", item, idempotency_key=f"k{number}")).replayed
        async with memory.turn("turn", QUESTION) as turn:
            for item in (asked, *told):
                await turn.add(item)
            running = turn.current_context().to_openai()
            turn.answer("So.")
        for session_id in ("saved", "turn"):
            context = await memory.load_history(session_id, budget=10_000)
            assert context.to_openai()[: len(running)] == running
            assert len([each for each in running if each["role"] == "tool"]) == len(told)
            if apart.startswith("ollama"):
                assert shown(context, "ollama")[: 2 + len(told)] == [QUESTION, asked, *told]


async def gives_back_what_is_loaded(memory: Memory, form: str) -> None:
    """A request taken as a history is the same request."""
    context = await memory.load_history("saved", budget=100_000)
    again = await memory.load_history("other", history=shown(context, form), budget=100_000)
    assert as_json(shown(again, form)) == as_json(HISTORIES[form])


def replayed(appended: Any) -> Any:
    return type(appended)(first_seq=appended.first_seq, last_seq=appended.last_seq, replayed=True)


async def test_containers_and_cached_systems_stand_in_the_request() -> None:
    answer = {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": "m",
        "stop_reason": "end_turn",
        "usage": {"input_tokens": 1},
        "container": {"id": "container_1", "expires_at": "2026-01-01T00:00:00Z"},
        "content": [{"type": "text", "text": "Done."}],
    }
    system = [{"type": "text", "text": "Be kind.", "cache_control": {"type": "ephemeral"}}]
    async with open_memory("memory://") as memory:
        request = {"system": system, "messages": [{"role": "user", "content": "Run it."}]}
        await memory.save_history("s", request)
        await memory.save_history("s", answer)
        written = (await memory.load_history("s", budget=10_000)).to_anthropic()
    assert written == {**request, "messages": [*request["messages"], KEPT], "container": "container_1"}


KEPT = {"role": "assistant", "content": [{"type": "text", "text": "Done."}]}


async def test_a_batch_beyond_the_limit_stores_nothing(url: str) -> None:
    many = [{"role": "user" if number % 2 == 0 else "assistant", "content": str(number)} for number in range(1001)]
    async with open_memory(url) as memory:
        await memory.save_history("s", many[:1000])
        with pytest.raises(LimitExceededError, match=r"limits\.max_batch_messages or send less"):
            await memory.save_history("s", many)
        async with memory.turn("s", "Go on.") as turn:
            with pytest.raises(LimitExceededError, match=r"limits\.max_batch_messages"):
                turn.add(*many)
            turn.answer("So.")
        assert (await memory.get_session("s")).last_seq == 1002
