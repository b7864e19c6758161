"""A window that does not hold all of its messages: full, exact, and in a larger room never less."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from reactor_memory.core.context.budget import assemble
from reactor_memory.core.context.context import Context
from reactor_memory.core.context.draft import ContextLimits, Draft
from reactor_memory.core.context.excerpts import LONG_ARGUMENTS, can_be_cut, excerpt_of, left_out_mark, shown_as
from reactor_memory.core.context.verification import verify
from reactor_memory.core.context.window_fill import excerpts_of, filled, held, shown_messages
from reactor_memory.models import Message, ToolCall
from reactor_memory.models.excerpts import Excerpt
from tests.scenes.tables import each_row


def count(message: Message) -> int:
    """A token a character."""
    if message.token_count is not None:
        return message.token_count
    return len(message.content) + sum(len(str(call.arguments)) for call in message.tool_calls)


def stored(messages: Sequence[Message]) -> tuple[Message, ...]:
    counted = [replace(each, token_count=count(each), tokenizer="characters") for each in messages]
    return tuple(replace(each, seq=seq) for seq, each in enumerate(counted, 1))


def words(length: int) -> str:
    return ("lorem ipsum dolor " * (length // 18 + 1))[:length]


def talk(sizes: Sequence[int]) -> tuple[Message, ...]:
    makers = (Message.user, Message.assistant)
    return stored([makers[index % 2](words(size)) for index, size in enumerate(sizes)])


def whole(messages: Sequence[Message], room: int) -> set[int]:
    cut = filled(messages, 0, len(messages), room, count)
    assert cut.tokens == sum(map(count, shown_messages(messages, cut))) <= room
    return {messages[index].seq or 0 for index in range(cut.start, cut.end)} - {
        each.seq for each in excerpts_of(messages, cut)
    }


def shown(messages: Sequence[Message], budget: int) -> Context:
    context = assemble(
        Draft(strategy="take_last", session_id="s", window=tuple(messages)),
        (),
        ContextLimits(budget=budget, overhead=0),
        count=count,
        count_text=len,
    )
    assert verify(context, count=count) == []
    return context


MARK = len(left_out_mark(3_000, 16))
sizes = st.lists(st.one_of(st.integers(1, 60), st.integers(61, 3_000)), min_size=1, max_size=16)


@given(sizes, st.integers(1, 4_000), st.integers(0, 400))
def test_a_larger_room_shows_no_message_less(lengths: list[int], room: int, more: int) -> None:
    messages = talk(lengths)
    assert whole(messages, room) <= whole(messages, room + more)


@given(sizes, st.integers(200, 4_000))
def test_a_room_is_full_unless_everything_stands_in_it(lengths: list[int], room: int) -> None:
    messages = talk(lengths)
    cut = filled(messages, 0, len(messages), room, count)
    left = room - cut.tokens
    assert left < MARK + 8 or (cut.start == 0 and not cut.excerpts)


def test_what_is_left_begins_the_next_message() -> None:
    messages = talk([900, 30, 30, 30])
    cut = filled(messages, 0, 4, 160, count)
    assert cut.start == 0
    assert 160 - MARK // 2 < cut.tokens <= 160


def test_what_memory_leaves_lengthens_a_part_and_completes_none() -> None:
    messages = talk([70, 30, 30, 30])
    without = filled(messages, 0, 4, 100, count)
    assert without.start == 1
    for spare in range(40, 80):
        cut = filled(messages, 0, 4, 100, count, spare=spare)
        assert cut.tokens <= 100 + spare
        assert cut.start == 1 or 0 in cut.excerpts


@pytest.mark.parametrize("text", ["会" * 25, "창" * 25, "ж" * 35, "a" * 65])
def test_a_short_text_takes_more_bytes_where_characters_say_more(text: str) -> None:
    assert can_be_cut(Message.user(text))
    assert not can_be_cut(Message.user(text[: len(text) // 2]))


@pytest.mark.parametrize("ago", [1, 2, 6])
@pytest.mark.parametrize("length", [3_000, 25_000])
def test_a_long_paste_leaves_the_window_to_older_messages(length: int, ago: int) -> None:
    lengths = [30] * 72
    lengths[-2 * ago] = length
    context = shown(talk(lengths), 1_000)
    assert context.report.total_tokens >= 970
    (cut,) = context.report.clamped
    assert (cut.first, cut.reason) == (73 - 2 * ago, "too_long")
    assert len(context.messages) > 10


def test_a_message_that_is_cut_says_where_the_rest_is() -> None:
    messages = stored([Message.user(f"BEGIN {words(5_000)} END"), Message.assistant("Read.")])
    (paste, _) = shown(messages, 1_000).messages
    head, mark, tail = paste.content.split("\n")
    assert head.startswith("BEGIN lorem")
    assert tail.endswith(" END")
    assert mark.startswith("[… 4,0")
    assert mark.endswith(" characters left out; message 1 …]")
    assert len(head) == pytest.approx(1.5 * len(tail), abs=48)


def test_a_skipped_call_takes_its_results_along() -> None:
    signed = ToolCall(id="1", name="write", arguments={"text": words(2_000)}, metadata={"signature": "x"})
    messages = stored(
        [
            *(Message.user("first question"), Message.assistant("first answer")),
            *(Message.user("write it"), Message.assistant(tool_calls=[signed])),
            *(Message.tool("written", tool_call_id="1"), Message.assistant("done")),
        ]
    )
    context = shown(messages, 500)
    assert [message.seq for message in context.messages] == [1, 2, 3, 6]
    assert {(entry.first, entry.last, entry.reason) for entry in context.report.dropped} == {(4, 5, "too_long")}
    assert context.report.unread == ((4, 5),)


THOUGHT = {"type": "reasoning", "encrypted_content": "x"}


@each_row(
    "led_to",
    [
        [Message.assistant(words(2_000))],
        [Message.assistant("I write."), Message.assistant(words(2_000))],
        [Message.assistant("", parts=[THOUGHT]), Message.assistant(words(2_000))],
        [Message.assistant(words(2_000)), Message.assistant("Done.")],
        [
            Message.assistant(tool_calls=[ToolCall(id="1", name="write", arguments={"text": words(2_000)})]),
            Message.tool("written", tool_call_id="1"),
        ],
    ],
)
def test_what_reasoning_led_to_is_whole_or_skipped(led_to: list[Message]) -> None:
    thought = Message.assistant("", parts=[THOUGHT])
    before = [Message.user("first question"), Message.assistant("first answer"), Message.user("write it")]
    messages = stored([*before, thought, *led_to, Message.user("and now?"), Message.assistant("now that")])
    last = len(messages) - 2
    for room in (300, 500, 1_000, 1_900, 2_500):
        seen = filled(messages, 0, len(messages), room, count)
        assert not seen.excerpts
        of_run = {index for index in range(seen.start, seen.end) if index not in seen.orphans and 2 < index < last}
        assert of_run in (set(), set(range(3, last)))


def test_long_arguments_are_left_out_and_their_result_stays() -> None:
    call = ToolCall(id="1", name="write", arguments={"text": words(2_000)})
    messages = stored(
        [Message.user("write it"), Message.assistant(tool_calls=[call]), Message.tool("written", tool_call_id="1")]
    )
    context = shown(messages, 500)
    assert [message.seq for message in context.messages] == [1, 2, 3]
    (arguments,) = [call.arguments for message in context.messages for call in message.tool_calls]
    assert isinstance(arguments, dict)
    assert list(arguments.values()) == [left_out_mark(len('{"text":""}') + 2_000, 2)]
    assert LONG_ARGUMENTS < 2_000


def test_results_of_one_call_share_what_there_is() -> None:
    calls = [ToolCall(id=str(number), name="read") for number in range(4)]
    results = [Message.tool(words(2_000), tool_call_id=call.id) for call in calls]
    context = shown(stored([Message.user("read them"), Message.assistant(tool_calls=calls), *results]), 1_000)
    lengths = [len(message.content) for message in context.messages if message.role == "tool"]
    assert len(lengths) == 4
    assert max(lengths) - min(lengths) < 60
    assert context.report.total_tokens > 850


def test_forms_of_before_are_shown_again_while_they_fit() -> None:
    messages = talk([30, 30, 2_000, 30, 30, 30])
    cut = filled(messages, 0, 6, 600, count)
    forms = {each.seq: each for each in excerpts_of(messages, cut)}
    again = held(messages, 6, 640, forms, count)
    assert shown_messages(messages, again) == shown_messages(messages, cut)
    grown = talk([30, 30, 2_000, 30, 30, 30, 20, 20])
    longer = held(grown, 8, 640, forms, count)
    assert shown_messages(grown, longer)[: len(shown_messages(messages, cut))] == shown_messages(messages, cut)


def test_a_message_left_out_before_is_left_out_again() -> None:
    messages = talk([30, 2_000, 30])
    cut = held(messages, 3, 100, {2: Excerpt(2)}, count)
    assert [each.seq for each in shown_messages(messages, cut)] == [1, 3]


FAMILY = "\U0001f468‍\U0001f469‍\U0001f467"
FLAG, THUMB, SYLLABLE = "\U0001f1eb\U0001f1f7", "\U0001f44d\U0001f3fd", "\u1112\u1161\u11ab"
SCRIPTS = ["e\u0301", "\u0e01\u0e34", FAMILY, FLAG, THUMB, SYLLABLE, "\r\n"]


@each_row("grapheme", SCRIPTS)
def test_no_cut_divides_what_a_reader_takes_for_a_letter(grapheme: str) -> None:
    message = Message.user(grapheme * 400)
    for most in range(60, 200, 7):
        excerpt = excerpt_of(message, most, count)
        assert excerpt is not None
        assert excerpt.head % len(grapheme) == excerpt.tail % len(grapheme) == 0, unicodedata.name(grapheme[0], "?")


def test_no_number_is_divided() -> None:
    message = Message.user(" ".join(f"{number}.50" for number in range(10_000, 10_400)))
    for most in range(100, 200):
        excerpt = excerpt_of(message, most, count)
        assert excerpt is not None
        head, _, tail = shown_as(message, excerpt).content.split("\n")
        assert all(len(number) == 8 for number in (*head.split(), *tail.split()))


@given(st.text(min_size=70, max_size=400), st.integers(0, 400))
def test_an_excerpt_costs_what_it_says_and_no_more(text: str, most: int) -> None:
    message = Message.user(text)
    excerpt = excerpt_of(message, most, count)
    if excerpt is not None:
        cut = shown_as(message, excerpt)
        assert excerpt.tokens == count(replace(cut, token_count=None)) <= most or len(text) <= most
