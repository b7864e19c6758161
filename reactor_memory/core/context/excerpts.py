"""Long messages in part: their head, a mark with their place in the log, their tail. The log keeps them whole. Pure."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable
from typing import Protocol, TypeVar

import msgspec

from reactor_memory.core.context.current_turn import Count
from reactor_memory.models import Message, ToolCall, is_reasoning
from reactor_memory.models.excerpts import Excerpt
from reactor_memory.text.caches import memo

HEAD_SHARE = 0.6
"""Of what is shown of a text, its beginning has this share."""

LONG_ARGUMENTS = 600
"""Characters of JSON. Longer arguments of a call are left out whole: half of them would be no JSON."""

SHORT_TEXT = 60
"""Bytes of a text that no excerpt would shorten. In scripts where a character says more, it takes more of them."""

WORD = 24
"""A cut moves by at most so many characters, so as not to divide a word or a number."""

MOST_EXCERPTS = 64
"""So many are remembered: a window without a layout is cut anew, and mostly in the same way, at each load."""


class HasTokens(Protocol):
    """A text as it is cut, and what it takes."""

    @property
    def tokens(self) -> int: ...


Cut = TypeVar("Cut", bound=HasTokens)

_STEPS = 24
_INSIDE_WORDS = "-._/:@,'’"
_UNSPACED = 0x2E80
"""From here on are the scripts that put no space between words."""

_JOINER = "\u200d"


def left_out_mark(characters: int, seq: int | None) -> str:
    """What stands in place of text that is not shown. The message can be read whole by its `seq`."""
    place = f"; message {seq}" if seq is not None else ""
    return f"[… {characters:,} characters left out{place} …]"


def can_be_cut(message: Message) -> bool:
    """Whether a part of the message may be shown: what a provider has signed, it takes back only as it was."""
    if any(call.metadata for call in message.tool_calls) or any(map(is_reasoning, message.parts)):
        return False
    return len(message.content.encode()) > SHORT_TEXT or any(map(_is_long, message.tool_calls))


def least_excerpt(message: Message, count: Count) -> int:
    """The tokens of the shortest excerpt: the mark alone, and what cannot be cut."""
    return count(_cut(message, 0, 0, cuts_calls=any(map(_is_long, message.tool_calls))))


def shown_as(message: Message, excerpt: Excerpt) -> Message:
    """The message as the excerpt shows it."""
    shown = _cut(message, excerpt.head, excerpt.tail, cuts_calls=excerpt.cuts_calls)
    return msgspec.structs.replace(shown, token_count=excerpt.tokens, tokenizer=message.tokenizer)


class _Cuttable:
    """A message as the key of a memo: equal to one that says the same and counts the same with the same tokenizer."""

    __slots__ = ("_said", "count", "message")

    def __init__(self, message: Message, count: Count, tokenizer: str) -> None:
        self.message = message
        self.count = count
        self._said = (tokenizer, count(message), message.seq, message.content)

    def __hash__(self) -> int:
        return hash(self._said)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Cuttable) and (self._said, self.message) == (other._said, other.message)


@memo(maxsize=MOST_EXCERPTS)
def _remembered(cuttable: _Cuttable, most: int) -> Excerpt | None:
    return _longest(cuttable.message, most, cuttable.count)


def excerpt_of(message: Message, most: int, count: Count, tokenizer: str = "") -> Excerpt | None:
    """The longest excerpt of at most `most` tokens by `count`, give or take a word; None if there is none, or if the
    message cannot be cut. `tokenizer` names what counts; without a name nothing is remembered.
    """
    if not can_be_cut(message):
        return None
    return _remembered(_Cuttable(message, count, tokenizer), most) if tokenizer else _longest(message, most, count)


def _longest(message: Message, most: int, count: Count) -> Excerpt | None:
    cuts_calls = any(map(_is_long, message.tool_calls))
    length = len(message.content)
    whole = count(_cut(message, length, 0, cuts_calls=True)) if cuts_calls else count(message)
    if cuts_calls and whole <= most:
        return Excerpt(message.seq or 0, length, 0, whole, cuts_calls)

    def tried(characters: int) -> Excerpt:
        head, tail = _ends(message.content, characters)
        tokens = count(_cut(message, head, tail, cuts_calls=cuts_calls))
        return Excerpt(message.seq or 0, head, tail, tokens, cuts_calls)

    best = tried(0)
    if best.tokens > most:
        return None
    return longest_cut(best, length, whole, most, tried)


def longest_cut(least: Cut, length: int, whole: int, most: int, tried: Callable[[int], Cut]) -> Cut:
    """The longest cut of at most `most` tokens of what has `whole` tokens in `length` characters, give or take a token:
    found by proportion and by halves in turn, since to count a text of a megabyte takes a second. `least` shows none.
    """
    low, high, above, best = 0, length, whole, least
    for step in range(_STEPS):
        if high - low <= 1 or most - best.tokens <= 1:
            break
        share = (most - best.tokens) / max(1, above - best.tokens) if step % 3 < 2 else 0.5
        middle = min(max(low + int((high - low) * share), low + 1), high - 1)
        found = tried(middle)
        if found.tokens <= most:
            low, best = middle, found
        else:
            high, above = middle, found.tokens
    return best


def _ends(text: str, characters: int) -> tuple[int, int]:
    """How many characters of the head and of the tail are shown, of about so many in all."""
    head = before_cut(text, int(HEAD_SHARE * characters))
    return head, len(text) - after_cut(text, max(head, len(text) - characters + head))


def before_cut(text: str, place: int) -> int:
    """The last place at or before `place` where the text may end: between words if one is near, else between what a
    reader takes for characters.
    """
    for near in range(place, max(place - WORD, 0), -1):
        if not _is_inside_word(text, near):
            place = near
            break
    while 0 < place < len(text) and _is_inside_character(text, place):
        place -= 1
    return place


def after_cut(text: str, place: int) -> int:
    """The first place at or after `place` where the text may go on."""
    for near in range(place, min(place + WORD, len(text))):
        if not _is_inside_word(text, near):
            place = near
            break
    while place < len(text) and _is_inside_character(text, place):
        place += 1
    return place


def _is_inside_word(text: str, place: int) -> bool:
    return 0 < place < len(text) and _is_of_word(text[place - 1]) and _is_of_word(text[place])


def _is_of_word(character: str) -> bool:
    return ord(character) < _UNSPACED and (character.isalnum() or character in _INSIDE_WORDS)


def _is_inside_character(text: str, place: int) -> bool:
    """Whether what stands before and behind `place` is one character to a reader: a letter with its marks, an emoji of
    several parts, a syllable, a flag.
    """
    if not 0 < place < len(text):
        return False
    before, after = text[place - 1], text[place]
    if unicodedata.category(after).startswith("M") or _JOINER in (before, after):
        return True
    if "\U0001f3fb" <= after <= "\U0001f3ff" or "\U000e0020" <= after <= "\U000e007f" or "\u1160" <= after <= "\u11ff":
        return True
    if _is_flag_letter(after):
        start = place
        while start and _is_flag_letter(text[start - 1]):
            start -= 1
        return (place - start) % 2 == 1
    return before == "\r" and after == "\n"


def _is_flag_letter(character: str) -> bool:
    return "\U0001f1e6" <= character <= "\U0001f1ff"


def _cut(message: Message, head: int, tail: int, *, cuts_calls: bool) -> Message:
    text, content = message.content, message.content
    if head + tail < len(text):
        mark = left_out_mark(len(text) - head - tail, message.seq)
        content = "\n".join(filter(None, (text[:head].rstrip(), mark, text[len(text) - tail :].lstrip())))
    calls = message.tool_calls
    if cuts_calls:
        calls = tuple([_without_arguments(call, message.seq) if _is_long(call) else call for call in calls])
    return msgspec.structs.replace(message, content=content, tool_calls=calls, token_count=None, tokenizer=None)


def _without_arguments(call: ToolCall, seq: int | None) -> ToolCall:
    return msgspec.structs.replace(call, arguments={"…": left_out_mark(len(call.arguments_text), seq)})


def _is_long(call: ToolCall) -> bool:
    return len(call.arguments_text) > LONG_ARGUMENTS
