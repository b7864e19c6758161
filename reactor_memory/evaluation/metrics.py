"""The numbers of an evaluation, as functions of contexts. Pure."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from typing import Any

from reactor_memory.core.context.context import Context
from reactor_memory.core.context.message_counter import MessageCounter
from reactor_memory.models import Message

CACHED_COUNTS = 50_000


class TextCount:
    """Counts messages from their text, never from what a store wrote down: each message and block once."""

    def __init__(self, counter: MessageCounter) -> None:
        self._counter = counter
        self._counts: dict[tuple[str | None, str, int | None], int] = {}

    def of(self, message: Message) -> int:
        """Tokens without overhead. A stored message is recognized by its id, its text and the count it came with: a
        context may cut its text, or the arguments of its calls.
        """
        if message.message_id is None and (message.tool_calls or message.parts or message.name):
            return self._counter.counted(message)
        key = message.message_id, message.content, message.token_count
        if key not in self._counts:
            if len(self._counts) >= CACHED_COUNTS:
                self._counts.clear()
            self._counts[key] = self._counter.counted(message)
        return self._counts[key]

    def of_text(self, text: str) -> int:
        return self._counter.of_text(text)


def shared_prefix(
    before: Sequence[Message],
    now: Sequence[Message],
    *,
    cost: Callable[[Message], int],
    count_text: Callable[[str], int],
) -> int:
    """Tokens at the beginning of `now` that `before` begins with too: whole messages, then words of the first other.

    `cost` is what a whole message takes, overhead included.
    """
    shared = 0
    for old, new in zip(before, now, strict=False):
        if _visible(old) != _visible(new):
            return shared + count_text(_shared_text(old, new))
        shared += cost(new)
    return shared


def role_order_breaks(context: Context) -> Iterator[str]:
    """Orders of roles that providers refuse, in plain words: a result stands behind its call or another result, and
    the message to come is the user's.
    """
    for index, (before, message) in enumerate(pairwise(context.messages), start=1):
        if message.role == "tool" and before.role != "tool" and not before.tool_calls:
            yield f"role order: message {index} is a result that follows no call"
    if context.messages and context.messages[0].role == "tool":
        yield "role order: the context begins with a result"
    if "current" in context.report.parts and context.messages[-1].role != "user":
        yield "role order: the message to come is not the user's"


def percentile(values: Sequence[int], share: float) -> int:
    """The smallest of the values that at least this `share` of them does not exceed (nearest rank); 0 of none."""
    if not values:
        return 0
    return sorted(values)[max(math.ceil(share * len(values)), 1) - 1]


def ratio(part: float, whole: float) -> float | None:
    """None when there is nothing to take a part of."""
    return part / whole if whole else None


def _visible(message: Message) -> tuple[Any, ...]:
    """What the model sees of a message."""
    return (message.role, message.content, message.parts, message.tool_calls, message.tool_call_id, message.name)


def _shared_text(old: Message, new: Message) -> str:
    """The words that both begin with: a token never reaches over the end of the word before."""
    if (old.role, old.name) != (new.role, new.name):
        return ""
    texts = (old.content, new.content)
    differing = (index for index, (a, b) in enumerate(zip(*texts, strict=False)) if a != b)
    common = new.content[: next(differing, min(map(len, texts)))]
    if all(not text[len(common) : len(common) + 1].strip() for text in texts):
        return common
    return common[: max(common.rfind(" "), common.rfind("\n"), 0)]
