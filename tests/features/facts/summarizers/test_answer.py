"""The door: what is read out of a model's answer, and what makes it malformed."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reactor_memory.errors import SummarizationError
from reactor_memory.features.facts.summarizers.answer import (
    MAX_ANSWER_CHARACTERS,
    MAX_FACTS,
    parse_answer,
    parse_condensed,
)
from reactor_memory.models.ledger import Extraction, Fact
from tests.scenes.tables import each_row

FACT = {"anchor": "order", "key": "total", "value": "$50.00", "category": "NUMERIC", "source_seq": 3}


def answer(*facts: Any, **fields: Any) -> str:
    return json.dumps({"facts": facts, "narrative": "They talked.", "headline": "Talk", **fields})


def test_a_complete_answer():
    assert parse_answer(answer({**FACT, "act": "correction", "failed": True})) == Extraction(
        facts=(
            Fact(
                anchor="order",
                key="total",
                value="$50.00",
                category="NUMERIC",
                source_seq=3,
                act="correction",
                failed=True,
            ),
        ),
        narrative="They talked.",
        headline="Talk",
    )


@pytest.mark.parametrize("fence", ["```json\n{}\n```", "```\n{}\n```", "\n ```JSON\n{}\n```  \n"])
def test_one_code_fence_is_taken_off(fence: str):
    assert parse_answer(fence.replace("{}", answer(FACT))) == parse_answer(answer(FACT))


@each_row(
    ("given_fields", "read"),
    [
        ({"category": "numeric "}, {"category": "NUMERIC"}),
        ({"category": "SECRET"}, {"category": "GENERAL"}),
        ({"act": "order"}, {"act": "statement"}),
        ({"value": 50}, {"value": "50"}),
        ({"source_seq": "3"}, {"source_seq": 3}),
        ({"surprise": [1]}, {}),
        ({"value": " a\x00b\x1b "}, {"value": "a b"}),
    ],
)
def test_what_is_tolerated(given_fields: dict[str, Any], read: dict[str, Any]):
    [fact] = parse_answer(answer({**FACT, **given_fields})).facts
    assert {name: getattr(fact, name) for name in read} == read


@pytest.mark.parametrize("fields", [{"key": " "}, {"value": ""}, {"value": "\x00"}, {"value": "x" * 5000}])
def test_facts_that_say_nothing_or_too_much_are_dropped(fields: dict[str, Any]):
    assert parse_answer(answer({**FACT, **fields}, FACT)).facts == parse_answer(answer(FACT)).facts


def test_more_facts_than_anyone_states_are_cut_off():
    assert len(parse_answer(answer(*[FACT] * (MAX_FACTS + 5))).facts) == MAX_FACTS


def test_a_headline_is_one_short_line():
    headline = parse_answer(answer(headline="a\nb " + "c" * 1000)).headline
    assert headline.startswith("a b c")
    assert len(headline) == 200


def test_an_empty_answer_in_the_right_form_is_valid():
    assert parse_answer('{"facts": [], "narrative": ""}') == Extraction()


@each_row(
    "text",
    [
        "",
        "{}",
        "null",
        "[]",
        "I cannot do that.",
        '{"narrative": "no facts"}',
        '{"facts": []}',
        '{"facts": null, "narrative": ""}',
        '{"facts": {}, "narrative": ""}',
        answer({**FACT, "value": None}),
        answer({**FACT, "value": ["$50"]}),
        answer({**FACT, "source_seq": "third"}),
        answer(FACT)[:30],
        answer("order", 7, None, {"key": "total"}),
        answer(narrative=None),
        answer(narrative=["They talked."]),
        "Sure! {" + answer(FACT)[1:].replace('"', "'"),
        '{"facts": [], "narrative": "\\ud800"}',
        "[" * 100_000,
        " " * (MAX_ANSWER_CHARACTERS + 1),
    ],
)
def test_what_is_malformed(text: str):
    with pytest.raises(SummarizationError) as caught:
        parse_answer(text)
    assert caught.value.reason == "malformed"
    assert caught.value.retryable


@each_row(
    "malformed",
    [
        {},
        {"key": "total"},
        {**FACT, "value": None},
        {**FACT, "value": ["$50"]},
        {**FACT, "source_seq": "third"},
        {**FACT, "failed": "perhaps"},
        "order",
        None,
        [FACT],
    ],
)
def test_what_is_no_fact_costs_no_other(malformed: Any):
    assert parse_answer(answer(FACT, malformed, FACT)) == parse_answer(answer(FACT, FACT))


OTHER = {**FACT, "key": "sum {[", "value": 'a "quoted" \\ }] value'}


@each_row(
    "around",
    [
        "Sure! {} Anything else?",
        'It is {{braces}} and "quotes": ```json\n{}\n```\nThat\'s all.',
        "<think>Is it [a]? I'd say {{}}.</think>\n{}",
        'Not {{"facts": 5}}, but {}',
        'First {{"facts": [], "narrative": "draft"}}, then {}',
        '{} and {{"facts": 5',
    ],
)
def test_an_answer_is_found_inside_of_prose(around: str):
    given = answer(FACT, OTHER)
    found = parse_answer(around.replace("{{", "\0").replace("{}", given).replace("\0", "{").replace("}}", "}"))
    assert found == parse_answer(given)


def test_an_answer_that_is_cut_off_gives_its_whole_facts():
    whole = answer(FACT, OTHER, {**FACT, "source_seq": 123})
    facts, story = parse_answer(whole).facts, whole.index('], "narrative"')
    ends = [whole.index("}, {") + 1, whole.index("}, {", whole.index("}, {") + 4) + 1, story, len(whole)]
    for end in range(len(whole)):
        if end < ends[0]:
            with pytest.raises(SummarizationError):
                parse_answer(whole[:end])
        else:
            assert parse_answer(whole[:end]).facts == facts[: sum(end >= each for each in ends[:3])]
    told = '{"narrative": "They talked.", "facts": [' + json.dumps(FACT) + ', {"anchor": "x'
    assert parse_answer(told) == Extraction(facts=facts[:1], narrative="They talked.")


def test_fact_needs_no_more_than_a_key_and_a_value():
    given = {"key": "total", "value": "$50.00", "category": "NUMERIC"}
    assert parse_answer(answer(given)).facts == (
        Fact(anchor="", key="total", value="$50.00", category="NUMERIC", source_seq=0),
    )


def test_a_condensed_text_is_found_inside_of_prose():
    assert parse_condensed('Here: {"summary": "They talked."} Bye') == "They talked."
    for cut in ('{"summary": "They tal', '{"summary": "  "}', "They talked."):
        with pytest.raises(SummarizationError):
            parse_condensed(cut)


def test_the_error_does_not_quote_the_answer():
    with pytest.raises(SummarizationError) as caught:
        parse_answer('{"facts": "canary"}')
    assert "canary" not in repr((caught.value, caught.value.__cause__, caught.value.__context__))


@given(st.text() | st.recursive(st.none() | st.booleans() | st.floats() | st.text(), st.lists).map(json.dumps))
def test_no_text_raises_anything_else(text: str):
    with pytest.raises(SummarizationError):
        parse_answer(text)
