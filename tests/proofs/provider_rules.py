"""What the providers refuse in a conversation: the rules of structure that their documentation states.

They are written from the side of the provider and share no code with what makes the requests.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from typing import Any

from reactor_memory.core.context.context import Context

Json = dict[str, Any]

_NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")
_GEMINI_NAME = re.compile(r"[a-zA-Z_][a-zA-Z0-9_.:-]{0,63}")
_ANTHROPIC_ROLES = {
    "thinking": "assistant",
    "redacted_thinking": "assistant",
    "tool_use": "assistant",
    "tool_result": "user",
    "image": "user",
    "document": "user",
}


def provider_problems(context: Context) -> list[str]:
    """What a provider would refuse in the request that `context` becomes; an empty list when none would."""
    return [
        *openai_problems(context.to_openai()),
        *responses_problems(context.to_openai_responses()),
        *anthropic_problems(context.to_anthropic()["messages"]),
        *gemini_problems(context.to_gemini()["contents"]),
    ]


def openai_problems(messages: Sequence[Json]) -> Iterator[str]:
    """Results stand directly behind the message with their calls. Calls may be open in the last message only. Ids have
    up to 40 characters. Results are texts.
    """
    waiting: set[str] = set()
    for message in messages:
        if message["role"] != "tool":
            if waiting:
                yield "openai: a call has no result"
            if message.get("tool_calls") and message["role"] != "assistant":
                yield "openai: someone else than the assistant calls a tool"
            waiting = {call["id"] for call in message.get("tool_calls", ())}
            if any(not 1 <= len(call_id) <= 40 for call_id in waiting):
                yield "openai: an id of a call is empty or too long"
            yield from _refused_names("openai", _NAME, (c["function"]["name"] for c in message.get("tool_calls", ())))
        elif message["tool_call_id"] in waiting:
            waiting.remove(message["tool_call_id"])
        else:
            yield "openai: a result has no call"
    if waiting and messages[-1]["role"] == "tool":
        yield "openai: a call has no result"


def responses_problems(items: Sequence[Json]) -> Iterator[str]:
    """Each output answers a call before it; a call waits until the last item at most; ids are unique and short.
    Reasoning stands before something else that the model gave.
    """
    yield from _lone_reasoning(items)
    waiting: set[str] = set()
    seen: set[str] = set()
    for item in items:
        kind = item.get("type")
        if kind == "function_call":
            if item["call_id"] in seen or not 1 <= len(item["call_id"]) <= 64:
                yield "responses: an id of a call is used twice, empty or too long"
            seen.add(item["call_id"])
            waiting.add(item["call_id"])
        elif kind == "function_call_output":
            if item["call_id"] not in waiting:
                yield "responses: an output has no call"
            waiting.discard(item["call_id"])
        elif waiting:
            yield "responses: a call has no output"
    if waiting and items[-1].get("type") != "function_call":
        yield "responses: a call has no output"


def _lone_reasoning(items: Sequence[Json]) -> Iterator[str]:
    for item, after in pairwise(items):
        if item.get("type") == "reasoning" and not _is_models(after):
            yield "responses: reasoning is not followed by what it led to"
    if items and items[-1].get("type") == "reasoning":
        yield "responses: reasoning ends the input"


def _is_models(item: Json) -> bool:
    """Whether the model gave the item of a Responses request."""
    kind = item.get("type", "message")
    return item.get("role") == "assistant" if kind == "message" else kind == "reasoning" or kind.endswith("_call")


def anthropic_problems(messages: Sequence[Json]) -> Iterator[str]:
    """Roles take turns and the user begins; the results of a message's calls open the next message. Ids are unique and
    plain, no text is blank, failed results have content, reasoning and calls are the assistant's, and files the user's.
    """
    yield from _not_begun_by_user("anthropic", messages)
    if any(before["role"] == after["role"] for before, after in pairwise(messages)):
        yield "anthropic: two messages of one role"
    for message in messages:
        if not message["content"]:
            yield "anthropic: a message is empty"
        if any(block["type"] == "text" and not block["text"].strip() for block in message["content"]):
            yield "anthropic: a text is blank"
    blocks = [(message["role"], block) for message in messages for block in message["content"]]
    yield from _anthropic_blocks(blocks)
    if messages and messages[-1]["role"] == "assistant" and _text(messages[-1]) != _text(messages[-1]).rstrip():
        yield "anthropic: the text at the end ends with white space"
    nothing: Json = {"role": "user", "content": []}
    for before, after in pairwise([nothing, *messages]):
        yield from _anthropic_exchange(before["content"], after["content"])


def _anthropic_blocks(blocks: Sequence[tuple[str, Json]]) -> Iterator[str]:
    calls = [block for _, block in blocks if block["type"] == "tool_use"]
    ids = [call["id"] for call in calls]
    if len(set(ids)) < len(ids):
        yield "anthropic: an id is used twice"
    if not all(re.fullmatch(r"[a-zA-Z0-9_-]+", call_id) for call_id in ids):
        yield "anthropic: an id has other characters than letters, digits, _ and -"
    yield from _refused_names("anthropic", _NAME, (call["name"] for call in calls))
    for role, block in blocks:
        if role != _ANTHROPIC_ROLES.get(block["type"], role):
            yield f"anthropic: {block['type']} by the {role}"
        if block["type"] == "tool_result":
            yield from _anthropic_result(block)


def _anthropic_result(result: Json) -> Iterator[str]:
    if result.get("is_error") and not result.get("content"):
        yield "anthropic: a failed result is empty"
    if any(block["type"] == "text" and not block["text"].strip() for block in result.get("content", ())):
        yield "anthropic: a text of a result is blank"


def _text(message: Json) -> str:
    return message["content"][-1].get("text", "")


def _anthropic_exchange(before: Sequence[Json], after: Sequence[Json]) -> Iterator[str]:
    called = [block["id"] for block in before if block["type"] == "tool_use"]
    answered = [block["tool_use_id"] for block in after if block["type"] == "tool_result"]
    if sorted(called) != sorted(answered):
        yield "anthropic: calls and results do not match"
    if any(block["type"] != "tool_result" for block in after[: len(answered)]):
        yield "anthropic: results are not first"


def gemini_problems(contents: Sequence[Json]) -> Iterator[str]:
    """The user begins; calls follow the user or results; as many results as calls, and nothing beside them."""
    yield from _not_begun_by_user("gemini", contents)
    if not all(content["parts"] for content in contents):
        yield "gemini: a content is empty"
    parts = [part for content in contents for part in content["parts"]]
    names = [part["function_call"]["name"] for part in parts if "function_call" in part]
    yield from _refused_names("gemini", _GEMINI_NAME, names)
    if any(part.get("thought") for content in contents if content["role"] == "user" for part in content["parts"]):
        yield "gemini: reasoning by the user"
    nothing: Json = {"role": "user", "parts": []}
    for before, after in pairwise([nothing, *contents]):
        yield from _gemini_exchange(before, after)


def _gemini_exchange(before: Json, after: Json) -> Iterator[str]:
    called = _parts_with("function_call", before)
    answered = _parts_with("function_response", after)
    if called != answered:
        yield "gemini: calls and results are not equally many"
    if answered and answered != len(after["parts"]):
        yield "gemini: something stands beside results"
    if before["role"] == "model" and _parts_with("function_call", after):
        yield "gemini: a call follows the model"


def _parts_with(kind: str, content: Json) -> int:
    return sum(kind in part for part in content["parts"])


def _refused_names(provider: str, allowed: re.Pattern[str], names: Iterable[str]) -> Iterator[str]:
    if not all(allowed.fullmatch(name) for name in names):
        yield f"{provider}: a name of a tool is refused"


def _not_begun_by_user(provider: str, messages: Sequence[Json]) -> Iterator[str]:
    if messages and messages[0]["role"] != "user":
        yield f"{provider}: the user does not begin"
