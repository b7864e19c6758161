"""Long runs and long messages in portions that a model can take in. Pure, and nothing gets lost on the way.

A run is cut between messages, a message that is too long by itself between blocks (a code fence is one), paragraphs,
sentences, and at last between characters.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence

from reactor_memory.models import JsonObject, Message
from reactor_memory.text.borders import border_before
from reactor_memory.text.borders import cut as cut_text
from reactor_memory.text.spans import sentences

Count = Callable[[str], int]
"""Tokens of a text."""

Cost = Callable[[Message], int]
"""Tokens of a message."""

OVERHEAD = 20
"""Tokens of the fields around the text of a message."""

CUT = "[…]"
"""Stands where something was left out for its length."""

_FENCE = re.compile(r"(?:^|(?<=\n))(`{3,8}+|~{3,8}+)[^\n]*+\n(?:.*?\n)?\1[^\n]*(?:\n|$)", re.DOTALL)
"""Marks count up to their eighth character: each length more may mean looking through the whole text once more."""
_PARAGRAPH = re.compile(r"\n[ \t]*\n\s*")
_SENTENCE = re.compile(r"(?<=[.!?])\s+|\n|(?<=[。！？])")


def portions(messages: Iterable[Message], room: int, *, cost: Cost, count: Count) -> list[tuple[Message, ...]]:
    """`messages` in runs of at most `room` tokens, with the pieces of those that are larger by themselves."""
    runs: list[tuple[Message, ...]] = []
    run: list[Message] = []
    left = room
    for message, tokens in _whole_or_pieces(messages, room, cost, count):
        if run and tokens > left:
            runs.append(tuple(run))
            run, left = [], room
        run.append(message)
        left -= tokens
    return [*runs, tuple(run)] if run else runs


def pieces(text: str, room: int, count: Count) -> list[str]:
    """`text` in pieces of about `room` tokens at most; one after the other they are `text` again."""
    return _joined(_parts(text, room, count, _LEVELS), room, count)


def shortened(text: str, max_tokens: int, count: Count) -> str:
    """`text`, or as many of its sentences from the start as `max_tokens` hold, with a mark where they end."""
    if count(text) <= max_tokens:
        return text
    kept = ""
    for line in text.splitlines():
        for index, sentence in enumerate(sentences(line)):
            longer = kept + (" " if index and kept else "\n" if kept else "") + sentence
            if count(f"{longer} {CUT}") > max_tokens:
                return f"{kept} {CUT}" if kept else _first_characters(sentence, max_tokens, count)
            kept = longer
    return kept


def _whole_or_pieces(messages: Iterable[Message], room: int, cost: Cost, count: Count) -> Iterator[tuple[Message, int]]:
    for message in messages:
        tokens = cost(message) + OVERHEAD
        if tokens <= room:
            yield message, tokens
            continue
        for piece in pieces(_readable(message), max(1, room - OVERHEAD), count):
            part = Message(role=message.role, content=piece, name=message.name, seq=message.seq)
            yield part, count(piece) + OVERHEAD


def _readable(message: Message) -> str:
    """All that a message says, as text: its content, the kinds of its other parts, its calls with their arguments."""
    calls = (f"{call.name}({call.arguments_text})" for call in message.tool_calls)
    return "\n\n".join(text for text in (message.content, *map(_part, message.parts), *calls) if text)


def _part(part: JsonObject) -> str:
    text = part.get("text")
    return text if isinstance(text, str) else f"[{str(part.get('type', 'part'))[:40]}]"


def _blocks(text: str) -> Iterator[str]:
    """Code fences, and what stands between them."""
    start = 0
    for fence in _FENCE.finditer(text):
        yield text[start : fence.start()]
        yield fence.group()
        start = fence.end()
    yield text[start:]


def _behind(pattern: re.Pattern[str]) -> Callable[[str], Iterator[str]]:
    """Cuts a text behind each match."""

    def cut(text: str) -> Iterator[str]:
        start = 0
        for match in pattern.finditer(text):
            yield text[start : match.end()]
            start = match.end()
        yield text[start:]

    return cut


_LEVELS = (_blocks, _behind(_PARAGRAPH), _behind(_SENTENCE))


def _parts(
    text: str, room: int, count: Count, levels: Sequence[Callable[[str], Iterator[str]]]
) -> Iterator[tuple[str, int]]:
    """The largest parts of `text` that fit, with their tokens."""
    tokens = count(text)
    if tokens <= room or len(text) < 2:
        yield text, tokens
    elif levels:
        for part in levels[0](text):
            if part:
                yield from _parts(part, room, count, levels[1:])
    else:
        size = max(1, len(text) * room // tokens)
        start = 0
        while start < len(text):
            end = border_before(text, start + size)
            end = end if end > start else start + size
            yield from _parts(text[start:end], room, count, ())
            start = end


def _joined(parts: Iterable[tuple[str, int]], room: int, count: Count) -> list[str]:
    """Neighbours together, as long as they fit."""
    joined: list[str] = []
    left = 0
    for part, tokens in parts:
        if joined and tokens <= left:
            joined[-1] += part
            left -= tokens
        else:
            joined.append(part)
            left = room - tokens
    return joined


def _first_characters(text: str, max_tokens: int, count: Count) -> str:
    """As much of one sentence as fits."""
    size = len(text)
    while size and count(f"{cut_text(text, size)} {CUT}") > max_tokens:
        size //= 2
    return f"{cut_text(text, size)} {CUT}" if size else CUT
