"""Small logs in many languages, each with what a line must hold, and what none may."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from reactor_memory.models import Message, ToolCall
from tests.features.facts.quoting.reading import lines

CASES = [json.loads(line) for line in Path(__file__).with_name("statement_cases.jsonl").read_text("utf-8").splitlines()]


def messages_of(case: Mapping[str, Any]) -> Iterator[Message]:
    for each in case["messages"]:
        made = [ToolCall(**call) for call in each.get("tool_calls", ())]
        if each["role"] == "user":
            yield Message.user(each["content"], name=each.get("name"))
        elif each["role"] == "tool":
            yield Message.tool(each["content"], tool_call_id=each["tool_call_id"])
        else:
            yield Message.assistant(each["content"], name=each.get("name"), tool_calls=made)


def holds(line: str, forms: str | Sequence[str]) -> bool:
    """Whether a line has all of the forms; a number in it is no part of a longer one."""
    return all(
        re.search(rf"(?<!\d){re.escape(form)}(?!\d)" if form.isdigit() else re.escape(form), line, re.IGNORECASE)
        for form in ([forms] if isinstance(forms, str) else forms)
    )


@pytest.mark.parametrize("case", [pytest.param(case, id=case["id"]) for case in CASES])
def test_lines_hold_what_is_true_and_nothing_else(case: Mapping[str, Any]) -> None:
    told = lines(*messages_of(case))
    missing = [each for each in case["must"] if not any(holds(line, form) for form in each for line in told)]
    wrong = [
        line
        for each in case["must_not"]
        for line in told
        if holds(line, each["all"]) and not any(holds(line, form) for form in each["unless"])
    ]
    assert (missing, wrong) == ([], [])
