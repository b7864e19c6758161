"""Messages in the forms of providers: what we write is read back, and what else they send is understood or refused."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeAlias

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from reactor_memory.core.context.given_messages import message_of, messages_of
from reactor_memory.core.context.own_history import trim
from reactor_memory.errors import InvalidMessageError
from reactor_memory.forms.requests import (
    EARLIER_NOT_SHOWN,
    to_anthropic,
    to_gemini,
    to_openai,
    to_openai_responses,
)
from reactor_memory.models import Message, ToolCall
from tests.core.context.histories import count, count_text, plain_histories
from tests.core.context.test_provider_forms import DATA, URL, dressed
from tests.scenes.tables import each_row

Written: TypeAlias = Callable[[Sequence[Message]], Any]

TEXTS = st.sampled_from(["hello", "é\u2028é", "two\nlines", '{"found":1}', "[1,2]", "12", "ends with a word"])
ARGUMENTS: list[dict[str, Any]] = [{}, {"q": "é"}, {"n": [1, {"deep": None}]}]
SIGNATURE = {"thought_signature": DATA}
PICTURE = {
    "OpenAI": {"type": "image_url", "image_url": {"url": URL}},
    "Anthropic": {"type": "image", "source": {"type": "url", "url": URL}},
    "Gemini": {"inline_data": {"mime_type": "image/png", "data": DATA}},
    "Responses": {"type": "input_image", "image_url": URL, "detail": "auto"},
}
REASONING = {
    "OpenAI": None,
    "Anthropic": {"type": "thinking", "thinking": "hm", "signature": "s"},
    "Gemini": {"text": "hm", "thought": True},
    "Responses": {"type": "reasoning", "summary": []},
}
WRITTEN: dict[str, Written] = {
    "OpenAI": to_openai,
    "Anthropic": to_anthropic,
    "Gemini": to_gemini,
    "Responses": to_openai_responses,
}


@st.composite
def histories(draw: st.DrawFn, form: str) -> list[Message]:
    """What an agent and its provider say: system first, then turns with calls, results, pictures and reasoning."""
    history = [Message.system(draw(TEXTS))] if draw(st.booleans()) else []
    for turn in range(draw(st.integers(0, 3))):
        pictures = (PICTURE[form],) if draw(st.booleans()) else ()
        history.append(Message.user(draw(TEXTS), parts=pictures))
        for step in range(draw(st.integers(0, 2))):
            history += draw(_steps(form, f"{turn}_{step}"))
        history.append(Message.assistant(draw(TEXTS), parts=draw(_reasoning(form))))
    return history


@st.composite
def _steps(draw: st.DrawFn, form: str, number: str) -> list[Message]:
    """Calls made at once, with their results."""
    is_text = form in ("OpenAI", "Responses")
    calls = [
        ToolCall(
            id=f"call_{number}_{position}",
            name="find",
            arguments=json.dumps(arguments) if is_text else arguments,
            metadata=SIGNATURE if form == "Gemini" and draw(st.booleans()) else {},
        )
        for position, arguments in enumerate(draw(st.lists(st.sampled_from(ARGUMENTS), min_size=1, max_size=2)))
    ]
    failed = {"is_error": True} if form == "Anthropic" and draw(st.booleans()) else {}
    results = [Message.tool(draw(TEXTS), tool_call_id=call.id, metadata=failed) for call in calls]
    said = draw(st.sampled_from(["", "I shall look."]))
    return [Message.assistant(said, parts=draw(_reasoning(form)), tool_calls=calls), *results]


def _reasoning(form: str) -> st.SearchStrategy[tuple[dict[str, Any], ...]]:
    reasoning = REASONING[form]
    return st.sampled_from([(), (reasoning,)]) if reasoning else st.just(())


@each_row("form", WRITTEN)
@given(data=st.data())
def test_what_is_written_is_read_back(form: str, data: st.DataObject) -> None:
    history = data.draw(histories(form))
    assert list(messages_of(WRITTEN[form](history))) == history


@given(data=st.data())
def test_whatever_log_holds_is_same_from_the_first_reading_on(data: st.DataObject) -> None:
    """Names, ids, blank texts and neighbours take the form of the provider once; then nothing changes any more. No call
    is lost, and each result has its call.
    """
    history = data.draw(plain_histories().flatmap(dressed))
    shown = trim(history, 10**9, count=count, count_text=count_text).messages
    for form, write in WRITTEN.items():
        read = messages_of(write(shown))
        once = write(read)
        assert write(messages_of(once)) == once, form
        calls = [call.id for each in read for call in each.tool_calls]
        assert len(calls) == sum(len(each.tool_calls) for each in shown), form
        assert {each.tool_call_id for each in read if each.role == "tool"} <= {*calls}, form


class Dumped:
    """An object of an SDK: an iterable of pairs, as models of pydantic are."""

    def model_dump(self) -> dict[str, Any]:
        return {"role": "assistant", "content": "hi"}

    def __iter__(self) -> Iterator[tuple[str, Any]]:
        return iter(self.model_dump().items())


@each_row(
    ("given", "expected"),
    [
        ("hi", [Message.user("hi")]),
        (Message.user("hi"), [Message.user("hi")]),
        (["hi", Message.assistant("ho")], [Message.user("hi"), Message.assistant("ho")]),
        ([], []),
        ({"role": "user", "content": "hi"}, [Message.user("hi")]),
        ({"role": "developer", "content": "be kind"}, [Message.system("be kind")]),
        (
            {"role": "user", "content": "hi", "name": "Ann", "metadata": {"k": 1}, "author_id": "a", "created_at": 7},
            [Message.user("hi", name="Ann", metadata={"k": 1}, author_id="a", created_at=7)],
        ),
        (
            {
                "role": "user",
                "content": [{"type": "text", "text": "a"}, PICTURE["OpenAI"], {"type": "text", "text": "b"}],
            },
            [Message.user("a\nb", parts=(PICTURE["OpenAI"],))],
        ),
        (
            {"role": "assistant", "content": None, "refusal": "no", "tool_calls": None, "audio": None},
            [Message.assistant(parts=({"type": "refusal", "refusal": "no"},))],
        ),
        (
            {
                "role": "assistant",
                "content": None,
                "tool_calls": [
                    {"id": "1", "type": "function", "function": {"name": "f", "arguments": ""}},
                    {"id": "2", "type": "custom", "custom": {"name": "g", "input": "SELECT 1"}},
                    ToolCall(id="3", name="h"),
                ],
            },
            [
                Message.assistant(
                    tool_calls=[
                        ToolCall(id="1", name="f", arguments=""),
                        ToolCall(id="2", name="g", arguments="SELECT 1"),
                        ToolCall(id="3", name="h"),
                    ]
                )
            ],
        ),
        (
            {"role": "tool", "tool_call_id": "1", "content": [{"type": "text", "text": "done"}]},
            [Message.tool("done", tool_call_id="1")],
        ),
        (
            {  # what the SDK of Anthropic gives for an answer
                "id": "msg_1",
                "type": "message",
                "role": "assistant",
                "model": "m",
                "stop_reason": "tool_use",
                "usage": {"input_tokens": 3},
                "content": [
                    {"type": "thinking", "thinking": "hm", "signature": "s"},
                    {"type": "text", "text": "The grass ", "citations": None},
                    {"type": "text", "text": "is green.", "citations": [{"type": "char_location"}]},
                    {"type": "tool_use", "id": "t1", "name": "f", "input": {"q": 1}, "cache_control": {"type": "x"}},
                ],
            },
            [
                Message.assistant(
                    "The grass is green.",
                    parts=({"type": "thinking", "thinking": "hm", "signature": "s"},),
                    tool_calls=[ToolCall(id="t1", name="f", arguments={"q": 1})],
                )
            ],
        ),
        (
            {
                "role": "user",
                "content": [
                    {"type": "tool_result", "tool_use_id": "t1", "is_error": True},
                    {"type": "tool_result", "tool_use_id": "t2", "content": [{"type": "text", "text": "7"}]},
                    {"type": "text", "text": "And?", "cache_control": {"type": "ephemeral"}},
                ],
            },
            [
                Message.tool("", tool_call_id="t1", metadata={"is_error": True}),
                Message.tool("7", tool_call_id="t2"),
                Message.user("And?"),
            ],
        ),
        (
            {"role": "user", "content": [{**PICTURE["Anthropic"], "cache_control": {"type": "ephemeral"}}]},
            [Message.user("", parts=(PICTURE["Anthropic"],))],
        ),
        (
            {"system": "Be kind.", "messages": [{"role": "user", "content": "hi"}]},
            [Message.system("Be kind."), Message.user("hi")],
        ),
        (
            {"role": "function", "name": "f", "content": "seven"},  # of older models of OpenAI
            [Message.tool("seven", tool_call_id="f", name="f")],
        ),
        (
            {"role": "assistant", "content": None, "function_call": {"name": "f", "arguments": "{}"}},
            [Message.assistant(tool_calls=[ToolCall(id="f", name="f", arguments="{}")])],
        ),
        (
            {"role": "function", "parts": [{"functionResponse": {"name": "f", "response": {"result": "seven"}}}]},
            [Message.tool("seven", tool_call_id="f")],
        ),
        ({"parts": [{"text": "a"}, "b"]}, [Message.user("a\nb")]),
        (Dumped(), [Message.assistant("hi")]),
        (["hi", Dumped()], [Message.user("hi"), Message.assistant("hi")]),
        ({"choices": [{"message": Dumped()}, {"message": {}}]}, [Message.assistant("hi")]),
        ({"model": "m", "message": {"role": "assistant", "content": "hi"}, "done": True}, [Message.assistant("hi")]),
        (
            {"model": "m", "instructions": "Be kind.", "input": [{"role": "user", "content": "hi"}]},
            [Message.system("Be kind."), Message.user("hi")],
        ),
        ({"model": "m", "input": "hi"}, [Message.user("hi")]),
        (
            {"role": "assistant", "content": "hi", "annotations": [], "created": 7, "reasoning_content": "hm"},
            [Message.assistant("hi", parts=({"type": "reasoning", "reasoning_content": "hm"},))],
        ),
        (
            {  # JSON of the API, without ids
                "role": "model",
                "parts": [
                    {"text": "I "},
                    {"text": "look.", "thoughtSignature": DATA},
                    {"functionCall": {"name": "f", "args": {"q": 1}}, "thoughtSignature": DATA},
                    {"functionCall": {"name": "f"}},
                ],
            },
            [
                Message.assistant(
                    "I look.",
                    parts=({"text": "", "thought_signature": DATA},),
                    tool_calls=[
                        ToolCall(id="f", name="f", arguments={"q": 1}, metadata=SIGNATURE),
                        ToolCall(id="f-2", name="f"),
                    ],
                )
            ],
        ),
        (
            {
                "role": "user",
                "parts": [
                    {"functionResponse": {"name": "f", "response": {"result": "seven"}}},
                    {"functionResponse": {"name": "f", "response": {"a": 1, "b": None}}},
                    {"function_response": {"id": "x", "name": "g"}},
                ],
            },
            [
                Message.tool("seven", tool_call_id="f"),
                Message.tool('{"a":1,"b":null}', tool_call_id="f-2"),
                Message.tool("", tool_call_id="x"),
            ],
        ),
        (
            {  # what model_dump() of google-genai gives: bytes, and a key for everything that is not there
                "role": "user",
                "parts": [{"text": None, "thought": None, "inline_data": {"mimeType": "image/png", "data": b"hello"}}],
            },
            [Message.user("", parts=(PICTURE["Gemini"],))],
        ),
        (
            {"systemInstruction": {"parts": [{"text": "Be kind."}]}, "contents": [{"role": "user", "parts": ["hi"]}]},
            [Message.system("Be kind."), Message.user("hi")],
        ),
        (
            [
                {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "hi"}]},
                {"type": "reasoning", "id": "r", "summary": [], "encrypted_content": None},
                {"type": "function_call", "call_id": "1", "name": "f", "arguments": "{}"},
                {"type": "custom_tool_call", "call_id": "2", "name": "g", "input": "x"},
                {"type": "function_call_output", "call_id": "1", "output": "one"},
                {"type": "custom_tool_call_output", "call_id": "2", "output": [{"type": "input_text", "text": "two"}]},
                {"role": "assistant", "content": [{"type": "output_text", "text": "Done.", "annotations": []}]},
            ],
            [
                Message.user("hi"),
                Message.assistant(
                    parts=({"type": "reasoning", "id": "r", "summary": []},),
                    tool_calls=[
                        ToolCall(id="1", name="f", arguments="{}"),
                        ToolCall(id="2", name="g", arguments="x"),
                    ],
                ),
                Message.tool("one", tool_call_id="1"),
                Message.tool("two", tool_call_id="2"),
                Message.assistant("Done."),
            ],
        ),
    ],
)
def test_each_form_is_read(given: Any, expected: list[Message]) -> None:
    assert list(messages_of(given)) == expected


CALL = {"role": "assistant", "content": None}


@each_row(
    ("given", "field", "problem"),
    [
        (5, "messages", "is a int, must be a Message, a text, or a dict or an object of OpenAI, Anthropic or Gemini"),
        (None, "messages", "is a NoneType, must be a Message"),
        ([5], "messages[0]", "is a int, must be a Message, a text, or a dict"),
        ({"type": "ai", "content": "hi"}, "messages.role", "adapters.langchain.to_message"),
        ({"content": "hi"}, "messages.role", "is missing; must be one of user, assistant"),
        ({"id": "c", "choices": []}, "messages.choices[0].message", "is missing; the response holds no message"),
        ([{"candidates": [{"finish_reason": "SAFETY"}]}], "messages[0].candidates[0].content", "is missing"),
        ({"object": "response", "output": [{"type": "message"}]}, "messages.output[0].role", "is missing"),
        ({"role": "user", "content": "hi", "tool_call": []}, "messages.tool_call", "did you mean tool_calls?"),
        ({"role": "human", "content": "hi"}, "messages.role", "must be one of user, assistant"),
        ({"role": ["user"], "content": "hi"}, "messages.role", "must be one of user, assistant"),
        (["hi", {"role": "user", "contnet": "hi"}], "messages[1].contnet", "did you mean content?"),
        (["hi", {"role": "user", "text": "hi"}], "messages[1].content", "is missing; must be a text or a list"),
        ({"role": "user", "content": None}, "messages.content", "is missing; must be a text or a list"),
        ({"role": "user", "content": 5}, "messages.content", "is a int, must be a text or a list of parts"),
        ({"role": "user", "content": [5]}, "messages.content[0]", "must be a dict, such as {'type': 'text'"),
        ({"role": "user", "content": [{"type": "text"}]}, "messages.content[0].text", "is a NoneType, must be a text"),
        (
            {"role": "user", "content": [{"type": "tool_result", "content": "7"}]},
            "messages.content[0].tool_use_id",
            "is missing; a result names the call it answers",
        ),
        (
            {"role": "assistant", "content": [{"type": "tool_use", "id": "1", "input": {}}]},
            "messages.content[0].name",
            "is a NoneType, must be a text",
        ),
        (
            {**CALL, "tool_calls": [{"id": "1", "type": "function", "function": {"name": "f", "arguments": 5}}]},
            "messages.tool_calls[0].arguments",
            "is a int, must be a dict",
        ),
        ({**CALL, "tool_calls": [{"id": "1"}]}, "messages.tool_calls[0]", "must have an id, and a function"),
        ({**CALL, "tool_calls": {"id": "1"}}, "messages.tool_calls", "is a dict, must be a list"),
        ({**CALL, "function_call": {"arguments": "{}"}}, "messages.function_call.name", "is a NoneType"),
        ({"type": "function_call", "name": "f", "arguments": "{}"}, "messages.id", "is a NoneType, must be a text"),
        ({"type": "function_call_output", "output": "x"}, "messages.call_id", "is missing; a result names"),
        ({"role": "user", "parts": "hi"}, "messages.parts", "is a str, must be a list"),
        ({"role": "user", "parts": [5]}, "messages.parts[0]", "must be a dict, such as {'text': ...}"),
        (
            {"role": "model", "parts": [{"functionCall": {"args": {}}}]},
            "messages.parts[0].function_call.name",
            "is a NoneType, must be a text",
        ),
        ({"messages": "hi"}, "messages.messages", "is a str, must be a list"),
        ({"contents": [{"parts": [5]}]}, "messages.contents[0].parts[0]", "must be a dict"),
    ],
)
def test_what_is_no_message_is_refused_with_place_and_remedy(given: Any, field: str, problem: str) -> None:
    with pytest.raises(InvalidMessageError) as raised:
        messages_of(given)
    assert raised.value.field == field
    assert problem in raised.value.problem


def test_one_message_is_one() -> None:
    assert message_of("yes") == Message.user("yes")
    assert message_of({"role": "user", "content": "hi"}) == Message.user("hi")
    with pytest.raises(InvalidMessageError, match="message: holds 2 messages, must be one"):
        message_of({"role": "user", "parts": [{"functionResponse": {"name": "f", "response": {}}}, {"text": "and?"}]})


def test_messages_pass_as_they_are() -> None:
    message = replace(Message.user("hi"), seq=3)
    assert messages_of(message)[0] is message
    assert messages_of(iter([message]))[0] is message


def test_our_own_mark_is_no_message() -> None:
    begun = [Message.system("s"), Message.assistant("I began.")]
    assert to_anthropic(begun)["messages"][0]["content"][0]["text"] == EARLIER_NOT_SHOWN
    assert list(messages_of(to_anthropic(begun))) == begun
    assert list(messages_of(to_gemini(begun)["contents"])) == begun[1:]
