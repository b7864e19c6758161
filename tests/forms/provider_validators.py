"""What each provider refuses in a request, by the rules that it publishes. Written from the provider's side; shares no
code with what makes the requests.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from typing import Any

Json = dict[str, Any]


def problems(form: str, messages: Sequence[Json]) -> list[str]:
    """What the provider would refuse; an empty list if nothing."""
    return [*_not_json(messages), *_RULES[form](messages)]


def _not_json(messages: Sequence[Json]) -> Iterator[str]:
    """Clients write strict JSON in UTF-8: NaN and half characters end the call."""
    try:
        json.dumps(messages, allow_nan=False, ensure_ascii=False).encode()
    except (ValueError, TypeError):
        yield "is no JSON that a client can send"


def _openai(messages: Sequence[Json]) -> Iterator[str]:
    """Results stand directly behind the message with their calls, one for each; ids are unique in it; an assistant
    says, calls or refuses something; users and tools have content.
    """
    waiting: list[str] = []
    for message in messages:
        role = message["role"]
        if role == "tool":
            if message.get("tool_call_id") not in waiting:
                yield "a result has no call before it"
            else:
                waiting.remove(message["tool_call_id"])
            if not isinstance(message.get("content"), str | list):
                yield "a result has no content"
            continue
        if waiting:
            yield "a call has no result"
        waiting = [call["id"] for call in message.get("tool_calls") or ()]
        if len(set(waiting)) < len(waiting) or not all(waiting):
            yield "ids of calls are empty or equal"
        if role == "assistant":
            yield from _openai_answer(message)
        elif not isinstance(message.get("content"), str | list):
            yield f"a message of the {role} has no content"
    if waiting:
        yield "a call has no result"


def _openai_answer(message: Json) -> Iterator[str]:
    if not any(message.get(key) for key in ("content", "tool_calls", "refusal", "audio", "function_call")):
        yield "an answer is empty"
    for call in message.get("tool_calls") or ():
        called = call.get(call["type"])
        text = called.get("arguments" if call["type"] == "function" else "input")
        if not called.get("name") or not isinstance(text, str):
            yield "a call has no name, or arguments that are no text"


def _responses(items: Sequence[Json]) -> Iterator[str]:
    """Each output answers a call before it; no call stays open; ids of items are unique; reasoning stands before what
    it led to.
    """
    waiting: set[str] = set()
    seen: list[str] = []
    for item in items:
        kind = item.get("type", "message" if "role" in item else "item_reference")
        is_output = kind.endswith(("_output", "_response"))
        if is_output and not ("call_id" in item and item["call_id"] is None):  # else the API answered itself
            answered = item.get("call_id") or item.get("approval_request_id") or item["id"]
            if answered not in waiting:
                yield "an output has no call"
            waiting.discard(answered)
            continue
        if not is_output and (call_id := item["id"] if kind == "mcp_approval_request" else item.get("call_id")):
            waiting.add(call_id)
        elif kind == "message" and item.get("content") in (None, []):
            yield "a message is empty"
        seen += [item["id"]] if "id" in item else []
    if waiting:
        yield "a call has no output"
    if len(seen) > len({*seen}):
        yield "an item stands twice"
    for item, after in pairwise([*items, {"role": "user"}]):
        if item.get("type") == "reasoning" and after.get("role") == "user":
            yield "reasoning is not followed by what it led to"


def _anthropic(messages: Sequence[Json]) -> Iterator[str]:
    """Roles take turns, the user begins; results come first and answer all calls; no text is blank; ids are unique;
    what only the model says stands in its messages; the result of a server's tool follows its call.
    """
    if messages and messages[0]["role"] != "user":
        yield "the user does not begin"
    ids = [block["id"] for message in messages for block in _blocks(message) if block["type"] == "tool_use"]
    if len(ids) != len(set(ids)):
        yield "an id is used twice"
    for before, after in pairwise([{"role": "", "content": []}, *messages, {"role": "", "content": []}]):
        if before["role"] and before["role"] == after["role"]:
            yield "two messages of one role"
        called = sorted(block["id"] for block in _blocks(before) if block["type"] == "tool_use")
        answered = sorted(block["tool_use_id"] for block in _blocks(after) if block["type"] == "tool_result")
        if called != answered:
            yield "calls and results do not match"
    for message in messages:
        yield from _anthropic_message(message)


def _blocks(message: Json) -> list[Json]:
    content = message["content"]
    return [{"type": "text", "text": content}] if isinstance(content, str) else content


def _anthropic_message(message: Json) -> Iterator[str]:
    blocks = _blocks(message)
    if not blocks:
        yield "a message is empty"
    if any(block["type"] == "text" and not block["text"].strip() for block in blocks):
        yield "a text is blank"
    kinds = [block["type"] for block in blocks]
    results = kinds.count("tool_result")
    if kinds[:results] != ["tool_result"] * results:
        yield "results are not first"
    models = ("thinking", "redacted_thinking", "tool_use", "server_tool_use")
    if message["role"] == "user" and any(kind in models for kind in kinds):
        yield "the user says what only a model says"
    served = {block["tool_use_id"] for block in blocks if block["type"].endswith("_tool_result")}
    if served - {block["id"] for block in blocks if block["type"] in ("server_tool_use", "mcp_tool_use")}:
        yield "the result of a server's tool has no call"
    if any(block.get("is_error") and not block.get("content") for block in blocks):
        yield "a failed result is empty"


def _gemini(contents: Sequence[Json]) -> Iterator[str]:
    """The user begins; a call follows the user; as many results follow as calls were made, with their ids, or in their
    order; no content is empty; only the model thinks.
    """
    if contents and contents[0]["role"] != "user":
        yield "the user does not begin"
    for before, after in pairwise([{"role": "user", "parts": []}, *contents, {"role": "user", "parts": []}]):
        calls = _parts(before, "function_call", "functionCall")
        responses = _parts(after, "function_response", "functionResponse")
        called = [(call["name"], call.get("id")) for call in calls]
        answered = [(response["name"], response.get("id")) for response in responses]
        if called != answered and (sorted(called) != sorted(answered) or any(not call_id for _, call_id in called)):
            yield "calls and results do not match"
        if after["role"] == "model" and before["role"] == "model":
            yield "two contents of the model"
    for content in contents:
        if not content["parts"]:
            yield "a content is empty"
        if content["role"] == "user" and any(part.get("thought") for part in content["parts"]):
            yield "the user thinks"


def _parts(content: Json, *keys: str) -> list[Json]:
    return [part[key] for part in content["parts"] for key in keys if key in part]


def _ollama(messages: Sequence[Json]) -> Iterator[str]:
    """Arguments are objects; contents are texts; pictures are base64; as many results follow as calls were made."""
    waiting: list[str] = []
    for message in messages:
        if not isinstance(message.get("content", ""), str):
            yield "a content is no text"
        if not all(isinstance(picture, str) for picture in message.get("images", ())):
            yield "a picture is no base64"
        if message["role"] == "tool":
            if message.get("tool_name") not in waiting:
                yield "a result has no call"
            else:
                waiting.remove(message["tool_name"])
            continue
        if waiting:
            yield "a call has no result"
        calls = message.get("tool_calls") or ()
        waiting = [call["function"]["name"] for call in calls]
        if not all(isinstance(call["function"].get("arguments", {}), dict) for call in calls):
            yield "arguments are no object"
    if waiting:
        yield "a call has no result"


_RULES: dict[str, Callable[[Sequence[Json]], Iterator[str]]] = {
    "openai": _openai,
    "openai_responses": _responses,
    "anthropic": _anthropic,
    "gemini": _gemini,
    "ollama": _ollama,
}
