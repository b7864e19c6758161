"""The door that answers of models come in by."""

from __future__ import annotations

import re
from typing import cast, get_args

from pydantic import BaseModel, ConfigDict, ValidationError

from reactor_memory.errors import SummarizationError
from reactor_memory.models import Act, Category, Extraction, Fact

MAX_ANSWER_CHARACTERS = 1_000_000
MAX_FACTS = 1000
MAX_FACT_CHARACTERS = 4000
MAX_HEADLINE_CHARACTERS = 200

_FENCE = "```"
_CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f]")
_CATEGORIES = frozenset(get_args(Category))
_ACTS = frozenset(get_args(Act))


class _Answered(BaseModel):
    """Fields that are not expected are ignored, numbers where a text is expected become text."""

    model_config = ConfigDict(frozen=True, coerce_numbers_to_str=True, hide_input_in_errors=True)


class _AnsweredFact(_Answered):
    anchor: str = ""
    key: str
    value: str
    category: str = "GENERAL"
    source_seq: int
    act: str = "statement"
    failed: bool = False


class _Answer(_Answered):
    facts: list[_AnsweredFact]
    narrative: str
    headline: str = ""


def parse_answer(text: str) -> Extraction:
    """The extraction that `text`, JSON as `ANSWER_SCHEMA` describes it, bare or in one code fence, states.

    An unknown category counts as GENERAL, an unknown act as a statement. Facts with a blank key or value or of
    absurd length are left out. Anything else that is off, a missing list of facts above all, makes the whole answer
    malformed: an empty memory must not be mistaken for a conversation that says nothing.
    """
    if len(text) > MAX_ANSWER_CHARACTERS:
        raise SummarizationError("malformed", f"the answer has {len(text)} characters")
    try:
        answer = _Answer.model_validate_json(_unfenced(text))
    except ValidationError as error:
        problem = f"the answer is not what was asked for, {error.error_count()} problems"
    else:
        return _extraction(answer)
    # Outside of the handler: the cause quotes the answer.
    raise SummarizationError("malformed", problem)


class _CondensedAnswer(_Answered):
    summary: str


def parse_condensed(text: str) -> str:
    """The text in an answer that `CONDENSED_SCHEMA` describes, bare or in one code fence. Blank counts as malformed."""
    if len(text) > MAX_ANSWER_CHARACTERS:
        raise SummarizationError("malformed", f"the answer has {len(text)} characters")
    try:
        summary = _clean(_CondensedAnswer.model_validate_json(_unfenced(text)).summary)
    except ValidationError as error:
        problem = f"the answer is not what was asked for, {error.error_count()} problems"
    else:
        problem = "the answer is blank"
        if summary:
            return summary
    # Outside of the handler: the cause quotes the answer.
    raise SummarizationError("malformed", problem)


def _unfenced(text: str) -> str:
    """What stands in one code fence around all of `text`; without one, `text` as it is."""
    begin, _, rest = text.strip().partition("\n")
    is_fence = begin.startswith(_FENCE) and begin.removeprefix(_FENCE).strip().lower() in ("", "json")
    return rest.removesuffix(_FENCE) if is_fence and rest.endswith(_FENCE) else text


def _extraction(answer: _Answer) -> Extraction:
    facts = (_fact(answered) for answered in answer.facts[:MAX_FACTS])
    return Extraction(
        facts=tuple(fact for fact in facts if _is_usable(fact)),
        narrative=_clean(answer.narrative),
        headline=" ".join(_clean(answer.headline).split())[:MAX_HEADLINE_CHARACTERS],
    )


def _fact(answered: _AnsweredFact) -> Fact:
    category = answered.category.strip().upper()
    act = answered.act.strip().lower()
    return Fact(
        anchor=_clean(answered.anchor),
        key=_clean(answered.key),
        value=_clean(answered.value),
        category=cast(Category, category) if category in _CATEGORIES else "GENERAL",
        source_seq=answered.source_seq,
        act=cast(Act, act) if act in _ACTS else "statement",
        failed=answered.failed,
    )


def _is_usable(fact: Fact) -> bool:
    longest = max(len(fact.anchor), len(fact.key), len(fact.value))
    return bool(fact.key and fact.value) and longest <= MAX_FACT_CHARACTERS


def _clean(text: str) -> str:
    return _CONTROL.sub(" ", text).strip()
