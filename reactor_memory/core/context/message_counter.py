"""What a message costs in tokens, beyond the fixed overhead that every message has."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache, cached_property
from typing import TYPE_CHECKING, Any

import msgspec

from reactor_memory.models import JsonObject, Message, ToolCall
from reactor_memory.text.caches import memo

if TYPE_CHECKING:
    from reactor_memory.core.ports import TokenCounter

MOST_COUNTS = 8192
LONGEST_LINE = 400
"""Counts of so many texts of at most so many characters are remembered (3 MB): the lines of memory are counted
again whenever a window moves, and each time a tokenizer takes as long as the rest of rendering them.
"""

_MEDIA = re.compile(r"(?:data:[\w.+/;=-]*,)?[A-Za-z0-9+/_-]{1024,}={0,2}")


def message_tokens(message: Message, counter: TokenCounter, *, media_part_tokens: int = 1024) -> int:
    """Tokens of the content, the name, the tool calls and the parts of `message`, without overhead.

    Providers charge media by size or duration, not by their bytes: a base64 string of a part counts as
    `media_part_tokens`.
    """
    tokens = counter.count(message.content)
    if message.name:
        tokens += counter.count(message.name)
    for call in message.tool_calls:
        tokens += _call_tokens(call, counter)
    for part in message.parts:
        tokens += _part_tokens(part, counter, media_part_tokens)
    return tokens


class MessageCounter:
    """Counts messages: what a store has counted with the same tokenizer is taken as it is."""

    def __init__(self, counter: TokenCounter, *, media_part_tokens: int = 1024) -> None:
        self._counter = counter
        self._media_part_tokens = media_part_tokens
        self.name = counter.name

    def of(self, message: Message) -> int:
        """Tokens without overhead. A stored message is not tokenized again."""
        if message.token_count is not None and message.tokenizer == self.name:
            return message.token_count
        return self.counted(message)

    def counted(self, message: Message) -> int:
        """Tokens without overhead, from the text."""
        return message_tokens(message, self._counter, media_part_tokens=self._media_part_tokens)

    def of_text(self, text: str) -> int:
        return self._of_line(text) if len(text) <= LONGEST_LINE else self._counter.count(text)

    @cached_property
    def _of_line(self) -> Callable[[str], int]:
        """Made at its first use: a counter that is made for one turn counts no lines."""
        return memo(maxsize=MOST_COUNTS)(self._counter.count)

    def remembering(self) -> MessageCounter:
        """The same for one turn: it counts no text twice, and holds on to each text as long as it lives."""
        return MessageCounter(_Remembering(self._counter), media_part_tokens=self._media_part_tokens)


class _Remembering:
    """`TokenCounter` that asks another one once for each text."""

    def __init__(self, counter: TokenCounter) -> None:
        self.name = counter.name
        self._counts = cache(counter.count)

    def count(self, text: str) -> int:
        return self._counts(text)


def _call_tokens(call: ToolCall, counter: TokenCounter) -> int:
    arguments = call.arguments if isinstance(call.arguments, str) else _to_json(call.arguments)
    return counter.count(call.name) + counter.count(arguments)


def _part_tokens(part: JsonObject, counter: TokenCounter, media_part_tokens: int) -> int:
    text = part.get("text")
    if isinstance(text, str) and part.keys() <= {"type", "text"}:
        return counter.count(text)
    media: list[str] = []
    without_media = _take_media(part, media)
    return counter.count(_to_json(without_media)) + len(media) * media_part_tokens


def _take_media(value: Any, media: list[str]) -> Any:
    """`value` with its media strings emptied and collected in `media`."""
    if isinstance(value, dict):
        return {key: _take_media(item, media) for key, item in value.items()}  # pyright: ignore[reportUnknownVariableType]
    if isinstance(value, list):
        return [_take_media(item, media) for item in value]  # pyright: ignore[reportUnknownVariableType]
    if isinstance(value, str) and _MEDIA.fullmatch(value):
        media.append(value)
        return ""
    return value


def _to_json(value: Any) -> str:
    return msgspec.json.encode(value).decode()
