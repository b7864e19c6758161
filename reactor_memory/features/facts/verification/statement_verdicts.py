"""Whether the words that a statement of a model cites say something else than it. Pure.

A statement says of a thing (its anchor) that a property (its key) has a value, which stands in the cited words. It
counts unless these show the contrary: a negation or a limit in the clause of the value, a unit that the value leaves
out, two names in exchanged places, somebody else as the subject. Words that are merely left out are no evidence.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import Literal, NamedTuple, TypeAlias

from reactor_memory.features.facts.verification.claim_words import Mark, alternatives, language_for, read, words_of
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
    "order",
    "stance",
    "failed",
    "authority",
]
"""Why a statement does not count. ``missing``: its value is not said; ``language``: its words are not known; ``name``:
its anchor has a name that nobody said; ``stance``: the words are a question, somebody else's or were taken back;
``failed``: no result of a tool says so; ``authority``: the user said otherwise.
"""

ORDERED = frozenset({"from", "to", "before", "after", "than", "between"})
"""Relations that tell two things of a sentence apart."""

NEAR = 2
"""Words without a claim that may stand between a relation and its value."""

NARROWING = frozenset({"only", "unless", "until", "except", "without", "if", "maybe", "formerly"})
"""Limits that change what their clause claims."""

MEASURING = frozenset({"least", "most", "about"})
"""Limits that change the number beside them."""

OPENING = frozenset({"unless", "until", "except", "if"})
"""Limits that narrow the other clauses of their sentence when they open one."""

ENDING = frozenset({"to", "before"})
"""Relations of a key that say where or when something ends."""

BEHIND = frozenset({"ja", "ko", "tr", "hi"})
"""Languages whose relations and negations stand behind their words."""

_KEY_WORD = re.compile(r"[^\W\d_]+|\d+")
_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_NUMBER = re.compile(r"\d+")
_BREAK = re.compile(
    r"[;，、；،؛—–]|,(?!\d)|\s(?P<word>because|but|although|though|whereas|weil|denn|aber|sondern|obwohl|porque|pero|sino|aunque"
    r"|parce|mais|mas|embora|потому|но|зато|çünkü|ama|fakat|하지만|그러나|لأن|لكن|क्योंकि|लेकिन)(?=\s)|(?P<run>因为|但是|所以|しかし|なぜなら)",
    re.IGNORECASE,
)
"""Where a clause may end."""

_COPULA = re.compile(
    r"(?<!\w)(?:is|are|was|were|has|have|ist|sind|hat|est|sont|es|son|é|são|está)(?!\w)|是|です", re.IGNORECASE
)
_SIGNS = frozenset("%€$£¥₹₽₺₩°+−±~<>-")
_DENYING = frozenset({"not", "no", "never", "hate", "hates", "dislike", "dislikes", "cannot"})


class Verdict(Value, frozen=True, kw_only=True):
    is_covered: bool
    reason: Reason = ""


COVERED = Verdict(is_covered=True)


class Statement(NamedTuple):
    """`start` and `stop`: where the value stands in the cited words. `speakers`: the names of who says it, `others`
    those of who else speaks, and `role` the alias: ``user``, ``assistant``, ``tool`` or none. `named`: what was said
    before, in which the anchor may be named. `seq`: the number of the message, which may tell an anchor from others.
    """

    anchor: str
    key: str
    start: int
    stop: int
    speakers: frozenset[str] = frozenset()
    others: frozenset[str] = frozenset()
    role: str = "user"
    named: str = ""
    seq: int = 0


class _Reading(NamedTuple):
    """The cited words before, in and behind the value, those of its clause that may turn or narrow it, and what the
    statement says beside the value.
    """

    before: tuple[Mark, ...]
    inside: tuple[Mark, ...]
    behind: tuple[Mark, ...]
    turning: tuple[Mark, ...]
    narrowing: tuple[Mark, ...]
    anchor: tuple[Mark, ...]
    key: tuple[Mark, ...]
    language: str
    is_named_by_case: bool
    next_word: str = ""
    is_key_denying: bool = False

    @property
    def outside(self) -> tuple[Mark, ...]:
        return (*self.before, *self.behind)

    @property
    def told(self) -> tuple[Mark, ...]:
        return (*self.anchor, *self.key)

    @property
    def covered(self) -> frozenset[str]:
        """The words that the statement has, as it says them."""
        return frozenset(mark.term for mark in (*self.inside, *self.told))


def judge(statement: Statement, cited: str, language: str | None = None) -> Verdict:
    """Whether `cited` leaves `statement` standing, or what speaks against it."""
    language = language or language_for(cited)
    if language is None:
        return Verdict(is_covered=False, reason="language")
    reading = _reading(statement, cited, language)
    reason = _negation(reading) or _limit(reading) or _number(reading)
    reason = reason or _relation(statement, cited, reading) or _order(statement, cited, reading)
    reason = reason or _subject(statement, cited, reading) or _anchor(statement, cited, language)
    return Verdict(is_covered=False, reason=reason) if reason else COVERED


def _reading(statement: Statement, cited: str, language: str) -> _Reading:
    start, stop = statement.start, statement.stop
    clauses = list(_clauses(cited, language))
    begin, end = _scope(cited, clauses, (start, stop), language)
    opening = [mark for a, b, _ in clauses if b <= begin or a >= end for mark in _opens(read(cited[a:b], language))]
    scope = (*read(cited[begin:start], language), *read(cited[stop:end], language))
    word = _KEY_WORD.match(cited[stop:].lstrip(" \u00a0-"))
    return _Reading(
        before=read(cited[:start], language),
        inside=_thing(cited[start:stop], language),
        behind=read(cited[stop:], language),
        turning=scope,
        narrowing=(*scope, *opening),
        anchor=_thing(statement.anchor.replace("_", " "), language),
        key=read(" ".join(_KEY_WORD.findall(statement.key.casefold())), "en"),
        language=language,
        is_named_by_case=language != "de" and any(map(str.isupper, cited)),
        next_word=word[0].casefold() if word else "",
        is_key_denying=bool(_DENYING.intersection(_KEY_WORD.findall(statement.key.casefold()))),
    )


def _thing(text: str, language: str) -> tuple[Mark, ...]:
    """The words of a name, which begin no sentence."""
    return read(f"x {text}", language)[1:]


def _clauses(cited: str, language: str) -> Iterator[tuple[int, int, bool]]:
    """Where the pieces of a sentence stand, and whether a conjunction leads in to them. One that is a part of a limit
    ("but for", "es sei denn") ends no piece.
    """
    start, is_led_in = 0, False
    for match in _BREAK.finditer(cited):
        if match["word"] and _is_of_limit(cited, match.start("word"), match.end(), language):
            continue
        yield start, match.start(), is_led_in
        start, is_led_in = match.end(), bool(match["word"] or match["run"])
    yield start, len(cited), is_led_in


def _is_of_limit(cited: str, start: int, end: int, language: str) -> bool:
    beside = (*read(cited[:end], language)[-1:], *read(cited[start:], language)[:1])
    return any(mark.kind == "limit" for mark in beside)


def _scope(
    cited: str, clauses: Sequence[tuple[int, int, bool]], value: tuple[int, int], language: str
) -> tuple[int, int]:
    """From where to where words turn or narrow the value: a list goes on with the clause that begins it."""
    start, stop = value
    touched = [place for place, (a, b, _) in enumerate(clauses) if a <= stop and start <= b] or [0]
    first, last = touched[0], touched[-1]
    while (
        first
        and not _is_clause(cited, clauses[first], language)
        and not _is_answer(cited, clauses[first - 1], language)
    ):
        first -= 1
    if language in BEHIND:
        while last + 1 < len(clauses) and not _is_clause(cited, clauses[last + 1], language):
            last += 1
    return min(clauses[first][0], start), max(clauses[last][1], stop)


def _is_clause(cited: str, piece: tuple[int, int, bool], language: str) -> bool:
    start, stop, is_led_in = piece
    text = cited[start:stop]
    persons = ("first", "second", "third")
    return is_led_in or bool(_COPULA.search(text)) or any(mark.kind in persons for mark in read(text, language))


def _is_answer(cited: str, piece: tuple[int, int, bool], language: str) -> bool:
    """Whether a piece only says no."""
    return [mark.kind for mark in read(cited[piece[0] : piece[1]], language)] == ["negation"]


def _opens(marks: Sequence[Mark]) -> list[Mark]:
    """The limit with which a clause begins, if it does."""
    said = [mark for mark in marks if mark.kind != "plain"][:2]
    opening = said[1:] if said and said[0].term == "only" and said[0].kind == "limit" else said[:1]
    return [mark for mark in opening if mark.kind == "limit" and mark.term in OPENING]


def _terms(marks: Iterable[Mark], *kinds: str) -> set[str]:
    return {mark.term for mark in marks if mark.kind in kinds}


def _negation(reading: _Reading) -> Reason:
    """A clause is denied that the statement does not deny, or the other way round."""
    if not _terms(reading.told, "negation"):
        return "negation" if _terms(reading.turning, "negation") else ""
    is_denied = bool(_terms((*reading.outside, *reading.inside), "negation"))
    return "" if is_denied or not reading.is_key_denying else "negation"


def _limit(reading: _Reading) -> Reason:
    told = _terms(reading.told, "limit")
    if (_relations(reading.key) | _terms(reading.key, "relation")) & ENDING:
        told |= {"until"}
    if (_terms(reading.narrowing, "limit") & NARROWING) - told:
        return "limit"
    is_number = bool(_terms(reading.inside, "number")) and not {mark.term for mark in reading.key} & _stemmed("bounds")
    beside = {mark.term for mark in (*reading.before[-1:], *reading.behind[:1]) if mark.kind == "limit"}
    return "limit" if is_number and (beside & MEASURING) - told else ""


def _number(reading: _Reading) -> Reason:
    """What counts or signs a number is a part of it."""
    inside, told = reading.inside, {mark.term for mark in reading.told}
    units: list[str] = []
    if inside and inside[-1].kind == "number" and reading.behind and _is_unit(reading):
        units.append(reading.behind[0].term)
    if inside and inside[0].kind == "number" and reading.before and reading.before[-1].term in _SIGNS:
        units.append(reading.before[-1].term)
    return "number" if any(unit not in told and not _is_counted(reading, unit) for unit in units) else ""


def _is_unit(reading: _Reading) -> bool:
    mark, word = reading.behind[0], reading.next_word
    is_short = word in words_of("names", "short_units") and (word != "am" or reading.language == "en")
    return mark.kind in ("unit", "number") or is_short


def _is_counted(reading: _Reading, unit: str) -> bool:
    """Whether the key says what the number counts: in the words of the sentence, or by what is counted so."""
    words = {mark.term for mark in reading.key if mark.kind != "plain"}
    if words and words <= {mark.term for mark in reading.outside}:
        return True
    kinds = [name for name in ("ages", "prices", "counts") if words & _stemmed(name)]
    units = {"ages": "years", "prices": "money"}
    return any(name not in units or unit in words_of("names", units[name]) for name in kinds)


def _relation(statement: Statement, cited: str, reading: _Reading) -> Reason:
    """A value does not have another relation than the one that stands beside it, in whatever language that is."""
    told = {mark.term for mark in reading.key if mark.kind == "relation" and mark.term in ORDERED} | _of_key(reading)
    if not told:
        return ""
    language = reading.language
    names = alternatives(language) if language.startswith("(") else (language,)
    found = [
        beside
        for name in names
        if (
            beside := _beside_value(
                read(cited[: statement.start], name), read(_endings(cited[statement.stop :]), name), name
            )
        )
    ]
    return "relation" if found and not any(told & beside for beside in found) else ""


def _endings(behind: str) -> str:
    """With a word before an ending that an apostrophe parts from the value."""
    return f"x{behind}" if behind[:1] in ("'", "’") else behind


def _of_key(reading: _Reading) -> set[str]:
    """The relations that the words of a key have that do not stand in the sentence."""
    said = {mark.term for mark in reading.outside}
    surface = {mark.term for mark in reading.key if mark.kind == "content" and mark.term not in said}
    return {name for name in ("from", "to", "before", "after") if surface & _stemmed(name)}


def _beside_value(before: Sequence[Mark], behind: Sequence[Mark], language: str) -> set[str]:
    found = set[str]() if language in BEHIND else _nearest(reversed(before))
    return found or (_nearest(behind) if language in BEHIND or language in ("zh", "de") else set())


def _nearest(marks: Iterable[Mark]) -> set[str]:
    for mark in islice(marks, NEAR + 1):
        if mark.kind == "relation" and mark.term in ORDERED:
            return {mark.term}
        if mark.kind not in ("plain", "relation"):
            return set()
    return set()


def _stemmed(name: str) -> frozenset[str]:
    return frozenset(mark.term for word in words_of("keys", name) for mark in read(word, "en"))


def _order(statement: Statement, cited: str, reading: _Reading) -> Reason:
    """Of two names the anchor stands before the value, unless the key only says of which kind the value is."""
    before, behind = cited[: statement.start], cited[statement.stop :]
    place = _place(statement.anchor, behind)
    names = [mark for mark in reading.inside if mark.kind == "content"]
    if place is None or not names or len(names) < len(reading.inside) or _place(statement.anchor, before) is not None:
        return ""
    if reading.is_named_by_case and not (behind[place].isupper() and all(mark.is_name for mark in names)):
        return ""
    is_possessed = any(
        mark.kind == "relation" and mark.term in ("of", "for", "with")
        for mark in read(behind[:place], reading.language)
    )
    return "" if is_possessed or _is_neutral(reading) else "order"


def _place(name: str, text: str) -> int | None:
    """Where `name` begins in `text`, whatever ending it has there."""
    place = text.lower().find(name.lower()) if name.strip() else -1
    is_inside = place > 0 and text[place - 1].isalnum() and name[0].isascii()
    return None if place < 0 or is_inside else min(place, len(text) - 1)


def _is_neutral(reading: _Reading) -> bool:
    words = [mark.term for mark in reading.key if mark.kind in ("content", "third", "unit", "report")]
    return all(term in _stemmed("neutral") for term in words)


def _subject(statement: Statement, cited: str, reading: _Reading) -> Reason:
    """Who is spoken of is somebody else than the anchor."""
    anchor = " ".join(normal_form(statement.anchor).casefold().split())
    kinds = {mark.kind for mark in reading.outside}
    alias = _alias(anchor)
    if anchor in statement.speakers or (alias and alias == statement.role):
        return "person" if _speaks_of_others(reading, kinds) else ""
    if alias == "user" and not statement.role:
        return "person"
    if alias or anchor in statement.others:
        return "person" if "first" in kinds and "second" not in kinds else ""
    words = re.split(r"[\s_]+", statement.anchor)
    is_person = statement.anchor[:1].isupper() and all(_place(word, cited) is None for word in words)
    return "person" if is_person and _is_led_by_name(reading, reading.before) else ""


def _alias(anchor: str) -> str:
    lists = (("user", words_of("names", "user")), ("assistant", words_of("names", "model")))
    return next((role for role, words in lists if anchor in words), "")


def _speaks_of_others(reading: _Reading, kinds: set[str]) -> bool:
    said = [mark for mark in reading.before if mark.kind == "first" or mark.term not in reading.covered]
    if any(mark.kind == "third" for mark in said):
        return is_of_others(said)
    if "first" in kinds:
        return False
    return any(mark.kind == "second" for mark in reading.before) or _is_led_by_name(reading, said)


def _is_led_by_name(reading: _Reading, said: Sequence[Mark]) -> bool:
    return reading.is_named_by_case and len(said) > 1 and said[0].is_name and said[1].kind == "plain"


def is_of_others(said: Sequence[Mark]) -> bool:
    """Whether words speak of somebody, and not of the speaker."""
    is_of_speaker = any(_is_subject(said, place) for place, mark in enumerate(said) if mark.kind == "first")
    return any(mark.kind == "third" for mark in said) and not is_of_speaker


def _is_subject(said: Sequence[Mark], place: int) -> bool:
    """Whether the first person is not the owner of who is spoken of: my sister."""
    near = (mark.kind for mark in said[place + 1 : place + 3] if mark.kind in ("first", "third"))
    return next(near, "first") == "first"


def _anchor(statement: Statement, cited: str, language: str) -> Reason:
    """Names and numbers of the anchor were said."""
    said = f"{cited} {statement.named}"
    numbers = set(_NUMBER.findall(statement.anchor)) - set(_NUMBER.findall(said)) - {str(statement.seq)}
    if numbers:
        return "number"
    words = [word for word in re.split(r"[\s_]+", statement.anchor) if word]
    if len(words) > 1 and not any(map(str.isupper, "".join(words[1:]))):
        words = words[1:]
    known = (
        words_of("names", "things")
        | words_of("names", "user")
        | words_of("names", "model")
        | words_of("keys", "neutral")
    )
    names = [word.removesuffix("'s").removesuffix("’s") for word in words if word[0].isupper()]
    unknown = [name for name in names if name.casefold() not in known]
    if not unknown:
        return ""
    terms = _worded(said, language) | {
        term for name in (*statement.speakers, *statement.others) for term in _worded(name, language)
    }
    return "" if all(_worded(name, language) <= terms for name in unknown) else "name"


def _worded(text: str, language: str) -> set[str]:
    return {mark.term for mark in read(text, language)}


def judge_leaf(statement: Statement, path: str, text: str) -> Verdict:
    """The same for a value in the data that a tool was given or gave back: `text` stands under `path`."""
    words = " ".join(word for word in _KEY_WORD.findall(_CAMEL.sub(" ", path)) if not word.isdigit()).lower()
    labels = read(words, "en")
    reading = _reading(statement, text, language_for(text) or "en")
    is_denied = bool(_terms(labels, "negation")) and not _terms(reading.told, "negation")
    told, said = _relations(reading.key), _relations(labels)
    reason: Reason = "negation" if is_denied else _negation(reading) if not _terms(labels, "negation") else ""
    reason = reason or _limit(reading) or _number(reading) or ("relation" if told and said and not told & said else "")
    reason = reason or _anchor(statement, f"{text} {words}", "en")
    return Verdict(is_covered=False, reason=reason) if reason else COVERED


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
