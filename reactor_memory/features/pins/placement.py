"""Pins: what a caller pinned of a session, as every one of its contexts shows it.

Only plain text of people and the model can be pinned. What a tool said cannot: a pin outlives every pass, so a page or
a mail that an agent once read must not get into one.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Sequence

from reactor_memory.core.context.blocks import block_text
from reactor_memory.errors import InvalidInputError, StoreCorruptError
from reactor_memory.features.facts.rendering import render_facts
from reactor_memory.models import Fact, Message, Pin, Role

PINNED_FACT_HEADER = "Pinned Fact:"

PINNABLE_ROLES = frozenset[Role]({"user", "assistant", "agent", "system"})


def check_pinnable(message: Message) -> None:
    """Raises `InvalidInputError` for a message that is not plain text, or not of a person or the model."""
    if message.role not in PINNABLE_ROLES:
        raise InvalidInputError("seq", f"names a {message.role} message: pin one of user, assistant, agent or system")
    if message.tool_calls:
        raise InvalidInputError("seq", "names a message with tool calls: pin the answer that follows them")
    if message.parts:
        raise InvalidInputError("seq", "names a message with content parts: pin one of text alone")
    if not message.content.strip():
        raise InvalidInputError("seq", "names a message without text: pin one that says something")


def not_in_view(seq: int) -> InvalidInputError:
    """What to raise for a message that the session does not show."""
    return InvalidInputError("seq", f"message {seq} is not in this session: pin one of its messages")


def pinnable_facts(facts: Iterable[Fact], anchor: str, key: str) -> list[Fact]:
    """Those of `facts` under this anchor and key that may be pinned: verified, and not said by a tool.

    Raises `InvalidInputError` if there is none.
    """
    named = [fact for fact in facts if (fact.anchor, fact.key) == (anchor, key)]
    if not named:
        raise InvalidInputError("fact", "no fact has this anchor and key: pin one of those that the session has now")
    said = [fact for fact in named if fact.said_by in PINNABLE_ROLES]
    if not said:
        raise InvalidInputError("fact", "was said by a tool: pin a message or fact of the user or the model")
    verified = [fact for fact in said if fact.verified]
    if not verified:
        raise InvalidInputError("fact", "is not verified: pin the message that states it")
    return verified


def fact_text(fact: Fact) -> str:
    """A fact as its pin shows it: the line of a memory block, in the frame of one.

    Raises `InvalidInputError` if nothing of its value can be shown.
    """
    lines = render_facts([fact], count=len)
    if not lines:
        raise InvalidInputError("fact", "has nothing that can be shown: pin the message that states it")
    return block_text(PINNED_FACT_HEADER, [line.text for line in lines])


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
