"""What models and tools made, brought into a form that every store keeps: it never ends a run.

Where a message of theirs would be refused, its texts lose what no database keeps, its values take JSON's nearest form,
and what exceeds a limit is cut, with a mark that names the limit. What people and programs say is refused instead
(`reactor_memory.core.validation`): they can mend it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

import msgspec
from msgspec.structs import replace

from reactor_memory.core.validation import MessageLimits, check_message, setting_of
from reactor_memory.errors import InvalidInputError
from reactor_memory.models import JsonObject, Message, ToolCall

_MADE = ("assistant", "agent", "tool")
_MARK_BYTES = 200


def checked(messages: Sequence[Message], limits: MessageLimits, *, field: str = "messages") -> tuple[Message, ...]:
    """The messages as they can be stored. Raises `InvalidMessageError` or `LimitExceededError`."""
    return tuple(
        [checked_message(message, limits, field=f"{field}[{position}]") for position, message in enumerate(messages)]
    )


def checked_message(message: Message, limits: MessageLimits, *, field: str = "message") -> Message:
    try:
        check_message(message, limits, field=field)
    except InvalidInputError:
        if type(message) is not Message or message.role not in _MADE:
            raise
        message = within(message, limits)
        check_message(message, limits, field=field)
    return message


def within(message: Message, limits: MessageLimits) -> Message:
    """The message with everything in it as it can be stored; what has another type than it may have stays."""
    from reactor_memory.forms.storable import sendable, storable, storable_text

    def text(value: Any) -> Any:
        return storable_text(value) if isinstance(value, str) else value

    def values(value: Any, levels: int) -> Any:
        return storable(sendable(value), levels)

    def call(given: Any) -> Any:
        if type(given) is not ToolCall:
            return given
        arguments: Any = given.arguments
        if isinstance(arguments, str):
            arguments = storable_text(arguments)
        elif isinstance(arguments, dict):
            sent = sendable(arguments)
            arguments = storable(sent)
            if _depth(sent) > limits.max_json_depth:
                arguments = storable_text(_json(sent))
        return ToolCall(
            id=short_label(text(given.id), limits),
            name=short_label(text(given.name), limits),
            arguments=_bounded_arguments(arguments, limits),
            metadata=_bounded_metadata(values(given.metadata, limits.max_metadata_depth), limits),
        )

    calls = [call(each) for each in message.tool_calls]
    marks: list[str] = []
    if len(calls) > limits.max_tool_calls:
        marks.append(_mark(f"{len(calls) - limits.max_tool_calls} calls", "max_tool_calls", limits.max_tool_calls))
        calls = calls[: limits.max_tool_calls]
    parts = [values(part, limits.max_json_depth) for part in message.parts]
    bounded = replace(
        message,
        content=_bounded_text("\n".join([text(message.content), *marks]) if marks else text(message.content), limits),
        parts=tuple(_bounded_parts(parts, limits)),
        tool_calls=tuple(calls),
        tool_call_id=short_label(text(message.tool_call_id), limits),
        name=short_label(text(message.name), limits),
    )
    is_same = bounded.content == message.content and bounded.parts == message.parts
    is_kept = is_same and bounded.tool_calls == message.tool_calls and _frame_fits(bounded, limits)
    return bounded if is_kept else replace(bounded, given=None)


def short_label(value: Any, limits: MessageLimits) -> Any:
    """The text, or its beginning and a digest: two long ones stay two."""
    from reactor_memory.forms.storable import short

    return short(value, limits.max_id_length) if isinstance(value, str) else value


def _frame_fits(message: Message, limits: MessageLimits) -> bool:
    return message.given is None or len(_json(message.given.frame).encode()) <= limits.max_parts_bytes


def _bounded_text(text: Any, limits: MessageLimits) -> Any:
    if not isinstance(text, str) or len(text.encode()) <= limits.max_content_bytes:
        return text
    size, limit = len(text.encode()), limits.max_content_bytes
    mark = _mark(f"{size - limit:,} bytes and more", "max_content_bytes", limit)
    return text.encode()[: max(0, limit - _MARK_BYTES)].decode(errors="ignore") + mark[:limit]


def _bounded_arguments(arguments: Any, limits: MessageLimits) -> Any:
    """Arguments that are too long stay JSON: an object with their beginning."""
    said = arguments if isinstance(arguments, str) else _json(arguments)
    size, limit = len(said.encode()), limits.max_content_bytes
    if size <= limit:
        return arguments
    beginning = said.encode()[: max(0, limit // 2 - _MARK_BYTES)].decode(errors="ignore")
    return {"…": _mark(f"{size - limit:,} bytes and more", "max_content_bytes", limit), "beginning": beginning}


def _bounded_metadata(metadata: Any, limits: MessageLimits) -> Any:
    size = len(_json(metadata).encode())
    if size <= limits.max_metadata_bytes:
        return metadata
    return {"…": _mark(f"{size:,} bytes", "max_metadata_bytes", limits.max_metadata_bytes)}


def _bounded_parts(parts: list[Any], limits: MessageLimits) -> list[Any]:
    sizes = [len(_json(part).encode()) for part in parts]
    kept = list(parts)
    while sum(sizes) + len(sizes) + 1 > limits.max_parts_bytes:
        largest = max(range(len(kept)), key=lambda index: sizes[index])
        text = _mark(f"{sizes[largest]:,} bytes", "max_parts_bytes", limits.max_parts_bytes)
        mark: JsonObject = {"type": "text", "text": text}
        if sizes[largest] <= len(_json(mark)):
            break
        kept[largest], sizes[largest] = mark, len(_json(mark).encode())
    return kept


def _mark(what: str, setting: str, limit: int) -> str:
    return f"[… {what} left out: {setting_of(setting) or 'the limit'} is {limit:,} …]"


def _depth(value: Any) -> int:
    if isinstance(value, dict):
        return 1 + max(map(_depth, cast("JsonObject", value).values()), default=0)
    return 1 + max(map(_depth, cast("list[Any]", value)), default=0) if isinstance(value, list) else 0


def _json(value: Any) -> str:
    return msgspec.json.encode(value).decode()
