"""Input items of the Responses API as messages of the log, and back.

One item is one message, so that taking back an item is exact. What the message can say is in its fields, where
extraction, contexts and other adapters read it: text in `content`, images and files in `parts`, calls in `tool_calls`.
The rest of the item, whatever keys it has, is its frame in the metadata: the item with a number wherever the message
holds the value itself. Such a number is the length of the next text, or the position of a part.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from copy import deepcopy
from typing import Any, NamedTuple, cast

from reactor_memory.errors import InvalidInputError
from reactor_memory.models import JsonObject, Message, Role, ToolCall

FRAME = "openai_agents"
"""The key of the frame in the metadata of a message."""

_WHOLE = 0
"""The frame of a message whose first part is the whole item."""

_MAX_FRAME_CHARACTERS = 4096
_MAX_FRAME_DEPTH = 7
"""A larger frame, such as one with log probabilities, goes into a part with the whole item: metadata is for little."""

_ROLES: dict[Any, Role] = {"user": "user", "assistant": "assistant", "system": "system", "developer": "system"}
_CALLS = {"function_call": "arguments", "custom_tool_call": "input"}
_OTHER_CALLS = ("apply_patch_call", "computer_call", "shell_call")
"""Items that another item answers by `call_id`; the first with the key of the text that they call with."""

_OUTPUTS = frozenset(f"{call}_output" for call in (*_CALLS, *_OTHER_CALLS))
_TEXTS = {"input_text": "text", "output_text": "text", "text": "text", "refusal": "refusal"}


def plain_item(item: object, position: int) -> JsonObject:
    """A copy of `item` that holds JSON values only. Raises `InvalidInputError`; `position` names it there."""
    try:
        copied = json.loads(json.dumps(item))
    except (TypeError, ValueError, RecursionError):
        copied = None
    if not isinstance(copied, dict):
        raise InvalidInputError(f"items[{position}]", "must be a JSON object")
    return cast("JsonObject", copied)


def to_message(item: JsonObject) -> Message:
    """The message for an item of JSON values. What is neither said nor called is the assistant's, as one part."""
    kind, call_id = item.get("type", "message"), item.get("call_id")
    if not isinstance(kind, str):
        return _whole(item, role="assistant")
    if (kind in _CALLS or kind in _OTHER_CALLS) and isinstance(call_id, str):
        return _call_message(item, kind, call_id)
    if kind in _OUTPUTS and isinstance(call_id, str):
        return _text_message(item, "output", role="tool", tool_call_id=call_id)
    if kind == "message" and isinstance(item.get("role"), str) and item["role"] in _ROLES:
        return _text_message(item, "content", role=_ROLES[item["role"]])
    return _whole(item, role="assistant")


def to_items(message: Message) -> list[JsonObject]:
    """The items of a message: the one that it was made from, or a translation if it was not made from one."""
    frame = message.metadata.get(FRAME)
    item = None if frame is None else _restored(frame, message)
    return _translated(message) if item is None else [item]


def _call_message(item: JsonObject, kind: str, call_id: str) -> Message:
    name = item["name"] if isinstance(item.get("name"), str) else kind.removesuffix("_call")
    key = _CALLS.get(kind, "")
    arguments = item.get(key) if key else None
    if not isinstance(arguments, str):
        return _whole(item, role="assistant", tool_calls=(ToolCall(id=call_id, name=name),))
    call = ToolCall(id=call_id, name=name, arguments=arguments)
    frame = item | {key: len(arguments)}
    if _is_large(frame):
        return _whole(item, role="assistant", tool_calls=(call,))
    return Message.assistant(tool_calls=[call], metadata={FRAME: frame})


def _text_message(item: JsonObject, key: str, **fields: Any) -> Message:
    pieces = _divided(item.get(key))
    if pieces is None:
        return _whole(item, **fields)
    content, frame = "\n".join(pieces.texts), item | {key: pieces.frame}
    if _is_large(frame):
        return _whole(item, content=content, **fields)
    return Message(content=content, parts=tuple(pieces.parts), metadata={FRAME: frame}, **fields)


def _whole(item: JsonObject, **fields: Any) -> Message:
    return Message(parts=(item,), metadata={FRAME: _WHOLE}, **fields)


class _Pieces(NamedTuple):
    frame: Any
    texts: list[str]
    parts: list[JsonObject]


def _divided(value: Any) -> _Pieces | None:
    """A text, or a list of parts, in pieces; None if it is neither."""
    if isinstance(value, str):
        return _Pieces(len(value), [value], [])
    if not isinstance(value, list) or not all(isinstance(part, dict) for part in cast("list[Any]", value)):
        return None
    pieces = _Pieces([], [], [])
    for part in cast("list[JsonObject]", value):
        key = _key_of_text(part)
        if key and isinstance(part.get(key), str):
            pieces.frame.append(part | {key: len(part[key])})
            pieces.texts.append(part[key])
        else:
            pieces.frame.append(len(pieces.parts))
            pieces.parts.append(part)
    return pieces


def _restored(frame: Any, message: Message) -> JsonObject | None:
    """The item of this frame; None if the message was changed since, so that they no longer fit together."""
    if frame == _WHOLE:
        return deepcopy(message.parts[0]) if message.parts else None
    kind = frame.get("type", "message")
    if kind in _CALLS:
        return _restored_call(frame, _CALLS[kind], message.tool_calls)
    key = "output" if kind in _OUTPUTS else "content"
    texts = _separated(message.content, list(_lengths(frame[key])))
    if texts is None:
        return None
    return {**deepcopy(frame), key: _joined(frame[key], iter(texts), message.parts)}


def _restored_call(frame: JsonObject, key: str, calls: Sequence[ToolCall]) -> JsonObject | None:
    arguments = calls[0].arguments if calls else None
    return {**deepcopy(frame), key: arguments} if isinstance(arguments, str) and len(arguments) == frame[key] else None


def _lengths(frame: Any) -> Iterator[int]:
    if isinstance(frame, int):
        yield frame
    else:
        yield from (part[_key_of_text(part)] for part in frame if not isinstance(part, int))


def _separated(text: str, lengths: Sequence[int]) -> list[str] | None:
    if len(text) != sum(lengths) + max(0, len(lengths) - 1):
        return None
    texts: list[str] = []
    start = 0
    for length in lengths:
        texts.append(text[start : start + length])
        start += length + 1
    return texts


def _joined(frame: Any, texts: Iterator[str], parts: Sequence[JsonObject]) -> Any:
    if isinstance(frame, int):
        return next(texts)
    return [
        deepcopy(parts[part]) if isinstance(part, int) else {**deepcopy(part), _key_of_text(part): next(texts)}
        for part in frame
    ]


def _key_of_text(part: JsonObject) -> str:
    """Where the text of a part stands; empty for a part that is no text."""
    kind = part.get("type")
    return _TEXTS.get(kind, "") if isinstance(kind, str) else ""


def _is_large(frame: JsonObject) -> bool:
    return len(json.dumps(frame)) > _MAX_FRAME_CHARACTERS or _depth(frame) > _MAX_FRAME_DEPTH


def _depth(value: Any) -> int:
    if isinstance(value, dict):
        value = list(cast("JsonObject", value).values())
    return 1 + max(map(_depth, cast("list[Any]", value)), default=0) if isinstance(value, list) else 0


# -- messages that were not made from an item -------------------------------------------------------------------------


def _translated(message: Message) -> list[JsonObject]:
    content = _content(message)
    if message.role == "tool":
        return [{"type": "function_call_output", "call_id": message.tool_call_id, "output": content}]
    role = {"agent": "assistant", "summary": "system"}.get(message.role, message.role)
    calls = [_call_item(call) for call in message.tool_calls]
    return [{"role": role, "content": content}, *calls] if content or not calls else calls


def _call_item(call: ToolCall) -> JsonObject:
    arguments = call.arguments if isinstance(call.arguments, str) else json.dumps(call.arguments)
    return {"type": "function_call", "call_id": call.id, "name": call.name, "arguments": arguments}


def _content(message: Message) -> str | list[JsonObject]:
    """The text, with the images beside it. Parts that only their own provider reads are left out."""
    images = [image for image in map(_image, message.parts) if image]
    if not images or message.role in ("assistant", "agent"):
        return message.content
    text = [{"type": "input_text", "text": message.content}] if message.content else []
    return [*text, *images]


def _image(part: JsonObject) -> JsonObject | None:
    """An image of a chat completion or a Responses request as the latter takes it."""
    if part.get("type") == "input_image":
        return deepcopy(part)
    source = part.get("image_url") if part.get("type") == "image_url" else None
    url = cast("JsonObject", source).get("url") if isinstance(source, dict) else source
    return {"type": "input_image", "detail": "auto", "image_url": url} if isinstance(url, str) else None
