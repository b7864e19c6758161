"""What people and the model said in words: details that were agreed, wishes, decisions, conditions, corrections.

The strongest statement in a conversation is a read-back that the other side accepts. A message becomes a row of its
chunks, the runs of words between function words, each of which stands in the message as it is.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from reactor_memory.models import Act, Category, Fact, Message
from reactor_memory.summarizers.lexicon import (
    AFFIRMATION,
    CALENDAR_WORDS,
    CONDITION,
    CORRECTION,
    DECISION,
    DETAIL_WORDS,
    INTENTION,
    REFUSAL,
    STOP_WORDS,
)

USER = "the user"
MAX_CHARACTERS = 16_000
"""How much of one message is read for facts; the recall index covers the rest."""
MAX_SENTENCE_CHARACTERS = 256
MAX_CHUNKS = 24
MAX_CHUNK_WORDS = 12
MAX_WORD_CHARACTERS = 100
READ_BACK_SHARE = 0.4
MIN_EARLIER = 3

_SENTENCE = re.compile(r"[^.!?\n。！？]+(?:[.!?。！？]+(?=\S)[^.!?\n。！？]+)*[.!?。！？]*")
_TOKEN = re.compile(r"\S+")
_EDGE = "\"'“”‘’«»()[]{}<>,;:!?.*_`~、。！？「」"
_BREAKS_AFTER = frozenset(",;:!?)]}”»。、")
_OF_USER = re.compile(
    r"\bmy ((?:[a-z][a-z-]{0,20} ){0,3}?[a-z][a-z-]{0,20}) (?:is|are|was|will be|=) (?:called |named )?"
    r"([^.!?\n,;]{1,80})",
    re.IGNORECASE,
)
_NAMED = re.compile(r"\b(?:my name is|call me|i am called|this is) ([A-Z][\w'-]{1,30}(?: [A-Z][\w'-]{1,30}){0,2})")
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


class Chunk(NamedTuple):
    """A run of words of a message: where it begins, the words, and those of them that are details."""

    start: int
    text: str
    details: tuple[str, ...]


class Sentence(NamedTuple):
    start: int
    text: str
    chunks: tuple[Chunk, ...]

    @property
    def details(self) -> int:
        return sum(len(chunk.details) for chunk in self.chunks)


def text_facts(messages: Sequence[Message], *, recorded: frozenset[int] = frozenset()) -> Iterator[Fact]:
    """The facts in the words of `messages`; messages whose seq is in `recorded` are told better by a tool call."""
    for index, message in enumerate(messages):
        if message.seq in recorded or not message.content:
            continue
        if message.role == "user":
            yield from _user_facts(message)
        elif message.role in ("assistant", "agent"):
            yield from _assistant_facts(message, messages[:index], messages[index + 1 :])


def read_sentences(text: str) -> list[Sentence]:
    """The sentences of the beginning of a text, with their chunks."""
    return [
        Sentence(match.start(), match.group().strip(), tuple(_chunks(match.group(), match.start())))
        for match in _SENTENCE.finditer(text[:MAX_CHARACTERS])
        if match.group().strip()
    ]


def _user_facts(message: Message) -> Iterator[Fact]:
    yield from _own_facts(message)
    read = read_sentences(message.content)
    for number, sentence in enumerate(s for s in read if _category_of(s) is not None):
        category = _category_of(sentence) or "GENERAL"
        act: Act = "correction" if CORRECTION.search(sentence.text) else "statement"
        key = f"{category.lower()}.{number}" if number else category.lower()
        yield _fact(message, f"{USER} #{message.seq}", key, sentence.text, sentence.start, category=category, act=act)
    rest = [s for s in read if _category_of(s) is None]
    if any(s.details for s in rest):
        act = "correction" if REFUSAL.match(message.content) or CORRECTION.search(message.content) else "statement"
        yield from _rows(message, f"{USER} #{message.seq}", rest, act=act)


def _own_facts(message: Message) -> Iterator[Fact]:
    """``my X is Y``: these facts are about the user, and a later one replaces an earlier one."""
    text = message.content[:MAX_CHARACTERS]
    act: Act = "correction" if CORRECTION.search(text) else "statement"
    for match in _NAMED.finditer(text):
        yield _fact(message, USER, "name", match.group(1), match.start(1), category="ENTITY", act=act)
    for match in _OF_USER.finditer(text):
        if match.group(1).lower() != "name":
            yield _fact(
                message, USER, match.group(1).lower(), match.group(2), match.start(2), category="STATE", act=act
            )


def _assistant_facts(message: Message, earlier: Sequence[Message], later: Sequence[Message]) -> Iterator[Fact]:
    read = read_sentences(message.content)
    details = [word for sentence in read for chunk in sentence.chunks for word in chunk.details]
    reply = next((m for m in later if m.role == "user"), None)
    accepted = bool(AFFIRMATION.match(reply.content)) if reply else not later
    if accepted and len(details) >= 2 and _repeats(details, earlier):
        yield from _rows(message, f"agreed #{message.seq}", read, category="DECISION")
    elif accepted and details:
        yield from _rows(message, f"accepted #{message.seq}", read)
    elif reference := [s for s in read if not s.text.endswith("?") and any(map(_is_reference, s.chunks))]:
        yield from _rows(message, f"told #{message.seq}", reference)


def _repeats(details: Sequence[str], earlier: Sequence[Message]) -> bool:
    """A read-back repeats what was said before, an offer brings new details. At the beginning nobody can tell."""
    if len(earlier) < MIN_EARLIER:
        return True
    said = " ".join(message.content[:MAX_CHARACTERS] for message in earlier).casefold()
    return sum(word in said for word in details) >= READ_BACK_SHARE * len(details)


def _is_reference(chunk: Chunk) -> bool:
    return any(character.isdigit() for character in chunk.text)


def _rows(
    message: Message,
    anchor: str,
    read: Iterable[Sentence],
    *,
    category: Category | None = None,
    act: Act = "statement",
) -> Iterator[Fact]:
    chunks = [chunk for sentence in read if sentence.details for chunk in sentence.chunks]
    used: Counter[str] = Counter()
    for chunk in chunks[:MAX_CHUNKS]:
        kind = _kind(chunk)
        used[kind] += 1
        key = kind if used[kind] == 1 else f"{kind}.{used[kind]}"
        yield _fact(message, anchor, key, chunk.text, chunk.start, category=category or _category(chunk), act=act)


def _fact(message: Message, anchor: str, key: str, value: str, start: int, *, category: Category, act: Act) -> Fact:
    return Fact(
        anchor=anchor,
        key=key,
        value=value.strip(),
        category=category,
        source_seq=message.seq or 0,
        span=(start, start + len(value)),
        said_by=message.role,
        act=act,
    )


def _category_of(sentence: Sentence) -> Category | None:
    """Whether a sentence of a user decides something or sets a condition; questions do neither."""
    if sentence.text.endswith("?") or len(sentence.text) > MAX_SENTENCE_CHARACTERS:
        return None
    if CONDITION.search(sentence.text):
        return "CONDITION"
    if DECISION.search(sentence.text) or (sentence.details and INTENTION.search(sentence.text)):
        return "DECISION"
    return None


def _category(chunk: Chunk) -> Category:
    if any(character.isdigit() for character in chunk.text):
        return "NUMERIC"
    return "ENTITY" if chunk.details else "GENERAL"


def _kind(chunk: Chunk) -> str:
    head = chunk.text[:MAX_WORD_CHARACTERS]
    for kind, pattern in _KINDS:
        if pattern.search(head):
            return kind
    words = set(head.lower().split())
    if words & CALENDAR_WORDS:
        return "date"
    return "name" if chunk.details else "detail"


def _chunks(sentence: str, offset: int) -> Iterator[Chunk]:
    words = [_Word.read(match, offset) for match in _TOKEN.finditer(sentence)]
    run: list[_Word] = []
    for index, word in enumerate(words):
        inner = word.text and not (word.is_stop(index) and not _joins_names(words, index))
        if run and (not inner or word.breaks_before or len(run) == MAX_CHUNK_WORDS):
            yield _chunk(run, sentence, offset)
            run = []
        if inner:
            run.append(word._replace(first=index == 0))
        if run and word.breaks_after:
            yield _chunk(run, sentence, offset)
            run = []
    if run:
        yield _chunk(run, sentence, offset)


class _Word(NamedTuple):
    start: int
    text: str
    breaks_before: bool
    breaks_after: bool
    first: bool = False

    @classmethod
    def read(cls, match: re.Match[str], offset: int) -> _Word:
        token = match.group()[:MAX_WORD_CHARACTERS]
        text = token.strip(_EDGE)
        lead = len(token) - len(token.lstrip(_EDGE))
        return cls(offset + match.start() + lead, text, lead > 0, token[-1] in _BREAKS_AFTER)

    @property
    def is_capitalised(self) -> bool:
        return self.text[:1].isupper()

    @property
    def is_detail(self) -> bool:
        if any(character.isdigit() for character in self.text):
            return True
        return (self.is_capitalised and not self.first) or self.text.lower() in DETAIL_WORDS

    def is_stop(self, index: int) -> bool:
        return self.text.lower() in STOP_WORDS and (not self.is_capitalised or index == 0 or self.text == "I")


def _joins_names(words: Sequence[_Word], index: int) -> bool:
    """A small word between two capitalised ones is part of a name."""
    between = 0 < index < len(words) - 1
    return between and words[index - 1].is_capitalised and words[index + 1].is_capitalised and words[index].text != "I"


def _chunk(run: Sequence[_Word], sentence: str, offset: int) -> Chunk:
    start, end = run[0].start, run[-1].start + len(run[-1].text)
    return Chunk(start, sentence[start - offset : end - offset], tuple(w.text.casefold() for w in run if w.is_detail))
