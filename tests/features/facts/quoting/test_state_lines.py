"""Items of the working state among the records that they rest on: what both say is shown once."""

from __future__ import annotations

import pytest

from reactor_memory.features.facts.quoting.quotation_lines import STATE_TITLE, quotation_lines
from reactor_memory.features.facts.quoting.ready_lines import is_quoted, offered_beside
from reactor_memory.features.facts.working_state import Kind, StateItem, fact_of
from reactor_memory.models.block_lines import ReadyLine
from reactor_memory.models.ledger import Fact

PARCEL = "My parcel with the lamp weighs 21 kilos."
SISTER = "My sister Ana comes along to Porto."
RULE = "Never ring at the neighbours in the morning."


def count(text: str) -> int:
    return len(text) // 4


def said(seq: int, text: str) -> Fact:
    span = (0, len(text))
    return Fact(anchor=f"the user #{seq}", key="quote.own.1", value=text, source_seq=seq, span=span, verified=True)


def item(kind: Kind, text: str, first: int, last: int) -> Fact:
    return fact_of(StateItem(f"{last}a", kind, text, first, last))


def lines(*items: Fact) -> list[str]:
    records = (said(1, PARCEL), said(3, SISTER), said(5, RULE))
    return [each.line.text for each in quotation_lines((*records, *items), count)]


@pytest.mark.parametrize(
    ("kind", "text", "first", "last"),
    [
        ("note", "sister Ana comes along to Porto", 3, 3),
        ("note", "the parcel with the lamp weighs 21 kilos", 1, 2),
        ("constraint", "never ring at the neighbours in the morning", 5, 5),
        ("goal", "Ana comes along to Porto", 1, 5),
        ("done", "parcel with the lamp weighs 21 kilos", 1, 1),
    ],
)
def test_item_that_one_record_says_stands_as_that_record(kind: Kind, text: str, first: int, last: int) -> None:
    assert lines(item(kind, text, first, last)) == lines()


@pytest.mark.parametrize(
    ("kind", "text", "first", "last"),
    [
        ("decision", "sister Ana comes along to Porto", 3, 3),
        ("open", "the parcel with the lamp weighs 21 kilos", 1, 2),
        ("rejected", "ring at the neighbours in the morning", 5, 5),
        ("error", "parcel with the lamp weighs 21 kilos", 1, 1),
        ("note", "parcel with the lamp 21 kilos, sister Ana comes along to Porto", 1, 3),
        ("note", "the parcel with the lamp weighs 22 kilos", 1, 1),
        ("note", "sister Ana comes along to Porto", 5, 5),
    ],
)
def test_item_that_says_more_stands_below_its_heading(kind: Kind, text: str, first: int, last: int) -> None:
    found = lines(item(kind, text, first, last))
    assert found[0] == STATE_TITLE
    assert found[1].startswith(f"{kind}: {text} (derived, {first}")
    assert found[2:] == lines()


def test_record_that_an_item_says_all_of_is_worth_less() -> None:
    both = item("note", "parcel with the lamp weighs 21 kilos, sister Ana comes along to Porto", 1, 3)
    rest = fact_of(StateItem("5a", "open", "the neighbours", 5, 5))

    def value(text: str, *items: Fact) -> float:
        records = (said(1, PARCEL), said(3, SISTER), said(5, RULE), *items)
        return next(each.line.value for each in quotation_lines(records, count) if text in each.line.text)

    assert value('"My sister', both) < 0.15 * value('"My sister')
    assert value('"Never ring', rest) > 0.5 * value('"Never ring')


def test_window_has_to_show_all_that_an_item_rests_on() -> None:
    found = quotation_lines((said(5, RULE), item("open", "21 kilos of the lamp to Porto", 3, 7)), count)
    ready = [
        ReadyLine(text=each.line.text, tokens=1, source_seqs=each.line.source_seqs, seq=each.seq)
        for each in found
        if each.facts
    ]
    assert [line.text for line in offered_beside(ready, {5, 6, 7})] == [
        "open: 21 kilos of the lamp to Porto (derived, 3-7)"
    ]
    assert offered_beside(ready, {3, 4, 5, 6, 7}) == []


def test_lines_are_written_ahead_where_a_model_keeps_a_state() -> None:
    assert is_quoted([said(5, RULE), item("open", "the lamp", 1, 1)])
    assert not is_quoted([said(5, RULE), Fact(anchor="user", key="name", value="Ana", source_seq=3)])
