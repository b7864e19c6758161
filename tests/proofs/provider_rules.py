"""What the providers refuse in a conversation: the rules of structure that their documentation states.

They are written from the side of the provider and share no code with what makes the requests.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any

from reactor_memory.context.report import Context

Json = dict[str, Any]


def provider_problems(context: Context) -> list[str]:
    """What a provider would refuse in the request that `context` becomes; an empty list when none would."""
    return [
        *openai_problems(context.to_openai()),
        *anthropic_problems(context.to_anthropic()["messages"]),
        *gemini_problems(context.to_gemini()["contents"]),
    ]


def openai_problems(messages: Sequence[Json]) -> Iterator[str]:
    """Results stand directly behind the message with their calls. Calls may be open in the last message only."""
    waiting: set[str] = set()
    for message in messages:
        if message["role"] != "tool":
            if waiting:
                yield "openai: a call has no result"
            waiting = {call["id"] for call in message.get("tool_calls", ())}
        elif message["tool_call_id"] in waiting:
            waiting.remove(message["tool_call_id"])
        else:
            yield "openai: a result has no call"
    if waiting and messages[-1]["role"] == "tool":
        yield "openai: a call has no result"


def anthropic_problems(messages: Sequence[Json]) -> Iterator[str]:
    """Roles take turns and the user begins; the results of a message's calls open the next message."""
    yield from _not_begun_by_user("anthropic", messages)
    if any(before["role"] == after["role"] for before, after in pairwise(messages)):
        yield "anthropic: two messages of one role"
    for message in messages:
        if not message["content"]:
            yield "anthropic: a message is empty"
        if any(block["type"] == "text" and not block["text"].strip() for block in message["content"]):
            yield "anthropic: a text is blank"
    nothing: Json = {"role": "user", "content": []}
    for before, after in pairwise([nothing, *messages]):
        yield from _anthropic_exchange(before["content"], after["content"])


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


def _not_begun_by_user(provider: str, messages: Sequence[Json]) -> Iterator[str]:
    if messages and messages[0]["role"] != "user":
        yield f"{provider}: the user does not begin"
