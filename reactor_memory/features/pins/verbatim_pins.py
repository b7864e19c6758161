"""How a context shows the pins of a session: byte for byte as they were pinned."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

from reactor_memory.core.context.blocks import Frame, Verbatim
from reactor_memory.errors import StoreCorruptError
from reactor_memory.models import Message, Pin, Role

PART = "pins"
PINNED_FACT = Frame(part=PART, header="Pinned Fact:")


def verbatim_pins(pins: Sequence[Pin], memory_role: Role) -> Verbatim:
    """The pins in their order. Raises `StoreCorruptError` if one is not, byte for byte, what was pinned."""
    for pin in pins:
        if text_hash(pin.text) != pin.sha256:
            problem = f"pin {pin.ordinal} (message {pin.seq}) no longer reads as it was pinned"
            raise StoreCorruptError(f"store: {problem}; unpin it, and pin it again")
    return Verbatim(
        part=PART,
        messages=tuple([pinned_message(pin, memory_role) for pin in pins]),
        hashes=tuple([pin.sha256 for pin in pins]),
        sources=tuple([pin.seq for pin in pins]),
    )


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
