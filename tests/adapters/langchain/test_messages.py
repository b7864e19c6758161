"""Messages of LangChain as ours and back."""

from typing import Any

import hypothesis.strategies as st
import pytest
from hypothesis import given
from langchain_core.documents import Document
from langchain_core.messages import (
    AIMessage,
    AIMessageChunk,
    BaseMessage,
    ChatMessage,
    FunctionMessage,
    HumanMessage,
    RemoveMessage,
    SystemMessage,
    ToolMessage,
    message_to_dict,
)
from msgspec.structs import replace

from reactor_memory import Message
from reactor_memory.adapters.langchain import from_message, to_message
from reactor_memory.core.validation import MessageLimits, check_message
from reactor_memory.errors import InvalidMessageError
from reactor_memory.models import ToolCall

ids = st.text(min_size=1, max_size=12, alphabet=st.characters(exclude_characters="\0", exclude_categories=["Cs"]))
any_text = st.text(st.characters() | st.sampled_from("\0\ud800"), max_size=40)
"""With NUL and lone surrogates: models and tools give such text."""

json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.floats(allow_nan=False) | any_text,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(any_text, inner, max_size=3),
    max_leaves=6,
)
stored_values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | ids,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(ids, inner, max_size=3),
    max_leaves=6,
)
"""What stands in parts and arguments: JSON that a database keeps."""

objects = st.dictionaries(any_text, json_values, max_size=3)
text_blocks = st.fixed_dictionaries(
    {"type": st.just("text"), "text": any_text}, optional={"annotations": st.lists(json_values, max_size=2)}
)
other_blocks = st.fixed_dictionaries(
    {"type": st.sampled_from(["image_url", "reasoning", "file"]), "data": stored_values}
)
contents = any_text | st.lists(any_text | text_blocks | other_blocks, max_size=4)
common: dict[str, Any] = {
    "content": contents,
    "id": st.none() | ids,
    "name": st.none() | ids,
    "additional_kwargs": objects.map(lambda kwargs: {k: v for k, v in kwargs.items() if k != "tool_calls"}),
    "response_metadata": objects,
}
calls = st.lists(
    st.fixed_dictionaries(
        {
            "name": ids,
            "args": st.dictionaries(ids, stored_values, max_size=3),
            "id": ids,
            "type": st.just("tool_call"),
        }
    ),
    max_size=3,
    unique_by=lambda call: call["id"],
)
invalid_calls = st.lists(
    st.fixed_dictionaries(
        {
            "name": st.none() | ids,
            "args": st.none() | any_text,
            "id": ids.map(lambda text: f"bad {text}"),
            "error": st.none() | any_text,
            "type": st.just("invalid_tool_call"),
        }
    ),
    max_size=2,
    unique_by=lambda call: call["id"],
)
usage = st.none() | st.builds(
    lambda read, written: {"input_tokens": read, "output_tokens": written, "total_tokens": read + written},
    st.integers(0, 99),
    st.integers(0, 99),
)
messages = st.one_of(
    st.builds(HumanMessage, **common),
    st.builds(SystemMessage, **common),
    st.builds(AIMessage, **common, tool_calls=calls, invalid_tool_calls=invalid_calls, usage_metadata=usage),
    st.builds(
        ToolMessage,
        **common,
        tool_call_id=ids,
        artifact=json_values,
        status=st.sampled_from(["success", "error"]),
    ),
    st.builds(FunctionMessage, **common | {"name": ids}),
    st.builds(ChatMessage, **common, role=st.sampled_from(["user", "assistant", "system", "critic"])),
)


@given(messages)
def test_there_and_back_is_the_identity(message: BaseMessage) -> None:
    ours = to_message(message)
    check_message(ours, MessageLimits())
    assert message_to_dict(from_message(ours)) == message_to_dict(message)
    assert type(from_message(ours)) is type(message)


@given(messages)
def test_the_same_message_is_converted_to_the_same_value(message: BaseMessage) -> None:
    assert to_message(message) == to_message(message.model_copy(deep=True))


@pytest.mark.parametrize("character", ["\0", "\ud800"])
def test_characters_that_no_database_keeps(character: str) -> None:
    """A tool that reads a binary file must not stop the conversation."""
    text = f"read {character} it"
    message = ToolMessage(text, tool_call_id="c", additional_kwargs={"k": text, text: "k"})
    ours = to_message(message)
    check_message(ours, MessageLimits())
    assert ours.content == "read \ufffd it"
    assert from_message(ours) == message
    assert from_message(replace(ours, content="read")).content == "read"


def test_parallel_calls_and_their_results_keep_ids_and_order() -> None:
    calls = [{"name": "look", "args": {"n": n}, "id": f"c{n}", "type": "tool_call"} for n in (2, 1)]
    ours = to_message(AIMessage("", tool_calls=calls))
    assert ours.tool_calls == (
        ToolCall(id="c2", name="look", arguments={"n": 2}),
        ToolCall(id="c1", name="look", arguments={"n": 1}),
    )
    result = to_message(ToolMessage("no", tool_call_id="c1", status="error"))
    assert (result.role, result.tool_call_id, result.metadata["is_error"]) == ("tool", "c1", True)


def test_calls_without_an_id_come_back_without_one() -> None:
    calls: Any = [{"name": "look", "args": {}, "id": None, "type": "tool_call"}] * 2
    assert from_message(to_message(AIMessage("", tool_calls=calls))).tool_calls == calls  # pyright: ignore


def test_a_chunk_stays_a_chunk() -> None:
    chunk = AIMessageChunk(
        "par",
        id="run-1",
        tool_call_chunks=[{"name": "look", "args": '{"a": 1}', "id": "c", "index": 0, "type": "tool_call_chunk"}],
    )
    assert from_message(to_message(chunk)) == chunk


def test_texts_are_what_memory_reads_and_other_blocks_are_parts() -> None:
    image = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}
    ours = to_message(HumanMessage(["order ", {"type": "text", "text": "4711"}, image]))
    assert (ours.content, ours.parts) == ("order 4711", (image,))


def test_a_shortened_message_is_one_text_block_plus_kept_parts() -> None:
    image = {"type": "image_url", "image_url": {"url": "https://example.test/a.png"}}
    ours = to_message(HumanMessage([{"type": "text", "text": "a long text"}, image], id="h1"))
    shortened = from_message(replace(ours, content="a long"))
    assert (shortened.content, shortened.id) == ([{"type": "text", "text": "a long"}, image], "h1")
    assert from_message(replace(ours, parts=())).content == [{"type": "text", "text": "a long text"}]
    assert from_message(replace(to_message(HumanMessage("a long text")), content="a")).content == "a"
    two = to_message(HumanMessage(["a long ", {"type": "text", "text": "text"}]))
    assert from_message(replace(two, content="a l")).content == [{"type": "text", "text": "a l"}]


def test_what_is_no_json_becomes_json_without_strange_artifacts() -> None:
    document = Document("found")
    message = AIMessage("", additional_kwargs={"parsed": document, "handle": object()})
    assert from_message(to_message(message)).additional_kwargs == {
        "parsed": document.model_dump(),
        "handle": "<object>",
    }
    assert from_message(to_message(ToolMessage("x", tool_call_id="c", artifact=object()))).artifact is None  # pyright: ignore


def test_call_that_stands_among_the_blocks_too_is_no_part() -> None:
    """As Anthropic has it: else the providers' forms would show it twice."""
    use = {"type": "tool_use", "id": "c1", "input": {"n": "x" * 20_000}, "name": "look"}
    calls: Any = [{"name": "look", "args": {"n": "x" * 20_000}, "id": "c1", "type": "tool_call"}]
    message = AIMessage([{"type": "text", "text": "looking"}, use, {"type": "tool_use", "id": "c9"}], tool_calls=calls)
    ours = to_message(message)
    assert (ours.content, ours.parts) == ("looking", ({"type": "tool_use", "id": "c9"},))
    check_message(ours, MessageLimits())
    assert from_message(ours) == message
    assert list(from_message(ours).content[1]) == list(use)  # pyright: ignore


def test_more_than_fits_beside_message_costs_the_largest_of_it() -> None:
    logs = {"logprobs": ["x"] * 9_000}
    message = AIMessage("hi", id="a1", additional_kwargs={"k": 1}, response_metadata=logs)
    ours = to_message(message)
    check_message(ours, MessageLimits())
    again = from_message(ours)
    assert (again.content, again.id, again.additional_kwargs, again.response_metadata) == ("hi", "a1", {"k": 1}, {})
    result = ToolMessage("x", tool_call_id="c", artifact="a" * 20_000, name="look")
    assert from_message(to_message(result)) == result.model_copy(update={"artifact": None})


def test_calls_written_badly_keep_long_arguments() -> None:
    invalid: Any = [
        {"name": "look", "args": '{"n": ' + "1" * 20_000, "id": "c", "error": None, "type": "invalid_tool_call"}
    ]
    message = AIMessage("", invalid_tool_calls=invalid)
    check_message(to_message(message), MessageLimits())
    assert from_message(to_message(message)) == message


def test_an_order_to_remove_is_no_message() -> None:
    with pytest.raises(InvalidMessageError, match="RemoveMessage"):
        to_message(RemoveMessage(id="m1"))


@pytest.mark.parametrize(
    ("ours", "kind", "content"),
    [
        (Message.user("hi", name="ann"), "human", "hi"),
        (Message(role="agent", content="hi"), "ai", "hi"),
        (Message(role="summary", content="so far"), "system", "so far"),
        (Message.system("rules"), "system", "rules"),
        (Message.user("see", parts=({"type": "file"},)), "human", [{"type": "text", "text": "see"}, {"type": "file"}]),
    ],
)
def test_messages_from_elsewhere(ours: Message, kind: str, content: object) -> None:
    message = from_message(ours)
    assert (message.type, message.content, message.name) == (kind, content, ours.name)


def test_calls_from_elsewhere() -> None:
    message = from_message(
        Message.assistant(
            tool_calls=[
                ToolCall(id="a", name="look", arguments='{"n": 1}'),
                ToolCall(id="b", name="look", arguments="{broken"),
                ToolCall(id="c", name="look", arguments="[1]"),
                ToolCall(id="d", name="look", arguments=""),
            ]
        )
    )
    assert isinstance(message, AIMessage)
    assert [(call["id"], call["args"]) for call in message.tool_calls] == [("a", {"n": 1}), ("d", {})]
    assert [(call["id"], call["args"]) for call in message.invalid_tool_calls] == [("b", "{broken"), ("c", "[1]")]
    failed = from_message(Message.tool("no", tool_call_id="a", metadata={"is_error": True}))
    assert isinstance(failed, ToolMessage)
    assert (failed.status, failed.tool_call_id) == ("error", "a")
