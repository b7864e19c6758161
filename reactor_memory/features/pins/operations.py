"""The operations on the pins of a session. Each generator is one transaction."""

from __future__ import annotations

from msgspec.structs import replace

from reactor_memory.core.log import operations as log
from reactor_memory.core.log.rows import whole
from reactor_memory.database.operations import Steps
from reactor_memory.errors import SessionNotFoundError, StoreCorruptError
from reactor_memory.features.entries import operations as entries
from reactor_memory.features.entries.models import Entry
from reactor_memory.features.pins.agent_notes import ANCHOR
from reactor_memory.features.pins.placement import find_pin, not_in_view, place_pin
from reactor_memory.features.pins.verbatim_pins import is_whole
from reactor_memory.models import Pin, PinTarget


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
        yield from entries.put(entries.of_session(session_id), entry_of(placed))
    return placed


def _next_place(session_id: str) -> Steps[int]:
    """Behind all pins, those of cleared messages, too."""
    rows = yield from entries.rows_of(entries.of_session(session_id), "pin")
    return max((each.place for each in whole(rows, entries.entry_from)[0]), default=0) + 1


def unpin(session_id: str, user_id: str | None, target: PinTarget) -> Steps[bool]:
    yield from log.lock_required(session_id, user_id)
    known = find_pin((yield from _stored_pins(session_id, user_id)), target)
    if known is not None:
        yield from entries.remove(entries.of_session(session_id), "pin", str(known.ordinal))
    return known is not None


def entry_of(pin: Pin) -> Entry:
    """What is kept of a pin. A note of an agent may tell of all that was said when it was written."""
    is_note = pin.fact is not None and pin.fact[0] == ANCHOR
    return Entry(
        kind="pin",
        name=str(pin.ordinal),
        place=pin.ordinal,
        start_seq=1 if is_note else pin.seq,
        end_seq=pin.seq,
        seq=pin.seq,
        role=pin.role,
        token_count=pin.token_count,
        tokenizer=pin.tokenizer,
        created_at=pin.created_at,
        text=pin.text,
        details={"fact": pin.fact, "sha256": pin.sha256},
    )
