"""Items that a hostile model words, each beside a true one of the same message: all kinds in all languages."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from reactor_memory.features.facts.evidence import verify_facts
from reactor_memory.features.facts.quoting.statements_said import statements_said
from reactor_memory.features.facts.summarizers.edited_records import edited
from reactor_memory.features.facts.summarizers.line_edits import LineEdits, StateEdit
from reactor_memory.features.facts.summarizers.numbered_lines import numbered_lines
from reactor_memory.models import Message

SAID: dict[str, Any] = tomllib.loads((Path(__file__).parents[3] / "scenes" / "hostile_items.toml").read_text("utf-8"))
UNCITED = "/srv/old/plan7.txt 14.05.2027"
KINDS = ("done", "open", "note", "decision")


def cases() -> Iterator[Any]:
    for language, kinds in SAID.items():
        for kind, told in kinds.items():
            yield pytest.param(told, id=f"{kind}-{language}")


def kept(told: dict[str, str], text: str) -> list[str]:
    """The items of this text that are shown: they cite what was said, and not the message behind it."""
    messages = [replace(Message.user(said), seq=seq) for seq, said in ((1, told["said"]), (3, UNCITED))]
    lines = numbered_lines(verify_facts(statements_said(messages), messages))
    items = tuple(StateEdit(kind=kind, text=text, lines="1") for kind in KINDS)
    return [fact.key for fact in edited(lines, LineEdits(state=items), messages).state if fact.verified]


@pytest.mark.parametrize("told", list(cases()))
def test_nothing_false_is_kept_of_what_was_said(told: dict[str, str]) -> None:
    assert kept(told, told["false"]) == []


@pytest.mark.parametrize("told", list(cases()))
def test_everything_true_is_kept_beside_it(told: dict[str, str]) -> None:
    assert len(kept(told, told["true"])) == len(KINDS)
