"""The words of a text by what they do to its claim: turn it around, narrow it, order it, say of whom it is. Pure.

What they are in each language stands in ``claim_words.toml``.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from importlib.resources import files
from typing import Literal, NamedTuple, TypeAlias, cast

from reactor_memory.text.analyzer import normal_form
from reactor_memory.text.caches import memo
from reactor_memory.text.languages import function_words, language_of, languages
from reactor_memory.text.scripts import UNSPACED
from reactor_memory.text.stems import script_of, stems, without_particle

Kind: TypeAlias = Literal[
    "negation", "limit", "relation", "first", "second", "third", "number", "unit", "plain", "report", "content"
]

_NAMED_KINDS: Mapping[str, Kind] = {
    "plain": "plain",
    "negations": "negation",
    "limits": "limit",
    "relations": "relation",
    "first": "first",
    "second": "second",
    "third": "third",
    "numbers": "number",
    "units": "unit",
    "reports": "report",
    "accepts": "plain",
}
"""The lists of a language, those that decide first before the others."""

MOST_PHRASE_WORDS = 4

LEAST_WORDS = 5
"""Fewer words hardly tell a language."""

MOST_DOUBTED = 8
"""Of so few words the language may be taken for a related one."""

_TOKEN = re.compile(
    rf"(?P<number>\d+(?:[.,:/-]\d+)*)|(?P<run>[{UNSPACED}]+)|(?P<word>[^\s\W\d_{UNSPACED}]"
    rf"[^\s.,;:!?()\[\]{{}}<>\"“”„«»…|/=+*#@%&—–،؛؟।。、！？「」{UNSPACED}]*)|(?P<sign>[%€$£¥₹₽₺₩°+−±~<>=@]|(?<!\w)-(?=\d|$))"
)
_LETTER = re.compile(r"[^\W\d_]")
_PACKED_SCRIPTS = frozenset({"latin", "cyrillic", "arabic", "devanagari"})


class Mark(NamedTuple):
    """A word: what it does, and by what it is the same as another one of its kind. `is_name`: it has a capital and may
    be a name.
    """

    kind: Kind
    term: str
    is_name: bool = False


def content_of(marks: Sequence[Mark]) -> set[str]:
    return {mark.term for mark in marks if mark.kind == "content"}


def numbers_of(marks: Sequence[Mark]) -> set[str]:
    return {mark.term for mark in marks if mark.kind == "number"}


class _Lexicon(NamedTuple):
    phrases: Mapping[str, tuple[Kind, str]]
    endings: tuple[tuple[re.Pattern[str], Kind, str], ...]
    anywhere: re.Pattern[str] | None
    stemmed: str
    is_of_script: bool


@cache
def _data() -> Mapping[str, Mapping[str, str]]:
    text = files("reactor_memory.features.facts.verification").joinpath("claim_words.toml").read_text("utf-8")
    return cast("Mapping[str, Mapping[str, str]]", tomllib.loads(text))


@cache
def judged_languages() -> frozenset[str]:
    """The languages in which a claim can be judged."""
    return frozenset(_data()) - {"names", "keys"}


@cache
def words_of(section: str, name: str) -> frozenset[str]:
    """A list that belongs to no language, as folded words and phrases."""
    return frozenset(_folded(each.replace("_", " ")) for each in _data()[section][name].split())


def language_for(text: str, *wider: str) -> str | None:
    """The language to judge `text` in: its own, of a short one that of what stands around it, else its script in
    brackets; None for a language whose words are not known.
    """
    told = language_of(text)
    if told is None or len(text.split()) < LEAST_WORDS:
        found = (each for each in map(language_of, wider) if each in judged_languages())
        told = next((each for each in found if each and _is_written_in(text, each)), told)
    if told is not None:
        return _likeliest(text, told) if told in judged_languages() else None
    letter = _LETTER.search(normal_form(text))
    script = script_of(letter[0]) if letter else "latin"
    return f"({script})" if script in _PACKED_SCRIPTS else None


def _is_written_in(text: str, language: str) -> bool:
    letter = _LETTER.search(normal_form(text))
    script = script_of(letter[0]) if letter else None
    return (
        script in (None, languages()[language].script) or not {script, languages()[language].script} & _PACKED_SCRIPTS
    )


def _likeliest(text: str, told: str) -> str:
    """Of few words the language of its script that knows most of them, rather the one `told`."""
    if len(text.split()) > MOST_DOUBTED or languages()[told].script not in _PACKED_SCRIPTS:
        return told
    known = {name: sum(mark.kind != "content" for mark in read(text, name)) for name in alternatives(told)}
    return max(sorted(known), key=lambda name: (known[name], name == told))


def alternatives(language: str) -> tuple[str, ...]:
    """The languages of the script of `language`, which may itself be a script in brackets."""
    script = language.strip("()") if language.startswith("(") else languages()[language].script
    return tuple(name for name in sorted(judged_languages()) if languages()[name].script == script)


@memo(maxsize=4096)
def read(text: str, language: str) -> tuple[Mark, ...]:
    """The words of `text` in their order. `language` as `language_for` gives it."""
    normal = normal_form(text).replace("’", "'")
    lexicon = _lexicon(language)
    tokens = list(_TOKEN.finditer(normal))
    found: list[Mark] = []
    place = 0
    while place < len(tokens):
        marks, used = _next(tokens, place, lexicon)
        found.extend(marks)
        place += used
    return tuple(found)


def _next(tokens: list[re.Match[str]], place: int, lexicon: _Lexicon) -> tuple[Iterable[Mark], int]:
    """What the token at `place` begins, and how many tokens that takes."""
    token = tokens[place]
    if token["number"]:
        return [Mark("number", _number(token[0]))], 1
    if token["sign"]:
        return [Mark("unit", token[0])], 1
    if token["run"]:
        return list(_of_run(token[0].casefold(), lexicon)), 1
    for length in range(min(MOST_PHRASE_WORDS, len(tokens) - place), 1, -1):
        words = tokens[place : place + length]
        phrase = " ".join(word[0] for word in words).casefold()
        if phrase in lexicon.phrases and all(word["word"] for word in words):
            return [Mark(*lexicon.phrases[phrase])], length
    word = token[0].casefold().strip("'-")
    is_upper = token[0][0].isupper()
    is_doubtful = is_upper and len(word) > 1 and lexicon.is_of_script and place > 0
    kind, term = ("content", _stem(word, lexicon.stemmed)) if is_doubtful else _of_word(word, lexicon.stemmed, lexicon)
    return [Mark(kind, term, is_upper and kind == "content")] if term else [], 1


def _of_word(word: str, stemmed: str, lexicon: _Lexicon) -> tuple[Kind, str]:
    for form in (word, without_particle(word)) if _is_hangul(word) else (word,):
        if form in lexicon.phrases:
            return lexicon.phrases[form]
    for pattern, kind, term in lexicon.endings:
        if pattern.fullmatch(word):
            return kind, word if kind == "third" else term
    bare = without_particle(word) if _is_hangul(word) else word.removesuffix("'s")
    return "content", _stem(bare, stemmed)


@memo(maxsize=16_384)
def _stem(word: str, language: str) -> str:
    return stems(word, language)[0] if word else ""


def _of_run(run: str, lexicon: _Lexicon) -> Iterator[Mark]:
    """The words of a run without spaces; what stands between them as pairs of characters."""
    start = 0
    for match in lexicon.anywhere.finditer(run) if lexicon.anywhere else ():
        yield from _pairs(run[start : match.start()])
        yield Mark(*lexicon.phrases[match[0]])
        start = match.end()
    yield from _pairs(run[start:])


def _pairs(text: str) -> Iterator[Mark]:
    yield from (Mark("content", text[place : place + 2]) for place in range(max(1, len(text) - 1)) if text)


def _number(text: str) -> str:
    bare = text.replace(",", "") if re.fullmatch(r"\d{1,3}(?:,\d{3})+", text) else text
    return bare.lstrip("0") or "0"


def _is_hangul(word: str) -> bool:
    return "\uac00" <= word[:1] <= "\ud7a3"


def _folded(text: str) -> str:
    return normal_form(text).casefold().replace("’", "'")


@cache
def _lexicon(language: str) -> _Lexicon:
    """The words of a language, then those of the others of its script that are no function words of its own; of a
    script in brackets those of all its languages.
    """
    own = language if language in judged_languages() else None
    script = languages()[own].script if own else language.strip("()")
    others = [name for name in sorted(judged_languages()) if languages()[name].script == script and name != own]
    phrases: dict[str, tuple[Kind, str]] = {}
    patterns: dict[str, tuple[Kind, str]] = {}
    for entries, is_own in ((_entries([own]) if own else (), True), (_entries(others), False)):
        for phrase, kind, term in entries:
            if is_own or own is None or _is_told(phrase, kind, own):
                (patterns if "*" in phrase else phrases).setdefault(phrase, (kind, term))
    endings = _compiled(patterns)
    for word in (_folded(word) for name in ([own] if own else others) for word in function_words(name)):
        if not any(pattern.fullmatch(word) for pattern, _, _ in endings):
            phrases.setdefault(word, ("plain", word))
    anywhere = _anywhere(phrases) if own in ("zh", "ja") else None
    return _Lexicon(phrases, endings, anywhere, own or ("en" if "en" in others else others[0]), own is None)


def _is_told(phrase: str, kind: Kind, language: str) -> bool:
    """Whether a word of another language does its work in a text of this one: what turns or narrows, and is no word of
    its own.
    """
    is_deciding = kind in ("negation", "limit") and len(phrase) > 1 and "*" not in phrase
    return is_deciding and phrase not in function_words(language)


def _entries(names: Iterable[str | None]) -> Iterator[tuple[str, Kind, str]]:
    packs = [_data()[name] for name in names if name]
    for section, kind in _NAMED_KINDS.items():
        for pack in packs:
            for entry in pack[section].split():
                term, _, phrase = entry.rpartition("=")
                folded = _folded(phrase.replace("_", " "))
                yield folded, kind, term or ("not" if kind == "negation" else folded)


def _compiled(patterns: Mapping[str, tuple[Kind, str]]) -> tuple[tuple[re.Pattern[str], Kind, str], ...]:
    return tuple(
        (re.compile(re.escape(phrase).replace(r"\*", ".*")), kind, term) for phrase, (kind, term) in patterns.items()
    )


def _anywhere(phrases: Iterable[str]) -> re.Pattern[str]:
    longest_first = sorted(phrases, key=len, reverse=True)
    return re.compile("|".join(map(re.escape, longest_first)))
