"""The facts of a segment are stored as one value, and read as they were."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reactor_memory.database.driver_errors import DAMAGE
from reactor_memory.features.facts.ledger_rows import MOST_PLAIN, anchor_number, facts_from, records_of
from reactor_memory.models import Role
from reactor_memory.models.ledger import Act, Category, Fact
from tests.scenes.tables import each_row

TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=40)
NUMBERS = st.integers(0, 2**40)


@st.composite
def facts(draw: st.DrawFn) -> Fact:
    start = draw(NUMBERS)
    categories: list[Category] = ["ENTITY", "DECISION", "GENERAL"]
    roles: list[Role] = ["user", "assistant", "tool", "agent"]
    acts: list[Act] = ["statement", "correction", "interrupted"]
    return Fact(
        anchor=draw(TEXTS),
        key=draw(TEXTS),
        value=draw(TEXTS),
        category=draw(st.sampled_from(categories)),
        source_seq=1 + draw(NUMBERS),
        span=(start, start + draw(NUMBERS)),
        said_by=draw(st.sampled_from(roles)),
        act=draw(st.sampled_from(acts)),
        failed=draw(st.booleans()),
        verified=draw(st.booleans()),
        salience=draw(st.integers(0, 100)),
    )


LONG = [Fact(anchor=f"order #{number}", key="drink", value="Latte", source_seq=1) for number in range(30)]


@given(st.lists(facts(), max_size=8))
def test_facts_are_read_as_they_were(stated: list[Fact]) -> None:
    assert facts_from(("s", 7, records_of(stated))) == tuple(stated)


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
