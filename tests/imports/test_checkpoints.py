"""Checkpoints of LangGraph are read as values, and only as many as fit."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from reactor_memory.imports.checkpoints import messages
from reactor_memory.imports.conversation import FormError, Row
from reactor_memory.text.bounded_json import LEAST_VALUES

packed = msgspec.msgpack.encode


def an_object(name: str, value: Any, *, code: int = 5) -> msgspec.msgpack.Ext:
    """As LangGraph packs an object: where its class is, and what it is made of."""
    return msgspec.msgpack.Ext(code, packed(["langchain_core.messages", name, value, "model_validate_json"]))


def row(said: Any, *, kind: str = "msgpack", encode: Any = packed) -> Row:
    return Row("thread", "1", encode({"v": 1, "channel_values": {"messages": said}}), kind, None)


HUMAN = {"content": "Hello", "type": "human", "id": "1"}


@pytest.mark.parametrize(
    "said",
    [
        an_object("HumanMessage", HUMAN),
        an_object("HumanMessage", HUMAN, code=4),
        HUMAN,
        {"role": "user", "content": "Hello"},
        {"lc": 1, "type": "constructor", "id": ["langchain", "HumanMessage"], "kwargs": HUMAN},
    ],
)
def test_messages_are_read_from_what_they_are_made_of(said: Any) -> None:
    assert [each.content for each in messages(row([said]), 1_000_000)] == ["Hello"]
    snapshot = msgspec.msgpack.Ext(7, packed([said]))
    assert [each.content for each in messages(row(snapshot), 1_000_000)] == ["Hello"]


def test_checkpoints_in_json_are_read() -> None:
    assert messages(row([HUMAN], kind="json", encode=msgspec.json.encode), 1_000_000)[0].content == "Hello"


@pytest.mark.parametrize("kind", ["pickle", "msgpack+aes", "null", None])
def test_what_is_pickled_or_encrypted_is_not_read(kind: str) -> None:
    with pytest.raises(FormError, match="encrypted or pickled"):
        messages(row([HUMAN], kind=kind), 1_000_000)


@pytest.mark.parametrize("value", [[], {}, 1, "", None, an_object("X", {})])
def test_no_more_values_than_fit(value: Any) -> None:
    with pytest.raises(FormError, match="more values than fit"):
        messages(row([[value] * (LEAST_VALUES + 1)]), 0)
    inner = msgspec.msgpack.Ext(5, packed(["a", "b", [value] * (LEAST_VALUES + 1)]))
    with pytest.raises(FormError, match="more values than fit"):
        messages(row([inner]), 0)


@pytest.mark.parametrize("content", [b"", b"\xc1", b"\xdd\xff\xff\xff\xff", b"\x91" * 5000, packed([1]), packed({})])
def test_what_is_no_checkpoint_is_refused(content: bytes) -> None:
    with pytest.raises((FormError, msgspec.ValidationError, RecursionError)):
        messages(Row("thread", "1", content, "msgpack", None), 1_000_000)
