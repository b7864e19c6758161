"""The forms that providers take."""

from __future__ import annotations

import pytest
from google.genai import types

from reactor_memory.core.context.context import Context
from reactor_memory.core.context.own_history import trim
from reactor_memory.forms.content_parts import NOT_SHOWN
from reactor_memory.forms.requests import (
    EARLIER_NOT_SHOWN,
    EMPTY,
    to_anthropic,
    to_gemini,
    to_openai,
    to_openai_responses,
)
from reactor_memory.models import JsonObject, Message, ToolCall
from tests.core.context.histories import count, count_text
from tests.scenes.tables import each_row

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


def test_openai_gets_calls_as_json_and_results_after_them() -> None:
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


def test_results_follow_their_call_and_several_become_one() -> None:
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
    report: JsonObject = {"type": "server_tool_use", "id": "9", "name": "web_search", "input": {}}
    messages = [
        Message.user("hi"),
        Message.assistant("text", parts=(report, thought), tool_calls=[ToolCall(id="1", name="t")]),
        Message.tool("no", tool_call_id="1", metadata={"is_error": True}),
    ]
    _, call, results = to_anthropic(messages)["messages"]
    assert [block["type"] for block in call["content"]] == ["thinking", "text", "server_tool_use", "tool_use"]
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


def test_gemini_gets_what_model_said_before_call_together_with_call() -> None:
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


PICTURES = [
    {"type": "image_url", "image_url": {"url": "data:image/png;base64,aGk="}},
    {"type": "input_image", "image_url": "data:image/png;base64,aGk="},
    {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "aGk="}},
    {"type": "image", "base64": "aGk=", "mime_type": "image/png"},
    {"inline_data": {"mime_type": "image/png", "data": "aGk="}},
]


@each_row("picture", PICTURES)
def test_a_picture_reaches_every_provider_whoever_it_came_from(picture: dict[str, object]) -> None:
    messages = [Message.user("look", parts=(picture,))]
    assert to_openai(messages)[0]["content"][1] == PICTURES[0]
    assert to_openai_responses(messages)[0]["content"][1]["image_url"] == PICTURES[1]["image_url"]
    assert to_anthropic(messages)["messages"][0]["content"][1] == PICTURES[2]
    assert to_gemini(messages)["contents"][0]["parts"][1] == PICTURES[4]


@pytest.mark.parametrize("url", ["https://example.org/a.png", "data:,hello"])
def test_a_picture_that_is_elsewhere_stays_there(url: str) -> None:
    messages = [Message.user("look", parts=({"type": "image", "source": {"type": "url", "url": url}},))]
    assert to_openai(messages)[0]["content"][1] == {"type": "image_url", "image_url": {"url": url}}
    assert to_gemini(messages)["contents"][0]["parts"][1] == {"file_data": {"file_uri": url}}


def test_where_a_part_has_no_place_stands_a_mark() -> None:
    audio = {"type": "input_audio", "input_audio": {"data": "", "format": "wav"}}
    drawing = {"inline_data": {"mime_type": "image/svg+xml", "data": "aGk="}}
    asked = Message.user("listen", parts=(audio, drawing))
    drawn = Message.assistant("there", parts=(PICTURES[0],))
    assert to_openai([asked])[0]["content"][1] == audio
    marks = [block["text"] for block in to_anthropic([asked])["messages"][0]["content"]]
    assert marks == ["listen", NOT_SHOWN, NOT_SHOWN]
    assert to_openai([drawn])[0]["content"] == [{"type": "text", "text": text} for text in ("there", NOT_SHOWN)]
    assert to_openai_responses([drawn]) == [{"role": "assistant", "content": f"there\n{NOT_SHOWN}"}]


def test_reasoning_goes_only_to_who_made_it() -> None:
    anthropic = {"type": "thinking", "thinking": "hm", "signature": "sig"}
    gemini = {"text": "hm", "thought": True, "thought_signature": "aGk="}
    openai: JsonObject = {"type": "reasoning", "id": "rs_1", "summary": []}
    messages = [Message.user("hi"), Message.assistant("yes", parts=(anthropic, gemini, openai))]
    assert to_openai(messages)[1]["content"] == "yes"
    without_id = {"type": "reasoning", "summary": []}
    assert to_openai_responses(messages)[1:] == [without_id, {"role": "assistant", "content": "yes"}]
    assert to_anthropic(messages)["messages"][1]["content"] == [anthropic, {"type": "text", "text": "yes"}]
    assert to_gemini(messages)["contents"][1]["parts"] == [gemini, {"text": "yes"}]


def test_the_parts_of_results_reach_who_takes_them() -> None:
    result = Message.tool("here", tool_call_id="1", parts=(PICTURES[0],))
    messages = [Message.user("hi"), Message.assistant(tool_calls=[ToolCall(id="1", name="t")]), result]
    assert [part["text"] for part in to_openai(messages)[2]["content"]] == ["here", NOT_SHOWN]
    assert [part["type"] for part in to_openai_responses(messages)[2]["output"]] == ["input_text", "input_image"]
    (block,) = to_anthropic(messages)["messages"][2]["content"]
    assert [part["type"] for part in block["content"]] == ["text", "image"]
    (response,) = to_gemini(messages)["contents"][2]["parts"]
    assert response["function_response"]["parts"] == [PICTURES[4]]


def test_id_that_is_used_again_or_refused_gets_another_form() -> None:
    messages = [Message.user("hi")]
    for key in ("a", "a", "b/c", "", "x" * 50):
        messages += [Message.assistant(tool_calls=[ToolCall(id=key, name="t")]), Message.tool("r", tool_call_id=key)]
    blocks = [block for message in to_anthropic(messages)["messages"] for block in message["content"]]
    called = [block["id"] for block in blocks if block["type"] == "tool_use"]
    assert called == ["a", "a_1", "b_c", "call", "x" * 40]
    assert [block["tool_use_id"] for block in blocks if block["type"] == "tool_result"] == called
    assert [message["tool_call_id"] for message in to_openai(messages) if message["role"] == "tool"][2] == "b/c"


def test_names_of_tools_are_written_as_each_provider_allows() -> None:
    call = Message.assistant(tool_calls=[ToolCall(id="1", name="9shop.find it")])
    messages = [Message.user("hi"), call, Message.tool("r", tool_call_id="1")]
    assert to_openai(messages)[1]["tool_calls"][0]["function"]["name"] == "9shop_find_it"
    called, answered = to_gemini(messages)["contents"][1:]
    assert called["parts"][0]["function_call"]["name"] == "_9shop.find_it"
    assert answered["parts"][0]["function_response"]["name"] == "_9shop.find_it"


def test_a_user_who_says_nothing_still_has_a_turn() -> None:
    messages = [Message.user("hi"), Message.assistant("yes?"), Message.user(" ")]
    assert to_anthropic(messages)["messages"][-1] == {"role": "user", "content": [{"type": "text", "text": EMPTY}]}
    assert to_gemini([Message.user("")])["contents"] == [{"role": "user", "parts": [{"text": EMPTY}]}]


def test_a_failed_calls_result_is_never_empty_another_may_be() -> None:
    calls = [ToolCall(id="1", name="t"), ToolCall(id="2", name="t")]
    failed = Message.tool("", tool_call_id="1", metadata={"is_error": True})
    messages = [Message.user("hi"), Message.assistant(tool_calls=calls), failed, Message.tool("", tool_call_id="2")]
    assert to_anthropic(messages)["messages"][2]["content"] == [
        {"type": "tool_result", "tool_use_id": "1", "content": [{"type": "text", "text": EMPTY}], "is_error": True},
        {"type": "tool_result", "tool_use_id": "2"},
    ]


def test_answer_that_ends_request_has_no_space_at_its_end() -> None:
    messages = [Message.user("hi"), Message.assistant("so \n")]
    assert to_anthropic(messages)["messages"][-1]["content"] == [{"type": "text", "text": "so"}]
    assert to_anthropic([*messages, Message.user("?")])["messages"][1]["content"][0]["text"] == "so \n"


def test_only_the_assistant_calls_tools() -> None:
    calls = (ToolCall(id="1", name="t"),)
    messages = [Message.user("hi", tool_calls=calls), Message(role="summary", content="s", tool_calls=calls)]
    messages.append(Message.tool("r", tool_call_id="1"))
    assert to_openai(messages) == [{"role": "user", "content": "hi"}, {"role": "system", "content": "s"}]
    assert len(to_anthropic(messages)["messages"]) == len(to_gemini(messages)["contents"]) == 1


def test_responses_are_items_of_their_own() -> None:
    system, first, second, *results, answer = to_openai_responses(LOOP)[1:]
    assert (system["role"], first["type"], first["call_id"]) == ("user", "function_call", "1")
    assert second["arguments"] == '{"seats": 2}'
    assert [result["call_id"] for result in results] == ["2", "1"]
    assert [result["output"] for result in results] == ['{"found": true}', "three hits"]
    assert answer == {"role": "assistant", "content": "done"}
