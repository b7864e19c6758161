"""Whether a call failed: where the protocol, a field of its result or the beginning of an error says so. Pure.

What a result says in other words is quoted and never judged. The words stand in ``outcome_words.toml``.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from functools import cache
from http import HTTPStatus
from typing import cast

from reactor_memory.features.facts.quoting.could_not import could_not
from reactor_memory.features.facts.quoting.failing_texts import failing_word
from reactor_memory.features.facts.quoting.json_lines import first_record, is_of_log
from reactor_memory.features.facts.quoting.outcome_words import (
    FLAGS,
    JOINED,
    all_words,
    failing_words,
    folded_words,
    languages_of_failing,
    one_of,
    outcome_words,
)
from reactor_memory.models import Message
from reactor_memory.text.analyzer import normal_form
from reactor_memory.text.caches import memo
from reactor_memory.text.opened_results import OpenedResult, opened
from reactor_memory.text.spans import leaf_text

MOST_BEGUN = 120
"""Characters in which a text says that it is an error."""

MOST_BEFORE, MOST_DENYING, NEAR_LETTERS, LITTLE = 30, 2, 4, 2
"""Characters before the word that says so; the words before it, or in a script without spaces the letters between, of
which one may deny it. Words of so few letters are not counted ("no se encontraron errores").
"""

MOST_WORDS, MOST_LETTERS, LONGEST_VALUE = 3, 12, 80
"""A value of more words, or of more letters in a script without spaces, says more than that something failed. A longer
one is not looked at.
"""

MOST_OF_THING = 3
"""What was looked up and has more fields is a record of a thing: its state is not that of the call."""

_STATUS_NUMBERS = frozenset({"status", "code", "status_code", "statuscode"})
_ERROR_FIELDS = frozenset({"errormessage", "faultstring"})
_EMPTY = frozenset({"", "false", "none", "null", "0", "[]", "{}", "no", "nil", "n/a", "zero"})

_WORD = re.compile(r"[^\s.,;:!?()\[\]{}\"“”„«»「」。、，！？：|_-]+")
_NAME_WORD = re.compile(r"[A-Z]?[^\W\d_A-Z]+|[A-Z]+|[^\W\d_]+")
_CLAUSE = re.compile(r"[.,;:!?。、，！？；：\n–—]+")
_BEHIND = re.compile(r"(?:(?!\sto\s)(?:\s\w{1,20}){1,3}\s?[:：=]\s{0,8}|[\s:：=-]{1,8})")
_ZERO = re.compile(r"0\s?(?:%|[^\W\d])?")
_CAN_NOT = re.compile("无法|無法|不能")
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
"""Of so many lines those that are not indented say how a process ended, or the first line: what a tool shows may tell
of other ones.
"""

_NOT = frozenset({"not", "never"})
"""English words that deny only the word behind them: "file not found error" denies no error."""


@cache
def _begins_elsewhere() -> re.Pattern[str]:
    """What went wrong, as a text in a language but English begins with it: before a colon, or as all of the text; what
    failed also as all of a clause. German writes such nouns as one word with what failed.
    """
    told, english = outcome_words(), frozenset(failing_words(outcome_words()["en"]))
    errors = all_words("errors") - english
    others = frozenset(languages_of_failing()) - english - errors
    compound = "|".join(f"[^\\W\\d_]{{2,40}}{re.escape(word)}" for word in told["de"]["errors"])
    end = r"[ \t]*(?:[:：]|[.!。！]*[ \t]*(?:\n|\Z)"
    return re.compile(
        rf"[^\n]{{0,{MOST_BEFORE}}}?(?:(?P<noun>{one_of(errors)}|(?<!\w)(?:{compound})){end})"
        rf"|(?P<word>{one_of(others)}){end}|[,;.!，。；！]))"
    )


def is_failed(result: Message | None, *, tool: str = "") -> bool:
    """Whether the protocol, a field or the beginning of a result says that the call failed."""
    return result is not None and has_failed(result, opened(result.content), tool=tool)


def has_failed(
    result: Message | None,
    told: OpenedResult,
    *,
    tool: str = "",
    given: frozenset[str] = frozenset(),
    is_lookup: bool = False,
) -> bool:
    """The same of a result that was opened. A tool that is named after what its result says has done it
    (``reject_claim``). `given`: the values of the call, which a result may repeat. `is_lookup`: it only looked
    something up, and the state of that is not its own.
    """
    if result is None:
        return False
    if result.outcome == "failed" or result.metadata.get("isError") is True or told.is_error:
        return True
    value = told.value
    if isinstance(value, Mapping):
        return _fields_fail(cast("Mapping[str, object]", value), tool, given, is_lookup=is_lookup)
    if not isinstance(value, str) or result.outcome == "ok":
        return False
    if record := first_record(value):
        return _exits_badly(value) or _record_fails(record, tool, given, is_lookup=is_lookup)
    first = value.strip()[:MOST_BEGUN]
    return bool(_MARKED.match(first) or _HTTP_ERROR.match(first)) or _text_fails(first) or _exits_badly(value)


def _exits_badly(text: str) -> bool:
    lines = [line for line in text.rstrip()[-400:].splitlines() if line.strip()][-LAST_LINES:]
    exits = [found for line in lines if not line[:1].isspace() for found in _EXIT.finditer(line)]
    found = exits[-1] if exits else _EXIT.match(text.lstrip()[:MOST_BEGUN])
    return found is not None and found["code"] != "0"


def _text_fails(first: str) -> bool:
    told = normal_form(first)
    english = failing_word(told)
    if english is not None:
        before, behind = told[: english.start].casefold(), told[english.end :].casefold()
        return not _is_denied(before, ("en",)) and not _is_none(behind)
    folded = told.casefold()
    found = _begins_elsewhere().match(folded)
    if found is None:
        return could_not(told)
    word = "word" if found["word"] else "noun"
    languages = languages_of_failing().get(found[word], tuple(outcome_words()))
    return not _is_denied(folded[: found.start(word)], languages) and not _is_none(folded[found.end(word) :])


def _is_denied(before: str, languages: Iterable[str]) -> bool:
    """Whether words shortly before what failed say that nothing did."""
    clause = _CAN_NOT.sub("", _CLAUSE.split(before)[-1])
    words = [word for word in _WORD.findall(clause) if _counts(word)][-MOST_DENYING:]
    words = [word for word, after in zip(words, [*words[1:], ""], strict=False) if not after.isdigit()]  # "no 5"
    for language in languages:
        for denial in outcome_words()[language]["denies"]:
            if JOINED.match(denial):
                if denial in clause[-len(denial) - NEAR_LETTERS :]:
                    return True
            elif denial in (words[-1:] if denial in _NOT else words):
                return True
    return "0" in words


def _counts(word: str) -> bool:
    return len(word) > LITTLE or not word.isalpha() or word in all_words("denies")


def _is_none(behind: str) -> bool:
    """Whether all that stands behind what would have failed is that there is none: "failed: 0"."""
    if not _BEHIND.match(behind):
        return False
    sole = _CLAUSE.split(_BEHIND.sub("", behind, count=1))[0].strip()
    return bool(sole) and (sole in _EMPTY or sole in all_words("denies") or _ZERO.fullmatch(sole) is not None)


def _record_fails(record: Mapping[str, object], tool: str, given: frozenset[str], *, is_lookup: bool) -> bool:
    """Whether the first of records on lines says so; of those that were looked up, a state is that of a thing."""
    if is_of_log(record, is_lookup=is_lookup):
        return False
    return _says_error(record) if is_lookup else _fields_fail(record, tool, given, is_lookup=False)


def _fields_fail(record: Mapping[str, object], tool: str, given: frozenset[str], *, is_lookup: bool) -> bool:
    if len(record) == 1 and isinstance(inside := next(iter(record.values())), Mapping) and not _is_error_name(*record):
        return _fields_fail(cast("Mapping[str, object]", inside), tool, given, is_lookup=is_lookup)
    if _says_error(record):
        return True
    fields = {str(key).lower(): value for key, value in record.items()}
    texts = {key: leaf_text(value) for key, value in fields.items() if _is_scalar(value)}
    if any(re.fullmatch(r"[45]\d\d", texts.get(key, "")) for key in _STATUS_NUMBERS):
        return True
    is_of_thing = is_lookup and (len(texts) > MOST_OF_THING or not given.isdisjoint(texts.values()))
    said = (text for key, text in texts.items() if text not in given and folded_words(key) in all_words("states"))
    return any(_status_fails(text, tool, is_of_thing=is_of_thing) for text in said if len(text) <= LONGEST_VALUE)


def _says_error(record: Mapping[str, object]) -> bool:
    fields = {str(key).lower(): value for key, value in record.items()}
    if any(_says_none(value) for key, value in fields.items() if folded_words(key) in all_words("succeeds")):
        return True
    if any(not _says_none(value) for key, value in fields.items() if _is_error_name(key)):
        return True
    return any(fields.get(key) in (True, "true") for key in FLAGS)


def _is_error_name(key: str) -> bool:
    return key in _ERROR_FIELDS or folded_words(key) in all_words("errors")


def _is_scalar(value: object) -> bool:
    return not isinstance(value, (Mapping, list, type(None)))


def _says_none(value: object) -> bool:
    """Whether a value is empty, false, or a word that denies."""
    if isinstance(value, (Mapping, list)):
        return not value
    text = leaf_text(value)
    return len(text) <= LONGEST_VALUE and ((folded := folded_words(text)) in _EMPTY or folded in all_words("denies"))


def _status_fails(text: str, tool: str, *, is_of_thing: bool) -> bool:
    word = _failing_word(folded_words(text))
    if not word:
        return False
    if is_of_thing:
        return word in all_words("errors") or word in all_words("absent")
    return not (word in all_words("refused") and _refuses(tool))


def _refuses(tool: str) -> bool:
    """Whether a tool is named after a refusal: it is there to refuse, in whatever language its results are."""
    names = [word.casefold() for word in _NAME_WORD.findall(tool)]
    return any(
        stem in tool if JOINED.search(stem) else any(name.startswith(stem) for name in names)
        for stem in all_words("refuses")
    )


@memo(maxsize=4096)
def _failing_word(text: str) -> str:
    """The word of a short value that says that something failed; empty if none does."""
    bare = text.strip(" .!。！")
    if bare in languages_of_failing():
        return bare
    said = " ".join(_WORD.findall(bare))
    if not said or said.count(" ") >= MOST_WORDS or any(map(str.isdigit, bare)):
        return ""
    for word, languages in languages_of_failing().items():
        if JOINED.search(word):
            before = bare.removesuffix(word) if len(bare) <= MOST_LETTERS else bare
            is_said = before != bare
        else:
            before = said.removesuffix(f" {word}")
            is_said = before != said or said.startswith(f"{word} ")
        if is_said and not _is_denied("" if before == said else before, languages):
            return word
    return ""
