"""What a model says of numbered lines: which stay, which go, what is missing, and the working state.

Numbers of lines stand in one text, so that most lines cost a token or two: ``"drop": "3 5-9 12.2"``.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, cast, get_args

from pydantic import Field

from reactor_memory.errors import SummarizationError
from reactor_memory.features.facts.summarizers.answer import Answered, answered_objects, cleaned, valid
from reactor_memory.features.facts.working_state import Ending, Kind

MOST_EDITS = 400
FIELDS = ("drop", "keep", "merge", "replace", "add", "name", "state")
_NUMBERS = re.compile(r"(\d{1,9}(?:\.\d{1,4})?)(?:\s*[-–]\s*(\d{1,9}(?:\.\d{1,4})?))?")


class Merge(Answered):
    lines: str
    text: str


class Replacement(Answered):
    old: str
    new: str


class Naming(Answered):
    line: str
    label: str


class StateEdit(Answered):
    """An item of the working state. `name` is empty for a new one; `ended` says why one holds no more."""

    name: str = ""
    kind: str = "note"
    text: str = ""
    lines: str = ""
    ended: str = ""


class LineEdits(Answered):
    drop: str = ""
    keep: str = ""
    merge: tuple[Merge, ...] = ()
    replace: tuple[Replacement, ...] = ()
    add: tuple[str, ...] = ()
    name: tuple[Naming, ...] = ()
    state: tuple[StateEdit, ...] = ()
    narrative: str = ""
    headline: str = Field(default="")


EDIT_SCHEMA: dict[str, Any] = {
    "type": "OBJECT",
    "properties": {
        "drop": {"type": "STRING"},
        "keep": {"type": "STRING"},
        "merge": {
            "type": "ARRAY",
            "items": {
                "type": "OBJECT",
                "properties": {"lines": {"type": "STRING"}, "text": {"type": "STRING"}},
                "required": ["lines", "text"],
            },
        },
        "replace": {
            "type": "ARRAY",
            "items": {
                "type": "OBJECT",
                "properties": {"old": {"type": "STRING"}, "new": {"type": "STRING"}},
                "required": ["old", "new"],
            },
        },
        "add": {"type": "ARRAY", "items": {"type": "STRING"}},
        "name": {
            "type": "ARRAY",
            "items": {
                "type": "OBJECT",
                "properties": {"line": {"type": "STRING"}, "label": {"type": "STRING"}},
                "required": ["line", "label"],
            },
        },
        "state": {
            "type": "ARRAY",
            "items": {
                "type": "OBJECT",
                "properties": {
                    "name": {"type": "STRING"},
                    "kind": {"type": "STRING", "enum": list(get_args(Kind))},
                    "text": {"type": "STRING"},
                    "lines": {"type": "STRING"},
                    "ended": {"type": "STRING", "enum": ["", *get_args(Ending)]},
                },
                "required": ["name", "kind", "text", "lines", "ended"],
            },
        },
        "narrative": {"type": "STRING"},
        "headline": {"type": "STRING"},
    },
    "required": ["drop", "keep", "merge", "replace", "add", "name", "state", "narrative", "headline"],
}
"""The answer in the dialect of OpenAPI that providers of structured output share."""


def parse_edits(text: str) -> LineEdits | None:
    """The edits that `text` states, bare, in a code fence or among prose; None if it holds no object with one of their
    fields, as an answer in the form of facts. A part that is malformed is left out, the others count.
    """
    for answer in answered_objects(text):
        if "facts" not in answer and any(field in answer for field in FIELDS):
            return _edits(answer)
    return None


def _edits(answer: dict[str, Any]) -> LineEdits:
    parts = {"merge": Merge, "replace": Replacement, "name": Naming, "state": StateEdit}
    whole: dict[str, Any] = {
        name: tuple(each for given in _listed(answer.get(name)) if (each := valid(model, given)) is not None)
        for name, model in parts.items()
    }
    whole["add"] = tuple(cleaned(each) for each in _listed(answer.get("add")) if isinstance(each, str))
    for name in ("drop", "keep"):
        given = answer.get(name)
        whole[name] = given if isinstance(given, str) else " ".join(map(str, _listed(given)))
    for name in ("narrative", "headline"):
        given = answer.get(name)
        whole[name] = cleaned(given) if isinstance(given, str) else ""
    found = valid(LineEdits, whole)
    if found is None:
        raise SummarizationError("malformed", "the answer is not what was asked for: no JSON with edits")
    return found


def _listed(value: object) -> list[Any]:
    return cast("list[Any]", value)[:MOST_EDITS] if isinstance(value, list) else []


def numbers_in(text: str, known: Sequence[str]) -> list[str]:
    """The numbers of lines that `text` names, each once; of a range all of `known` from its first to its last number,
    whether these two are known or not.
    """
    places = {_place(number): number for number in known}
    found: dict[str, None] = {}
    for first, last in _NUMBERS.findall(text):
        begin, end = _place(first), _place(last or first)
        found.update(dict.fromkeys(number for place, number in places.items() if begin <= place <= end))
    return list(found)


def _place(number: str) -> tuple[int, int]:
    seq, _, line = number.partition(".")
    return int(seq), int(line or 1)
