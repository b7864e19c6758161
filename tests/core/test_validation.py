"""Checks at the door: what is refused, by which error, naming which field; and what passes unharmed."""

from __future__ import annotations

import uuid
from collections import OrderedDict
from datetime import UTC, datetime
from decimal import Decimal
from enum import StrEnum
from functools import partial
from typing import Any

import msgspec
import pytest
from hypothesis import given, reject
from hypothesis import strategies as st
from msgspec.structs import replace

from reactor_memory.core.validation import (
    MessageLimits,
    check_message,
    check_messages,
    check_optional_id,
    check_session_id,
    fingerprint,
    new_message_id,
    setting_of,
)
from reactor_memory.errors import InvalidInputError, InvalidMessageError, LimitExceededError
from reactor_memory.models import Message, ToolCall
from tests.scenes.tables import each_row

LIMITS = MessageLimits()
SURROGATE = "\ud800"


class Colour(StrEnum):
    RED = "red"


def refusal(*messages: Any, limits: MessageLimits = LIMITS) -> InvalidInputError:
    with pytest.raises(InvalidInputError) as caught:
        check_messages(messages, limits)
    return caught.value


def call(**fields: Any) -> Message:
    return Message.assistant(tool_calls=[ToolCall(**({"id": "1", "name": "n"} | fields))])


def nested(depth: int) -> dict[str, Any]:
    value: dict[str, Any] = {}
    for _ in range(depth - 1):
        value = {"a": value}
    return value


def test_an_empty_batch() -> None:
    assert refusal().field == "messages"


def test_the_batch_may_have_another_name() -> None:
    with pytest.raises(InvalidMessageError) as caught:
        check_messages([Message.user("\0")], LIMITS, field="history")
    assert caught.value.field == "history[0].content"


def test_a_single_message_is_named_as_such() -> None:
    with pytest.raises(InvalidMessageError) as caught:
        check_message(Message.user("\0"), LIMITS)
    assert caught.value.field == "message.content"


@each_row("text", ["a\0b", SURROGATE, f"a{SURROGATE}b", "\udfff"])
@each_row(
    ("make", "field"),
    [
        (lambda text: Message.user(text), "content"),
        (lambda text: Message.user("", name=text), "name"),
        (lambda text: Message.user("", author_id=text), "author_id"),
        (lambda text: Message.tool("", tool_call_id=text), "tool_call_id"),
        (lambda text: Message.user("", metadata={text: 1}), "metadata"),
        (lambda text: Message.user("", metadata={"a": [{"b": text}]}), "metadata"),
        (lambda text: Message.user("", parts=({"a": text},)), "parts[0]"),
        (lambda text: Message.user("", parts=({}, {"a": {text: 1}})), "parts[1]"),
        (lambda text: call(id=text), "tool_calls[0].id"),
        (lambda text: call(name=text), "tool_calls[0].name"),
        (lambda text: call(arguments=text), "tool_calls[0].arguments"),
        (lambda text: call(arguments={"a": [text]}), "tool_calls[0].arguments"),
        (lambda text: call(metadata={"a": text}), "tool_calls[0].metadata"),
    ],
)
def test_characters_that_no_store_can_keep(make: Any, field: str, text: str) -> None:
    error = refusal(Message.user("fine"), make(text))
    assert type(error) is InvalidMessageError
    assert error.field == f"messages[1].{field}"


@each_row(
    ("message", "field"),
    [
        ({"role": "user", "content": "hello"}, "messages[0]"),
        ("hello", "messages[0]"),
        (None, "messages[0]"),
        (Message(role="human"), "messages[0].role"),  # pyright: ignore
        (Message(role=["user"]), "messages[0].role"),  # pyright: ignore
        (Message(role="user", visibility="all"), "messages[0].visibility"),  # pyright: ignore
        (Message.user(None), "messages[0].content"),  # pyright: ignore
        (Message.user(b"hello"), "messages[0].content"),  # pyright: ignore
        (Message.user("", name=1), "messages[0].name"),
        (Message.user("", metadata=None), "messages[0].metadata"),
        (Message.user("", metadata=[1]), "messages[0].metadata"),
        (Message.user("", metadata=OrderedDict(a=1)), "messages[0].metadata"),
        (Message.user("", metadata={1: "a"}), "messages[0].metadata"),
        (Message.user("", metadata={None: "a"}), "messages[0].metadata"),
        (Message.user("", parts={"type": "text"}), "messages[0].parts"),
        (Message.user("", parts="text"), "messages[0].parts"),
        (Message.user("", parts=("text",)), "messages[0].parts[0]"),
        (Message.user("", created_at=1.5), "messages[0].created_at"),
        (Message.user("", created_at=True), "messages[0].created_at"),
        (Message.user("", created_at=2**63), "messages[0].created_at"),
        (Message.user("", created_at=datetime(2026, 1, 1, tzinfo=UTC)), "messages[0].created_at"),
        (Message(role="assistant", tool_calls=({"id": "1"},)), "messages[0].tool_calls[0]"),  # pyright: ignore
        (Message(role="assistant", tool_calls=None), "messages[0].tool_calls"),  # pyright: ignore
        (call(arguments=None), "messages[0].tool_calls[0].arguments"),
        (call(arguments=["a"]), "messages[0].tool_calls[0].arguments"),
        (call(id=None), "messages[0].tool_calls[0].id"),
    ],
)
def test_wrong_types(message: Any, field: str) -> None:
    error = refusal(message)
    assert type(error) is InvalidMessageError
    assert error.field == field


@each_row(
    "value",
    [
        float("nan"),
        float("inf"),
        -float("inf"),
        {1, 2},
        (1, 2),
        b"bytes",
        datetime(2026, 1, 1, tzinfo=UTC),
        Decimal("1.5"),
        uuid.UUID(int=1),
        object(),
        Colour.RED,
        1j,
        10**2000,
    ],
)
def test_values_that_json_does_not_have(value: Any) -> None:
    for message in (
        Message.user("", metadata={"a": value}),
        Message.user("", parts=({"a": [value]},)),
        call(arguments={"a": {"b": value}}),
    ):
        assert type(refusal(message)) is InvalidMessageError


def test_calls_of_one_message_may_have_one_id() -> None:
    calls = [ToolCall(id=call_id, name="n") for call_id in ("1", "", "1", "")]
    check_messages([Message.assistant(tool_calls=calls)], LIMITS)


@each_row(
    ("setting", "limit", "largest", "field"),
    [
        ("max_batch_messages", 2, [Message.user("")] * 2, "messages"),
        ("max_content_bytes", 4, [Message.user("abcd")], "messages[0].content"),
        ("max_content_bytes", 4, [Message.user("\u00e9\u00e9")], "messages[0].content"),
        ("max_content_bytes", 4, [call(arguments="abcd")], "messages[0].tool_calls[0].arguments"),
        ("max_content_bytes", 7, [call(arguments={"a": 1})], "messages[0].tool_calls[0].arguments"),
        ("max_parts_bytes", 9, [Message.user("", parts=({"a": 1},))], "messages[0].parts"),
        ("max_metadata_bytes", 7, [Message.user("", metadata={"a": 1})], "messages[0].metadata"),
        ("max_metadata_bytes", 7, [call(metadata={"a": 1})], "messages[0].tool_calls[0].metadata"),
        ("max_metadata_depth", 3, [Message.user("", metadata=nested(3))], "messages[0].metadata"),
        ("max_json_depth", 3, [Message.user("", parts=(nested(3),))], "messages[0].parts[0]"),
        ("max_json_depth", 3, [call(arguments=nested(3))], "messages[0].tool_calls[0].arguments"),
        ("max_tool_calls", 1, [call()], "messages[0].tool_calls"),
        ("max_id_length", 3, [call(id="\U0001f600" * 3)], "messages[0].tool_calls[0].id"),
        ("max_id_length", 3, [call(name="abc")], "messages[0].tool_calls[0].name"),
        ("max_id_length", 3, [Message.user("", name="abc")], "messages[0].name"),
        ("max_id_length", 3, [Message.user("", author_id="abc")], "messages[0].author_id"),
        ("max_id_length", 3, [Message.tool("", tool_call_id="abc")], "messages[0].tool_call_id"),
    ],
)
def test_a_limit_is_the_largest_that_passes(setting: str, limit: int, largest: list[Message], field: str) -> None:
    check_messages(largest, replace(LIMITS, **{setting: limit}))
    error = refusal(*largest, limits=replace(LIMITS, **{setting: limit - 1}))
    assert isinstance(error, LimitExceededError)
    assert (error.field, error.setting) == (field, setting_of(setting))
    assert (error.actual, error.limit) == (limit, limit - 1)


def test_a_value_that_holds_itself() -> None:
    metadata: dict[str, Any] = {}
    metadata["self"] = metadata
    assert isinstance(refusal(Message.user("", metadata=metadata)), LimitExceededError)


def test_errors_do_not_carry_text() -> None:
    secret = "hunter2"
    errors = [
        refusal(Message.user(f"{secret}\0")),
        refusal(Message.user("", metadata={f"{secret}\0": f"{secret}\0"})),
        refusal(Message.user("", metadata={secret: {secret}})),
        refusal(call(arguments=f"{secret}{SURROGATE}")),
        refusal(Message.user(secret), limits=MessageLimits(max_content_bytes=1)),
    ]
    assert not [error for error in errors if secret in str(error)]


def test_what_providers_send_passes() -> None:
    check_messages(
        [
            Message.system("be kind"),
            Message(role="summary", content="so far"),
            Message(role="agent", content="hand over", visibility="agent", author_id="planner"),
            Message.user(
                "\U0001f468\u200d\U0001f469 \u202egnp \u2028\x1b[0m", parts=({"type": "image", "data": "iVBO"},)
            ),
            Message.assistant(
                "", tool_calls=[ToolCall(id="1", name="n"), ToolCall(id="2", name="n", arguments="{oops")]
            ),
            Message.tool("", tool_call_id="1", name="n"),
            Message.user("", metadata={"a": [1, 2.5, None, True, {"b": 2**64}]}, created_at=-1),
        ],
        LIMITS,
    )


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=12,
)


@given(metadata=st.dictionaries(st.text(), json_values), content=st.text())
def test_what_passes_comes_back_unchanged(metadata: dict[str, Any], content: str) -> None:
    message = Message.user(content, metadata=metadata)
    try:
        check_message(message, LIMITS)
    except InvalidInputError:
        reject()
    assert repr(msgspec.json.decode(msgspec.json.encode(message), type=Message)) == repr(message)


@each_row("check", [partial(check_session_id, creating=True), partial(check_optional_id, "user_id")])
@each_row(
    "value", ["", "a" * 256, "a\0", "a\nb", "\x7f", "\x85", SURROGATE, 1, b"a", ["a"], ".", "..", "\u202ea", "a\u2029"]
)
def test_ids_that_are_refused(check: Any, value: Any) -> None:
    with pytest.raises(InvalidInputError):
        check(value)


@each_row("check", [partial(check_session_id, creating=True), partial(check_optional_id, "user_id")])
@each_row("value", ["a", "a" * 255, "\U0001f600" * 255, "a b/c?d#e%00", "\ud55c", "'; --", "...", "a/../b", "\u200d"])
def test_ids_that_pass(check: Any, value: Any) -> None:
    check(value)


def test_nobody_and_no_key_are_allowed() -> None:
    check_optional_id("idempotency_key", None)
    with pytest.raises(InvalidInputError):
        check_session_id(None, creating=False)


def test_the_mark_of_forks_is_looked_up_but_not_created() -> None:
    check_session_id("s~f", creating=False)
    with pytest.raises(InvalidInputError, match="another character") as caught:
        check_session_id("s~f", creating=True)
    assert caught.value.field == "session_id"


BASE = Message(
    role="assistant",
    content="c",
    parts=({"a": 1},),
    tool_calls=(ToolCall(id="1", name="n"),),
    tool_call_id="t",
    name="n",
    metadata={"a": 1, "b": 2},
    author_id="a",
    created_at=1,
)


@each_row(
    "change",
    [
        {"role": "agent"},
        {"content": "d"},
        {"parts": ({"a": 2},)},
        {"tool_calls": (ToolCall(id="2", name="n"),)},
        {"tool_calls": (ToolCall(id="1", name="n", arguments="{}"),)},
        {"tool_calls": (ToolCall(id="1", name="n", metadata={"a": 1}),)},
        {"tool_call_id": None},
        {"name": ""},
        {"metadata": {"a": 1}},
        {"metadata": {"a": 1.0, "b": 2}},
        {"visibility": "agent"},
        {"author_id": "b"},
        {"created_at": 2},
    ],
)
def test_a_fingerprint_tells_contents_apart(change: dict[str, Any]) -> None:
    assert fingerprint([BASE]) != fingerprint([replace(BASE, **change)])


@each_row(
    "change",
    [{"seq": 7}, {"message_id": "m"}, {"token_count": 7}, {"tokenizer": "t"}, {"metadata": {"b": 2, "a": 1}}],
)
def test_a_fingerprint_does_not_see_what_the_store_sets(change: dict[str, Any]) -> None:
    assert fingerprint([BASE]) == fingerprint([replace(BASE, **change)])


def test_a_fingerprint_covers_order_number_and_borders_of_messages() -> None:
    a, b = Message.user("a"), Message.user("b")
    batches = [[a], [b], [a, b], [b, a], [a, a], [Message.user("ab")]]
    assert len({fingerprint(batch) for batch in batches}) == len(batches)


def test_a_fingerprint_is_the_same_in_every_release() -> None:
    assert fingerprint([BASE]) == "28e2fc2762991f0e660bfc75dd45e95a"


def test_message_ids_are_uuids_of_version_7() -> None:
    found = uuid.UUID(new_message_id(1_700_000_000_123_456))
    assert (found.version, found.variant) == (7, uuid.RFC_4122)
    assert found.int >> 80 == 1_700_000_000_123


def test_message_ids_sort_by_time() -> None:
    times = [0, 1, 999, 1_000, 1_700_000_000_000_000, 1_700_000_000_000_001, 1_700_000_000_000_999]
    falling = iter(range(255, 0, -1))
    ids = [new_message_id(time, lambda count: bytes([next(falling)]) * count) for time in times]
    assert ids == sorted(ids)


def test_message_ids_of_one_moment_differ() -> None:
    assert len({new_message_id(1) for _ in range(1000)}) == 1000
