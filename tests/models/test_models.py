"""The values themselves: what they are when little is said, compared by content, immutable."""

from __future__ import annotations

from typing import get_args

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from reactor_memory.models import Message
from reactor_memory.models.block_lines import BlockLine, BlockLines, line_details, lines_text
from reactor_memory.models.ledger import Category, Extraction, Fact, Segment, Summary, SummaryHead, Usage, facts_to_json
from tests.scenes.tables import each_row

FACT = Fact(anchor="order", key="number", value="A-1", source_seq=3)


def test_categories_and_their_order() -> None:
    assert get_args(Category) == ("ENTITY", "DECISION", "CONDITION", "STATE", "NUMERIC", "GENERAL")


def test_a_bare_fact_is_a_general_unverified_user_statement() -> None:
    assert (FACT.category, FACT.act, FACT.said_by, FACT.failed, FACT.verified) == (
        "GENERAL",
        "statement",
        "user",
        False,
        False,
    )


def test_messages_are_equal_or_unequal() -> None:
    for other, is_equal in ((Message.user("hi"), True), (Message.user("ho"), False)):
        assert (Message.user("hi") == other) is is_equal
        assert (Message.user("hi") != other) is not is_equal


def test_equal_content_is_equal_and_a_copy_changes_one_field() -> None:
    assert Fact(anchor="order", key="number", value="A-1", source_seq=3) == FACT
    for change in ({"key": "total"}, {"value": "A-2"}, {"category": "ENTITY"}, {"source_seq": 4}, {"anchor": "x"}):
        changed = replace(FACT, **change)
        assert changed != FACT
        assert replace(changed, **{name: getattr(FACT, name) for name in change}) == FACT


def test_a_value_cannot_be_changed() -> None:
    for value, field in ((FACT, "value"), (Message.user("a"), "content"), (Summary(), "narrative")):
        with pytest.raises(AttributeError):
            setattr(value, field, "changed")


def test_a_new_summary_covers_nothing_and_says_nothing() -> None:
    summary = Summary()
    assert (summary.covered_seq, summary.facts(), summary.narrative, summary.version) == (0, (), "", 0)
    assert summary.is_empty
    assert Summary() == summary
    assert not replace(summary, narrative="They talked.").is_empty


def test_head_of_summary_is_all_of_it_but_its_facts() -> None:
    summary = Summary(narrative="They talked.", covered_seq=4, version=2, epoch=1, truncated=True)
    head = replace(summary, facts_json=facts_to_json((FACT,)), spare_json=facts_to_json((FACT,))).head
    assert head == SummaryHead(narrative="They talked.", covered_seq=4, version=2, epoch=1, truncated=True)


@each_row("category", get_args(Category))
def test_facts_of_every_category_stand_in_summary_in_their_order(category: Category) -> None:
    facts = (replace(FACT, category=category), replace(FACT, key="total", value="1"), FACT)
    assert Summary(facts_json=facts_to_json(facts)).facts() == facts


def test_an_extraction_costs_nothing_until_usage_is_stated() -> None:
    assert Extraction(narrative="n").usage == Usage(tokens_read=0, tokens_written=0)
    assert Extraction() == Extraction(facts=(), narrative="", headline="")
    segment = Segment(
        conversation_id="s", start_seq=1, end_seq=2, source_hash="h", summarizer="scripted", prompt_version="1"
    )
    assert segment.usage == Usage()


def test_short_ways_to_make_a_message() -> None:
    made = [
        Message.user("a"),
        Message.assistant("b"),
        Message.system("c"),
        Message.tool("d", tool_call_id="1"),
        Message.assistant(),
    ]
    assert [(message.role, message.content) for message in made] == [
        ("user", "a"),
        ("assistant", "b"),
        ("system", "c"),
        ("tool", "d"),
        ("assistant", ""),
    ]


LINES = st.lists(
    st.builds(
        BlockLine,
        text=st.text(st.characters(exclude_categories=["Cs", "Cc", "Zl", "Zp"])),
        tokens=st.integers(0, 10_000),
        value=st.floats(0, 100),
        source_seqs=st.lists(st.integers(1, 2**53)).map(tuple),
    )
)


@given(lines=LINES)
def test_stored_lines_are_the_lines(lines: list[BlockLine]) -> None:
    text = lines_text([line.text for line in lines])
    stored = BlockLines(text, msgspec.json.encode(line_details(lines)), len(lines))
    assert stored == tuple(lines)
    assert (len(stored), list(stored)) == (len(lines), lines)
    assert stored.text == "\n".join(line.text for line in lines)


def test_lines_that_break_stay_one_line_each() -> None:
    assert lines_text(["a\nb", "c", "d\u2028e\r"]) == "a b\nc\nd e"


def test_stored_lines_differ_from_others() -> None:
    lines = [BlockLine(text="a", tokens=1), BlockLine(text="b", tokens=1)]
    stored = BlockLines("a\nb", msgspec.json.encode(line_details(lines)), 2)
    assert stored != tuple(lines[:1])
    assert stored != tuple(lines[::-1])
    assert stored != 2
