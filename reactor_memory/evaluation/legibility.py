"""How the lines of a memory read: whether each is a statement, whether any says too little, and what they tell. Pure.

The rules know a little English. What is written without Latin letters counts as a statement if it says enough.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import pairwise

from reactor_memory.context.report import Context
from reactor_memory.evaluation.attribution import is_clear, record_of
from reactor_memory.evaluation.units import MEMORY_PARTS, Unit, lines_as_units
from reactor_memory.models import Message
from reactor_memory.wording import CALENDAR_WORDS, STOP_WORDS, read_sentences

LEAST_WORDS = 2
"""Content words of a line that says anything."""
TOLD_SHARE = 0.6
MOST_BARE = 6
"""Words in a row, none of them one of the small words that link the others: no English sentence has more."""

_WORD = re.compile(r"[^\W_]+(?:['’.:/@-][^\W_]+)*")
_SPEAKER = re.compile(r"\s*(?:[-*•]\s+|(?:the )?(?:user|assistant|model|agreed|told)(?: #\d+)?:\s+)", re.IGNORECASE)
_LATIN = re.compile(r"[A-Za-z]")
_SMALL = STOP_WORDS | frozenset(
    [
        "no",
        "not",
        "never",
        "don't",
        "doesn't",
        "didn't",
        "cannot",
        "can't",
        "won't",
        "without",
        "until",
        "till",
        "before",
        "after",
        "during",
        "over",
        "under",
        "per",
        "if",
        "because",
        "while",
        "since",
        "so",
        "than",
        "though",
        "both",
        "each",
        "every",
        "all",
        "could",
        "may",
        "might",
        "must",
        "should",
        "had",
    ]
)
_DANGLING = frozenset(
    [
        "a",
        "an",
        "the",
        "of",
        "to",
        "for",
        "in",
        "on",
        "at",
        "by",
        "with",
        "from",
        "as",
        "and",
        "or",
        "but",
        "about",
        "into",
        "who",
        "whom",
        "what",
        "which",
        "my",
        "your",
        "our",
        "their",
        "his",
        "is",
        "are",
        "was",
        "were",
        "be",
        "am",
        "will",
        "would",
        "can",
        "could",
        "should",
        "must",
        "do",
        "does",
        "did",
        "has",
        "have",
        "i'm",
        "it's",
        "you're",
    ]
)
_BEFORE_WORDS = frozenset(["of", "than", "and", "or", "but", "about", "into"])
_AUXILIARIES = frozenset(
    [
        "am",
        "is",
        "are",
        "was",
        "were",
        "be",
        "been",
        "do",
        "does",
        "did",
        "has",
        "have",
        "had",
        "will",
        "would",
        "can",
        "could",
        "shall",
        "should",
        "may",
        "might",
        "must",
        "cannot",
        "don't",
        "doesn't",
        "didn't",
        "isn't",
        "aren't",
        "wasn't",
        "weren't",
        "won't",
        "wouldn't",
        "can't",
        "couldn't",
        "shouldn't",
        "haven't",
        "hasn't",
        "let's",
    ]
)
_CONTRACTED = re.compile(r"(?:['’](?:m|s|re|ve|d|ll)|n['’]t)$")
_VERBS = frozenset(
    [
        "need",
        "want",
        "like",
        "love",
        "prefer",
        "hate",
        "go",
        "goes",
        "went",
        "come",
        "comes",
        "came",
        "take",
        "takes",
        "took",
        "make",
        "makes",
        "made",
        "get",
        "gets",
        "got",
        "give",
        "gives",
        "gave",
        "put",
        "say",
        "says",
        "said",
        "tell",
        "told",
        "ask",
        "know",
        "knew",
        "think",
        "thought",
        "feel",
        "felt",
        "see",
        "saw",
        "look",
        "find",
        "found",
        "keep",
        "kept",
        "leave",
        "leaves",
        "left",
        "arrive",
        "arrives",
        "depart",
        "departs",
        "start",
        "starts",
        "end",
        "ends",
        "open",
        "opens",
        "close",
        "closes",
        "cost",
        "costs",
        "book",
        "reserve",
        "order",
        "add",
        "change",
        "cancel",
        "call",
        "send",
        "buy",
        "pay",
        "play",
        "show",
        "change",
        "use",
        "try",
        "live",
        "lives",
        "work",
        "works",
        "eat",
        "drink",
        "stay",
        "run",
        "ran",
        "meet",
        "met",
        "bring",
        "brought",
        "begin",
        "begins",
        "hold",
        "holds",
        "plan",
        "hope",
        "help",
        "allow",
        "avoid",
        "remember",
        "include",
        "includes",
        "mean",
        "means",
        "seem",
        "have",
        "has",
        "set",
        "turn",
        "move",
        "pick",
        "drop",
        "check",
        "confirm",
        "wait",
        "return",
        "returns",
        "charge",
        "set",
        "remind",
        "never",
        "always",
        "offer",
        "become",
        "became",
        "happen",
        "took",
        "wrote",
        "write",
        "read",
        "lost",
        "lose",
        "won",
        "win",
        "sold",
        "sell",
        "spent",
        "spend",
    ]
)
_PAST = re.compile(r"[a-z]{2,}(?:ed|[^s]es)$")
_NUMBER = re.compile(r"[$€£]?\d[\d.,:/-]*(?:st|nd|rd|th|am|pm)?$|[ap]m$", re.IGNORECASE)
_SUBJECTS = frozenset(["i", "we", "you", "he", "she", "it", "they", "there", "this", "that", "these", "those", "who"])


def memory_lines(context: Context) -> Iterator[Unit]:
    """The lines of the memory blocks, without their headers and notices."""
    for message, part in zip(context.messages, context.report.parts, strict=True):
        if part in MEMORY_PARTS:
            yield from _lines_below_header(message.content)


def is_legible(line: Unit) -> bool:
    """Whether a line keeps what a statement needs: who, a verb, numbers with their noun, links between names.

    A record does if each of its parts can be told from the others.
    """
    if line.text.endswith(":") and "; " not in line.text:
        return True
    record = record_of(line)
    if record is not None or (not _SPEAKER.match(line.text) and ": " in line.text[:60]):
        return record is None or is_clear(record) or _is_statement(line.text)
    pieces = [piece for piece in _said(line.text).split("; ") if piece.strip()]
    return bool(pieces) and all(map(_is_statement, pieces))


def is_junk(line: Unit) -> bool:
    """Whether a line has fewer than two content words; who speaks is none."""
    return not line.text.endswith(":") and len(_content(_said(line.text))) < LEAST_WORDS


def told_share(messages: Sequence[Message], units: Iterable[Unit]) -> float | None:
    """The share of these messages of which one unit holds most content words; None if there are none."""
    wanted = [words for message in messages if (words := content_words(message.content))]
    if not wanted:
        return None
    shown = [content_words(unit.text) for unit in units]
    return sum(any(len(words & other) >= TOLD_SHARE * len(words) for other in shown) for words in wanted) / len(wanted)


@lru_cache(maxsize=8192)
def content_words(text: str) -> frozenset[str]:
    return frozenset[str]().union(*(sentence.content for sentence in read_sentences(text)))


def _lines_below_header(text: str) -> Iterator[Unit]:
    lines = text.split("\n")
    while lines and (lines[0].startswith("(recorded") or lines[0].startswith("(kept") or _is_header(lines[0])):
        lines = lines[1:]
    yield from lines_as_units(lines)


def _is_header(line: str) -> bool:
    return line in {"Conversation Facts:", "Conversation Summary:", "Recalled Conversation Facts:"}


def _said(text: str) -> str:
    return _SPEAKER.sub("", text.removeprefix("+ "), count=1)


def _content(text: str) -> list[str]:
    return [word for word in _WORD.findall(text) if word.casefold() not in STOP_WORDS]


def _is_statement(piece: str) -> bool:
    words = _WORD.findall(piece)
    if len(_content(piece)) < LEAST_WORDS:
        return False
    if len(_LATIN.findall(piece)) * 2 < len(piece.replace(" ", "")):
        return True
    folded = [word.casefold() for word in words]
    return (
        _has_verb(folded)
        and not _dangles(folded)
        and _longest_bare_run(words) <= MOST_BARE
        and any(word in _SMALL or _CONTRACTED.search(word) for word in folded)
        and not _runs_together(words)
    )


def _has_verb(words: Sequence[str]) -> bool:
    return any(
        word in _AUXILIARIES or word in _VERBS or _CONTRACTED.search(word) or _PAST.fullmatch(word) for word in words
    )


def _dangles(words: Sequence[str]) -> bool:
    """It begins or ends in the middle of a phrase."""
    return words[-1] in _DANGLING or words[0] in _BEFORE_WORDS


def _longest_bare_run(words: Sequence[str]) -> int:
    longest = run = 0
    for word in words:
        run = 0 if word.casefold() in _SMALL else run + 1
        longest = max(longest, run)
    return longest


def _runs_together(words: Sequence[str]) -> bool:
    """A number or a day directly before a name: the small word between them is gone."""
    return any(
        _NUMBER.fullmatch(one) and two[:1].isupper() and len(two) > 2 and two.casefold() not in CALENDAR_WORDS
        for one, two in pairwise(words)
    )
