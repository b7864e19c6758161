"""The operations on the pins of a session. Each generator is one transaction."""

from __future__ import annotations

from collections.abc import Callable

from msgspec.structs import replace

from reactor_memory.core.log import operations as log
from reactor_memory.core.log.rows import key_of, pin_from, pin_values
from reactor_memory.database.operations import Batch, Query, Steps
from reactor_memory.errors import SessionNotFoundError, StoreCorruptError
from reactor_memory.features.pins.placement import find_pin, not_in_view, place_pin, with_count
from reactor_memory.features.pins.verbatim_pins import is_whole
from reactor_memory.models import Message, Pin, PinTarget


def read_pins(session_id: str, user_id: str | None) -> Steps[tuple[Pin, ...]]:
    """Raises `StoreCorruptError` if one is damaged: people wrote it, so nothing makes it again."""
    pins = yield from _stored_pins(session_id, user_id)
    for each in pins:
        if not is_whole(each):
            problem = f"the pin of message {each.seq!r} of session {session_id!r} is damaged"
            raise StoreCorruptError(f"store: {problem}; unpin it, and pin it again")
    return pins


def _stored_pins(session_id: str, user_id: str | None) -> Steps[tuple[Pin, ...]]:
    session, pins = yield from log.find_with_pins(session_id, user_id)
    if session is None:
        raise SessionNotFoundError(session_id)
    return pins


def pin(session_id: str, user_id: str | None, new: Pin, *, max_pins: int, max_pin_tokens: int) -> Steps[Pin]:
    session = yield from log.lock_required(session_id, user_id)
    if not (yield from log.read_along(session.branch, after=new.seq - 1, until=new.seq, limit=1)):
        raise not_in_view(new.seq)
    pins = yield from read_pins(session_id, user_id)
    placed = place_pin(pins, new, max_pins=max_pins, max_pin_tokens=max_pin_tokens)
    if placed not in pins:
        if all(placed.ordinal != each.ordinal for each in pins):
            placed = replace(placed, ordinal=(yield from _next_place(session_id)))
        yield Query("store_pin", key_of(session_id) | pin_values(placed))
    return placed


def _next_place(session_id: str) -> Steps[int]:
    """Behind all pins, those of cleared messages, too."""
    return max((row[0] for row in (yield Query("pins", key_of(session_id)))), default=0) + 1


def unpin(session_id: str, user_id: str | None, target: PinTarget) -> Steps[bool]:
    yield from log.lock_required(session_id, user_id)
    known = find_pin((yield from _stored_pins(session_id, user_id)), target)
    if known is not None:
        yield Query("delete_pin", key_of(session_id) | {"ordinal": known.ordinal})
    return known is not None


def recount_pins(tokenizer: str, count: Callable[[Message], int], *, limit: int) -> Steps[bool]:
    """Recount some pins that another tokenizer counted; whether there may be more."""
    rows = yield Query("pins_of_other_tokenizers", {"tokenizer": tokenizer, "limit": limit})
    counted = [(row[1], with_count(pin_from(row[2:]), tokenizer, count)) for row in rows]
    yield Batch("store_pin", [key_of(session_id) | pin_values(pin) for session_id, pin in counted])
    return len(rows) == limit
