"""Language packs: what a statement does by its words. They decide weights and remarks, and never rewrite. Pure."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from datetime import date, timedelta
from functools import cache
from importlib.resources import files
from typing import cast

from reactor_memory.models import Value
from reactor_memory.text.analyzer import normal_form
from reactor_memory.text.caches import memo
from reactor_memory.text.relative_dates import relative_times
from reactor_memory.text.scripts import HANGUL, UNSPACED

MOST_WORDS = 6
"""A longer statement says something beside taking back, or being polite."""

MOST_BEGUN, MOST_CORRECTED = 60, 200
"""Characters in which a statement says whether it agrees, and in which it corrects."""

ENDING = 3
"""Characters that may follow a phrase of a script without spaces, as the ending of a verb."""

_WORD = re.compile(r"[^\s.,;:!?()\[\]{}\"“”„«»「」。、，！？؟،।…–—]+")
_SENTENCE = re.compile(r"([^.!?。！？؟]{1,60}[.!?。！？؟]{0,3})\s*(.{0,400})$", re.DOTALL)
_PAUSE = re.compile(r"[,.;:!?،。，、！？؟…–—-]+\s*")
_UNSPACED = re.compile(f"[{UNSPACED}]")
_NONE = re.compile(r"(?!)")
_LEAD_IN = re.compile(r"[^,.!?:，。！？：]{1,24}[,:，：]\s*")
"""What may stand before what is said: "By the way, ..."."""

_JOINED = re.compile(f"[{UNSPACED}{HANGUL}]")
"""Scripts in which words are joined with others, or with endings."""

_QUOTED = re.compile(
    '"[^"]{0,300}"|“[^”]{0,300}”|„[^“]{0,300}“|«[^»]{0,300}»|「[^」]{0,300}」|『[^』]{0,300}』|‘[^’]{0,300}’'
)


NEAR_OWNER = 7
"""Words from the beginning in which a verb says how things are."""

ELISION = "'"
"""Joins a small word to the next one ("n'utilisez")."""

_FEW_DIGITS = r"\d{1,2}"
_BEGINS = r"(?:^|(?<=[.!?。！？؟,，] )|(?<=[。！？，]))"
_NO_NUMBER = r"(?<![\d.,月一二两三四五六七八九十])"
_PARTICLE = "(?:(?<=[\uac00-\ud7af])(?:에는|에|엔|부터|까지|은|는|의))?"


class LanguagePack(Value, frozen=True, kw_only=True):
    courtesy: frozenset[str]
    accepts: tuple[str, ...]
    takes_back: tuple[str, ...]
    corrects: tuple[str, ...]
    numbers: tuple[str, ...]
    days: Mapping[str, int]
    please: tuple[str, ...] = ()
    rules_begin: tuple[str, ...] = ()
    rules: tuple[str, ...] = ()
    no_rules: tuple[str, ...] = ()
    orders: tuple[str, ...] = ()
    decides: tuple[str, ...] = ()
    names: tuple[str, ...] = ()
    health: tuple[str, ...] = ()
    states: tuple[str, ...] = ()
    owners: tuple[str, ...] = ()
    verbs_of_state: tuple[str, ...] = ()
    opinions: tuple[str, ...] = ()


_PHRASES = (
    *("please", "rules_begin", "rules", "no_rules", "orders", "decides", "names", "health"),
    *("states", "owners", "verbs_of_state", "opinions"),
)
"""The keys of a pack that are looked up as `_holds` and `_begins` do."""


@cache
def language_packs() -> Mapping[str, LanguagePack]:
    data = files("reactor_memory.features.facts.quoting").joinpath("language_packs.toml").read_text("utf-8")
    return {name: _pack(cast("Mapping[str, str]", values)) for name, values in tomllib.loads(data).items()}


def _pack(values: Mapping[str, str]) -> LanguagePack:
    days = (each.replace("_", " ").rsplit("=", 1) for each in values["days"].split())
    return LanguagePack(
        courtesy=frozenset(map(_folded, values["courtesy"].split())),
        accepts=_phrases_of(values["accepts"]),
        takes_back=_phrases_of(values["takes_back"]),
        corrects=_phrases_of(values["corrects"]),
        numbers=tuple(map(_folded, values.get("numbers", "").split())),
        **{key: _phrases_of(values.get(key, "")) for key in _PHRASES},
        days={_folded(phrase): int(away) for phrase, away in days},
    )


def _phrases_of(text: str) -> tuple[str, ...]:
    return tuple(_folded(each.replace("_", " ")) for each in text.split())


def _folded(text: str) -> str:
    return normal_form(text).casefold().replace("’", "'")


@memo(maxsize=8192)
def is_courtesy(text: str) -> bool:
    """Whether a short statement consists of polite words only."""
    words = _WORD.findall(_folded(text))
    return 0 < len(words) <= MOST_WORDS and any(
        all(word in pack.courtesy for word in words) for pack in language_packs().values()
    )


@memo(maxsize=8192)
def agrees(text: str) -> bool:
    """Whether a statement accepts what was asked: it begins so, says only polite words, and then asks at most."""
    first = _SENTENCE.match(text.strip())
    if first is None or not is_courtesy(first[1]) or (first[2] and not first[2].endswith(("?", "？", "؟"))):
        return False
    return begins_to_agree(first[1])


@memo(maxsize=8192)
def begins_to_agree(text: str) -> bool:
    """Whether the first words of a statement accept what was asked."""
    said = f"{' '.join(_WORD.findall(_folded(text[:MOST_BEGUN])))} "
    return _starts_with(said, "accepts", joined=_NONE)


@memo(maxsize=8192)
def takes_back(text: str) -> bool:
    """Whether a short statement takes back what was said before it, or corrects so ("no, cancel")."""
    words = _WORD.findall(_folded(text))
    if not 0 < len(words) <= MOST_WORDS:
        return False
    corrected = words[1:] and any(words[0] in pack.corrects for pack in language_packs().values())
    return _takes_back(words) or bool(corrected and _takes_back(words[1:])) or _ends_with_taking_back(text, words)


def _ends_with_taking_back(text: str, words: Sequence[str]) -> bool:
    """Whether words of taking back stand alone behind one or two others ("No wait, forget it"), or, in scripts without
    spaces, behind a word that corrects.
    """
    clauses = [found for clause in _PAUSE.split(_folded(text)) if (found := _WORD.findall(clause))]
    packs = language_packs().values()
    last = clauses[-1] if len(clauses) > 1 else []
    if last and len(words) - len(last) <= 2:
        return any(" ".join(last) in pack.takes_back for pack in packs)
    joined = (words[0].removeprefix(phrase) for pack in packs for phrase in pack.corrects if _UNSPACED.match(phrase))
    return len(words) == 1 and any(rest and rest != words[0] and _takes_back([rest]) for rest in joined)


def _takes_back(words: Sequence[str]) -> bool:
    said = " ".join(words)
    spaced, joined = _phrases_by_word("takes_back", _UNSPACED)
    if any(said.startswith(phrase) and len(said) <= len(phrase) + ENDING for phrase in joined):
        return True
    return any(f"{said} ".startswith(f"{phrase} ") for phrase in spaced.get(words[0], ()))


@memo(maxsize=8192)
def begins_to_correct(text: str) -> bool:
    """Whether the first words of a statement correct what was asked."""
    said = f"{' '.join(_WORD.findall(_folded(text[:MOST_BEGUN])))} "
    return len(text) <= MOST_CORRECTED and _starts_with(said, "corrects")


def _starts_with(said: str, key: str, joined: re.Pattern[str] = _UNSPACED) -> bool:
    """Whether words, each with a space behind it, begin with one of the phrases, or in scripts of `joined` with letters
    of one.
    """
    spaced, letters = _phrases_by_word(key, joined)
    first = said.partition(" ")[0]
    return any(said.startswith(f"{phrase} ") for phrase in spaced.get(first, ())) or said.startswith(letters)


def rules(text: str) -> bool:
    """Whether a statement rules what must or must not be, or on which condition."""
    starts = _starts(text)
    if any(_beginning(start, "no_rules") is not None for start in starts):
        return False
    return any(_begins(start, "rules_begin") for start in starts) or _holds(text, "rules")


def decides(text: str) -> bool:
    """Whether a statement settles on something, or asks to do something."""
    return any(map(_orders, _starts(text))) or _holds(text, "decides")


def _orders(text: str) -> bool:
    """A verb of doing begins it, and is no noun of which something is told ("Rent is overdue")."""
    return _begins(text, "orders") and not _holds(" ".join(text.split()[1:2]), "verbs_of_state")


def tells_state(text: str) -> bool:
    """Whether a statement says how things are with somebody, or with what is his, and not what he thinks of that."""
    if _holds(text, "opinions") or text.rstrip().endswith(("!", "！")):
        return False
    if _begins(text, "states") or (_JOINED.search(text) is not None and _holds(text, "states")):
        return True
    return _begins(text, "owners") and _holds(" ".join(text.split()[:NEAR_OWNER]), "verbs_of_state")


def _starts(text: str) -> list[str]:
    """Where a statement may begin: at its first word, or behind what leads in or is polite."""
    lead_in = _LEAD_IN.match(text)
    starts = [text] if lead_in is None else [text, text[lead_in.end() :]]
    return [*starts, *(rest for start in starts if (rest := _behind_please(start)))]


def _behind_please(text: str) -> str:
    _, joined = _phrases_by_word("please")
    bare = text.lstrip()
    known = next((phrase for phrase in joined if bare.startswith(phrase)), "")
    if known:
        return bare[len(known) :]
    words = bare.split()
    first = next((count for count in (1, 2, 3, 4) if _is_please(" ".join(words[:count]))), 0)
    return " ".join(words[first:]) if first else ""


def _is_please(words: str) -> bool:
    said = _folded(words).strip(" ,")
    return said in _phrases_by_word("please")[0].get(said.partition(" ")[0], ())


def names_somebody(text: str) -> bool:
    """Whether a statement says what somebody is called, or where to reach him."""
    return _holds(text, "names")


def tells_health(text: str) -> bool:
    """Whether a statement says what somebody cannot bear, or has."""
    return _holds(text, "health")


def _holds(text: str, key: str) -> bool:
    said = _said(text)
    spaced, joined = _phrases_by_word(key)
    found = any(f" {phrase} " in said for word in said.split() if word in spaced for phrase in spaced[word])
    return found or (_JOINED.search(said) is not None and any(phrase in said for phrase in joined))


def _begins(text: str, key: str) -> bool:
    """Whether the text begins with one of the phrases, and goes on in the same clause."""
    known = _beginning(text, key)
    if not known or known.endswith(ELISION) or _JOINED.search(known):
        return known is not None
    behind = _folded(text[:MOST_BEGUN]).partition(known.rsplit(" ", 1)[-1])[2]
    return not behind.startswith((",", ".", "!", ";", ":"))


def _beginning(text: str, key: str) -> str | None:
    """The phrase that the text begins with."""
    said = _said(text)
    spaced, joined = _phrases_by_word(key)
    first = said.split(maxsplit=1)[0] if said.strip() else ""
    elided = f"{first.partition(ELISION)[0]}{ELISION}"
    if elided in spaced.get(elided, ()):
        return elided
    found = next((phrase for phrase in spaced.get(first, ()) if said.startswith(f" {phrase} ")), None)
    return found or next((phrase for phrase in joined if said.startswith(phrase, 1)), None)


@memo(maxsize=16)
def _said(text: str) -> str:
    return f" {' '.join(_WORD.findall(_folded(text[:MOST_CORRECTED])))} "


@cache
def _phrases_by_word(
    key: str, joined: re.Pattern[str] = _JOINED
) -> tuple[Mapping[str, tuple[str, ...]], tuple[str, ...]]:
    """The phrases of all languages by their first word, and those of scripts in which words are joined."""
    phrases = sorted({phrase for pack in language_packs().values() for phrase in getattr(pack, key)})
    spaced: dict[str, tuple[str, ...]] = {}
    for phrase in phrases:
        if not joined.search(phrase):
            word = phrase.partition(" ")[0]
            spaced[word] = (*spaced.get(word, ()), phrase)
    return spaced, tuple(phrase for phrase in phrases if joined.search(phrase))


def numbers_in(text: str) -> frozenset[str]:
    """The small numbers that a text says in words, as digits."""
    known = _all_numbers()
    return frozenset(known[word] for word in _WORD.findall(_folded(text[:MOST_CORRECTED])) if word in known)


@cache
def _all_numbers() -> Mapping[str, str]:
    return {word: str(number) for pack in language_packs().values() for number, word in enumerate(pack.numbers, 1)}


@memo(maxsize=8192)
def corrects(text: str) -> bool:
    """Whether a short statement gives another number for what was said before it."""
    words = _WORD.findall(_folded(text))
    said = f"{' '.join(words)} "
    return 0 < len(words) <= MOST_WORDS and _starts_with(said, "corrects")


@memo(maxsize=8192)
@memo(maxsize=8192)
def days_meant(text: str, said_on: date) -> tuple[str, ...]:
    """The dates of the relative times in a text, in the words of somebody who spoke on that day. Times in what is
    quoted, and in titles, have none.
    """
    bare = _QUOTED.sub(" ", text)
    found = dict.fromkeys(_phrases(bare, said_on))
    if not found:
        found = dict.fromkeys(place.date for place in relative_times(bare, said_on) if not _is_title(bare, place.stop))
    return tuple(found)[:2]


def _phrases(text: str, said_on: date) -> Iterator[str]:
    folded = _folded(text)
    numbers = _all_numbers()
    for piece, pattern, away in _all_days():
        found = pattern.search(folded) if piece in folded else None
        if found:
            folded = pattern.sub(" ", folded)
            told = found.groupdict().get("number", "1")
            yield (said_on + timedelta(days=away * int(numbers.get(told, told)))).isoformat()


@cache
def _all_days() -> tuple[tuple[str, re.Pattern[str], int], ...]:
    """The phrases of all languages, the longest first (``übermorgen`` before ``morgen``), each with a piece of it that
    is looked up first.
    """
    found = {
        phrase: (max(phrase.removeprefix("^").split("#"), key=len), _bordered(phrase, pack.numbers), away)
        for pack in language_packs().values()
        for phrase, away in pack.days.items()
    }
    return tuple(found[phrase] for phrase in sorted(found, key=len, reverse=True))


def _bordered(phrase: str, numbers: Sequence[str]) -> re.Pattern[str]:
    """The pattern of a phrase, which is no part of a word, a number or a date (``12月3日前``)."""
    words, is_joined = phrase.removeprefix("^"), _UNSPACED.search(phrase) is not None
    number = rf"(?P<number>{'|'.join([*map(re.escape, numbers), _FEW_DIGITS])})"
    before = _BEGINS if phrase.startswith("^") else _NO_NUMBER if is_joined else r"(?<![\w.,])"
    after = "" if is_joined else r"(?!\w)"
    return re.compile(f"{before}{re.escape(words).replace(re.escape('#'), number)}{_PARTICLE}{after}")


def _is_title(text: str, stop: int) -> bool:
    """Whether the word that ends at `stop` begins a title or a name: it and one of the next two have capitals."""
    start = text.rfind(" ", 0, stop) + 1
    return text[start : start + 1].isupper() and any(word[:1].isupper() for word in text[stop:].split()[:2])
