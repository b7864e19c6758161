"""Where a text in English says that something failed, and not what a thing or a function is called. Pure.

"Error page updated" and "handle_error: done" tell of things that were done, "rate_limit_error: too many" of none.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

MOST_BETWEEN = 5
"""Words between what would have failed and the word that says that it was done."""

_NOUNS = r"\w{0,40}error|\w{0,40}exception|failure|fatal|traceback|timeout"
_PARTICIPLES = r"failed|denied|forbidden|unauthori[sz]ed|aborted|refused|rejected|declined|timed out"
_ERROR = re.compile(
    rf"\W*(?:[\w ]{{0,24}}\b|(?:\w{{1,40}}\.){{1,6}})?(?P<word>(?P<noun>{_NOUNS})|{_PARTICIPLES})\b", re.IGNORECASE
)
_CODE = re.compile(
    r"\W*(?P<word>[a-z]{1,30}(?:_[a-z]{1,30}){0,5}_(?:denied|refused|rejected|declined|aborted|forbidden|timeout"
    r"|exceeded|unavailable|unauthori[sz]ed))\s*(?::|\Z)",
    re.IGNORECASE,
)
"""A name of what went wrong, as protocols have them."""

_NAMED = re.compile(r"\w*\((?!\d{1,6}\)|['\"])|\.[a-z]{1,4}\b(?!\s+[a-z])|\.\w+\(|_\w")
"""What follows a word that is part of the name of a function or file."""

_VALUE = re.compile(r"\W{0,3}[:=]\s{0,8}(?P<value>\S.*)", re.DOTALL)
_MEASURE = re.compile(r"\d[\d.,]*\s*(?:%|[a-z]{1,8})?(?:\s[a-z]{3,12})?\W*(?:\n|\Z)", re.IGNORECASE)
_CLAUSE = re.compile(r"[.,;:!?\n–—](?:\s|\Z)")
_WORDS = re.compile(r"[\w']+")
_DETERMINERS = frozenset({"a", "all", "an", "any", "its", "the", "this", "your"})
_CAMEL = re.compile(r"[a-z]+[A-Z]")

_DONE_WORDS = (
    "added applied approved archived booked built cancelled changed cleared closed completed configured confirmed"
    " copied created deleted deployed disabled documented done downloaded enabled exported fixed formatted handled"
    " implemented imported installed logged merged moved ok opened ordered passed posted published queued recorded"
    " removed renamed replaced reported resolved restarted restored retried saved scheduled sent set started"
    " stored submitted success successful successfully updated uploaded written wrote"
)
_DONE = frozenset(_DONE_WORDS.split())
_NO_PAST = frozenset({"set", "ok", "success", "successful", "done", "built"})
"""Those with which no text begins that says what was done."""

_JOINING_WORDS = (
    "after and as at because before but by cannot could couldn't for from if in never no not of on since than that to"
    " until wasn't weren't when while with without"
)
_JOINS = frozenset(_JOINING_WORDS.split())
"""Between what failed and a word of `_DONE`: then that tells of something else."""

_BEHIND_DONE = frozenset({"as", "at", "by", "for", "from", "in", "into", "on", "successfully", "to", "with"})
_OPERATION_WORDS = "add check create delete fix format parse process remove render run send update"
_OPERATIONS = frozenset(_OPERATION_WORDS.split())
"""Words with which names of functions begin, and of errors, too: "create_error: name taken"."""

_HANDLING_WORDS = (
    "assert catch clear count get handle has ignore is last list log max min no on print raise report retry return set"
    " show skip test throw was wrap"
)
_HANDLING = _OPERATIONS | frozenset(_HANDLING_WORDS.split())
"""Words with which names of functions and settings begin."""

_WELL = frozenset({"ok", "done", "success", "successful", "successfully", "fixed", "resolved", "handled"})
_MENDED = frozenset(
    {"cleared", "closed", "documented", "fixed", "handled", "logged", "recorded", "removed", "resolved"}
)
"""What is done with an error that is then told: "Fixed error: x"."""


class Failing(NamedTuple):
    """The word that says that something failed, as places in the text."""

    start: int
    end: int


def failing_word(text: str) -> Failing | None:
    """Where the beginning of a text says that something failed; None where it tells of something that was done."""
    found = _CODE.match(text) or _ERROR.match(text)
    if found is None:
        return None
    place = Failing(found.start("word"), found.end("word"))
    behind = text[place.end :]
    told = _VALUE.match(behind)
    if _is_name(text, place):
        return _in_value(text, place, told["value"]) if told else None
    if told and _is_outcome(found["word"], told["value"]):
        return None
    is_noun = found.re is _CODE or found["noun"] is not None
    before = _words(_CLAUSE.split(text[: place.start])[-1])
    if told and is_noun and before and before[0] not in _MENDED:
        return place
    return None if is_of_done(text[: place.start], behind, is_noun=is_noun) else place


def _in_value(text: str, place: Failing, value: str) -> Failing | None:
    """What the value of a name says: another failure, or why what the name tells of failed."""
    start = len(text) - len(value)
    if inside := failing_word(value):
        return Failing(start + inside.start, start + inside.end)
    name = text[: place.end].split()[-1]
    is_operation = name.partition("_")[0].casefold() in _OPERATIONS and text[place.end] == ":"
    return (
        place if is_operation and value.casefold().strip(" .!\n") not in _DONE and not is_of_done("", value) else None
    )


def _is_name(text: str, place: Failing) -> bool:
    """Whether the word ends or begins the name of a function, a setting or a file."""
    start = max(text.rfind(" ", 0, place.end), text.rfind("\n", 0, place.end)) + 1
    name = text[max(start, 0) : place.end].strip("`'\"*-")
    first, *others = name.split("_")
    if others and first.casefold() in _HANDLING:
        return True
    return _CAMEL.match(name) is not None or _NAMED.match(text[place.end :]) is not None


def _is_outcome(word: str, value: str) -> bool:
    """Whether a value says that all is well, or how long one may wait."""
    if value.casefold().strip(" .!\n") in _WELL:
        return True
    return word.casefold().endswith("timeout") and _MEASURE.match(value) is not None


def is_of_done(before: str, behind: str, *, is_noun: bool = True) -> bool:
    """Whether the clause says that something was done with what is called so."""
    clause = _words(_CLAUSE.split(behind, maxsplit=1)[0])
    begun = _words(_CLAUSE.split(before)[-1])
    is_what = is_noun or (clause and all(word in _DETERMINERS or word.isdigit() for word in begun[1:]))
    if begun and begun[0] in _DONE - _NO_PAST and is_what and _JOINS.isdisjoint(begun):
        return True
    return any(
        word in _DONE and _JOINS.isdisjoint(clause[:place]) and (is_noun or place > 0) and _ends(clause, place)
        for place, word in enumerate(clause[: MOST_BETWEEN + 1])
    )


def _ends(words: Sequence[str], place: int) -> bool:
    behind = words[place + 1 : place + 2]
    return not behind or behind[0] in _BEHIND_DONE or behind[0][0].isdigit()


def _words(text: str) -> list[str]:
    return [word.casefold() for word in _WORDS.findall(text)]
