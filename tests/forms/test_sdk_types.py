"""Every message, item, block and part that the types of the SDKs know comes back as it came; every provider takes it.

The unions of the installed SDKs tell which there are: a member that a newer one brings is tried without a word here.
"""

from __future__ import annotations

from base64 import b64decode
from collections.abc import Callable, Iterator
from itertools import pairwise, product

import pytest

from tests.forms.provider_histories import DATA, Json
from tests.forms.sdk_shapes import members, shapes
from tests.forms.test_given_back import check, check_blocks

pytestmark = pytest.mark.slow

QUESTION = {"role": "user", "content": "And?"}


def numbered(item: Json, place: int) -> Json:
    return {**item, "id": f"item_{place}"} if isinstance(item.get("id"), str) else item


# -- OpenAI: Responses -------------------------------------------------------------------------------------------------


def responses_histories() -> Iterator[tuple[str, list[Json]]]:
    from openai.types import responses

    unions = (responses.ResponseInputItem, responses.ResponseOutputItem, responses.ResponseItem)
    kinds: dict[str, list[Json]] = {}
    for kind in dict.fromkeys(member for union in unions for member in members(union)):
        for shape in shapes(kind):
            kinds.setdefault(str(shape.get("type", "message")), []).append(shape)
    for name, found in kinds.items():
        output = next((each for each in (f"{name}_output", name.replace("_call", "_output")) if each in kinds), None)
        output = "mcp_approval_response" if name == "mcp_approval_request" else output
        if output is None or output == name:
            if not name.endswith(("_output", "_response")):
                yield from ((name, [shape]) for shape in found)
            continue
        yield from ((name, [call, kinds[output][1]]) for call in found)
        yield from ((output, [found[1], result]) for result in kinds[output])


def as_responses(items: list[Json]) -> list[Json]:
    """Between a question and an answer; results name their calls."""
    items = [numbered(item, place) for place, item in enumerate(items)]
    for call, result in pairwise(items):
        if "approval_request_id" in result:
            result["approval_request_id"] = call["id"]
        elif call.get("call_id") is None or ("call_id" in result and result["call_id"] is None):
            call["call_id"] = result["call_id"] = None  # what the server answers itself
        elif "call_id" in result or result["type"] != "local_shell_call_output":
            result["call_id"] = call["call_id"]
        else:
            result["id"] = call["call_id"]
    answer = {"type": "output_text", "text": "So.", "annotations": []}
    said = {"type": "message", "id": "msg_last", "role": "assistant", "status": "completed", "content": [answer]}
    return [QUESTION, *items, said]


# -- OpenAI: chat completions ------------------------------------------------------------------------------------------


def chat_histories() -> Iterator[tuple[str, list[Json]]]:
    from openai.types import chat

    for kind in (*members(chat.ChatCompletionMessageParam), chat.ChatCompletionMessage):
        for shape in shapes(kind):
            yield kind.__name__, as_chat(shape)
    for kind in members(chat.ChatCompletionContentPartParam):
        for shape in shapes(kind):
            yield kind.__name__, [{"role": "user", "content": [shape]}, {"role": "assistant", "content": "So."}]


def as_chat(message: Json) -> list[Json]:
    if message["role"] == "tool":
        call = {"id": message["tool_call_id"], "type": "function", "function": {"name": "f", "arguments": "{}"}}
        return [QUESTION, {"role": "assistant", "content": None, "tool_calls": [call]}, message]
    if message["role"] == "function":
        return [QUESTION, {"role": "assistant", "function_call": {"name": "x", "arguments": "{}"}}, message]
    calls = message.get("tool_calls") or ()
    results = [{"role": "tool", "tool_call_id": call["id"], "content": "found"} for call in calls]
    if message.get("function_call"):
        results.append({"role": "function", "name": "x", "content": "found"})
    says_nothing = not any(message.get(key) for key in ("content", "tool_calls", "refusal", "audio", "function_call"))
    return [QUESTION, *([] if says_nothing else [message]), *results]


# -- Anthropic ---------------------------------------------------------------------------------------------------------


def anthropic_histories() -> Iterator[tuple[str, list[Json]]]:
    from anthropic import types
    from anthropic.types import beta

    said = {each["type"] for kind in members(beta.BetaContentBlock) for each in shapes(kind)}
    for union in (types.ContentBlock, beta.BetaContentBlock, types.ContentBlockParam, beta.BetaContentBlockParam):
        for kind in members(union):
            for shape in shapes(kind):
                yield kind.__name__, as_anthropic(shape, said)


def as_anthropic(block: Json, said: set[str]) -> list[Json]:
    kind, text = block["type"], {"type": "text", "text": "So."}
    if kind == "tool_result":
        use = {"type": "tool_use", "id": block["tool_use_id"], "name": "f", "input": {}}
        return [QUESTION, {"role": "assistant", "content": [use]}, {"role": "user", "content": [block]}]
    if kind not in said:
        return [{"role": "user", "content": [block, text]}, {"role": "assistant", "content": [text]}]
    before = []
    if kind.endswith("_tool_result"):
        use = "mcp_tool_use" if kind.startswith("mcp") else "server_tool_use"
        server = {"server_name": "s"} if kind.startswith("mcp") else {}
        before = [{"type": use, "id": block["tool_use_id"], "name": "web_search", "input": {}, **server}]
    answer = [QUESTION, {"role": "assistant", "content": [text, *before, block]}]
    if kind == "tool_use":
        result = {"type": "tool_result", "tool_use_id": block["id"], "content": "found"}
        return [*answer, {"role": "user", "content": [result]}]
    return answer


# -- Gemini ------------------------------------------------------------------------------------------------------------


def gemini_histories() -> Iterator[tuple[str, list[Json]]]:
    from google.genai import types

    for name, has_all in product(types.Part.model_fields, (0, 1)):
        for shape in list(shapes(types.Part.model_fields[name].annotation))[has_all::2]:
            made = types.Part.model_validate({name: shape})
            for by_alias in (False, True):
                part = made.model_dump(mode="json", exclude_none=True, by_alias=by_alias)
                yield name, as_gemini(part, name)


def as_gemini(part: Json, name: str) -> list[Json]:
    question = {"role": "user", "parts": [{"text": "And?"}]}
    call = part.get("function_call", part.get("functionCall"))
    if call is not None:
        call.setdefault("name", "f")
        result = {"function_response": {"name": call["name"], "response": {"result": 1}}}
        if "id" in call:
            result["function_response"]["id"] = call["id"]
        return [question, {"role": "model", "parts": [part]}, {"role": "user", "parts": [result]}]
    response = part.get("function_response", part.get("functionResponse"))
    if response is not None:
        response.setdefault("name", "f")
        called = {"function_call": {"name": response["name"], "args": {}}}
        if "id" in response:
            called["function_call"]["id"] = response["id"]
        return [question, {"role": "model", "parts": [called]}, {"role": "user", "parts": [part]}]
    part = part if {*part} & {"text", "inline_data", "inlineData"} else {**part, "text": "So."}
    return [question, {"role": "model", "parts": [part]}]


# -- Ollama ------------------------------------------------------------------------------------------------------------


def ollama_histories() -> Iterator[tuple[str, list[Json]]]:
    from ollama import Image, Message

    picture = Message(role="user", content="x", images=[Image(value=b64decode(DATA + "=="))])
    yield "images", [picture.model_dump(exclude_none=True), {"role": "assistant", "content": "So."}]
    for name in Message.model_fields.keys() - {"role", "images", "tool_name"}:
        for shape in shapes(Message.model_fields[name].annotation):
            answer = {
                "role": "assistant",
                "content": "x",
                name: Message(role="assistant", **{name: shape}).model_dump(exclude_none=True)[name],
            }
            results = [
                {"role": "tool", "content": "found", "tool_name": call["function"]["name"]}
                for call in answer.get("tool_calls", ())
            ]
            yield name, [QUESTION, answer, *results]


HISTORIES: dict[str, Callable[[], Iterator[tuple[str, list[Json]]]]] = {
    "openai": chat_histories,
    "openai_responses": lambda: ((name, as_responses(items)) for name, items in responses_histories()),
    "anthropic": anthropic_histories,
    "gemini": gemini_histories,
    "ollama": ollama_histories,
}


@pytest.mark.parametrize("form", HISTORIES)
def test_every_type_of_an_sdk_comes_back(form: str) -> None:
    failed: dict[str, str] = {}
    count = 0
    for name, history in HISTORIES[form]():
        count += 1
        try:
            check(form, history)
            check_blocks(history)
        except Exception as error:
            failed.setdefault(name, f"{type(error).__name__}: {str(error)[:400]}\n  {str(history)[:900]}")
    print(form, count)
    assert not failed, "\n".join(f"{name}: {problem}" for name, problem in failed.items())
