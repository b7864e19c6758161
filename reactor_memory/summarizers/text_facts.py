"""What people and the model said in words: details that were agreed, wishes, decisions, conditions, corrections.

A fact is a sentence as it stands in a message, from its first word that says something to its last.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice, pairwise
from typing import NamedTuple

from reactor_memory.models import Act, Category, Fact, Message
from reactor_memory.summarizers.lexicon import CONDITION, CORRECTION, DECISION, EMPTY_RULINGS, INTENTION, RULE
from reactor_memory.summarizers.talk import Talk, Told
from reactor_memory.wording import CALENDAR_WORDS, MAX_CHARACTERS, Sentence, telling_part

USER = "the user"
AGREED = "agreed"
TOLD = "told"
MAX_SENTENCE_CHARACTERS = 256
MAX_SENTENCES = 24
MAX_KIND_CHARACTERS = 100
MIN_RULING_WORDS = 2
MIN_ASKED_WORDS = 3
NEARBY_ROWS = 10

# The salience of what users say so that it holds for later; nothing else reaches the first.
STANDING = 1.0
MOST = 0.99
CORRECTING = 0.6
ABOUT_USER = 0.35
PASSING = 0.2
IN_DATA = 0.8
"""The share of its salience that a message loses if tools were given or answered all its details."""

_OF_USER = re.compile(
    r"\bmy ((?:[a-z][a-z-]{0,20} ){0,3}?[a-z][a-z-]{0,20}) (?:is|are|was|will be|=) (?:called |named )?"
    r"((?:[^.!?\n,;]|[.!?](?=\S)){1,80}?)(?=[.!?,;](?:\s|$)|\n|$| and | but )",
    re.IGNORECASE,
)
_NAMED = re.compile(r"\b(?i:my name is|call me|i am called|this is) ([A-Z][\w'-]{1,30}(?: [A-Z][\w'-]{1,30}){0,2})")
_KINDS = (
    ("email", re.compile(r"[\w.+-]{1,64}@[\w-]{1,63}(?:\.[\w-]{1,63}){1,5}")),
    ("url", re.compile(r"https?://\S+|www\.\S+")),
    (
        "amount",
        re.compile(
            r"[$€£¥₹]\s?\d[\d.,]*\w{0,2}|\d[\d.,]* ?(?:dollars?|euros?|pounds?|usd|eur|gbp|%|percent)", re.IGNORECASE
        ),
    ),
    ("time", re.compile(r"\d{1,2}(?::\d\d)? ?[ap]\.?m\b|\d{1,2}:\d\d", re.IGNORECASE)),
    ("date", re.compile(r"\d{4}-\d\d-\d\d|\d{1,2}[/.]\d{1,2}[/.]\d{2,4}")),
    ("phone", re.compile(r"\+?\d[\d ()-]{6,18}\d")),
    ("number", re.compile(r"#?\w{0,8}\d")),
)
_CONTACTS = frozenset({"email", "phone"})


class Row(NamedTuple):
    """What the memory keeps of one message; `before` are the earlier messages that it settles."""

    anchor: str
    told: Told
    salience: float
    is_agreed: bool = False
    before: tuple[Told, ...] = ()

    @property
    def content(self) -> frozenset[str]:
        return self.told.content.union(*(told.content for told in self.before))


class Ruling(NamedTuple):
    """What a sentence of a user rules, and how much that matters."""

    category: Category
    salience: float


def text_facts(
    messages: Sequence[Message], *, recorded: frozenset[int] = frozenset(), data: frozenset[str] = frozenset()
) -> Iterator[Fact]:
    """The facts in the words of `messages`.

    Messages whose seq is in `recorded` are told better by a tool call, and so are details among the words of `data`.
    """
    talk = Talk(messages)
    rows = [_row(talk, index, data) for index, told in enumerate(talk.told) if told.message.seq not in recorded]
    settled = {told.message.seq for row in rows for told in row.before}
    for index, row in enumerate(rows):
        if row.told.by_user:
            yield from _own_facts(row.told.message)
            yield from _rulings(row)
        if row.told.message.seq not in settled and not _said_again(row, rows[index + 1 : index + NEARBY_ROWS]):
            yield from _quotations(row)


def _row(talk: Talk, index: int, data: frozenset[str]) -> Row:
    told = talk.told[index]
    salience = talk.salience(index)
    if told.details:
        salience *= 1 - IN_DATA * len(told.details & data) / len(told.details)
    if told.by_user:
        lasting = _lasting(told) * (1 - talk.confirmed(index))
        return Row(f"{USER} #{told.message.seq}", told, max(salience, lasting))
    if talk.agreed[index] and _telling(told, is_agreed=True):
        return Row(f"{AGREED} #{told.message.seq}", told, salience, True, talk.led_to(index))
    return Row(f"{TOLD} #{told.message.seq}", told, salience)


def _lasting(told: Told) -> float:
    """Corrections matter, and how to reach somebody, unless the model read them back."""
    corrects = told.details and CORRECTION.search(told.text)
    return CORRECTING if corrects or any(_kind(sentence.text) in _CONTACTS for sentence in _telling(told)) else 0.0


def _said_again(row: Row, later: Iterable[Row]) -> bool:
    content = row.content
    return any(content <= other.content for other in later)


def _quotations(row: Row) -> Iterator[Fact]:
    """The sentences of a row that hold a detail. What is agreed is no question any more."""
    used: Counter[str] = Counter()
    for told in (*row.before, row.told):
        act, category = _kind_of_row(row, told)
        for sentence in _telling(told, is_agreed=row.is_agreed and told is row.told):
            for start, stop in _pieces(sentence, told.text, asks=not row.is_agreed):
                value = told.text[start:stop]
                key = _numbered(_kind(value), used)
                yield _fact(told.message, row.anchor, key, value, start, category, act, row.salience)


def _kind_of_row(row: Row, told: Told) -> tuple[Act, Category]:
    if told.corrects or told.revises:
        return "correction", "STATE"
    return ("decision", "DECISION") if row.is_agreed and told is row.told else ("statement", "GENERAL")


def _telling(told: Told, *, is_agreed: bool = False) -> list[Sentence]:
    """The sentences with details, of what is agreed or said anew others, too; what a user ruled is its own fact."""
    is_agreed = is_agreed or told.revises
    telling = [
        sentence
        for sentence in told.sentences
        if (sentence.details or (is_agreed and _says_enough(sentence))) and not (told.by_user and _ruling_of(sentence))
    ]
    return telling[:MAX_SENTENCES]


def _says_enough(sentence: Sentence) -> bool:
    """It is no mere "Is that all right with you?"."""
    return len(sentence.content) >= (MIN_ASKED_WORDS if sentence.text.endswith("?") else 2)


def _pieces(sentence: Sentence, text: str, *, asks: bool) -> Iterator[tuple[int, int]]:
    """The places of the telling part of a sentence, with its question mark if it `asks`, each short enough to keep."""
    place = telling_part(sentence)
    if place is None:
        return
    start, last = place
    for before, word in pairwise(sentence.words):
        if word.stop - start > MAX_SENTENCE_CHARACTERS and start < before.stop <= last:
            yield start, before.stop
            start = word.start
    if start < last:
        yield start, last + (asks and text[last : last + 1] == "?")


def _rulings(row: Row) -> Iterator[Fact]:
    """Decisions and conditions of a user, a sentence each."""
    act: Act = "correction" if row.told.revises else "statement"
    used: Counter[str] = Counter()
    ruled = ((sentence, ruling) for sentence in row.told.sentences if (ruling := _ruling_of(sentence)))
    for sentence, ruling in islice(ruled, MAX_SENTENCES):
        key = _numbered(ruling.category.lower(), used)
        message, place = row.told.message, sentence.start
        yield _fact(message, row.anchor, key, sentence.text, place, ruling.category, act, ruling.salience)


def _ruling_of(sentence: Sentence) -> Ruling | None:
    """Whether a sentence of a user decides something or sets a condition; questions do neither."""
    text = sentence.text
    if (
        text.endswith("?")
        or len(text) > MAX_SENTENCE_CHARACTERS
        or len(sentence.content - EMPTY_RULINGS) < MIN_RULING_WORDS
    ):
        return None
    if RULE.search(text):
        return Ruling("CONDITION", STANDING)
    if DECISION.search(text):
        return Ruling("DECISION", STANDING)
    if CONDITION.search(text):
        return Ruling("CONDITION", PASSING)
    return Ruling("DECISION", PASSING) if sentence.details and INTENTION.search(text) else None


def _own_facts(message: Message) -> Iterator[Fact]:
    """``my X is Y``: these facts are about the user, and a later one replaces an earlier one."""
    text = message.content[:MAX_CHARACTERS]
    act: Act = "correction" if CORRECTION.search(text) else "statement"
    for match in _NAMED.finditer(text):
        yield _fact(message, USER, "name", match.group(1), match.start(1), "ENTITY", act, STANDING)
    for match in _OF_USER.finditer(text):
        key, value = match.group(1).lower(), match.group(2)
        if key != "name":
            salience = STANDING if _kind(value) in _CONTACTS else ABOUT_USER
            yield _fact(message, USER, key, value, match.start(2), "STATE", act, salience)


def _fact(
    message: Message, anchor: str, key: str, value: str, start: int, category: Category, act: Act, salience: float
) -> Fact:
    if category == "GENERAL":
        category = "NUMERIC" if any(character.isdigit() for character in value) else "ENTITY"
    return Fact(
        anchor=anchor,
        key=key,
        value=value.strip(),
        category=category,
        source_seq=message.seq or 0,
        span=(start, start + len(value)),
        said_by=message.role,
        act=act,
        salience=max(1, round(100 * (salience if salience == STANDING else min(salience, MOST)))),
    )


def _kind(text: str) -> str:
    head = text[:MAX_KIND_CHARACTERS]
    found = next((kind for kind, pattern in _KINDS if pattern.search(head)), "name")
    return "date" if found in ("number", "name") and not CALENDAR_WORDS.isdisjoint(head.lower().split()) else found


def _numbered(key: str, used: Counter[str]) -> str:
    used[key] += 1
    return key if used[key] == 1 else f"{key}.{used[key]}"
