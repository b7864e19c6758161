"""What people and the model said in words: details that were agreed, wishes, decisions, conditions, corrections.

A fact is a sentence as it stands in a message, from its first word that says something to its last.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice, pairwise
from typing import NamedTuple

from reactor_memory.features.facts.summarizers.lexicon import (
    CONDITION,
    CORRECTION,
    DECISION,
    EMPTY_DENIALS,
    EMPTY_RULINGS,
    INTENTION,
    READ_BACK,
    REVISION,
    RULE,
    SERVICE,
    WISH,
)
from reactor_memory.features.facts.summarizers.statements import (
    OPENERS,
    Statement,
    beyond_aside,
    fewest_covering,
    is_echo,
    most_telling,
    speaker_of,
    spoken_part,
    statement_of,
    telling,
)
from reactor_memory.features.facts.summarizers.talk import ReadMessage, Talk
from reactor_memory.models import Message, Role
from reactor_memory.models.ledger import NOTED_SALIENCE, Act, Category, Fact
from reactor_memory.text.relative_dates import day_of, key_said_on, relative_times
from reactor_memory.text.words import CALENDAR_WORDS, MAX_CHARACTERS, Sentence, read_sentences, telling_part

USER = "the user"
AGREED = "agreed"
TOLD = "told"
MAX_SENTENCE_CHARACTERS = 256
MAX_SENTENCES = 24
MAX_KIND_CHARACTERS = 100
MIN_RULING_WORDS = 2
MIN_ASKED_WORDS = 3
MIN_TOLD_WORDS = 2
"""A model that names nothing has to say more: "Started the song" and "Reservation confirmed" tell of nothing."""
NEARBY_ROWS = 10

# The salience of what users say so that it holds for later; nothing else reaches the first.
STANDING = 1.0
NOTED = NOTED_SALIENCE / 100
MOST = 0.98
CORRECTING = 0.6
ABOUT_USER = 0.35
PASSING = 0.2
TELLING = 0.6
TELLING_NAMELESS = 0.25
MOST_NAMELESS = 0.35
MIN_DETAILS = 2
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
            r"[$€£¥₹]\s?\d[\d.,]*\w{0,2}|\d[\d.,]{0,20} ?(?:dollars?|euros?|pounds?|usd|eur|gbp|%|percent)",
            re.IGNORECASE,
        ),
    ),
    ("time", re.compile(r"\d{1,2}(?::\d\d)? ?[ap]\.?m\b|\d{1,2}:\d\d", re.IGNORECASE)),
    ("date", re.compile(r"\d{4}-\d\d-\d\d|\d{1,2}[/.]\d{1,2}[/.]\d{2,4}")),
    ("phone", re.compile(r"\+?\d[\d ()-]{6,18}\d")),
    ("number", re.compile(r"#?\w{0,8}\d")),
)
_CONTACTS = frozenset({"email", "phone"})


class Row(NamedTuple):
    """What memory keeps of one message; `before` are the earlier messages that it settles."""

    anchor: str
    told: ReadMessage
    salience: float
    statements: Sequence[Statement] = ()
    is_agreed: bool = False
    is_noted: bool = False
    by_names: bool = False
    before: tuple[ReadMessage, ...] = ()

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
    speakers = speaker_of(messages)
    talk = Talk(messages, frozenset(word.casefold() for name in speakers.values() for word in name.split()))
    notes = {index for index in range(len(talk.told)) if "assistant" not in speakers and talk.noted(index)}
    places = (
        index for index, told in enumerate(talk.told) if told.message.seq not in recorded and index - 1 not in notes
    )
    rows = [_row(talk, index, data, speakers, is_noted=index in notes) for index in places]
    settled = {told.message.seq for row in rows for told in row.before}
    for index, row in enumerate(rows):
        if row.told.by_user:
            yield from _own_facts(row.told.message)
            yield from _rulings(row)
        if row.told.message.seq not in settled and not _said_again(row, rows[index + 1 : index + NEARBY_ROWS]):
            yield from _quotations(row)


def _row(talk: Talk, index: int, data: frozenset[str], speakers: Mapping[Role, str], *, is_noted: bool) -> Row:
    told = talk.told[index]
    seq, role = told.message.seq, told.message.role
    if not told.by_user and talk.agreed[index] and _telling(told, is_agreed=True):
        salience = talk.salience(index) * _beside(told, data)
        before = talk.led_to(index)
        return Row(f"{AGREED} #{seq}", told, salience, is_agreed=True, before=before, by_names=bool(speakers))
    statements = _statements(talk, index, is_noted=is_noted)
    salience = _of_talk(talk, index, statements)
    anchor = f"{speakers.get(role, USER if told.by_user else TOLD)} #{seq}"
    if is_noted:
        return Row(anchor, told, NOTED, statements, is_noted=True)
    if told.by_user:
        salience = max(salience, _lasting(told)) * (1 - talk.confirmed(index))
    return Row(anchor, told, salience * _beside(told, data), statements)


def _is_fact_of_its_own(statement: Statement) -> bool:
    """What rules something, or is nothing but ``my X is Y``, is a fact of its own. Of numbers of orders and the like
    there may be several, and a later one replaces none.
    """
    said = f"{statement.sentence.text[statement.start - statement.sentence.start :].rstrip('.! ')}."
    own = _OF_USER.match(said)
    is_own = own is not None and own.end() == len(said) - 1 and _kind(own.group(2)) != "number"
    return is_own or _ruling_of(statement.sentence) is not None


def _of_talk(talk: Talk, index: int, statements: Sequence[Statement]) -> float:
    """The salience of a message that was not agreed: people under names report; others settle something."""
    if not statements:
        return 0.0
    if talk.speakers:
        return TELLING * telling(statements)
    told = talk.told[index]
    if told.by_user and CORRECTION.search(told.text):
        return MOST_NAMELESS  # less than what it corrects would let the old stand for the new
    settling = talk.salience(index) * min(1.0, len(told.details) / MIN_DETAILS)
    least = MOST_NAMELESS if _answers_wish(talk, index) else 0.0
    return max(least, settling, min(MOST_NAMELESS, TELLING_NAMELESS * telling(statements)))


def _answers_wish(talk: Talk, index: int) -> bool:
    """Whether the model answers a user who wants a change: the wish must not stand without the answer."""
    answer, asked = talk.told[index], talk.told[index - 1] if index else None
    return asked is not None and asked.by_user and not answer.by_user and bool(CORRECTION.search(asked.text))


def _beside(told: ReadMessage, data: frozenset[str]) -> float:
    """The share of its salience that is left to a message beside what tools were given and answered."""
    return 1 - IN_DATA * len(told.details & data) / len(told.details) if told.details else 1.0


def _statements(talk: Talk, index: int, *, is_noted: bool) -> list[Statement]:
    """What a message states of its own: no echo of the one before."""
    told = talk.told[index]
    before = talk.told[index - 1].stated if index and not told.revises else frozenset[str]()
    agreed = is_noted if told.by_user else talk.accepted(index)
    stated = (
        each
        for sentence in told.sentences
        if (told.by_user or sentence.text not in talk.formulas)
        and (each := statement_of(sentence, talk.speakers, agreed=agreed, noted=is_noted and told.by_user))
    )
    if not (told.by_user or talk.speakers or _answers_wish(talk, index)):
        stated = (each for each in stated if _tells_of_something(each))
    own = [each for each in stated if not (is_echo(each.words, before) or (told.by_user and _is_fact_of_its_own(each)))]
    choose = fewest_covering if talk.speakers else most_telling
    return choose(own, told.content - talk.speakers)


def _tells_of_something(statement: Statement) -> bool:
    """Whether what a model states names something, or says more than that something is done, or will be."""
    if _is_about_service(statement.sentence):
        return False
    return statement.has_details or len(statement.words) > MIN_TOLD_WORDS


def _is_about_service(sentence: Sentence) -> bool:
    """Whether it says what the model does next, and names nothing: "It will be ready in a minute or two"."""
    names = [detail for detail in sentence.details if detail != "two" or "or two" not in sentence.text]
    return not names and SERVICE.search(sentence.text) is not None


def _lasting(told: ReadMessage) -> float:
    """Corrections matter, and how to reach somebody, unless the model read them back."""
    corrects = any(sentence.details and CORRECTION.search(sentence.text) for sentence in told.sentences)
    return CORRECTING if corrects or any(_kind(sentence.text) in _CONTACTS for sentence in _telling(told)) else 0.0


def _said_again(row: Row, later: Iterable[Row]) -> bool:
    """Whether one of the next rows says it, too: an echo adds nothing."""
    content = row.content
    return any(content <= other.content and (other.statements or other.is_agreed) for other in later)


def _quotations(row: Row) -> Iterator[Fact]:
    """What was agreed, with the messages that led to it, or what one message states."""
    used: Counter[str] = Counter()
    # What was agreed says a proposal again, but for what was corrected in it.
    open_proposals = [told for told in row.before if told.by_user or not is_echo(told.content, row.told.content)]
    for told in (*open_proposals, *([row.told] if row.is_agreed else ())):
        for sentence in _telling(told, is_agreed=told is row.told):
            if place := telling_part(sentence) if row.by_names else spoken_part(sentence):
                yield from _quoted(row, told, sentence, place, used)
    for statement in row.statements[:MAX_SENTENCES]:
        yield from _quoted(row, row.told, statement.sentence, (statement.start, statement.stop), used)


def _quoted(
    row: Row, told: ReadMessage, sentence: Sentence, place: tuple[int, int], used: Counter[str]
) -> Iterator[Fact]:
    act, category = _kind_of(row, told, sentence)
    day = day_of(told.message.created_at)
    for start, stop in _pieces(sentence, place):
        value = told.text[start:stop]
        key = _kind(value)
        if day and relative_times(value, day):
            key = key_said_on(key, day)
        yield _fact(told.message, row.anchor, _numbered(key, used), value, start, category, act, row.salience)


def _kind_of(row: Row, told: ReadMessage, sentence: Sentence) -> tuple[Act, Category]:
    """What was proposed and agreed is decided; what was only said and acknowledged is not."""
    if told.corrects or told.revises:
        changed = REVISION.search(sentence.text) and not WISH.search(sentence.text)
        return "correction", "STATE" if changed else "GENERAL"
    if row.is_agreed and told is row.told:
        proposed = "?" in told.text or READ_BACK.search(told.text)
        return "decision", "DECISION" if proposed else "GENERAL"
    return "statement", "GENERAL"


def _telling(told: ReadMessage, *, is_agreed: bool = False) -> list[Sentence]:
    """The sentences with details, of what is agreed or said anew others, too; what a user ruled is its own fact."""
    is_agreed = is_agreed or told.revises
    telling = [
        sentence
        for sentence in told.sentences
        if (
            (sentence.details if told.by_user else _names_something(sentence))
            or (is_agreed and _says_enough(sentence, is_short=told.by_user or told.revises))
        )
        and not (_ruling_of(sentence) if told.by_user else _is_about_service(sentence))
    ]
    return telling[:MAX_SENTENCES]


def _names_something(sentence: Sentence) -> bool:
    """Whether it has details, and not only the number of "One moment" or the capital of "Is that Okay?"."""
    if not sentence.details or not sentence.content - EMPTY_DENIALS - OPENERS:
        return False
    return len(sentence.words) > MIN_RULING_WORDS or not _is_number(sentence.details)


def _is_number(details: Sequence[str]) -> bool:
    return all(detail.isdigit() or detail == "one" for detail in details)


def _says_enough(sentence: Sentence, *, is_short: bool) -> bool:
    """Whether it says more than "Is that all right with you?", "No problem" or, unless it may be short, "Reservation
    confirmed".
    """
    least = MIN_RULING_WORDS if is_short and not sentence.text.endswith("?") else MIN_ASKED_WORDS
    return len(sentence.content - EMPTY_DENIALS - OPENERS) >= least


def _pieces(sentence: Sentence, place: tuple[int, int]) -> Iterator[tuple[int, int]]:
    """A part of a sentence in pieces that are each short enough to keep."""
    start, last = place
    for before, word in pairwise(sentence.words):
        if word.stop - start > MAX_SENTENCE_CHARACTERS and start < before.stop <= last:
            yield start, before.stop
            start = word.start
    if start < last:
        yield start, last


def _rulings(row: Row) -> Iterator[Fact]:
    """Decisions and conditions of a user, a sentence each."""
    act: Act = "correction" if row.told.revises else "statement"
    used: Counter[str] = Counter()
    ruled = ((sentence, ruling) for sentence in row.told.sentences if (ruling := _ruling_of(sentence)))
    for sentence, ruling in islice(ruled, MAX_SENTENCES):
        key = _numbered(ruling.category.lower(), used)
        place = beyond_aside(sentence)
        said = sentence.text[place - sentence.start : sentence.words[-1].stop - sentence.start]
        salience = STANDING if row.is_noted else ruling.salience
        yield _fact(row.told.message, row.anchor, key, said, place, ruling.category, act, salience)


def _ruling_of(sentence: Sentence) -> Ruling | None:
    """Whether a sentence of a user decides something or sets a condition; questions do neither."""
    text = sentence.text[beyond_aside(sentence) - sentence.start :]
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
        category = _category_of(value)
    return Fact(
        anchor=anchor,
        key=key,
        value=value.strip(),
        category=category,
        source_seq=message.seq or 0,
        span=(start, start + len(value)),
        said_by=message.role,
        act=act,
        salience=max(1, round(100 * (salience if salience >= NOTED else min(salience, MOST)))),
    )


def _category_of(value: str) -> Category:
    """What a statement is about: a number, something with a name, or neither."""
    if any(character.isdigit() for character in value):
        return "NUMERIC"
    return "ENTITY" if any(sentence.details for sentence in read_sentences(value)) else "GENERAL"


def _kind(text: str) -> str:
    head = text[:MAX_KIND_CHARACTERS]
    found = next((kind for kind, pattern in _KINDS if pattern.search(head)), "name")
    return "date" if found in ("number", "name") and not CALENDAR_WORDS.isdisjoint(head.lower().split()) else found


def _numbered(key: str, used: Counter[str]) -> str:
    used[key] += 1
    return key if used[key] == 1 else f"{key}.{used[key]}"
