"""Edits of a hostile model: nothing that it words is told, and no ruling goes; every kind in every language."""

from __future__ import annotations

from msgspec.structs import replace

from reactor_memory.features.facts.evidence import verify_facts
from reactor_memory.features.facts.quoting.calls_made import calls_made
from reactor_memory.features.facts.quoting.statements_said import statements_said
from reactor_memory.features.facts.summarizers.edited_records import Edited, edited
from reactor_memory.features.facts.summarizers.line_edits import LineEdits, Merge, Replacement, StateEdit
from reactor_memory.features.facts.summarizers.numbered_lines import numbered_lines
from tests.scenes.hostile_answers import HostileAnswer, hostile_answers
from tests.scenes.tables import each_row

ANSWERS = list(hostile_answers())
KINDS = ("goal", "constraint", "decision", "done", "open", "note")


def edited_by(each: HostileAnswer, *texts: str, drop: bool = False) -> Edited:
    messages = [replace(message, seq=seq) for seq, message in enumerate(each.messages, start=1)]
    lines = numbered_lines(verify_facts([*statements_said(messages), *calls_made(messages)], messages))
    numbers = [line.number for line in lines]
    edits = LineEdits(
        drop=" ".join(numbers) if drop else "",
        merge=tuple(Merge(lines=" ".join(numbers), text=text) for text in texts),
        replace=tuple(Replacement(old=old, new=new) for old in numbers for new in numbers),
        add=texts,
        state=tuple(StateEdit(kind=kind, text=text, lines=" ".join(numbers)) for kind in KINDS for text in texts),
    )
    return edited(lines, edits, messages)


def false_texts(each: HostileAnswer) -> list[str]:
    """What it claims, in sentences and in parts of them."""
    values = {"invented outcome": 0, "wrong person": 1}.get(each.kind, len(each.facts))  # the others are true as texts
    texts = [each.narrative, *(claim["value"] for claim in each.facts[:values] if " " in claim["value"])]
    return [text for text in dict.fromkeys(texts) if text]


@each_row("each", ANSWERS)
def test_nothing_false_is_worded_and_all_that_is_true_stays(each: HostileAnswer) -> None:
    result = edited_by(each, *false_texts(each))
    assert [fact.value for fact in result.state if fact.verified] == []
    told = " ".join(fact.value for fact in result.facts)
    said = [message.content for message in each.messages if message.role == "user"]
    assert [text for text in each.true if text in said and text not in told] == []


@each_row("each", [each for each in ANSWERS if "dropped" in each.kind])
def test_what_binds_or_denies_cannot_be_dropped(each: HostileAnswer) -> None:
    told = " ".join(fact.value for fact in edited_by(each, drop=True).facts)
    assert all(text in told for text in each.true)


@each_row("each", [each for each in ANSWERS if each.told])
def test_true_sentence_may_be_an_item(each: HostileAnswer) -> None:
    first = each.told.split()[0]
    is_name = any(first in message.content for message in each.messages)
    result = edited_by(each, each.told if is_name else each.told[0].lower() + each.told[1:])
    assert any(fact.verified for fact in result.state), [fact.key for fact in result.state]
