"""How a context shows the pins of a session: byte for byte as they were pinned."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import get_args

from reactor_memory.core.context.blocks import Frame, Verbatim
from reactor_memory.models import Message, Pin, Role

PART = "pins"
_ROLES = get_args(Role)
PINNED_FACT = Frame(part=PART, header="Pinned Fact:")


def verbatim_pins(pins: Sequence[Pin], memory_role: Role) -> Verbatim:
    """The pins in their order. One that is not, byte for byte, what was pinned is left out, and named."""
    whole = [pin for pin in pins if is_whole(pin)]
    return Verbatim(
        part=PART,
        messages=tuple([pinned_message(pin, memory_role) for pin in whole]),
        hashes=tuple([pin.sha256 for pin in whole]),
        sources=tuple([pin.seq for pin in whole]),
        damaged=() if len(whole) == len(pins) else _damaged(pins),
    )


def _damaged(pins: Sequence[Pin]) -> tuple[str, ...]:
    return tuple(f"pin of message {pin.seq!r}; unpin it, and pin it again" for pin in pins if not is_whole(pin))


def is_whole(pin: Pin) -> bool:
    """Whether it is, byte for byte, what was pinned."""
    is_typed = (type(pin.token_count), type(pin.seq), type(pin.text)) == (int, int, str)
    return is_typed and pin.role in _ROLES and text_hash(pin.text) == pin.sha256


def pinned_message(pin: Pin, memory_role: Role) -> Message:
    """The message that shows a pin."""
    return Message(
        role=pin.role if pin.fact is None else memory_role,
        content=pin.text,
        seq=pin.seq if pin.fact is None else None,
        token_count=pin.token_count,
        tokenizer=pin.tokenizer,
    )


def text_hash(text: str) -> str:
    """SHA-256 of the UTF-8 of `text`, hexadecimal."""
    return hashlib.sha256(text.encode()).hexdigest()
