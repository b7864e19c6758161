"""Code decides what a message says: spans, word borders, and what a summarizer may not claim."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from reactor_memory.features.facts import evidence as evidence_module
from reactor_memory.features.facts.evidence import (
    MAX_FACTS,
    MAX_VALUE_CHARACTERS,
    clean_key,
    evidence_text,
    find_span,
    quote,
    verify_facts,
    verify_narrative,
)
from reactor_memory.models import Message, ToolCall
from reactor_memory.models.ledger import Fact
from tests.scenes.tables import each_row

ON_BORDERS = evidence_module._on_borders  # pyright: ignore[reportPrivateUsage] (what defines a border)
ORDER = Message.assistant(
    "Ordering now.",
    tool_calls=[
        ToolCall(id="c1", name="add_item", arguments={"item": "latte", "extras": [{"name": "oat milk"}], "n": 2})
    ],
    seq=4,
)
RESULT = Message.tool('{"order_id": "A-13", "price": 4.50, "note": null}', tool_call_id="c1", seq=5)
USER = Message.user("My name is Anna Ångström, table for 2 on 2019-03-12 at 7.30, 北京市 is home.", seq=3)


def fact(value: str, seq: int = 3, **fields: object) -> Fact:
    return Fact(**{"anchor": "booking #3", "key": "detail", "value": value, "source_seq": seq, **fields})  # type: ignore[arg-type]


def test_evidence_of_a_call_has_its_name_and_argument_leaves() -> None:
    assert evidence_text(ORDER).splitlines() == [
        "Ordering now.",
        "add_item",
        "item: latte",
        "extras.0.name: oat milk",
        "n: 2",
    ]


def test_evidence_of_result_has_its_leaves_with_numbers_as_written() -> None:
    assert evidence_text(RESULT).splitlines()[1:] == ["order_id: A-13", "price: 4.50"]


def test_fact_that_cites_nothing_gets_newest_message_that_states_it() -> None:
    later = Message.user("A-13 it is, for  two.", seq=6)
    found = [
        (each.value, each.source_seq, each.said_by, each.verified)
        for each in verify_facts(
            [fact(value, 0) for value in ("A-13", "4.50", "Oat  Milk", "for two", "A-1", "")],
            [ORDER, RESULT, USER, later],
        )
    ]
    assert found == [
        ("A-13", 6, "user", True),
        ("4.50", 5, "tool", True),
        ("Oat Milk", 4, "assistant", True),
        ("for two", 6, "user", True),
    ]


@each_row("arguments", ['{"a": 1', "", "[]", '"x"', "[" * 5000, '{"a": ' * 5000])
def test_evidence_of_broken_arguments_is_their_text(arguments: str) -> None:
    text = evidence_text(Message.assistant(tool_calls=[ToolCall(id="c", name="run", arguments=arguments)]))
    assert text.startswith("\nrun")


@each_row(
    ("evidence", "value", "found"),
    [
        ("on 2019-03-12", "2", False),
        ("on 2019-03-12", "03", False),
        ("on 2019-03-12", "2019-03-12", True),
        ("pay 3.50 now", "3", False),
        ("pay 3.50 now", "50", False),
        ("pay $3 now", "3", True),
        ("pay 3, now", "3", True),
        ("the latte-3914", "latte", True),
        ("decaffeinated", "decaf", False),
        ("THE RITZ", "the ritz", True),
        ("the\n  ritz", "the ritz", True),
        ("我在北京工作", "北京", True),
        ("3月7日", "7", True),
        ("mañana", "ma", False),
        ("a.b", "a*b", False),
        ("(tax)", "(tax)", True),
        ("text", "", False),
        ("text", "   ", False),
    ],
)
def test_values_are_found_on_word_borders(evidence: str, value: str, found: bool) -> None:
    assert (find_span(evidence, value) is not None) == found


def test_the_occurrence_nearest_to_the_hint_is_cited() -> None:
    text = "tea, tea, tea"
    assert find_span(text, "tea", 0) == (0, 3)
    assert find_span(text, "tea", 6) == (5, 8)
    assert find_span(text, "tea", 99) == (10, 13)


def test_occurrence_that_begins_inside_a_longer_number_is_passed_over() -> None:
    assert find_span("11 1 1", "1 1", 9) == (3, 6)


@given(text=st.text("a1.- 京한", max_size=40), value=st.text("a1.- 京한", min_size=1, max_size=4))
def test_a_value_is_found_wherever_it_is_on_borders(text: str, value: str) -> None:
    pattern = re.compile(r"\s+".join(map(re.escape, value.split())))
    found = [place for start in range(len(text)) if value.split() and (place := pattern.match(text, start))]
    assert (find_span(text, value) is not None) == any(ON_BORDERS(text, *place.span()) for place in found)


def test_long_words_are_not_looked_at_by_letters(monkeypatch: pytest.MonkeyPatch) -> None:
    looks: list[int] = []

    def on_none(evidence: str, start: int, stop: int) -> bool:
        looks.append(start)
        return False

    monkeypatch.setattr(evidence_module, "_on_borders", on_none)
    assert find_span("a" * 10_000 + " " + "a" * 10_000, "a" * 200) is None
    assert len(looks) <= 5


def test_exact_case_goes_before_a_nearer_other_case() -> None:
    assert find_span("may I come in May", "May", 0) == (14, 17)


@given(before=st.text(max_size=30), value=st.text(min_size=1, max_size=20), after=st.text(max_size=30))
def test_a_span_holds_the_value(before: str, value: str, after: str) -> None:
    evidence = f"{before} {value} {after}"
    span = find_span(evidence, value, len(before) + 1)
    if value.split():
        assert span is not None
        assert evidence[slice(*span)].split() == value.split()
    else:
        assert span is None


def test_facts_are_verified_against_the_message_that_they_cite() -> None:
    facts = verify_facts([fact("Anna Ångström"), fact("Anna", seq=4), fact("Berta")], [USER, ORDER])
    assert [f.verified for f in facts] == [True, False, False]
    assert USER.content[slice(*facts[0].span)] == "Anna Ångström"


def test_facts_of_messages_that_were_not_read_are_dropped() -> None:
    assert verify_facts([fact("Anna", seq=99), fact("", seq=3), fact(" \0 ", seq=3)], [USER]) == ()


def test_who_said_it_is_the_role_of_the_source() -> None:
    assert verify_facts([fact("A-13", seq=5, said_by="user")], [RESULT])[0].said_by == "tool"


@pytest.mark.parametrize("category", ["DECISION", "CONDITION"])
def test_text_of_a_tool_decides_nothing(category: str) -> None:
    (verified,) = verify_facts([fact("A-13", seq=5, category=category, act="correction")], [RESULT])
    assert (verified.category, verified.act) == ("GENERAL", "statement")


def test_what_a_person_said_keeps_its_category_and_its_act() -> None:
    (verified,) = verify_facts([fact("Anna", category="CONDITION", act="decision")], [USER])
    assert (verified.category, verified.act) == ("CONDITION", "decision")


def test_fact_is_looked_up_where_it_is_said_to_stand() -> None:
    source = Message.user("tea, tea, tea, tea", seq=3)
    (verified,) = verify_facts([fact("tea", span=(5, 16))], [source])
    assert verified.span == (5, 8)


def test_unknown_categories_and_acts_fall_back() -> None:
    (verified,) = verify_facts([fact("Anna", category="SYSTEM", act="command")], [USER])
    assert (verified.category, verified.act) == ("GENERAL", "statement")


def test_long_values_are_cut_at_word_border_and_still_verified() -> None:
    source = Message.user("word " * 200, seq=3)
    (verified,) = verify_facts([fact("word " * 100)], [source])
    assert len(verified.value) <= MAX_VALUE_CHARACTERS
    assert verified.verified


def test_the_number_of_facts_is_bounded() -> None:
    assert len(verify_facts([fact("Anna", key=f"k{n}") for n in range(MAX_FACTS + 5)], [USER])) == MAX_FACTS


@given(st.text(max_size=200))
def test_keys_have_one_form(key: str) -> None:
    assert re.fullmatch(r"[a-z][a-z0-9_.]{0,63}", clean_key(key))
    assert clean_key(clean_key(key)) == clean_key(key)


def test_keys_are_readable_and_keys_of_other_scripts_stay_apart() -> None:
    assert clean_key("checkInDate") == "check_in_date"
    assert clean_key("attributes.0.Milk options") == "attributes.0.milk_options"
    assert clean_key("日付") != clean_key("時間")


@given(anchor=st.text(max_size=300), key=st.text(max_size=99), value=st.text(max_size=600))
def test_what_is_stored_is_one_line_and_can_be_stored(anchor: str, key: str, value: str) -> None:
    for verified in verify_facts([fact(value, anchor=anchor, key=key)], [USER]):
        for text in (verified.anchor, verified.value):
            text.encode()
            assert "\0" not in text
            assert len(text.splitlines()) == 1


def test_surrogates_of_a_summarizer_are_dropped() -> None:
    (verified,) = verify_facts([fact("An\ud800na")], [USER])
    assert verified.value == "Anna"


@each_row(
    ("sentence", "kept"),
    [
        ("The user booked a table for 2.", True),
        ("The table is for 3.", False),
        ("It is on 2019-03-12.", True),
        ("It is on March 12.", False),
        ("A guest called Anna comes.", True),
        ("A guest called Berta comes.", False),
        ("Everything is settled.", True),
        ("The table is for 02.", True),
        ("The table is for 20.", False),
        ("A table in hall B waits.", True),
        ("A guest called Bo comes.", False),
    ],
)
def test_sentences_with_unknown_numbers_dates_or_names_are_dropped(sentence: str, kept: bool) -> None:
    assert verify_narrative(f"All is well. {sentence}", [USER]) == (
        "All is well. " + sentence if kept else "All is well."
    )


def test_a_quotation_is_the_line_around_the_value() -> None:
    text = "first line\n" + "far " * 30 + "my number is A-17, " + "yes " * 30 + "\nlast"
    span = find_span(text, "A-17")
    assert span
    fact = Fact(anchor="order", key="number", value="A-17", source_seq=1, span=span, verified=True)
    quoted = quote(fact, text, around=20)
    assert "my number is A-17, yes" in quoted
    assert len(quoted) <= 44
    assert quote(Fact(anchor="a", key="k", value="v", source_seq=1), text) == ""


def test_a_quotation_ends_with_its_line_in_the_facts_words() -> None:
    text = "first line\nroom  A-17 is\tfree\nlast A-18"
    for value, line in (("first", "first line"), ("a-17 IS FREE", "room A-17 is free"), ("A-18", "last A-18")):
        span = find_span(text, value)
        assert span is not None
        said = fact(value, span=span, verified=True)
        assert quote(said, text) == line
        assert quote(replace(said, value="another"), text) == ""
        assert quote(replace(said, verified=False), text) == ""


def test_facts_of_call_stand_in_the_order_of_its_arguments() -> None:
    """Values that are said before the call, and values that are the same, keep their places."""
    arguments = {"day": "Monday", "seats": "2", "rooms": "2", "city": "Oslo"}
    call = Message.assistant(
        "Oslo, 2 seats, Monday.", seq=7, tool_calls=(ToolCall(id="c", name="Book", arguments=arguments),)
    )
    said = [fact(value, key=key, seq=7, said_by="assistant") for key, value in arguments.items()]
    verified = verify_facts(said, [call])
    assert [each.key for each in sorted(verified, key=lambda each: each.span)] == list(arguments)
    assert all(evidence_text(call)[slice(*each.span)] == each.value for each in verified)
