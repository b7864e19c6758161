"""What a message costs in tokens, beyond the fixed overhead that every message has."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache, cached_property
from typing import TYPE_CHECKING, Any, TypeVar

import anyio.to_thread
import msgspec

from reactor_memory.core.context import media_tokens
from reactor_memory.models import JsonObject, Message, ToolCall
from reactor_memory.text.caches import memo

if TYPE_CHECKING:
    from reactor_memory.core.ports import TokenCounter

MOST_COUNTS = 8192
LONGEST_LINE = 400
"""Counts of so many texts of at most so many characters are remembered (3 MB): the lines of memory are counted
again whenever a window moves, and each time a tokenizer takes as long as the rest of rendering them.
"""

COUNT_IN_THREAD_CHARACTERS = 8_000
"""Counting more text than this at once would hold up the event loop for a noticeable time."""

T = TypeVar("T")


async def in_thread_if_long(characters: int, work: Callable[[], T]) -> T:
    """What `work` returns, which counts the tokens of so many `characters`."""
    return await anyio.to_thread.run_sync(work) if characters > COUNT_IN_THREAD_CHARACTERS else work()


def characters_of(messages: Sequence[Message], system: str | None = None) -> int:
    return sum([len(message.content) for message in messages]) + len(system or "")


def message_tokens(
    message: Message, counter: TokenCounter, *, media_part_tokens: int = 1024, by_rule: bool = True
) -> int:
    """Tokens of the content, the name, the tool calls and the parts of `message`, without overhead.

    Providers charge media by size or duration, not by their bytes: a base64 string of a part counts by the rule that
    its provider published (`core.context.media_tokens`), and where it tells no size as `media_part_tokens`; with
    `by_rule` False always so.
    """
    tokens = counter.count(message.content)
    if message.name:
        tokens += counter.count(message.name)
    for call in message.tool_calls:
        tokens += _call_tokens(call, counter)
    for part in message.parts:
        tokens += _part_tokens(part, counter, media_part_tokens, by_rule)
    return tokens


class MessageCounter:
    """Counts messages: what a store has counted with the same tokenizer is taken as it is."""

    def __init__(self, counter: TokenCounter, *, media_part_tokens: int = 1024, by_rule: bool = True) -> None:
        self._counter = counter
        self._media: dict[str, Any] = {"media_part_tokens": media_part_tokens, "by_rule": by_rule}
        self.name = counter.name

    def of(self, message: Message) -> int:
        """Tokens without overhead. A stored message is not tokenized again."""
        if message.token_count is not None and message.tokenizer == self.name:
            return message.token_count
        return self.counted(message)

    def counted(self, message: Message) -> int:
        """Tokens without overhead, from the text."""
        return message_tokens(message, self._counter, **self._media)

    def of_text(self, text: str) -> int:
        return self._of_line(text) if len(text) <= LONGEST_LINE else self._counter.count(text)

    @cached_property
    def _of_line(self) -> Callable[[str], int]:
        """Made at its first use: a counter that is made for one turn counts no lines."""
        return memo(maxsize=MOST_COUNTS)(self._counter.count)

    def remembering(self) -> MessageCounter:
        """The same for one turn: it counts no text twice, and holds on to each text as long as it lives."""
        return MessageCounter(_Remembering(self._counter), **self._media)


class _Remembering:
    """`TokenCounter` that asks another one once for each text."""

    def __init__(self, counter: TokenCounter) -> None:
        self.name = counter.name
        self._counts = cache(counter.count)

    def count(self, text: str) -> int:
        return self._counts(text)


def _call_tokens(call: ToolCall, counter: TokenCounter) -> int:
    return counter.count(call.name) + counter.count(call.arguments_text)


def _part_tokens(part: JsonObject, counter: TokenCounter, media_part_tokens: int, by_rule: bool) -> int:
    text = part.get("text")
    if isinstance(text, str) and part.keys() <= {"type", "text"}:
        return counter.count(text)
    media: list[str | None] = []
    without_media = _take_media(part, media)
    if not media and not media_tokens.is_linked_picture(part):
        return counter.count(_to_json(without_media))
    found = media or [None]
    costs = [
        media_tokens.tokens_of_part(part, each, media_part_tokens) if by_rule else media_part_tokens for each in found
    ]
    return counter.count(_to_json(without_media)) + sum(costs)


def _take_media(value: Any, media: list[str | None]) -> Any:
    """`value` with its media strings emptied and collected in `media`."""
    if isinstance(value, dict):
        return {key: _take_media(item, media) for key, item in value.items()}  # pyright: ignore[reportUnknownVariableType]
    if isinstance(value, list):
        return [_take_media(item, media) for item in value]  # pyright: ignore[reportUnknownVariableType]
    if isinstance(value, str) and (found := media_tokens.base64_of(value)) is not None:
        media.append(found)
        return ""
    return value


def _to_json(value: Any) -> str:
    return msgspec.json.encode(value).decode()
