"""How a context shows the pins of a session: byte for byte as they were pinned."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Sequence

from reactor_memory.errors import StoreCorruptError
from reactor_memory.models import Message, Pin, Role

PINNED_FACT_HEADER = "Pinned Fact:"


def text_hash(text: str) -> str:
    """SHA-256 of the UTF-8 of `text`, hexadecimal."""
    return hashlib.sha256(text.encode()).hexdigest()


def pinned_message(pin: Pin, memory_role: Role) -> Message:
    """The message that shows a pin."""
    return Message(
        role=pin.role if pin.fact is None else memory_role,
        content=pin.text,
        seq=pin.seq if pin.fact is None else None,
        token_count=pin.token_count,
        tokenizer=pin.tokenizer,
    )


def pins_cost(pins: Iterable[Pin], memory_role: Role, cost: Callable[[Message], int]) -> int:
    """Tokens of all pins in a context, overhead included."""
    return sum(cost(pinned_message(pin, memory_role)) for pin in pins)


def check_pins(pins: Sequence[Pin], shown: Sequence[Message]) -> None:
    """Raises `StoreCorruptError` unless each pin stands at its place in `shown`, byte for byte as it was pinned."""
    hashes = [text_hash(message.content) for message in shown]
    for index, pin in enumerate(pins):
        if hashes[index : index + 1] != [pin.sha256]:
            problem = f"pin {pin.ordinal} (message {pin.seq}) no longer reads as it was pinned"
            raise StoreCorruptError(f"store: {problem}; unpin it, and pin it again")
