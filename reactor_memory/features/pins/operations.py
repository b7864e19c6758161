"""The pins of a session as values: where a new one stands, what it may take. Pure functions."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from msgspec.structs import replace

from reactor_memory.errors import LimitExceededError
from reactor_memory.features.pins.placement import pinned_message
from reactor_memory.models import Message, Pin, PinTarget

INSTEAD = "unpin something"


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


def with_count(pin: Pin, tokenizer: str, count: Callable[[Message], int]) -> Pin:
    """`pin` with the count of this tokenizer."""
    return replace(pin, token_count=count(pinned_message(pin, pin.role)), tokenizer=tokenizer)


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
