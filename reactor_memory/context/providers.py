"""Messages in the forms that providers take.

Text, calls and results are converted; content parts are passed on as they are, so they reach only the provider that
they came from unharmed. `agent` is shown as assistant, `summary` as system. The results of a call follow it directly
and several results of one call become one, as every provider demands.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import cast

import msgspec

from reactor_memory.context.turns import find_pairs
from reactor_memory.models import JsonObject, Message, ToolCall

_ASSISTANT = ("assistant", "agent")
_SYSTEM = ("system", "summary")
_REASONING = ("thinking", "redacted_thinking", "reasoning")
_OPENAI_NAME = re.compile(r"[^\s<|\\/>]{1,64}")

EARLIER_NOT_SHOWN = "[earlier messages are not shown]"
"""Stands first where a provider wants a user message first and the context begins with the assistant."""


def to_openai(messages: Sequence[Message], *, system: str | None = None) -> list[JsonObject]:
    """The messages of a chat completion (https://platform.openai.com/docs/api-reference/chat)."""
    converted: list[JsonObject] = [{"role": "system", "content": system}] if system else []
    for message, results in _exchanges(messages):
        converted.append(_openai_message(message))
        for call_id, answers in _by_call(results).items():
            text = "\n".join(answer.content for answer in answers)
            parts = [part for answer in answers for part in answer.parts]
            converted.append({"role": "tool", "tool_call_id": call_id, "content": _openai_content(text, parts)})
    return converted


def _openai_message(message: Message) -> JsonObject:
    converted: JsonObject = {
        "role": "assistant" if message.role in _ASSISTANT else "system" if message.role in _SYSTEM else "user",
        "content": _openai_content(message.content, message.parts),
    }
    if message.name and _OPENAI_NAME.fullmatch(message.name):
        converted["name"] = message.name
    if message.tool_calls:
        converted["content"] = converted["content"] or None
        converted["tool_calls"] = [_openai_call(call) for call in message.tool_calls]
    return converted


def _openai_content(text: str, parts: Sequence[JsonObject]) -> str | list[JsonObject]:
    return _with_text(parts, {"type": "text", "text": text} if text else None) if parts else text


def _openai_call(call: ToolCall) -> JsonObject:
    arguments = call.arguments if isinstance(call.arguments, str) else _json_text(call.arguments)
    return {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": arguments}}


def to_anthropic(messages: Sequence[Message], *, system: str | None = None) -> JsonObject:
    """A request to the Messages API (https://docs.anthropic.com/en/api/messages), without model and tools.

    System messages have no place between the others: all go to `system`, in their order. Blank texts, which the API
    refuses, are left out; neighbours of one role become one message.
    """
    turns: list[JsonObject] = []
    for message, results in _exchanges(_conversation(messages)):
        _add(turns, "assistant" if message.role in _ASSISTANT else "user", _anthropic_blocks(message))
        _add(turns, "user", [_anthropic_result(key, answers) for key, answers in _by_call(results).items()])
    _begin_with_user(turns, {"role": "user", "content": [{"type": "text", "text": EARLIER_NOT_SHOWN}]})
    texts = [{"type": "text", "text": text} for text in _system_texts(messages, system)]
    return {"system": texts, "messages": turns} if texts else {"messages": turns}


def _anthropic_blocks(message: Message) -> list[JsonObject]:
    calls: list[JsonObject] = [
        {"type": "tool_use", "id": call.id, "name": call.name, "input": _arguments(call)} for call in message.tool_calls
    ]
    text: JsonObject | None = {"type": "text", "text": message.content} if message.content.strip() else None
    return [*_with_text(message.parts, text), *calls]


def _anthropic_result(call_id: str, answers: Sequence[Message]) -> JsonObject:
    content: list[JsonObject] = []
    for answer in answers:
        text: JsonObject | None = {"type": "text", "text": answer.content} if answer.content.strip() else None
        content += _with_text(answer.parts, text)
    result: JsonObject = {"type": "tool_result", "tool_use_id": call_id, "content": content}
    return {**result, "is_error": True} if any(answer.metadata.get("is_error") for answer in answers) else result


def _add(turns: list[JsonObject], role: str, blocks: list[JsonObject]) -> None:
    if not blocks:
        return
    if turns and turns[-1]["role"] == role:
        turns[-1]["content"] += blocks
    else:
        turns.append({"role": role, "content": blocks})


def to_gemini(messages: Sequence[Message], *, system: str | None = None) -> JsonObject:
    """`contents` and `system_instruction` in the dict form of google-genai.

    A call's `metadata["thought_signature"]` (bytes, or base64 text as it was stored) goes back with the call. As the
    API requires, results of calls made together stand in one content, and neighbours of the model are one content: a
    call may follow the user or a result only.
    """
    contents: list[JsonObject] = []
    for message, results in _exchanges(_conversation(messages)):
        parts = _gemini_parts(message)
        role = "model" if message.role in _ASSISTANT else "user"
        if role == "model" and contents and contents[-1]["role"] == "model":
            contents[-1]["parts"] += parts
        elif parts:
            contents.append({"role": role, "parts": parts})
        names = {call.id: call.name for call in message.tool_calls}
        responses = [_gemini_response(key, names[key], answers) for key, answers in _by_call(results).items()]
        if responses:
            contents.append({"role": "user", "parts": responses})
    _begin_with_user(contents, {"role": "user", "parts": [{"text": EARLIER_NOT_SHOWN}]})
    texts = [{"text": text} for text in _system_texts(messages, system)]
    return {"contents": contents, "system_instruction": {"parts": texts}} if texts else {"contents": contents}


def _gemini_parts(message: Message) -> list[JsonObject]:
    text: JsonObject | None = {"text": message.content} if message.content else None
    return [*_with_text(message.parts, text), *map(_gemini_call, message.tool_calls)]


def _gemini_call(call: ToolCall) -> JsonObject:
    part: JsonObject = {"function_call": {"id": call.id, "name": call.name, "args": _arguments(call)}}
    if signature := call.metadata.get("thought_signature"):
        part["thought_signature"] = signature
    return part


def _gemini_response(call_id: str, name: str, answers: Sequence[Message]) -> JsonObject:
    values = [_json_value(answer.content) for answer in answers]
    value = values[0] if len(values) == 1 else values
    response = cast("JsonObject", value) if isinstance(value, dict) else {"result": value}
    return {"function_response": {"id": call_id, "name": name, "response": response}}


def _exchanges(messages: Sequence[Message]) -> Iterable[tuple[Message, list[Message]]]:
    """Each message that is no result, with the results of its calls."""
    results = {pair.call: [messages[index] for index in pair.results] for pair in find_pairs(messages)}
    for index, message in enumerate(messages):
        if message.role != "tool":
            yield message, results.get(index, [])


def _by_call(results: Sequence[Message]) -> dict[str, list[Message]]:
    answers: dict[str, list[Message]] = {}
    for result in results:
        answers.setdefault(result.tool_call_id or "", []).append(result)
    return answers


def _conversation(messages: Sequence[Message]) -> list[Message]:
    return [message for message in messages if message.role not in _SYSTEM]


def _system_texts(messages: Sequence[Message], system: str | None) -> list[str]:
    texts = [message.content for message in messages if message.role in _SYSTEM]
    return [text for text in (system or "", *texts) if text.strip()]


def _begin_with_user(turns: list[JsonObject], opening: JsonObject) -> None:
    if turns and turns[0]["role"] != "user":
        turns.insert(0, opening)


def _with_text(parts: Sequence[JsonObject], text: JsonObject | None) -> list[JsonObject]:
    """`parts` with the text where providers want it: after reasoning, before everything else."""
    reasoning = [part for part in parts if part.get("type") in _REASONING or part.get("thought")]
    others = [part for part in parts if part not in reasoning]
    return [*reasoning, *([text] if text else []), *others]


def _arguments(call: ToolCall) -> JsonObject:
    """The arguments as an object; text that is no JSON object goes through unread, under `_raw`."""
    if not isinstance(call.arguments, str):
        return call.arguments
    if not call.arguments.strip():
        return {}
    value = _json_value(call.arguments)
    return cast("JsonObject", value) if isinstance(value, dict) else {"_raw": call.arguments}


def _json_value(text: str) -> object:
    """What `text` says as JSON, or the text itself."""
    try:
        return msgspec.json.decode(text)
    except msgspec.DecodeError:
        return text


def _json_text(value: JsonObject) -> str:
    return msgspec.json.encode(value).decode()
