"""The facts of a segment are stored as one value, and read as they were."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reactor_memory.database.driver_errors import DAMAGE
from reactor_memory.features.facts.ledger_rows import MOST_PLAIN, anchor_number, facts_from, records_of
from reactor_memory.models.ledger import Fact
from tests.scenes.tables import each_row

TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=40)
PLACES = st.integers(0, 2**40)
FACTS = st.builds(
    lambda start, length, **fields: Fact(span=(start, start + length), **fields),
    start=PLACES,
    length=PLACES,
    anchor=TEXTS,
    key=TEXTS,
    value=TEXTS,
    category=st.sampled_from(["ENTITY", "DECISION", "GENERAL"]),
    source_seq=st.integers(1, 2**40),
    said_by=st.sampled_from(["user", "assistant", "tool", "agent"]),
    act=st.sampled_from(["statement", "correction", "interrupted"]),
    failed=st.booleans(),
    verified=st.booleans(),
    salience=st.integers(0, 100),
)
LONG = [Fact(anchor=f"order #{number}", key="drink", value="Latte", source_seq=1) for number in range(30)]


@given(st.lists(FACTS, max_size=8))
def test_facts_are_read_as_they_were(facts: list[Fact]) -> None:
    assert facts_from(("s", 7, records_of(facts))) == tuple(facts)


def test_many_facts_take_a_few_bytes_each() -> None:
    assert len(records_of(LONG[:2])) <= MOST_PLAIN
    assert len(records_of(LONG)) < 12 * len(LONG)
    assert facts_from((records_of(LONG),)) == tuple(LONG)


@each_row(
    "stored",
    [
        *(None, 7, "x7", "[]", b"", b"\xff\x00\xfe", b"[[1, 2, 3]]", b'{"a": [1,', records_of(LONG)[:-9]),
        *(records_of(LONG[:1]).replace(old, new) for old, new in ((b",1,0,0,", b",0,0,0,"), (b",0,0,", b",2,1,"))),
    ],
)
def test_what_was_never_written_is_damage(stored: object) -> None:
    with pytest.raises(DAMAGE):
        facts_from(("s", 7, stored))


@given(TEXTS)
def test_the_number_of_a_name_fits_into_four_bytes(name: str) -> None:
    assert 0 <= anchor_number(name) < 2**31
