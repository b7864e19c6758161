"""What a provider gave is given back to it, equal up to the order of keys; every provider takes what another gave."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from reactor_memory.core.bounds import checked
from reactor_memory.core.context.given_messages import answer_of, messages_of
from reactor_memory.core.log.rows import message_from, message_values
from reactor_memory.core.validation import MessageLimits
from reactor_memory.evaluation.transcripts import to_message, to_record
from reactor_memory.forms.requests import to_anthropic, to_gemini, to_ollama, to_openai, to_openai_responses
from reactor_memory.models import Message
from tests.forms.provider_histories import HISTORIES, Json, as_json
from tests.forms.provider_validators import problems
from tests.scenes.tables import each_row

WRITTEN: dict[str, Callable[[Sequence[Message]], list[Json]]] = {
    "openai": to_openai,
    "openai_responses": to_openai_responses,
    "anthropic": lambda messages: to_anthropic(messages)["messages"],
    "gemini": lambda messages: to_gemini(messages)["contents"],
    "ollama": to_ollama,
}


_COLUMNS = (
    "seq", "message_id", "role", "visibility", "author_id", "content", "parts", "tool_calls", "tool_call_id", "name",
    "metadata",
)  # fmt: skip


def stored(messages: Sequence[Message]) -> list[Message]:
    """The messages as a database gives them back."""
    columns = tuple(name for name in _COLUMNS if name != "seq")
    rows: list[tuple[Any, ...]] = []
    for seq, message in enumerate(checked(messages, MessageLimits()), 1):
        values = message_values(message)
        rows.append((seq, *(values[column] for column in columns), 1, "t", 1))
    return [message_from(row) for row in rows]


@each_row("form", HISTORIES)
@given(data=st.data())
@settings(max_examples=40)
def test_what_goes_in_comes_out(form: str, data: st.DataObject) -> None:
    history = data.draw(HISTORIES[form])
    read = messages_of(history)
    back = WRITTEN[form](stored(read))
    assert as_json(back) == as_json(history)
    assert problems(form, back) == []
    exported = [to_message(to_record(message)) for message in read]
    assert as_json(WRITTEN[form](exported)) == as_json(history)


@each_row("form", HISTORIES)
@given(data=st.data())
@settings(max_examples=15)
def test_every_provider_takes_it(form: str, data: st.DataObject) -> None:
    read = stored(messages_of(data.draw(HISTORIES[form])))
    for other, write in WRITTEN.items():
        assert problems(other, write(read)) == [], other


@each_row("form", HISTORIES)
@given(data=st.data())
@settings(max_examples=10)
def test_step_by_step_is_the_same(form: str, data: st.DataObject) -> None:
    """As an agent saves it: each item as it comes, answers as answers."""
    history = data.draw(HISTORIES[form])
    read = [message for item in history for message in _one(item)]
    assert as_json(WRITTEN[form](stored(read))) == as_json(history)


def _one(item: Json) -> tuple[Message, ...]:
    return answer_of(item) if item.get("role") in ("assistant", "model") else messages_of(item)


@each_row("form", HISTORIES)
@given(data=st.data())
@settings(max_examples=10)
def test_blocks_hold_everything_in_order(form: str, data: st.DataObject) -> None:
    for message in messages_of(data.draw(HISTORIES[form])):
        blocks = message.blocks
        texts = [block.text for block in blocks if block.kind in ("text", "tool_result") and not block.part]
        joint = "" if message.role == "assistant" else "\n"
        assert joint.join(texts) == message.content
        assert tuple(block.call for block in blocks if block.kind == "tool_call") == message.tool_calls
        assert [block.part for block in blocks if block.part] == [part for part in message.parts if part]
