"""What a redactor leaves of messages and facts."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reactor_memory.errors import RedactionError
from reactor_memory.features.facts.evidence import evidence_text
from reactor_memory.features.facts.summarizers.records import records_of, to_json
from reactor_memory.features.recall.passages import text_of
from reactor_memory.features.redaction import redacted, redacted_known, unredacted
from reactor_memory.models import Message, ToolCall
from reactor_memory.models.ledger import NOTHING_KNOWN, Fact, Known, KnownNames
from tests.scenes.tables import each_row

SECRET = "Žofie-4711"
_SECRET = re.compile(re.escape(SECRET))


def mask(text: str) -> str:
    return _SECRET.sub("[NAME]", text)


def escaped(value: Any) -> str:
    """JSON in which no character of the secret that needs an escape stands as itself."""
    return json.dumps(value, ensure_ascii=True)


MESSAGES = [
    Message.user(f"I am {SECRET}", seq=1, name=SECRET, author_id=SECRET, metadata={"who": SECRET}),
    Message.user("see", seq=2, parts=({"type": "text", "text": f"it was {SECRET}"},)),
    Message.user("see", seq=3, parts=({"type": "image", "url": f"https://host/{SECRET}"}, {"file": SECRET})),
    Message.user("see", seq=4, parts=({"type": "text", "text": "a", "title": SECRET},)),
    Message.assistant("", seq=5, tool_calls=[ToolCall(id="c", name="find", arguments={"who": {SECRET: [SECRET, 1]}})]),
    Message.assistant("", seq=6, tool_calls=[ToolCall(id="c", name="find", arguments=escaped({"who": SECRET}))]),
    Message.assistant("", seq=7, tool_calls=[ToolCall(id="c", name="find", arguments=f'{{"who": "{SECRET}')]),
    Message.assistant("", seq=8, tool_calls=[ToolCall(id="c", name="find", arguments={}, metadata={"x": SECRET})]),
    Message.tool(escaped({"found": [{"name": SECRET}]}), tool_call_id="c", seq=9),
    Message.tool(escaped({"found": escaped({"name": SECRET})}), tool_call_id="c", seq=10),
    Message.user(escaped({"name": SECRET}), seq=11),
]


@each_row("message", MESSAGES)
def test_a_word_that_is_taken_out_stands_nowhere(message: Message) -> None:
    [clean] = redacted([message], mask)
    for shown in (repr(clean), evidence_text(clean), text_of(clean), to_json(list(records_of([clean])))):
        assert SECRET not in shown
        assert "4711" not in shown
    assert (clean.seq, clean.role, clean.tool_call_id) == (message.seq, message.role, message.tool_call_id)
    assert [call.id for call in clean.tool_calls] == [call.id for call in message.tool_calls]


def test_what_stays_is_what_was_said() -> None:
    call = ToolCall(id="c", name="find", arguments={"n": 1.50, "deep": [{"a": True, "b": None}]})
    messages = (
        Message.user("plain words", name="Ann", seq=1, parts=({"type": "text", "text": "more"},), created_at=5),
        Message.assistant("", tool_calls=[call], seq=2),
        Message.tool('{"n": 1.50,  "s": "\\u00e9"}', tool_call_id="c", seq=3),
    )
    assert redacted(messages, mask) == messages


def test_of_part_that_is_no_text_the_kind_is_left() -> None:
    [clean] = redacted([Message.user("", parts=({"type": "image", "data": "xxx"}, {"data": "yyy"}))], mask)
    assert clean.parts == ({"type": "image"}, {"type": "part"})


def test_numbers_are_redacted_like_words() -> None:
    call = ToolCall(id="c", name="pay", arguments={"card": 4111111111111111, "cents": 250})
    [clean] = redacted([Message.assistant("", tool_calls=[call])], lambda text: re.sub(r"\d{16}", "[CARD]", text))
    assert clean.tool_calls[0].arguments == {"card": "[CARD]", "cents": 250}


def test_json_that_is_nested_beyond_reading_is_left_out() -> None:
    deep = "[" * 900 + escaped(SECRET) + "]" * 900
    [clean] = redacted([Message.tool(deep, tool_call_id="c")], mask)
    assert "4711" not in clean.content


def test_facts_lose_the_same_words() -> None:
    fact = Fact(anchor=f"user {SECRET}", key=f"name.{SECRET}", value=SECRET, source_seq=1)
    clean = Fact(anchor="user [NAME]", key="name.[NAME]", value="[NAME]", source_seq=1)
    names = KnownNames(anchor=SECRET, keys=(f"of {SECRET}",))
    clean_names = KnownNames(anchor="[NAME]", keys=("of [NAME]",))
    assert redacted_known(Known(facts=(fact,), names=(names,)), mask) == Known(facts=(clean,), names=(clean_names,))


def test_without_a_redactor_everything_goes_on_as_it_is() -> None:
    assert redacted(MESSAGES, unredacted) == tuple(MESSAGES)
    assert redacted_known(NOTHING_KNOWN, unredacted) == NOTHING_KNOWN


def fails(text: str) -> str:
    raise ValueError(text)


@pytest.mark.parametrize(("redactor", "reason"), [(fails, "ValueError"), (lambda text: None, "TypeError")])
def test_a_failure_is_one_typed_error_without_the_text(redactor: Any, reason: str) -> None:
    fact = Fact(anchor="user", key="name", value=SECRET, source_seq=1)
    known = Known(facts=(fact,))
    for call in (lambda: redacted([Message.user(SECRET)], redactor), lambda: redacted_known(known, redactor)):
        with pytest.raises(RedactionError) as caught:
            call()
        assert caught.value.reason == reason
        assert SECRET not in str(caught.value)
        assert (caught.value.__cause__, caught.value.__context__) == (None, None)


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda children: st.lists(children, max_size=4) | st.dictionaries(st.text(), children, max_size=4),
)


@given(json_values, st.booleans())
def test_no_letter_is_found_that_a_redactor_takes_out(value: Any, ascii_only: bool) -> None:
    def without_e(text: str) -> str:
        return text.replace("é", "").replace("x", "")

    text = json.dumps({"v": value, "é": "xé"}, ensure_ascii=ascii_only)
    [clean] = redacted([Message.tool(text, tool_call_id="c", seq=1)], without_e)
    assert not set("éx") & set(evidence_text(clean))
