"""The door: what is read out of a model's answer, and what makes it malformed."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reactor_memory.errors import SummarizationError
from reactor_memory.models import Extraction, Fact
from reactor_memory.summarizers.answer import MAX_ANSWER_CHARACTERS, MAX_FACTS, parse_answer
from tests.tables import each_row

FACT = {"anchor": "order", "key": "total", "value": "$50.00", "category": "NUMERIC", "source_seq": 3}


def answer(*facts: dict[str, Any], **fields: Any) -> str:
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
        answer({"anchor": "order", "key": "total", "value": "1"}),
        answer(narrative=None),
        answer(FACT)[:-1],
        "Sure! " + answer(FACT),
        answer(FACT) + answer(FACT),
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


def test_the_error_does_not_quote_the_answer():
    with pytest.raises(SummarizationError) as caught:
        parse_answer('{"facts": "canary"}')
    assert "canary" not in repr((caught.value, caught.value.__cause__, caught.value.__context__))


@given(st.text() | st.recursive(st.none() | st.booleans() | st.floats() | st.text(), st.lists).map(json.dumps))
def test_no_text_raises_anything_else(text: str):
    with pytest.raises(SummarizationError):
        parse_answer(text)
