"""Answers of models, parsed and checked."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, TypeVar, cast, get_args

from pydantic import BaseModel, ConfigDict, ValidationError
from pydantic_core import from_json

from reactor_memory.errors import SummarizationError
from reactor_memory.models.ledger import Act, Category, Extraction, Fact
from reactor_memory.text.borders import cut

MAX_ANSWER_CHARACTERS = 1_000_000
MAX_FACTS = 1000
MAX_FACT_CHARACTERS = 4000
MAX_HEADLINE_CHARACTERS = 200
MAX_DEPTH = 100
"""The JSON of an answer may have so many levels."""

_BEGIN = re.compile(r'\{\s*"(?:facts|narrative|headline|summary|drop|keep|merge|replace|add|state)"\s*:')
_TOKEN = re.compile(r'"(?:[^"\\]+|\\.)*+(?:"|\\?\Z)|[{}\[\],]', re.DOTALL)
"""Strings, also one that is cut off, brackets and commas. Nothing of it is read twice."""
_CLOSING = {"{": "}", "[": "]"}
_CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f]")
_CATEGORIES = frozenset(get_args(Category))
_ACTS = frozenset(get_args(Act))


class Answered(BaseModel):
    """Fields that are not expected are ignored, numbers where a text is expected become text."""

    model_config = ConfigDict(frozen=True, coerce_numbers_to_str=True, hide_input_in_errors=True)


class _AnsweredFact(Answered):
    anchor: str = ""
    key: str
    value: str
    category: str = "GENERAL"
    source_seq: int = 0
    act: str = "statement"
    failed: bool = False


class _WithNarrative(Answered):
    narrative: str = ""
    headline: str = ""


def parse_answer(text: str) -> Extraction:
    """The extraction that `text` states: JSON as `ANSWER_SCHEMA` describes it, bare, in a code fence or among prose. Of
    several such objects the last one counts, of one that is cut off the facts that are whole.

    A fact needs a key and a value; without a `source_seq` it cites nothing (0). An unknown category counts as GENERAL,
    an unknown act as a statement. Malformed facts, and those with a blank key or value or of absurd length, are dropped
    one by one. An answer without a list of facts is malformed, and so is one in which nothing is a fact and nothing is
    told: an empty memory must not be mistaken for a conversation that says nothing.
    """
    for answer in answered_objects(text):
        listed = answer.get("facts")
        if isinstance(listed, list):
            given = cast("list[Any]", listed)
            facts = [fact for each in given[:MAX_FACTS] if (fact := valid(_AnsweredFact, each)) is not None]
            told = valid(
                _WithNarrative, {"narrative": answer.get("narrative"), "headline": answer.get("headline") or ""}
            )
            if facts or (told is not None and not given):
                return _extraction(facts, told or _WithNarrative())
    raise SummarizationError("malformed", "the answer is not what was asked for: no JSON with facts")


class _CondensedAnswer(Answered):
    summary: str


def parse_condensed(text: str) -> str:
    """The text in an answer that `CONDENSED_SCHEMA` describes, bare, in a code fence or among prose. Blank counts as
    malformed, and so does one that is cut off.
    """
    for answer in answered_objects(text):
        found = valid(_CondensedAnswer, answer)
        if found is not None and (summary := cleaned(found.summary)):
            return summary
    raise SummarizationError("malformed", "the answer is blank or not what was asked for: no JSON with a summary")


def answered_objects(text: str) -> list[dict[str, Any]]:
    """The objects of an answer, the last one first."""
    if len(text) > MAX_ANSWER_CHARACTERS:
        raise SummarizationError("malformed", f"the answer has {len(text)} characters")
    found = (_decoded(json) for json in _objects(text))
    return [cast("dict[str, Any]", each) for each in found if isinstance(each, dict)][::-1]


def _objects(text: str) -> Iterator[str]:
    """The JSON of each object that begins like an answer; of one that is cut off up to the last whole element."""
    begin = _BEGIN.search(text)
    while begin:
        end, closing = _end(text, begin.start())
        yield text[begin.start() : end] + closing
        begin = _BEGIN.search(text, max(end, begin.end()))


def _end(text: str, start: int) -> tuple[int, str]:
    """Where the object that begins at `start` ends, or its last whole element, and the brackets that are missing."""
    opened: list[str] = []
    whole = start, ""
    for token in _TOKEN.finditer(text, start):
        sign = token[0]
        if sign in _CLOSING:
            opened.append(_CLOSING[sign])
            if len(opened) > MAX_DEPTH:
                return token.end(), ""
        elif sign == ",":
            if opened == ["}"]:
                whole = token.start(), "}"
        elif sign in ("}", "]"):
            if opened.pop() != sign or not opened:
                return token.end(), ""
            if opened in (["}"], ["}", "]"]):
                whole = token.end(), "".join(reversed(opened))
    return (len(text), "") if whole[0] == start else whole


T = TypeVar("T", bound=Answered)


def valid(model: type[T], value: object) -> T | None:
    try:
        return model.model_validate(value)
    except ValidationError:
        return None


def _decoded(json: str) -> object:
    try:
        return from_json(json, allow_inf_nan=False)
    except ValueError:
        return None


def _extraction(answered: list[_AnsweredFact], told: _WithNarrative) -> Extraction:
    return Extraction(
        facts=tuple(fact for fact in map(_fact, answered) if _is_usable(fact)),
        narrative=cleaned(told.narrative),
        headline=cut(" ".join(cleaned(told.headline).split()), MAX_HEADLINE_CHARACTERS),
    )


def _fact(answered: _AnsweredFact) -> Fact:
    category = answered.category.strip().upper()
    act = answered.act.strip().lower()
    return Fact(
        anchor=cleaned(answered.anchor),
        key=cleaned(answered.key),
        value=cleaned(answered.value),
        category=cast(Category, category) if category in _CATEGORIES else "GENERAL",
        source_seq=answered.source_seq,
        act=cast(Act, act) if act in _ACTS else "statement",
        failed=answered.failed,
    )


def _is_usable(fact: Fact) -> bool:
    longest = max(len(fact.anchor), len(fact.key), len(fact.value))
    return bool(fact.key and fact.value) and longest <= MAX_FACT_CHARACTERS


def cleaned(text: str) -> str:
    return _CONTROL.sub(" ", text).strip()
