"""Whether a statement that a model made is covered by the words that it cites. Pure.

A statement says of a thing (its anchor) that a property (its key) has a value, which stands in the cited words. It is
covered if nothing else in them says something different: no negation, limit, unit, name or relation that the statement
does not have. Whatever cannot be told is not covered, and the words themselves are shown instead.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import islice
from typing import Literal, NamedTuple, TypeAlias

from reactor_memory.features.facts.verification.claim_words import Mark, language_for, read, words_of
from reactor_memory.models import Value
from reactor_memory.text.analyzer import normal_form

Reason: TypeAlias = Literal[
    "",
    "missing",
    "language",
    "negation",
    "limit",
    "number",
    "relation",
    "name",
    "person",
    "key",
    "order",
    "rest",
    "stance",
    "failed",
    "authority",
]
"""Why a statement is not covered. ``missing``: its value is not said; ``language``: its words are not known; ``key``:
its property is not said; ``rest``: the cited words say more, which may matter; ``stance``: they are a question,
somebody else's or were taken back; ``failed``: no result of a tool says so; ``authority``: the user said otherwise.
"""

ORDERED = frozenset({"from", "to", "before", "after", "than", "between"})
"""Relations that tell two things of a sentence apart."""

NEAR = 2
"""Words without a claim that may stand between a relation and its value."""

_KEY_WORD = re.compile(r"[^\W\d_]+|\d+")

_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")

SHORT_UNIT = 3
"""A word of so few letters behind a number is taken for its unit."""

BEHIND = frozenset({"ja", "ko", "tr", "hi"})
"""Languages whose relations stand behind their words."""


class Verdict(Value, frozen=True, kw_only=True):
    is_covered: bool
    reason: Reason = ""


COVERED = Verdict(is_covered=True)


class Statement(NamedTuple):
    """`start` and `stop`: where the value stands in the cited words. `beside`: where the other values of the same
    anchor do. `speakers`: the names of who says it, and `role` the alias: ``user``, ``assistant`` or none. `named`:
    what was said before, in which the anchor may be named if the cited words only add a value to it. `seq`: the number
    of the message, by which an anchor may be told from others.
    """

    anchor: str
    key: str
    start: int
    stop: int
    beside: tuple[tuple[int, int], ...] = ()
    speakers: frozenset[str] = frozenset()
    role: str = "user"
    named: str = ""
    seq: int = 0


class _Reading(NamedTuple):
    """The cited words before, in and behind the value, and what the statement says beside the value."""

    before: tuple[Mark, ...]
    inside: tuple[Mark, ...]
    behind: tuple[Mark, ...]
    beside: frozenset[str]
    anchor: tuple[Mark, ...]
    key: tuple[Mark, ...]
    language: str
    is_caseless: bool
    seq: str = ""

    @property
    def outside(self) -> tuple[Mark, ...]:
        return (*self.before, *self.behind)

    @property
    def told(self) -> tuple[Mark, ...]:
        return (*self.anchor, *self.key)

    @property
    def covered(self) -> frozenset[str]:
        """The words that the statement has, as it says them."""
        return frozenset(mark.term for mark in (*self.inside, *self.told)) | self.beside


def judge(statement: Statement, cited: str, language: str | None = None) -> Verdict:
    """Whether `cited` covers `statement`, and what stands against it."""
    if not _says_more(statement, cited) and not statement.anchor and not statement.key:
        return COVERED
    language = language or language_for(cited)
    if language is None:
        return Verdict(is_covered=False, reason="language")
    reading = _reading(statement, cited, language)
    for check in (_negation, _limit, _number, _relation, _key, _order):
        if reason := check(reading):
            return Verdict(is_covered=False, reason=reason)
    if reason := _subject(statement, reading):
        return Verdict(is_covered=False, reason=reason)
    return COVERED


def _says_more(statement: Statement, cited: str) -> bool:
    return any(map(str.isalnum, cited[: statement.start] + cited[statement.stop :]))


def _reading(statement: Statement, cited: str, language: str) -> _Reading:
    beside = [mark for start, stop in statement.beside for mark in read(cited[start:stop], language)]
    return _Reading(
        before=read(cited[: statement.start], language),
        inside=read(cited[statement.start : statement.stop], language),
        behind=read(cited[statement.stop :], language),
        beside=frozenset(mark.term for mark in beside),
        anchor=read(statement.anchor.replace("_", " "), language),
        key=_key_marks(statement.key, cited),
        language=language,
        is_caseless=not any(map(str.isupper, cited)),
        seq=str(statement.seq),
    )


def _key_marks(key: str, cited: str) -> tuple[Mark, ...]:
    """The words of a key without those that only say of which kind a value is, unless the sentence has them, too."""
    said, neutral = set(_KEY_WORD.findall(normal_form(cited).casefold())), words_of("keys", "neutral")
    words = [word for word in _KEY_WORD.findall(key.casefold()) if word in said or word not in neutral]
    return read(" ".join(words), "en")


def _terms(marks: Iterable[Mark], *kinds: str) -> Counter[str]:
    return Counter(mark.term for mark in marks if mark.kind in kinds)


def _negation(reading: _Reading) -> Reason:
    return "" if _terms(reading.outside, "negation") == _terms(reading.told, "negation") else "negation"


def _limit(reading: _Reading) -> Reason:
    return "" if set(_terms(reading.outside, "limit")) == set(_terms(reading.told, "limit")) else "limit"


def _number(reading: _Reading) -> Reason:
    """What counts or signs the number is a part of it, and a number of the statement stands in the words."""
    stated = set(_terms((*reading.outside, *reading.inside), "number"))
    told = {mark.term for mark in reading.told}
    unsaid = set(_terms(reading.told, "number")) - stated
    if unsaid and (unsaid != {reading.seq} or set(_terms(reading.outside, "number")) - told):
        return "number"
    is_number = bool(reading.inside) and any(mark.kind == "number" for mark in reading.inside)
    if not is_number:
        return ""
    ends, begins = reading.inside[-1].kind == "number", reading.inside[0].kind == "number"
    if ends and reading.behind and _is_unit(reading.behind[0]) and reading.behind[0].term not in told:
        return "number"
    if (
        begins
        and reading.before
        and reading.before[-1].kind in ("unit", "number")
        and reading.before[-1].term not in told
    ):
        return "number"
    others = set(_terms(reading.outside, "number")) - set(reading.beside) - told
    return "number" if others and not _follows_key(reading) else ""


def _is_unit(mark: Mark) -> bool:
    is_short = mark.kind == "content" and len(mark.term) <= SHORT_UNIT and not mark.is_name
    return mark.kind in ("unit", "number") or is_short or mark.term == "am"


def _follows_key(reading: _Reading) -> bool:
    """Whether the words of the key stand right before the value."""
    said = {mark.term for mark in reading.key if mark.kind == "content"}
    near = [mark for mark in reading.before if mark.kind != "plain"][-max(1, len(said)) :]
    return bool(said) and said == {mark.term for mark in near}


def _relation(reading: _Reading) -> Reason:
    """A value has the relation that stands beside it, and no other."""
    told = {mark.term for mark in reading.key if mark.kind == "relation" and mark.term in ORDERED} | _of_key(reading)
    beside = _beside_value(reading)
    return "" if beside == told else "relation"


def _of_key(reading: _Reading) -> set[str]:
    """The relations that the words of a key have that do not stand in the sentence."""
    said = {mark.term for mark in reading.outside}
    surface = {mark.term for mark in reading.key if mark.kind == "content" and mark.term not in said}
    return {name for name in ("from", "to", "before", "after") if surface & _stemmed(name)}


def _beside_value(reading: _Reading) -> set[str]:
    found: set[str] = set()
    if reading.language not in BEHIND:
        found |= _nearest(reversed(reading.before))
    if reading.language in BEHIND or reading.language in ("zh", "de"):
        found |= _nearest(reading.behind)
    return found


def _nearest(marks: Iterable[Mark]) -> set[str]:
    for mark in islice(marks, NEAR + 1):
        if mark.kind == "relation" and mark.term in ORDERED:
            return {mark.term}
        if mark.kind not in ("plain", "relation"):
            return set()
    return set()


def _stemmed(name: str) -> frozenset[str]:
    return frozenset(mark.term for word in words_of("keys", name) for mark in read(word, "en"))


def _key(reading: _Reading) -> Reason:
    """A key says of which kind a value is, or what the sentence says."""
    said = {mark.term for mark in (*reading.outside, *reading.inside)}
    known = frozenset[str]().union(*(_stemmed(name) for name in ("from", "to", "before", "after")))
    words = [mark for mark in reading.key if mark.kind in ("content", "third", "first", "second", "unit", "report")]
    return "" if all(mark.term in said or mark.term in known for mark in words) else "key"


def _order(reading: _Reading) -> Reason:
    """What the statement has of the sentence stands in it in the order anchor, key, value."""
    places = {mark.term: place for place, mark in reversed(list(enumerate(reading.before)))}
    last = {mark.term: place for place, mark in enumerate(reading.before)}
    behind = {mark.term for mark in reading.behind}
    anchor = [mark.term for mark in reading.anchor if mark.kind == "content"]
    key = [mark.term for mark in reading.key if mark.kind == "content"]
    inside = {mark.term for mark in reading.inside}
    if any(term in behind and term not in places and term not in inside for term in (*anchor, *key)):
        return "order"
    ends = [places[term] for term in anchor if term in places]
    begins = [last[term] for term in key if term in last]
    if ends and begins and max(ends) > min(begins):
        return "order"
    between = reading.before[min(begins) + 1 :] if begins else ()
    return "order" if any(_tells(mark) and mark.term not in (*anchor, *key) for mark in between) else ""


def _tells(mark: Mark) -> bool:
    return mark.is_name or mark.kind in ("number", "third")


def _subject(statement: Statement, reading: _Reading) -> Reason:
    """The anchor is the speaker, or stands in the words, or is some thing; and the words speak of nobody else."""
    said = {mark.term for mark in (*reading.outside, *reading.inside)}
    anchor = " ".join(normal_form(statement.anchor).casefold().split())
    if anchor in statement.speakers:
        return _of_speaker(statement, reading, alias="")
    for role, words in (("user", words_of("names", "user")), ("assistant", words_of("names", "model"))):
        if anchor in words:
            return _of_speaker(statement, reading, alias=role)
    things = _things()
    unknown = [
        mark
        for mark in reading.anchor
        if mark.kind in ("content", "third", "first", "second") and mark.term not in said and mark.term not in things
    ]
    if unknown and (not _is_named(unknown, statement, reading) or _rest(reading)):
        return "name"
    if reading.is_caseless or any(mark.kind in ("third", "second") for mark in reading.outside):
        return _rest(reading)
    others = {mark.term for mark in reading.outside if mark.is_name} - reading.covered
    return "name" if others else ""


def _is_named(unknown: Sequence[Mark], statement: Statement, reading: _Reading) -> bool:
    """Whether the anchor was named before, and the cited words speak of nobody themselves."""
    named = {mark.term for mark in read(statement.named, reading.language)}
    speaks = any(mark.kind in ("first", "second", "third") for mark in reading.outside)
    return not speaks and all(mark.term in named for mark in unknown)


def _things() -> frozenset[str]:
    return frozenset(mark.term for word in words_of("names", "things") for mark in read(word, "en"))


def _of_speaker(statement: Statement, reading: _Reading, *, alias: str) -> Reason:
    if alias and alias != statement.role:
        return "person"
    if any(mark.kind == "second" for mark in reading.outside):
        return "person"
    return _rest(reading)


def _rest(reading: _Reading) -> Reason:
    """Whether everything that the words say is in the statement."""
    kinds = ("content", "third", "number", "unit", "second")
    left = {mark.term for mark in reading.outside if mark.kind in kinds} - reading.covered
    return "rest" if left else ""


def judge_leaf(statement: Statement, path: str, text: str) -> Verdict:
    """The same for a value in the data that a tool was given or gave back: `text`, all of it, stands under `path`."""
    value = text[statement.start : statement.stop]
    words = " ".join(word for word in _KEY_WORD.findall(_CAMEL.sub(" ", path)) if not word.isdigit()).lower()
    if value.strip() != text.strip():
        return Verdict(is_covered=False, reason="rest")
    reading = _Reading(
        before=read(words, "en"),
        inside=(),
        behind=(),
        beside=frozenset(),
        anchor=read(statement.anchor.replace("_", " "), "en"),
        key=_key_marks(statement.key, words),
        language="en",
        is_caseless=False,
    )
    for check in (_negation, _limit, _leaf_relation, _key):
        if reason := check(reading):
            return Verdict(is_covered=False, reason=reason)
    named = {mark.term for mark in (*read(statement.named, "en"), *reading.before)} | _things()
    kinds = ("content", "number", "third")
    is_named = all(mark.term in named for mark in reading.anchor if mark.kind in kinds)
    return COVERED if is_named else Verdict(is_covered=False, reason="name")


def _leaf_relation(reading: _Reading) -> Reason:
    return "" if _relations(reading.key) in (set[str](), _relations(reading.before)) else "relation"


def _relations(marks: Iterable[Mark]) -> set[str]:
    terms = {mark.term for mark in marks}
    return {name for name in ("from", "to", "before", "after") if terms & _stemmed(name)}


def covers(said: Sequence[str], quotation: str, language: str | None = None) -> bool:
    """Whether one of the records `said`, each the words of a statement, says all that `quotation` says."""
    language = language or language_for(quotation)
    if language is None:
        return False
    kinds = ("content", "third", "second", "number", "unit", "negation", "limit", "relation")
    wanted = [mark for mark in read(quotation, language) if mark.kind in kinds]
    return bool(wanted) and any(_holds(read(each, language), wanted) for each in said)


def _holds(record: Sequence[Mark], wanted: Sequence[Mark]) -> bool:
    left = Counter((mark.kind, mark.term) for mark in wanted)
    left.subtract((mark.kind, mark.term) for mark in record)
    return all(count <= 0 for count in left.values())
