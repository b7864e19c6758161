"""Segments end at the same places whoever looks and whenever."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from reactor_memory.features.facts.segments import archived_segment, next_segment
from reactor_memory.models import LONGEST_TURN_SEGMENTS, Message, ToolCall, reasoned_runs

USER = Message.user("hello")
ANSWER = Message.assistant("good day")
THOUGHT = Message.assistant(parts=({"type": "reasoning", "id": "rs_1", "summary": []},))


def calls(*ids: str) -> Message:
    return Message.assistant(tool_calls=[ToolCall(id=id_, name="look") for id_ in ids])


def result(id_: str) -> Message:
    return Message.tool("{}", tool_call_id=id_)


def numbered(messages: list[Message], first: int = 1) -> list[Message]:
    return [msgspec.structs.replace(m, seq=seq) for seq, m in enumerate(messages, start=first)]


AT_ONCE = st.lists(
    st.tuples(
        st.integers(0, 2),
        st.sampled_from([USER, ANSWER, THOUGHT, calls("a"), calls("a", "b"), result("a"), result("b")]),
    ),
    max_size=70,
)
"""Messages of three turns; that of the user begins one anew."""


def log_of(said: list[tuple[int, Message]]) -> tuple[list[Message], dict[int, int]]:
    """A log, and of what turns stored while they ran where they began."""
    began: dict[int, int] = {}
    steps: dict[int, int] = {}
    for seq, (turn, message) in enumerate(said, 1):
        if message.role == "user" or turn not in began:
            began[turn] = seq
        else:
            steps[seq] = began[turn]
    return numbered([message for _, message in said]), steps


MESSAGES = st.lists(
    st.sampled_from(
        [USER, ANSWER, THOUGHT, calls("a"), calls("a", "b"), result("a"), result("b"), Message.system("note")]
    ),
    max_size=60,
)


def test_nothing_is_sealed_before_the_count_is_reached() -> None:
    assert next_segment([], 2) is None
    assert next_segment([USER], 2) is None
    assert next_segment([USER, ANSWER], 4) is None


def test_the_first_turn_border_at_or_after_the_count() -> None:
    turns = [USER, ANSWER] * 4
    assert next_segment(turns, 4) == 4
    assert next_segment(turns, 3) == 4


def test_a_turn_is_not_cut_at_an_open_call() -> None:
    turn = [USER, calls("a", "b"), result("a"), result("b")]
    assert next_segment([*turn[:3]], 2) is None
    assert next_segment(turn, 2) is None, "the model has not answered yet"
    assert next_segment([*turn, ANSWER], 2) == 5


def test_new_user_message_ends_a_turn_that_was_never_answered() -> None:
    assert next_segment([USER, calls("a"), USER], 2) == 2


def test_assistant_message_at_the_end_ends_the_turn_for_good() -> None:
    assert next_segment([USER, ANSWER], 2) == 2
    assert next_segment([USER, ANSWER, ANSWER], 2) == 2


def test_a_long_turn_is_cut_between_its_pairs() -> None:
    steps = [message for n in range(10) for message in (calls(f"c{n}"), result(f"c{n}"))]
    assert next_segment([USER, *steps[:15]], 4) is None, "four segments may yet become one turn"
    assert next_segment([USER, *steps[:16]], 4) == 5


def test_many_parallel_calls_stay_together() -> None:
    ids = [f"c{n}" for n in range(30)]
    turn = [USER, calls(*ids), *map(result, ids)]
    assert next_segment(turn[:-1], 4) is None
    assert next_segment(turn, 4) == 32


def test_a_call_that_is_never_answered_does_not_stop_sealing() -> None:
    steps = [message for n in range(10) for message in (calls("lost", f"c{n}"), result(f"c{n}"))]
    assert next_segment([USER, *steps, ANSWER, USER], 4) == 22


def test_withdrawn_messages_take_their_place() -> None:
    log = numbered([USER, ANSWER, USER, ANSWER])
    assert next_segment([log[0], log[2], log[3]], 4) == 3


def test_reasoning_ends_no_turn() -> None:
    assert next_segment([USER, THOUGHT], 2) is None
    assert next_segment([USER, THOUGHT, ANSWER], 2) is None, "calls may follow"
    assert next_segment([USER, THOUGHT, ANSWER, USER], 2) == 3


def test_what_came_with_reasoning_is_sealed_with_its_results() -> None:
    turn = [USER, THOUGHT, ANSWER, calls("a"), calls("b"), result("b"), result("a"), THOUGHT, ANSWER, USER]
    assert next_segment(turn, 3) == 9
    step = turn[1:7]
    assert [next_segment([USER, *step, *step], size) for size in (2, 3)] == [7, 7], "a long turn between its units"
    assert next_segment([USER, *step, *step], 4) is None


@given(messages=MESSAGES, size=st.integers(1, 6))
def test_no_segment_parts_reasoning_from_what_came_with_it(messages: list[Message], size: int) -> None:
    end = next_segment(messages, size)
    for run in reasoned_runs(messages, range(len(messages)), len(messages)):
        assert end is None or not run.start < end < run.stop


@given(messages=MESSAGES, size=st.integers(1, 6), first=st.integers(1, 50))
def test_what_is_appended_later_never_moves_a_border(messages: list[Message], size: int, first: int) -> None:
    log = numbered(messages, first)
    answers = [next_segment(log[:end], size) for end in range(len(log) + 1)]
    decided = [answer for answer in answers if answer is not None]
    assert len(set(decided)) <= 1
    assert answers == [None] * (len(answers) - len(decided)) + decided


@given(messages=MESSAGES, size=st.integers(1, 6))
def test_segment_reaches_the_count_and_ends_without_an_open_call(messages: list[Message], size: int) -> None:
    end = next_segment(messages, size)
    if end is None:
        return
    assert size <= end <= len(messages)
    if end < len(messages) and messages[end].role == "user":
        return
    last_call = max((i for i in range(end) if messages[i].role == "assistant"), default=0)
    answered = {m.tool_call_id for m in messages[last_call:end] if m.role == "tool"}
    assert {call.id for call in messages[last_call].tool_calls} <= answered


@pytest.mark.parametrize("size", [1, 3, 10])
def test_sealing_keeps_up_with_ordinary_turns(size: int) -> None:
    log = [USER, calls("a"), result("a"), ANSWER] * 50
    sealed = 0
    while (end := next_segment(log[sealed:], size)) is not None:
        assert end <= size * LONGEST_TURN_SEGMENTS + 4
        sealed += end
    assert len(log) - sealed < size


def test_archived_messages_are_sealed_to_their_last_border() -> None:
    messages = numbered([USER, ANSWER, USER, calls("a"), result("a"), ANSWER])
    assert [archived_segment(messages, until) for until in range(8)] == [None, 1, 2, 3, 3, 5, 6, 6]
    assert archived_segment([], 5) is None


def test_segment_waits_for_the_calls_of_each_turn() -> None:
    said = [(0, USER), (1, USER), (0, calls("a")), (1, calls("a")), (1, result("a")), (1, ANSWER), (0, result("a"))]
    log, steps = log_of([*said, (0, ANSWER)])
    assert next_segment(log, 6, steps) == 8
    assert next_segment(log[:7], 6, steps) is None
    assert next_segment(log, 6) == 6, "in the order of the log the call of the first turn is given up"
    assert archived_segment(log, 6, steps) == 2


def test_next_user_message_ends_no_turn_that_goes_on() -> None:
    log, steps = log_of([(0, USER), (0, calls("a")), (1, USER), (1, ANSWER), (0, result("a")), (0, ANSWER), (2, USER)])
    assert next_segment(log, 3, steps) == 6
    assert next_segment(log, 3) == 4


def test_dead_turn_is_waited_for_no_longer_than_a_segment() -> None:
    log, steps = log_of([(0, USER), (0, calls("a")), *[(1, USER), (1, ANSWER)] * 10])
    assert next_segment(log, 4, steps) == 6


def test_turns_that_overlap_without_end_are_cut_nevertheless() -> None:
    begun = [(0, USER), (1, USER), (0, calls("a"))]
    overlapping = [(turn, each) for turn in (1, 0) for each in (calls("a"), result("a"))]
    shifted = [overlapping[0], overlapping[3], (0, calls("a")), overlapping[1]]
    log, steps = log_of([*begun, *shifted * 12])
    most = 2 * LONGEST_TURN_SEGMENTS * 4
    assert next_segment(log[:most], 4, steps) is None
    assert next_segment(log, 4, steps) == 5


@given(said=AT_ONCE, size=st.integers(1, 6))
def test_what_is_appended_later_moves_no_border_of_turns(said: list[tuple[int, Message]], size: int) -> None:
    log, steps = log_of(said)
    answers = [
        next_segment(log[:end], size, {seq: turn for seq, turn in steps.items() if seq <= end})
        for end in range(len(log) + 1)
    ]
    decided = [answer for answer in answers if answer is not None]
    assert len(set(decided)) <= 1
    assert answers == [None] * (len(answers) - len(decided)) + decided
