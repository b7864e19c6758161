"""What people and the model said in words: details that were agreed, wishes, decisions, conditions, corrections.

The strongest statement in a conversation is a read-back that the other side accepts. A message becomes a row of its
chunks, the runs of words between function words, each of which stands in the message as it is.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from reactor_memory.models import Act, Category, Fact, Message
from reactor_memory.summarizers.chunks import MAX_CHARACTERS, Chunk, Sentence, read_sentences
from reactor_memory.summarizers.lexicon import (
    AFFIRMATION,
    CALENDAR_WORDS,
    CONDITION,
    CORRECTION,
    DECISION,
    INTENTION,
    READ_BACK,
    REFUSAL,
    SETBACK,
)

USER = "the user"
AGREED = "agreed"
TOLD = "told"
MAX_SENTENCE_CHARACTERS = 256
MAX_CHUNKS = 24
READ_BACK_SHARE = 0.6
MIN_EARLIER = 2
MIN_AGREED_WORDS = 4
COVERED = 0.9
MAX_KIND_CHARACTERS = 100

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


class Row(NamedTuple):
    """What one message adds to the memory; `before` are earlier proposals that it settles."""

    anchor: str
    message: Message
    chunks: tuple[Chunk, ...]
    category: Category | None = None
    act: Act = "statement"
    before: tuple[tuple[Message, tuple[Chunk, ...]], ...] = ()

    @property
    def words(self) -> frozenset[str]:
        told = (self.chunks, *(chunks for _, chunks in self.before))
        return frozenset(word for chunks in told for chunk in chunks for word in chunk.words)

    @property
    def worth_telling(self) -> bool:
        if self.anchor.startswith(AGREED):
            return len(self.words) >= MIN_AGREED_WORDS
        details = [word for chunk in self.chunks for word in chunk.details]
        return len(details) >= (2 if self.anchor.startswith(TOLD) else 1)


def text_facts(messages: Sequence[Message], *, recorded: frozenset[int] = frozenset()) -> Iterator[Fact]:
    """The facts in the words of `messages`; messages whose seq is in `recorded` are told better by a tool call."""
    told = [m for m in messages if m.content and m.role in ("user", "assistant", "agent") and m.seq not in recorded]
    rows = [_row(told, index) for index in range(len(told))]
    for index, message in enumerate(told):
        if message.role == "user":
            yield from _own_facts(message)
            yield from _rulings(message)
        yield from _row_facts(rows[index], rows[index + 1 :])


def _rulings(message: Message) -> Iterator[Fact]:
    """Decisions and conditions of a user, a sentence each."""
    act: Act = "correction" if CORRECTION.search(message.content) else "statement"
    for number, sentence in enumerate(s for s in read_sentences(message.content) if _category_of(s)):
        category = _category_of(sentence) or "GENERAL"
        key = f"{category.lower()}.{number}" if number else category.lower()
        yield _fact(message, f"{USER} #{message.seq}", key, sentence.text, sentence.start, category=category, act=act)


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


def _row(told: Sequence[Message], index: int) -> Row:
    """What message `index` says, seen from what was said before and how the other side took it."""
    message = told[index]
    chunks = tuple(_telling_chunks(message))
    if message.role == "user":
        corrects = REFUSAL.match(message.content) or CORRECTION.search(message.content)
        return Row(f"{USER} #{message.seq}", message, chunks, act="correction" if corrects else "statement")
    reply = next((m for m in told[index + 1 :] if m.role == "user"), None)
    accepted = bool(AFFIRMATION.match(reply.content)) if reply else index == len(told) - 1
    details = [word for chunk in chunks for word in chunk.details]
    if not accepted:
        return Row(f"{TOLD} #{message.seq}", message, chunks)
    before = _led_to(message, told[:index])
    read_out = bool(READ_BACK.search(message.content))
    if before or read_out or (len(details) >= 2 and _repeats(details, told[:index])):
        whole = _all_chunks(message) if read_out else chunks
        return Row(f"{AGREED} #{message.seq}", message, whole, category="DECISION", before=before)
    return Row(f"accepted #{message.seq}", message, chunks, category="STATE")


def _telling_chunks(message: Message) -> Iterator[Chunk]:
    """The chunks of the sentences with details; what a user ruled is told word for word elsewhere."""
    for sentence in read_sentences(message.content):
        if sentence.details and not (message.role == "user" and _category_of(sentence)):
            yield from sentence.chunks


def _all_chunks(message: Message) -> tuple[Chunk, ...]:
    return tuple(chunk for sentence in read_sentences(message.content) for chunk in sentence.chunks)


def _detailed(message: Message) -> tuple[Chunk, ...]:
    return tuple(chunk for chunk in _all_chunks(message) if chunk.details)


def _led_to(
    message: Message, earlier: Sequence[Message], depth: int = 3
) -> tuple[tuple[Message, tuple[Chunk, ...]], ...]:
    """Earlier proposals that `message` only adjusts, with the replies to them: what is agreed now builds on them.

    Either the other side did not accept the proposal, or it did and now something else has to do instead.
    """
    if not depth or len(earlier) < 2 or earlier[-1].role != "user" or earlier[-2].role == "user":
        return ()
    proposal, reply = earlier[-2:]
    open_proposal = READ_BACK.search(proposal.content) and not AFFIRMATION.match(reply.content)
    refused = REFUSAL.match(reply.content) or CORRECTION.search(reply.content)
    if not (open_proposal or refused or SETBACK.search(message.content)):
        return ()
    further = _led_to(proposal, earlier[:-2], depth - 1)
    return (*further, (proposal, tuple(_telling_chunks(proposal))), (reply, _detailed(reply)))


def _row_facts(row: Row, later: Sequence[Row]) -> Iterator[Fact]:
    """The facts of a row, unless a later row says it all again."""
    words = row.words
    if not row.worth_telling or any(len(words & other.words) >= COVERED * len(words) for other in later):
        return
    own = frozenset(word for chunk in row.chunks for word in chunk.words)
    parts = [(told, [c for c in chunks if not c.words <= own]) for told, chunks in row.before]
    used: Counter[str] = Counter()
    for message, chunks in (*parts, (row.message, row.chunks)):
        for chunk in chunks[:MAX_CHUNKS]:
            kind = _kind(chunk)
            used[kind] += 1
            key = kind if used[kind] == 1 else f"{kind}.{used[kind]}"
            category = row.category or _category(chunk)
            yield _fact(message, row.anchor, key, chunk.text, chunk.start, category=category, act=row.act)


def _repeats(details: Sequence[str], earlier: Sequence[Message]) -> bool:
    """A read-back repeats what was said before, an offer brings new details. At the beginning nobody can tell."""
    if len(earlier) < MIN_EARLIER:
        return True
    said = " ".join(message.content[:MAX_CHARACTERS] for message in earlier).casefold()
    return sum(word in said for word in details) >= READ_BACK_SHARE * len(details)


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
    head = chunk.text[:MAX_KIND_CHARACTERS]
    for kind, pattern in _KINDS:
        if pattern.search(head):
            return kind
    words = set(head.lower().split())
    if words & CALENDAR_WORDS:
        return "date"
    return "name" if chunk.details else "detail"
