"""Input items of the Responses API as messages of the log, and back.

One item is one message, so that taking back an item is exact. What a message can say is in its fields, where
extraction, contexts and other adapters read it: text in `content`, images and files in `parts`, calls in `tool_calls`.
The rest of the item, whatever keys it has, is its frame: the item with a number wherever the message holds the value
itself, the length of the next text or the position of a part. It is kept in the metadata as JSON text, for which no
limit of depth holds.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple, cast

from reactor_memory.errors import InvalidInputError
from reactor_memory.forms.sdk_values import plain
from reactor_memory.forms.storable import sendable
from reactor_memory.models import JsonObject, Message, Role, ToolCall, as_said, is_models, is_posted_summary

FRAME = "openai_agents"
"""The key of the frame in the metadata of a message."""

_WHOLE = "0"
"""The frame of a message whose first part is the whole item."""

_MAX_FRAME_CHARACTERS = 8000
"""A longer one, such as one with log probabilities, goes into a part with the whole item: metadata is for little."""

_ROLES: dict[Any, Role] = {"user": "user", "assistant": "assistant", "system": "system", "developer": "system"}
_CALLS = {"function_call": "arguments", "custom_tool_call": "input"}
_OTHER_CALLS = ("apply_patch_call", "computer_call", "shell_call")
"""Items that another item answers by `call_id`; the first with the key of the text that they call with."""

_OUTPUTS = frozenset(f"{call}_output" for call in (*_CALLS, *_OTHER_CALLS))
_TEXTS = {"input_text": "text", "output_text": "text", "text": "text", "refusal": "refusal"}
_NOT_STORABLE = re.compile("[\0\ud800-\udfff]")


def plain_item(item: object, position: int) -> JsonObject:
    """A copy of `item` that holds JSON values only. What a model or a tool made and JSON has no word for takes its
    nearest form. Raises `InvalidInputError`; `position` names it there.
    """
    try:
        copied = json.loads(json.dumps(item, allow_nan=False))
    except (TypeError, ValueError, RecursionError):
        given = plain(item)
        is_said = isinstance(given, dict) and cast("JsonObject", given).get("role") in ("user", "system", "developer")
        copied = None if is_said else sendable(given)
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
    item = None if frame is None else _restored(json.loads(frame), message)
    return _translated(message) if item is None else [item]


def is_compaction(message: Message) -> bool:
    """Whether the message holds an item in which the provider tells of earlier ones."""
    return any(part.get("type") == "compaction" for part in message.parts)


def _call_message(item: JsonObject, kind: str, call_id: str) -> Message:
    name = item["name"] if isinstance(item.get("name"), str) else kind.removesuffix("_call")
    key = _CALLS.get(kind, "")
    arguments = item.get(key) if key else None
    if not isinstance(arguments, str):
        return _whole(item, role="assistant", tool_calls=(ToolCall(id=call_id, name=name),))
    frame, arguments = _piece(arguments)
    call = ToolCall(id=call_id, name=name, arguments=arguments)
    return _framed(item, {key: frame}, role="assistant", tool_calls=(call,))


def _text_message(item: JsonObject, key: str, **fields: Any) -> Message:
    pieces = _divided(item.get(key))
    if pieces is None:
        return _whole(item, **fields)
    fields |= {"content": "\n".join(pieces.texts)}
    return _framed(item, {key: pieces.frame}, pieces.parts, **fields)


def _framed(item: JsonObject, held: JsonObject, parts: Sequence[JsonObject] = (), **fields: Any) -> Message:
    frame = json.dumps(item | held)
    if len(frame) > _MAX_FRAME_CHARACTERS:
        return _whole(item, **fields)
    return Message(parts=tuple(parts), metadata={FRAME: frame}, **fields)


def _whole(item: JsonObject, **fields: Any) -> Message:
    return Message(parts=(item,), metadata={FRAME: _WHOLE}, **fields)


class _Pieces(NamedTuple):
    frame: Any
    texts: list[str]
    parts: list[JsonObject]


def _divided(value: Any) -> _Pieces | None:
    """A text, or a list of parts, in pieces; None if it is neither."""
    if isinstance(value, str):
        frame, text = _piece(value)
        return _Pieces(frame, [text], [])
    if not isinstance(value, list) or not all(isinstance(part, dict) for part in cast("list[Any]", value)):
        return None
    pieces = _Pieces([], [], [])
    for part in cast("list[JsonObject]", value):
        key = _key_of_text(part)
        if key and isinstance(part.get(key), str):
            frame, text = _piece(part[key])
            pieces.frame.append(part | {key: frame})
            pieces.texts.append(text)
        else:
            pieces.frame.append(len(pieces.parts))
            pieces.parts.append(part)
    return pieces


def _piece(text: str) -> tuple[int | str, str]:
    """What the frame holds of a text, and the text that the message holds.

    A text with characters that no store can keep stays in the frame; the message has a mark for each of them.
    """
    if _NOT_STORABLE.search(text):
        return text, _NOT_STORABLE.sub("\ufffd", text)
    return len(text), text


def _restored(frame: Any, message: Message) -> JsonObject | None:
    """The item of this frame; None if the message was changed since, so that they no longer fit together."""
    if frame == 0:
        return _copy(message.parts[0]) if message.parts else None
    kind = frame.get("type", "message")
    if kind in _CALLS:
        key, held = _CALLS[kind], message.tool_calls[0].arguments if message.tool_calls else ""
    else:
        key, held = "output" if kind in _OUTPUTS else "content", message.content
    texts = _separated(str(held), [*_texts_of(frame[key])])
    return None if texts is None else {**frame, key: _joined(frame[key], iter(texts), message.parts)}


def _texts_of(frame: Any) -> Iterator[int | str]:
    if isinstance(frame, list):
        yield from (part[_key_of_text(part)] for part in cast("list[Any]", frame) if not isinstance(part, int))
    else:
        yield frame


def _separated(text: str, pieces: Sequence[int | str]) -> list[str] | None:
    """The texts of which `text` is made, or None if it is made of others."""
    lengths = [len(piece) if isinstance(piece, str) else piece for piece in pieces]
    if len(text) != sum(lengths) + max(0, len(lengths) - 1):
        return None
    texts: list[str] = []
    start = 0
    for piece, length in zip(pieces, lengths, strict=True):
        texts.append(piece if isinstance(piece, str) else text[start : start + length])
        start += length + 1
    return texts


def _joined(frame: Any, texts: Iterator[str], parts: Sequence[JsonObject]) -> Any:
    if not isinstance(frame, list):
        return next(texts)
    return [
        _copy(parts[part]) if isinstance(part, int) else {**part, _key_of_text(part): next(texts)}
        for part in cast("list[Any]", frame)
    ]


def _key_of_text(part: JsonObject) -> str:
    """Where the text of a part stands; empty for a part that is no text."""
    kind = part.get("type")
    return _TEXTS.get(kind, "") if isinstance(kind, str) else ""


def _copy(value: JsonObject) -> JsonObject:
    """A copy for a caller who may change it."""
    return json.loads(json.dumps(value))


# -- messages that were not made from an item -------------------------------------------------------------------------


def _translated(message: Message) -> list[JsonObject]:
    message = as_said(message)
    content = _content(message)
    if message.role == "tool":
        return [{"type": "function_call_output", "call_id": message.tool_call_id, "output": content}]
    summary = "assistant" if is_posted_summary(message) else "system"
    role = {"agent": "assistant", "summary": summary}.get(message.role, message.role)
    calls = [_call_item(call) for call in message.tool_calls]
    return [{"role": role, "content": content}, *calls] if content or not calls else calls


def _call_item(call: ToolCall) -> JsonObject:
    arguments = call.arguments if isinstance(call.arguments, str) else json.dumps(call.arguments)
    return {"type": "function_call", "call_id": call.id, "name": call.name, "arguments": arguments}


def _content(message: Message) -> str | list[JsonObject]:
    """The text, with the images beside it. Parts that only their own provider reads are left out."""
    images = [image for image in map(_image, message.parts) if image]
    if not images or is_models(message):
        return message.content
    text = [{"type": "input_text", "text": message.content}] if message.content else []
    return [*text, *images]


def _image(part: JsonObject) -> JsonObject | None:
    """An image of a chat completion or a Responses request as the latter takes it."""
    if part.get("type") == "input_image":
        return _copy(part)
    source = part.get("image_url") if part.get("type") == "image_url" else None
    url = cast("JsonObject", source).get("url") if isinstance(source, dict) else source
    return {"type": "input_image", "detail": "auto", "image_url": url} if isinstance(url, str) else None
