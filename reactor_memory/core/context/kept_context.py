"""A context that is kept, to be given again: each caller gets messages of its own, as from a load."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from typing import Any, NamedTuple, cast

import msgspec
from msgspec.structs import astuple, force_setattr

from reactor_memory.core.context.context import Context
from reactor_memory.core.context.draft import Draft
from reactor_memory.core.context.report import ContextReport
from reactor_memory.models import AS_TEXT, Message

_MESSAGE_BYTES = 1_000
"""About what a message takes in memory beside its text."""

_TIMES_TEXT = 4
"""A character takes up to so many bytes."""

_copy: Callable[[Any], Message] = cast(Any, Message).__copy__
"""`copy.copy` finds it, too, in three times the time."""

_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(Message).decode


class KeptContext(NamedTuple):
    """Messages as they are, where a copy has all to itself but what is empty; else as bytes. `made`: see `Context`."""

    messages: list[Message | bytes]
    is_plain: bool
    report: ContextReport | Callable[[], ContextReport]
    size: int
    """About how many bytes of memory it takes, with what is made of it."""
    made: dict[Hashable, Any]
    room: int = 0
    """How much what is made of it may take."""

    def given(self) -> Context:
        if not self.is_plain:
            copied = [_decode(each) if isinstance(each, bytes) else _own(_copy(each)) for each in self.messages]
            return Context(messages=copied, report=self.report, made=self.made, room=self.room)
        messages: list[Message] = list(map(_copy, self.messages))
        for message in messages:
            force_setattr(message, "metadata", {})
        return Context(messages=messages, report=self.report, made=self.made, room=self.room)


def _own(message: Message) -> Message:
    force_setattr(message, "metadata", {})
    return message


def kept_of(context: Context, draft: Draft) -> KeptContext | None:
    """A context of this draft, without a system prompt: from now on nobody else may have it. None, if it holds what
    cannot be copied exactly.
    """
    messages: list[Message | bytes] = []
    for message in context.messages:
        if _is_plain(message):
            messages.append(message)
        elif (copied := _as_bytes(message)) is not None:
            messages.append(copied)
        else:
            return None
    is_plain = not any(isinstance(each, bytes) for each in messages)
    shown = _size_of(context.messages) + sum([_TIMES_TEXT * len(each) for each in messages if isinstance(each, bytes)])
    size = _size_of((*draft.window, *draft.leading)) + 2 * shown
    return KeptContext(messages, is_plain, context.report_as_made, size, {}, room=shown)


def _size_of(messages: Iterable[Message]) -> int:
    return sum([_MESSAGE_BYTES + _TIMES_TEXT * len(each.content) for each in messages])


def _is_plain(message: Message) -> bool:
    has_objects = message.metadata or message.parts or message.tool_calls
    return not has_objects and (message.given is None or message.given is AS_TEXT)


def _as_bytes(message: Message) -> bytes | None:
    try:
        copied = _encode(message)
        return copied if astuple(_decode(copied)) == astuple(message) else None
    except (TypeError, ValueError, OverflowError, msgspec.MsgspecError):
        return None
