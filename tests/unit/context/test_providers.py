"""The forms that providers take."""

from __future__ import annotations

import json

from google.genai import types
from hypothesis import given, settings

from reactor_memory.context.providers import EARLIER_NOT_SHOWN, to_anthropic, to_gemini, to_openai
from reactor_memory.context.report import Context
from reactor_memory.context.trimming import trim
from reactor_memory.models import Message, ToolCall
from tests.unit.context.histories import count, count_text, plain_histories

CALLS = [
    ToolCall(id="1", name="find", arguments={"city": "Köln"}, metadata={"thought_signature": "aGVsbG8="}),
    ToolCall(id="2", name="book", arguments='{"seats": 2}'),
]
LOOP = [
    Message.system("Be brief."),
    Message.user("hi", name="anna"),
    Message.assistant("", tool_calls=CALLS),
    Message.tool('{"found": true}', tool_call_id="2"),
    Message.tool("three hits", tool_call_id="1"),
    Message(role="agent", content="done"),
]


def test_openai_gets_calls_as_json_text_and_results_after_their_calls() -> None:
    system, facts, user, call, second, first, answer = to_openai(LOOP, system="You are kind.")
    assert (system, facts["role"]) == ({"role": "system", "content": "You are kind."}, "system")
    assert user == {"role": "user", "content": "hi", "name": "anna"}
    assert call["content"] is None
    assert call["tool_calls"][0] == {
        "id": "1",
        "type": "function",
        "function": {"name": "find", "arguments": '{"city":"Köln"}'},
    }
    assert call["tool_calls"][1]["function"]["arguments"] == '{"seats": 2}'
    assert second == {"role": "tool", "tool_call_id": "2", "content": '{"found": true}'}
    assert first["tool_call_id"] == "1"
    assert answer == {"role": "assistant", "content": "done"}


def test_openai_gets_content_parts_beside_the_text() -> None:
    image = {"type": "image_url", "image_url": {"url": "https://example.org/a.png"}}
    (message,) = to_openai([Message.user("look", parts=(image,))])
    assert message["content"] == [{"type": "text", "text": "look"}, image]


def test_openai_gets_no_name_that_it_would_refuse() -> None:
    assert "name" not in to_openai([Message.user("hi", name="Anna Bo")])[0]


def test_results_directly_follow_their_call_and_several_of_one_call_are_one() -> None:
    messages = [
        Message.user("hi"),
        Message.assistant(tool_calls=[ToolCall(id="1", name="t")]),
        Message.assistant("still looking"),
        Message.tool("half", tool_call_id="1"),
        Message.tool("whole", tool_call_id="1"),
    ]
    roles = [(message["role"], message["content"]) for message in to_openai(messages)]
    assert roles == [("user", "hi"), ("assistant", None), ("tool", "half\nwhole"), ("assistant", "still looking")]
    (result,) = to_anthropic(messages)["messages"][2]["content"]
    assert [block["text"] for block in result["content"]] == ["half", "whole"]
    (response,) = to_gemini(messages)["contents"][2]["parts"]
    assert response["function_response"]["response"] == {"result": ["half", "whole"]}


def test_anthropic_gets_blocks_and_alternating_roles() -> None:
    request = to_anthropic(LOOP, system="You are kind.")
    assert [block["text"] for block in request["system"]] == ["You are kind.", "Be brief."]
    user, call, results, answer = request["messages"]
    assert user == {"role": "user", "content": [{"type": "text", "text": "hi"}]}
    assert call["content"] == [
        {"type": "tool_use", "id": "1", "name": "find", "input": {"city": "Köln"}},
        {"type": "tool_use", "id": "2", "name": "book", "input": {"seats": 2}},
    ]
    assert results["role"] == "user"
    assert [block["tool_use_id"] for block in results["content"]] == ["2", "1"]
    assert answer["role"] == "assistant"


def test_anthropic_keeps_reasoning_before_the_text_and_marks_failed_results() -> None:
    thought = {"type": "thinking", "thinking": "hm", "signature": "sig"}
    image = {"type": "image", "source": {}}
    messages = [
        Message.user("hi"),
        Message.assistant("text", parts=(image, thought), tool_calls=[ToolCall(id="1", name="t")]),
        Message.tool("no", tool_call_id="1", metadata={"is_error": True}),
    ]
    _, call, results = to_anthropic(messages)["messages"]
    assert [block["type"] for block in call["content"]] == ["thinking", "text", "image", "tool_use"]
    assert results["content"][0]["is_error"] is True


def test_anthropic_gets_no_blank_text() -> None:
    messages = [Message.user("hi"), Message.assistant(" \n"), Message.user("there?"), Message.system("  ")]
    request = to_anthropic(messages)
    assert "system" not in request
    assert [len(message["content"]) for message in request["messages"]] == [2]


def test_who_needs_a_user_message_first_gets_one() -> None:
    messages = [Message.assistant("as I said"), Message.user("what?")]
    assert to_anthropic(messages)["messages"][0]["content"][0]["text"] == EARLIER_NOT_SHOWN
    assert to_gemini(messages)["contents"][0]["parts"] == [{"text": EARLIER_NOT_SHOWN}]


def test_arguments_that_are_no_object_go_through_under_raw() -> None:
    for raw in ('{"broken": ', "[1, 2]", "null"):
        call = Message.assistant(tool_calls=[ToolCall(id="1", name="t", arguments=raw)])
        (block,) = to_anthropic([Message.user("hi"), call])["messages"][1]["content"]
        assert block["input"] == {"_raw": raw}
        (converted,) = to_openai([call])[0]["tool_calls"]
        assert converted["function"]["arguments"] == raw
    (blank,) = to_gemini([Message.assistant(tool_calls=[ToolCall(id="1", name="t", arguments="")])])["contents"][1][
        "parts"
    ]
    assert blank["function_call"]["args"] == {}


def test_gemini_gets_calls_responses_and_signatures_back() -> None:
    request = to_gemini(LOOP, system="You are kind.")
    assert request["system_instruction"] == {"parts": [{"text": "You are kind."}, {"text": "Be brief."}]}
    user, call, responses, answer = request["contents"]
    assert user == {"role": "user", "parts": [{"text": "hi"}]}
    assert call["role"] == answer["role"] == "model"
    assert [part["function_response"]["name"] for part in responses["parts"]] == ["book", "find"]
    assert responses["parts"][0]["function_response"]["response"] == {"found": True}
    assert responses["parts"][1]["function_response"]["response"] == {"result": "three hits"}
    sent = types.Content.model_validate(call)
    assert sent.parts
    assert sent.parts[0].thought_signature == b"hello"
    assert sent.parts[1].thought_signature is None


def test_gemini_gets_what_the_model_said_before_a_call_together_with_the_call() -> None:
    said = [Message.user("hi"), Message.assistant("let me look"), Message.assistant(tool_calls=CALLS[:1])]
    contents = to_gemini([*said, Message.tool("here", tool_call_id="1"), Message.user("thanks")])["contents"]
    assert [content["role"] for content in contents] == ["user", "model", "user", "user"]
    assert [next(iter(part)) for part in contents[1]["parts"]] == ["text", "function_call"]
    assert [next(iter(part)) for part in contents[2]["parts"]] == ["function_response"]


def test_a_summary_message_is_shown_as_system() -> None:
    summary = Message(role="summary", content="earlier")
    assert to_openai([summary]) == [{"role": "system", "content": "earlier"}]
    assert to_anthropic([summary])["system"] == [{"type": "text", "text": "earlier"}]


def test_a_context_converts_itself_with_its_system_prompt() -> None:
    context = trim([Message.user("hi")], 100, count=count, count_text=count_text)
    context = Context(messages=context.messages, report=context.report, system="kind")
    assert context.to_openai()[0] == {"role": "system", "content": "kind"}
    assert context.to_anthropic()["system"] == [{"type": "text", "text": "kind"}]
    assert context.to_gemini()["system_instruction"] == {"parts": [{"text": "kind"}]}


@settings(deadline=None, max_examples=200)
@given(messages=plain_histories())
def test_whatever_was_trimmed_is_what_providers_accept(messages: list[Message]) -> None:
    shown = trim(messages, 10**9, count=count, count_text=count_text).messages

    open_ids: list[str] = []
    for message in to_openai(shown):
        if message["role"] == "tool":
            open_ids.remove(message["tool_call_id"])
            continue
        assert not open_ids
        open_ids = [call["id"] for call in message.get("tool_calls", ())]

    anthropic = to_anthropic(shown)["messages"]
    assert [message["role"] for message in anthropic] == [("user", "assistant")[i % 2] for i in range(len(anthropic))]
    json.dumps(anthropic)

    for content in to_gemini(shown)["contents"]:
        types.Content.model_validate(content)
