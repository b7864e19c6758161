"""The numbers of an evaluation, on contexts small enough to do them by hand."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from reactor_memory.core.context.message_counter import MessageCounter
from reactor_memory.evaluation.metrics import TextCount, percentile, ratio, role_order_breaks, shared_prefix
from reactor_memory.models import Message, ToolCall
from tests.evaluation.contexts import WordCounter, context_of
from tests.scenes.tables import each_row

CALL = Message.assistant(tool_calls=[ToolCall(id="c1", name="book")])
RESULT = Message.tool("done", tool_call_id="c1")
HELLO = Message.user("hello there")


def count_words(text: str) -> int:
    return len(text.split())


def cost(message: Message) -> int:
    """Words and an overhead of ten."""
    return count_words(message.content) + 10


def shared(before: list[Message], now: list[Message]) -> int:
    return shared_prefix(before, now, cost=cost, count_text=count_words)


def test_whole_messages_count_with_their_overhead() -> None:
    assert shared([HELLO, Message.assistant("hi")], [HELLO, Message.assistant("hi"), Message.user("more")]) == 12 + 11


def test_message_that_was_saved_since_is_same_to_the_model() -> None:
    assert shared([HELLO], [Message.user("hello there", seq=7, message_id="m7", created_at=5), HELLO]) == 12


def test_what_stands_behind_the_first_difference_does_not_count() -> None:
    assert shared([HELLO, HELLO], [Message.assistant("x"), HELLO]) == 0


def test_a_block_that_grew_counts_up_to_its_old_end() -> None:
    block, grown = Message.system("Facts:\na 1\nb 2"), Message.system("Facts:\na 1\nb 2\nc 3")
    assert shared([block, HELLO], [grown, HELLO]) == 5


@pytest.mark.parametrize(("old", "new", "words"), [("a bcd", "a bce", 1), ("abc", "abd", 0), ("a b", "a bc", 1)])
def test_half_a_word_does_not_count(old: str, new: str, words: int) -> None:
    assert shared([Message.user(old)], [Message.user(new)]) == words


def test_the_same_words_from_another_role_are_not_shared() -> None:
    assert shared([Message.system("a b")], [Message.user("a b c")]) == 0


@given(st.lists(st.sampled_from(["a", "b c", "a b"])), st.lists(st.sampled_from(["a", "b c", "a b"])))
def test_no_more_is_shared_than_there_is(before: list[str], now: list[str]) -> None:
    old, new = ([Message.user(text) for text in texts] for texts in (before, now))
    assert 0 <= shared(old, new) <= sum(map(cost, new))
    assert shared(new, new) == sum(map(cost, new))


@pytest.mark.parametrize(
    "messages",
    [[], [HELLO, CALL, RESULT, RESULT, HELLO], [Message.system("Facts:"), HELLO, Message.assistant("a")]],
)
def test_orders_that_providers_take(messages: list[Message]) -> None:
    assert list(role_order_breaks(context_of(*(("window", message) for message in messages)))) == []


@pytest.mark.parametrize(
    ("messages", "problem"),
    [
        ([HELLO, RESULT], "message 1 is a result that follows no call"),
        ([HELLO, CALL, HELLO, RESULT], "message 3 is a result that follows no call"),
        ([RESULT, HELLO], "the context begins with a result"),
    ],
)
def test_orders_that_providers_refuse(messages: list[Message], problem: str) -> None:
    found = list(role_order_breaks(context_of(*(("window", message) for message in messages))))
    assert found == [f"role order: {problem}"]


def test_the_message_to_come_is_the_users() -> None:
    assert list(role_order_breaks(context_of(("current", HELLO)))) == []
    assert len(list(role_order_breaks(context_of(("current", Message.assistant("a")))))) == 1


@each_row(
    ("values", "share", "expected"),
    [([], 0.5, 0), ([7], 0.99, 7), ([4, 1, 3, 2], 0.5, 2), (list(range(1, 101)), 0.99, 99), ([1, 2], 0.0, 1)],
)
def test_percentiles_are_values_that_were_measured(values: list[int], share: float, expected: int) -> None:
    assert percentile(values, share) == expected


def test_a_share_of_nothing_is_none() -> None:
    assert ratio(0, 0) is None
    assert ratio(1, 4) == 0.25


def test_tokens_are_counted_from_the_text() -> None:
    """What a store wrote down is not believed, and a message that was cut costs what is left of it."""
    counter = MessageCounter(WordCounter())
    count = TextCount(counter)
    stored = Message.user("one two three", message_id="m1", token_count=99, tokenizer=counter.name)
    assert [count.of(stored), count.of(stored)] == [3, 3]
    assert count.of(Message.user("one", message_id="m1", token_count=99, tokenizer=counter.name)) == 1
    assert count.of(Message.user("one", name="Ann Lee")) == 3
    call = ToolCall(id="c", name="read", arguments="one two three")
    whole = Message.assistant(tool_calls=[call], message_id="m2", token_count=9, tokenizer=counter.name)
    assert count.of(whole) - count.of(replace(whole, tool_calls=(replace(call, arguments="one"),), token_count=4)) == 2
