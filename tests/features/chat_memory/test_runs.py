"""Which messages the next summary takes."""

from __future__ import annotations

from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from reactor_memory.core.log.turn_borders import check_border
from reactor_memory.errors import InvalidInputError
from reactor_memory.features.chat_memory.summarization import next_run
from reactor_memory.models import Message, ToolCall
from tests.scenes.tables import each_row

USER = Message.user("u")
ASSISTANT = Message.assistant("a")
SYSTEM = Message.system("s")
SUMMARY = Message(role="summary", content="s")


def call(*ids: str) -> Message:
    return Message.assistant(tool_calls=[ToolCall(id=each, name="look") for each in ids])


def result(call_id: str) -> Message:
    return Message.tool("r", tool_call_id=call_id)


def numbered(messages: Sequence[Message]) -> list[Message]:
    return [replace(message, seq=seq) for seq, message in enumerate(messages, start=1)]


def seqs(messages: Sequence[Message]) -> list[int | None]:
    return [message.seq for message in messages]


def run_of(messages: Sequence[Message], every: int) -> list[int | None]:
    return seqs(next_run(numbered(messages), every))


@each_row(
    ("messages", "every", "expected"),
    [
        ([], 2, []),
        ([USER], 2, []),
        ([USER, ASSISTANT], 2, [1, 2]),
        ([USER, ASSISTANT, USER], 2, [1, 2]),
        ([USER, SUMMARY, SUMMARY, USER], 2, [1, 2, 3, 4]),
        ([USER, call("a"), result("a"), ASSISTANT], 2, [1, 2, 3]),
        ([USER, call("a"), result("a"), ASSISTANT], 1, [1]),
        ([USER, call("a", "b"), result("a")], 2, []),
        ([USER, call("a"), SYSTEM], 2, []),
        ([USER, call("a"), USER], 2, [1, 2]),
        ([USER, call("a"), ASSISTANT], 2, [1, 2]),
        ([USER, call("a"), call("b"), result("b"), result("a"), ASSISTANT], 2, [1, 2, 3, 4, 5]),
        ([result("x"), result("y"), USER, ASSISTANT], 2, [3, 4]),
        ([result("x"), result("y")], 1, []),
    ],
)
def test_where_a_run_ends(messages: Sequence[Message], every: int, expected: list[int]) -> None:
    assert run_of(messages, every) == expected


IDS = st.sampled_from("abc")
MESSAGES = st.lists(
    st.one_of(
        st.sampled_from([USER, ASSISTANT, SYSTEM, SUMMARY]),
        st.lists(IDS, min_size=1, max_size=2, unique=True).map(lambda ids: call(*ids)),
        IDS.map(result),
    ),
    max_size=25,
)


def is_allowed(messages: Sequence[Message], after: int) -> bool:
    try:
        check_border(messages, after)
    except InvalidInputError:
        return False
    return True


@given(MESSAGES, st.integers(1, 6))
def test_the_store_takes_every_run(messages: Sequence[Message], every: int) -> None:
    given = numbered([USER, *messages])
    run = next_run(given, every)
    if run:
        assert is_allowed(given, run[-1].seq or 0)


@given(MESSAGES, st.integers(1, 6))
def test_no_shorter_run_would_do(messages: Sequence[Message], every: int) -> None:
    given = numbered([USER, *messages])
    run = next_run(given, every)
    for end in range(1, len(run) or len(given)):
        counted = sum(message.role != "summary" for message in given[:end])
        assert counted < every or not is_allowed(given, end)


@given(MESSAGES, MESSAGES, st.integers(1, 6))
def test_later_messages_move_no_end_unless_they_answer_a_call(
    messages: Sequence[Message], later: Sequence[Message], every: int
) -> None:
    given = numbered([USER, *messages])
    run = next_run(given, every)
    if run and not any(message.role == "tool" for message in later):
        assert next_run(numbered([USER, *messages, *later]), every) == run
