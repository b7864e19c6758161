"""Whether a call failed: where the protocol, a field of its result or the beginning of an error says so. Pure.

What a result says in other words is quoted and never judged. The words stand in ``outcome_words.toml``.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable, Mapping
from functools import cache
from http import HTTPStatus
from importlib.resources import files
from typing import NamedTuple, cast

from reactor_memory.models import Message
from reactor_memory.text.analyzer import normal_form
from reactor_memory.text.caches import memo
from reactor_memory.text.opened_results import OpenedResult, opened
from reactor_memory.text.scripts import HANGUL, UNSPACED
from reactor_memory.text.spans import leaf_text

MOST_BEGUN = 120
"""Characters in which a text says that it is an error."""

MOST_BEFORE, MOST_DENYING = 30, 3
"""Characters before the word that says so, and the words before it of which one may deny it."""

MOST_WORDS, MOST_LETTERS = 3, 12
"""A value of more words, or of more letters in a script without spaces, says more than that something failed."""

MOST_OF_THING = 3
"""What was looked up and has more fields is a record of a thing: its state is not that of the call."""

_STATUS_FIELDS = frozenset({"status", "state", "result", "outcome", "code", "status_code", "statuscode", "type"})
_STATUS_NUMBERS = frozenset({"status", "code", "status_code", "statuscode"})
_TOLD_BY_TOOLS = frozenset({"conclusion", "verdict"})
_FLAGS = frozenset({"is_error", "iserror", "failed"})
_ERROR_FIELDS = frozenset({"errormessage", "faultstring"})
_EMPTY = frozenset({"", "false", "none", "null", "0", "[]", "{}", "no"})

_JOINED = f"[{UNSPACED}{HANGUL}]"
_IS_JOINED = re.compile(_JOINED)
_WORD = re.compile(r"[^\s.,;:!?()\[\]{}\"“”„«»「」。、，！？：|_-]+")
_CLAUSE = re.compile(r"[.,;:!?。、，！？；：\n–—]+")
_BEHIND = re.compile(r"[\s:：=-]{1,8}")
_PARTICLE = re.compile("[이가은는도]?")
_ERROR = re.compile(
    r"\W*(?:[\w ]{0,24}\b)?(?:\w{0,40}error|\w{0,40}exception|failed|failure|fatal|traceback|denied|forbidden"
    r"|unauthori[sz]ed|aborted|refused|rejected|declined|timed out|timeout)\b",
    re.IGNORECASE,
)
_MARKED = re.compile(r"\W*HTTP(?:/[\d.]{1,5})? ?[45]\d\d\b|[✗✘❌]", re.IGNORECASE)
_HTTP_ERROR = re.compile(
    r"\W*(?:"
    + "|".join(f"{each.value}[:\\s-]{{1,3}}{re.escape(each.phrase)}" for each in HTTPStatus if each >= 400)
    + r")\b",
    re.IGNORECASE,
)
"""A number of three digits says that a call failed only with what it stands for: a tool may have counted 540 rows."""

_EXIT = re.compile(r"\bexit(?:ed)?(?: with)?(?: status| code)?:?[ =]+(?P<code>-?\d+)", re.IGNORECASE)
LAST_LINES = 2
"""Of so many lines those that are not indented say how a process ended: what a tool shows may tell of other ones."""


class _Words(NamedTuple):
    fails: frozenset[str]
    errors: frozenset[str]
    succeeds: frozenset[str]
    denies: frozenset[str]
    lacks: frozenset[str]


@cache
def _words() -> _Words:
    """The words of all languages."""
    told = _told()
    return _Words(*(frozenset(word for each in told.values() for word in each[key]) for key in _Words._fields))


@cache
def _told() -> Mapping[str, Mapping[str, tuple[str, ...]]]:
    data = files("reactor_memory.features.facts.quoting").joinpath("outcome_words.toml").read_text("utf-8")
    return {
        language: {key: tuple(map(_folded, words.get(key, "").split())) for key in _Words._fields}
        for language, words in cast("Mapping[str, Mapping[str, str]]", tomllib.loads(data)).items()
    }


@cache
def _begins_elsewhere() -> re.Pattern[str]:
    """The words of all languages but English near the beginning of a text; long ones may end a compound."""
    known = {word for name, each in _told().items() if name != "en" for word in (*each["fails"], *each["errors"])}
    words = sorted(known, key=lambda word: (-len(word), word))
    joined = "|".join(re.escape(word) for word in words if _IS_JOINED.search(word))
    spaced = "|".join(re.escape(word) for word in words if not _IS_JOINED.search(word))
    return re.compile(rf"[^\n]{{0,{MOST_BEFORE}}}?(?:{joined}|(?<!\w)(?:\w{{4,40}})??(?:{spaced})(?!\w))")


def _folded(text: str) -> str:
    return " ".join(normal_form(text).casefold().replace("_", " ").split())


def is_failed(result: Message | None) -> bool:
    """Whether the protocol, a field or the beginning of a result says that the call failed."""
    return result is not None and has_failed(result, opened(result.content))


def has_failed(
    result: Message | None, told: OpenedResult, *, tool: str = "", looked_up: frozenset[str] | None = None
) -> bool:
    """The same of a result that was opened. A tool that is named after what its result says has done it
    (``reject_claim``). `looked_up`: what a call was given that only looked something up.
    """
    if result is None:
        return False
    if result.outcome == "failed" or result.metadata.get("isError") is True or told.is_error:
        return True
    value = told.value
    if isinstance(value, Mapping):
        return _fields_fail(cast("Mapping[str, object]", value), _folded(tool).replace(" ", ""), looked_up)
    if not isinstance(value, str) or result.outcome == "ok":
        return False
    first = value.strip()[:MOST_BEGUN]
    return bool(_MARKED.match(first) or _HTTP_ERROR.match(first)) or _text_fails(first) or _exits_badly(value)


def _exits_badly(text: str) -> bool:
    last = text.rstrip()[-400:].splitlines()[-LAST_LINES:]
    exits = [found for line in last if not line[:1].isspace() for found in _EXIT.finditer(line)]
    return bool(exits) and exits[-1]["code"] != "0"


def _text_fails(first: str) -> bool:
    folded = normal_form(first).casefold()
    found = _ERROR.match(folded) or _begins_elsewhere().match(folded)
    return found is not None and not _is_denied(found[0], folded[found.end() :])


def _is_denied(begins: str, behind: str) -> bool:
    """Whether words before what failed, or behind it, say that nothing did. `begins` ends with the word itself."""
    words = _words()
    clause = _WORD.findall(_CLAUSE.split(begins)[-1])
    if not words.denies.isdisjoint(clause[-MOST_DENYING - 1 : -1]) or (len(clause) > 1 and clause[-2] == "0"):
        return True
    if any(denial in begins[-MOST_LETTERS:] for denial in words.denies if _IS_JOINED.match(denial)):
        return True
    rest = behind[_PARTICLE.match(behind).end() :] if _IS_JOINED.match(behind) else behind  # type: ignore[union-attr]
    sole = _CLAUSE.split(_BEHIND.sub("", rest, count=1))[0].strip() if _BEHIND.match(rest) else ""
    if sole in words.denies or sole == "0":
        return True
    return any(rest.lstrip().startswith(lack) for lack in words.lacks)


def _fields_fail(record: Mapping[str, object], tool: str, looked_up: frozenset[str] | None) -> bool:
    if len(record) == 1 and isinstance(inside := next(iter(record.values())), Mapping) and not _is_error_name(*record):
        return _fields_fail(cast("Mapping[str, object]", inside), tool, looked_up)
    words = _words()
    fields = {str(key).lower(): value for key, value in record.items()}
    values = {_folded(key): _folded(_leaf_or_size(value)) for key, value in fields.items()}
    if any(value in words.denies for key, value in values.items() if key in words.succeeds):
        return True
    if any(value not in _EMPTY and value not in words.denies for key, value in values.items() if _is_error_name(key)):
        return True
    if any(fields.get(key) in (True, "true") for key in _FLAGS):
        return True
    scalars = {key: _folded(leaf_text(value)) for key, value in fields.items() if _is_scalar(value)}
    if any(re.fullmatch(r"[45]\d\d", scalars.get(key, "")) for key in _STATUS_NUMBERS):
        return True
    is_of_thing = looked_up is not None and (len(scalars) > MOST_OF_THING or not looked_up.isdisjoint(_texts(fields)))
    return not is_of_thing and any(_status_fails(key, text, tool) for key, text in scalars.items())


def _is_error_name(key: str) -> bool:
    return key in _ERROR_FIELDS or _folded(key) in _words().errors


def _is_scalar(value: object) -> bool:
    return not isinstance(value, (Mapping, list, type(None)))


def _texts(fields: Mapping[str, object]) -> Iterable[str]:
    return (leaf_text(value) for value in fields.values() if _is_scalar(value))


def _status_fails(key: str, text: str, tool: str) -> bool:
    """Whether a value says that something failed. English words say so in fields that tell a status; those of other
    languages wherever they are all of a value.
    """
    word = _failing_word(text)
    english = _told()["en"]
    is_english = word in english["fails"] or word in english["errors"]
    if not word or (is_english and key not in _STATUS_FIELDS and key not in _TOLD_BY_TOOLS):
        return False
    size = 2 if _IS_JOINED.search(word) else 4
    return not any(word[place : place + size] in tool for place in range(max(1, len(word) - size + 1)))


@memo(maxsize=4096)
def _failing_word(text: str) -> str:
    """The word of a short value that says that something failed; empty if none does."""
    words = _words()
    bare = text.strip(" .!。！")
    if bare in words.errors or bare in words.fails:
        return bare
    parts = _WORD.findall(bare)
    if not 0 < len(parts) <= MOST_WORDS or any(map(str.isdigit, bare)) or not words.denies.isdisjoint(parts):
        return ""
    said = " ".join(parts)
    for word in words.fails:
        if _IS_JOINED.search(word):
            if len(bare) <= MOST_LETTERS and bare.endswith(word) and not _is_denied(bare, ""):
                return word
        elif said.endswith(f" {word}") or said.startswith(f"{word} "):
            return word
    return ""


def _leaf_or_size(value: object) -> str:
    """A scalar as text; of anything else how it begins, empty or not."""
    if isinstance(value, (Mapping, list)):
        return "[]" if not value else "some"
    return leaf_text(value)
