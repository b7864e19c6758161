"""Messages in the form of this library's own files, with what a provider gave beside them. Pure."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from reactor_memory.errors import InvalidMessageError
from reactor_memory.forms import exchanges
from reactor_memory.forms.storable import sendable
from reactor_memory.models import Given, JsonObject, Message

_SET_BY_THE_STORE = ("seq", "message_id", "token_count", "tokenizer", "created_at")
_KEPT = tuple(name for name in Message.__struct_fields__ if name not in _SET_BY_THE_STORE)


def kept_fields(message: Message) -> dict[str, Any]:
    """What files and requests keep of a message: all but what the store sets, its time among it."""
    return {name: getattr(message, name) for name in _KEPT}


def record_of(message: Message) -> JsonObject:
    """The message as `forms.read` takes it, without what the store sets."""
    record = {name: sendable(value) for name, value in kept_fields(message).items() if value not in (None, (), {})}
    return record if message.created_at is None else {**record, "at": message.created_at}


def with_given(
    where: str, message: Message, given: Any, read: Callable[[Sequence[tuple[str, Any]]], Sequence[Message]]
) -> Message:
    """The message with what a provider gave, as somebody else kept it. `read` reads messages in forms of providers.

    A store never asks again whether both say the same, so it is asked here: a provider must be sent nothing but what
    the message says. Raises `InvalidMessageError`.
    """
    try:
        framed = msgspec.structs.replace(message, given=msgspec.convert(given, Given))
        if not _says_the_same(framed, read):
            framed = None
    except (msgspec.MsgspecError, InvalidMessageError, LookupError, TypeError, ValueError, RecursionError):
        framed = None
    if framed is None:
        raise InvalidMessageError(f"{where}.given", "does not fit the message; leave it out, or keep both as they were")
    return framed


def _says_the_same(message: Message, read: Callable[[Sequence[tuple[str, Any]]], Sequence[Message]]) -> bool:
    given = message.given
    if given is None or given.frame is None:
        return given is None or message.role in ("user", "assistant")
    written = exchanges.in_own_form(message)
    items = written if given.form == "openai_responses" else [written]
    (again,) = read([("given", item) for item in items])
    return _said(again) == _said(message)


def _said(message: Message) -> tuple[Any, ...]:
    return message.role, message.content, message.parts, message.tool_calls, message.blocks
