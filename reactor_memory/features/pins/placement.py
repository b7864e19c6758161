"""Pins: what a caller pinned of a session, as every one of its contexts shows it.

Only plain text of people and the model can be pinned. What a tool said cannot: a pin outlives every pass, so a page or
a mail that an agent once read must not get into one.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from msgspec.structs import replace

from reactor_memory.core.context.blocks import block_text
from reactor_memory.errors import InvalidInputError, LimitExceededError
from reactor_memory.features.facts.rendering import render_facts
from reactor_memory.features.pins.verbatim_pins import PINNED_FACT
from reactor_memory.models import Message, Pin, PinTarget, Role, is_kept_by_author
from reactor_memory.models.ledger import Fact

INSTEAD = "unpin something"

PINNABLE_ROLES = frozenset[Role]({"user", "assistant", "agent", "system"})


def check_pinnable(message: Message) -> None:
    """Raises `InvalidInputError` for a message that is not plain text, or not of a person or the model."""
    if message.role not in PINNABLE_ROLES:
        raise InvalidInputError("seq", f"names a {message.role} message: pin one of user, assistant, agent or system")
    if is_kept_by_author(message):
        raise InvalidInputError("seq", "names a message that an agent keeps for itself, and pins are for all readers")
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
    return block_text(PINNED_FACT, [line.text for line in lines])


def find_pin(pins: Sequence[Pin], target: PinTarget) -> Pin | None:
    return next((pin for pin in pins if pin.target == target), None)


def place_pin(pins: Sequence[Pin], pin: Pin, *, max_pins: int, max_pin_tokens: int) -> Pin:
    """`pin` as it is to be kept beside `pins`: the one that says the same already, in the place of the one that says
    something else of the same fact, or behind all of them.

    Raises `LimitExceededError`.
    """
    known = find_pin(pins, pin.target)
    if known is not None and (known.seq, known.text) == (pin.seq, pin.text):
        return known
    others = [each for each in pins if each is not known]
    _check_limits([*others, pin], max_pins, max_pin_tokens)
    last = max((each.ordinal for each in others), default=0)
    return replace(pin, ordinal=last + 1 if known is None else known.ordinal)


def _check_limits(pins: Sequence[Pin], max_pins: int, max_pin_tokens: int) -> None:
    if len(pins) > max_pins:
        raise LimitExceededError(
            "pins", actual=len(pins), limit=max_pins, unit="pins", setting="context.max_pins", instead=INSTEAD
        )
    tokens = sum(pin.token_count for pin in pins)
    if tokens > max_pin_tokens:
        setting = "context.max_pin_tokens"
        raise LimitExceededError(
            "pins", actual=tokens, limit=max_pin_tokens, unit="tokens", setting=setting, instead=INSTEAD
        )
