"""Any item of the Responses API comes back byte for byte, from every store, and reads like any other message."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reactor_memory.core.log.rows import to_json
from reactor_memory.core.validation import MessageLimits, check_messages
from reactor_memory.errors import InvalidInputError
from reactor_memory.forms.response_items import FRAME, plain_item, to_items, to_message
from reactor_memory.models import Message, ToolCall

SAID = st.text(st.characters(), max_size=30)  # NUL and lone surrogates, too
TEXT = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=30)
IDS = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), min_size=1, max_size=12)
SCALARS = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | TEXT
VALUES = st.recursive(SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3))
ANYTHING = st.dictionaries(TEXT, VALUES, max_size=3)

TEXT_PARTS = st.builds(
    lambda kind, text, rest: {"type": kind, "text": text, **rest},
    st.sampled_from(["input_text", "output_text", "text"]),
    SAID,
    st.fixed_dictionaries({}, optional={"annotations": st.lists(ANYTHING, max_size=2), "logprobs": VALUES}),
)
PARTS = st.lists(
    TEXT_PARTS
    | st.fixed_dictionaries({"type": st.just("refusal"), "refusal": SAID})
    | st.fixed_dictionaries({"type": st.just("input_image"), "image_url": TEXT, "detail": st.just("auto")})
    | ANYTHING,
    max_size=4,
)
STATUS: dict[Any, st.SearchStrategy[Any]] = {"id": IDS, "status": st.sampled_from(["completed", "incomplete"])}


def items_of(required: dict[Any, st.SearchStrategy[Any]]) -> st.SearchStrategy[dict[str, Any]]:
    """Items with these keys, perhaps the usual ones, perhaps unknown ones, in any order."""
    known = st.fixed_dictionaries(required, optional=STATUS)
    return st.builds(lambda item, rest: {**rest, **item}, known, ANYTHING).flatmap(
        lambda item: st.permutations(list(item.items())).map(dict)
    )


MESSAGES = items_of(
    {"role": st.sampled_from(["user", "assistant", "system", "developer"]), "content": SAID | PARTS}
) | items_of({"type": st.just("message"), "role": st.just("assistant"), "content": SAID | PARTS | VALUES})
CALLS = items_of(
    {"type": st.just("function_call"), "call_id": IDS, "name": IDS, "arguments": SAID},
) | items_of({"type": st.just("custom_tool_call"), "call_id": IDS, "name": IDS, "input": TEXT | VALUES})
OUTPUTS = items_of(
    {
        "type": st.sampled_from(["function_call_output", "custom_tool_call_output", "shell_call_output"]),
        "call_id": IDS,
        "output": SAID | PARTS | VALUES,
    }
)
OTHERS = items_of({"type": st.sampled_from(["reasoning", "web_search_call", "mcp_call", "shell_call"])})
ITEMS = MESSAGES | CALLS | OUTPUTS | OTHERS | ANYTHING | st.builds(lambda kind: {"type": kind}, VALUES)


@given(ITEMS)
def test_every_item_comes_back_byte_for_byte(item: dict[str, Any]) -> None:
    message = to_message(plain_item(item, 0))
    check_messages([message], MessageLimits())
    assert as_bytes(to_items(stored(message))) == as_bytes([item])


@given(MESSAGES | CALLS | OUTPUTS)
def test_what_comes_back_is_nobody_elses(item: dict[str, Any]) -> None:
    message = to_message(plain_item(item, 0))
    (first,) = to_items(message)
    spoil(first)
    assert as_bytes(to_items(message)) == as_bytes([item])


@pytest.mark.parametrize("text", ["", " ", "\n", "Tänk 😀\n\n  x "])
def test_texts_stand_where_everybody_reads_them(text: str) -> None:
    parts = [{"type": "input_text", "text": text}, {"type": "input_image", "image_url": "data:image/png;base64,AA=="}]
    assert to_message({"role": "user", "content": text}).content == text
    message = to_message({"role": "user", "content": parts})
    assert (message.content, message.parts) == (text, (parts[1],))
    answer = to_message({"type": "function_call_output", "call_id": "c1", "output": text})
    assert (answer.role, answer.tool_call_id, answer.content) == ("tool", "c1", text)
    call = {"type": "function_call", "id": "fc_1", "call_id": "c1", "name": "search", "arguments": text}
    assert to_message(call).tool_calls == (ToolCall(id="c1", name="search", arguments=text),)


def test_characters_that_no_store_keeps_are_kept_beside_the_text() -> None:
    item = {"role": "user", "content": "a\0b\ud800"}
    message = to_message(item)
    assert (message.content, to_items(message)) == ("a\ufffdb\ufffd", [item])


def test_several_texts_are_lines_of_one() -> None:
    content = [{"type": "output_text", "text": "one"}, {"type": "refusal", "refusal": "two\nthree"}]
    message = to_message({"type": "message", "role": "assistant", "content": content})
    assert message.content == "one\ntwo\nthree"
    assert "one" not in json.dumps(message.metadata)


def test_a_large_frame_goes_into_a_part() -> None:
    content = [{"type": "output_text", "text": "hello", "logprobs": [{"token": "hello", "logprob": -0.1}] * 500}]
    message = to_message({"type": "message", "role": "assistant", "content": content})
    assert (message.content, message.metadata) == ("hello", {FRAME: "0"})
    check_messages([message], MessageLimits())


def test_a_message_that_was_changed_is_translated_as_it_stands() -> None:
    message = to_message({"type": "message", "role": "user", "content": "my card is 4111", "id": "m1"})
    changed = Message.user("my card is [redacted]", metadata=message.metadata)
    assert to_items(changed) == [{"role": "user", "content": "my card is [redacted]"}]


def test_messages_of_others_become_items() -> None:
    image = {"type": "image_url", "image_url": {"url": "https://example.org/a.png"}}
    calls = [ToolCall(id="c1", name="f", arguments={"x": 1}), ToolCall(id="c2", name="g", arguments='{"y":')]
    translated = [
        item
        for message in (
            Message.system("be kind"),
            Message.user("look", parts=(image, {"type": "audio", "data": "x"})),
            Message.assistant("looking", tool_calls=calls),
            Message.assistant(tool_calls=calls[:1]),
            Message.tool("", tool_call_id="c1"),
            Message(role="summary", content="they talked"),
            Message(role="agent", content=""),
        )
        for item in to_items(message)
    ]
    assert translated == [
        {"role": "system", "content": "be kind"},
        {
            "role": "user",
            "content": [
                {"type": "input_text", "text": "look"},
                {"type": "input_image", "detail": "auto", "image_url": "https://example.org/a.png"},
            ],
        },
        {"role": "assistant", "content": "looking"},
        {"type": "function_call", "call_id": "c1", "name": "f", "arguments": '{"x": 1}'},
        {"type": "function_call", "call_id": "c2", "name": "g", "arguments": '{"y":'},
        {"type": "function_call", "call_id": "c1", "name": "f", "arguments": '{"x": 1}'},
        {"type": "function_call_output", "call_id": "c1", "output": ""},
        {"role": "system", "content": "they talked"},
        {"role": "assistant", "content": ""},
    ]


def test_what_json_has_no_word_for_takes_its_nearest_form() -> None:
    item = {"type": "function_call_output", "call_id": "c", "output": "x", "more": [float("nan"), (1,), {2}, object()]}
    assert plain_item(item, 0)["more"] == ["NaN", [1], [2], "<object>"]


@pytest.mark.parametrize("item", ["text", None, 7, ["x"]])
def test_what_is_no_json_object_is_refused(item: object) -> None:
    with pytest.raises(InvalidInputError, match=r"items\[3\]: must be a JSON object"):
        plain_item(item, 3)


def stored(message: Message) -> Message:
    """The message as a store gives it back: through JSON."""
    from reactor_memory.core.log.rows import _OBJECT, _PARTS, _TOOL_CALLS  # pyright: ignore[reportPrivateUsage]

    return Message(
        role=message.role,
        content=message.content,
        tool_call_id=message.tool_call_id,
        parts=_PARTS.decode(to_json(message.parts) or "[]"),
        tool_calls=_TOOL_CALLS.decode(to_json(message.tool_calls) or "[]"),
        metadata=_OBJECT.decode(to_json(message.metadata) or "{}"),
    )


def as_bytes(items: Iterable[Any]) -> bytes:
    return json.dumps(list(items)).encode()


def spoil(value: Any) -> None:
    """Change everything in `value` that can be changed."""
    if isinstance(value, (dict, list)):
        for inner in list(value.values()) if isinstance(value, dict) else list(value):
            spoil(inner)
        value.clear()
