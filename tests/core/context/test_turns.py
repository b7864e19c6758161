"""Turns, pairs, orphans and the runs that leave together."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from reactor_memory.models import Message, ToolCall, reasoned_runs
from reactor_memory.models.turns import (
    Pair,
    find_orphans,
    find_pairs,
    first_certain,
    in_exchanges,
    last_turn_start,
    units,
)
from tests.core.context.histories import THOUGHT, stored, turns

USER, ANSWER = Message.user("u"), Message.assistant("a")


def thinking(text: str) -> Message:
    return Message.assistant(text, parts=THOUGHT.parts)


def call(*ids: str) -> Message:
    return Message.assistant(tool_calls=[ToolCall(id=key, name="t") for key in ids])


def result(key: str) -> Message:
    return Message.tool("r", tool_call_id=key)


def test_a_turn_begins_at_its_user_message() -> None:
    messages = [ANSWER, USER, ANSWER, USER, ANSWER, ANSWER]
    assert last_turn_start(messages) == 3
    assert last_turn_start(messages, end=3) == 1
    assert last_turn_start(messages, end=1) == 0
    assert last_turn_start(messages, start=4) == 4
    assert last_turn_start([]) == 0


def test_parallel_calls_take_their_results_wherever_they_follow_in_turn() -> None:
    messages = [USER, call("a", "b"), result("b"), ANSWER, result("a"), result("a")]
    assert find_pairs(messages) == [Pair(1, (2, 4, 5), True)]
    assert units(messages) == [range(1), range(1, 6)]


def test_a_result_belongs_to_the_nearest_call_of_its_id() -> None:
    messages = [USER, call("a"), result("a"), call("a"), result("a")]
    assert find_pairs(messages) == [Pair(1, (2,), True), Pair(3, (4,), True)]


def test_id_that_is_called_again_leaves_the_first_call_open() -> None:
    assert find_orphans([USER, call("a"), call("a"), result("a"), ANSWER]) == {1: "open_call"}


def test_what_agent_posted_is_shown_nowhere_and_other_summaries_are() -> None:
    posted, other = Message(role="summary", content="s", visibility="agent"), Message(role="summary", content="s")
    messages = [posted, USER, call("a"), posted, result("a"), ANSWER, other, USER, posted]
    assert find_orphans(messages) == {0: "posted_summary", 3: "posted_summary", 8: "posted_summary"}


def test_an_open_call_takes_the_results_that_it_has_along() -> None:
    messages = [USER, call("a", "b"), result("a"), ANSWER]
    assert find_orphans(messages) == {1: "open_call", 2: "orphan_result"}


def test_only_the_very_last_message_may_have_open_calls() -> None:
    assert find_orphans([USER, call("a")], open_tail=True) == {}
    assert find_orphans([USER, call("a")]) == {1: "open_call"}
    assert find_orphans([USER, call("a"), ANSWER], open_tail=True) == {1: "open_call"}
    assert set(find_orphans([USER, call("a", "b"), result("b")], open_tail=True)) == {1, 2}


def test_a_pair_ends_with_its_turn() -> None:
    messages = [USER, call("a"), USER, result("a")]
    assert find_pairs(messages) == [Pair(1, (), False)]
    assert find_orphans(messages) == {1: "open_call", 3: "orphan_result"}


def test_a_result_without_an_id_belongs_to_no_call() -> None:
    assert find_orphans([USER, call("a"), Message(role="tool", content="r"), result("a")]) == {}
    assert find_orphans([USER, call("a"), Message(role="tool", content="r")]) == {1: "open_call"}


def test_interleaved_pairs_are_one_run() -> None:
    messages = [USER, call("a"), call("b"), result("a"), result("b"), ANSWER]
    assert units(messages) == [range(1), range(1, 5), range(5, 6)]


def test_two_calls_of_one_message_may_share_an_id() -> None:
    assert find_orphans([USER, call("a", "a"), result("a")]) == {}


@given(log=st.lists(turns(), max_size=3), start=st.integers(0, 3), open_tail=st.booleans())
def test_orphans_are_what_no_complete_pair_holds(log: list[list[Message]], start: int, open_tail: bool) -> None:
    messages = [message for turn in log for message in turn if not message.parts]
    start = min(start, len(messages))
    pairs = find_pairs(messages, start)
    whole = {index for pair in pairs if pair.complete for index in pair.results}
    expected = {
        index: "orphan_result"
        for index in range(start, len(messages))
        if messages[index].role == "tool" and index not in whole
    }
    just_made = {len(messages) - 1} if open_tail else set[int]()
    expected |= {pair.call: "open_call" for pair in pairs if not pair.complete and pair.call not in just_made}
    orphans = find_orphans(messages, start, open_tail=open_tail)
    assert orphans == expected
    assert list(orphans) == sorted(orphans)


@given(turn=turns(), open_tail=st.booleans())
def test_what_came_with_reasoning_is_an_orphan_only_whole(turn: list[Message], open_tail: bool) -> None:
    orphans = find_orphans(turn, open_tail=open_tail)
    for run in reasoned_runs(turn, range(len(turn)), len(turn)):
        results = {index for pair in find_pairs(turn) if pair.call in run for index in pair.results}
        assert len({index in orphans for index in (*run, *results)}) == 1


@given(turn=turns())
def test_removing_orphans_leaves_none(turn: list[Message]) -> None:
    orphans = find_orphans(turn)
    assert find_orphans([message for index, message in enumerate(turn) if index not in orphans]) == {}


@given(turn=turns())
def test_runs_cover_a_turn_and_split_no_pair(turn: list[Message]) -> None:
    runs = units(turn)
    assert [index for run in runs for index in run] == list(range(len(turn)))
    for pair in find_pairs(turn):
        (home,) = [run for run in runs if pair.call in run]
        assert all(index in home for index in pair.results)


@given(turn=turns())
def test_no_unit_parts_reasoning_from_what_came_with_it(turn: list[Message]) -> None:
    for run in reasoned_runs(turn, range(len(turn)), len(turn)):
        (home,) = [unit for unit in units(turn) if run.start in unit]
        assert set(run) <= set(home)


def test_reasoning_text_calls_and_results_are_one_unit() -> None:
    messages = [USER, THOUGHT, ANSWER, call("a"), call("b"), result("b"), result("a"), THOUGHT, THOUGHT, ANSWER]
    assert units(messages) == [range(1), range(1, 7), range(7, 10)]
    assert find_orphans(messages) == {}


def test_an_answer_begins_a_unit_where_its_own_reasoning_follows() -> None:
    messages = [USER, thinking("one"), thinking("two"), ANSWER]
    assert units(messages) == [range(1), range(1, 2), range(2, 4)]


def test_reasoning_without_what_it_led_to_is_not_shown() -> None:
    assert find_orphans([USER, THOUGHT]) == {1: "open_reasoning"}
    assert find_orphans([USER, THOUGHT, USER, ANSWER]) == {1: "open_reasoning"}
    assert find_orphans([USER, THOUGHT], open_tail=True) == {}


def test_what_came_with_call_that_is_open_goes_with_it() -> None:
    messages = [USER, THOUGHT, ANSWER, call("a"), call("b"), result("b"), USER]
    assert find_orphans(messages) == {
        1: "open_reasoning",
        2: "open_reasoning",
        3: "open_call",
        4: "open_reasoning",
        5: "orphan_result",
    }


def test_calls_just_made_with_one_reasoning_may_all_be_open() -> None:
    assert find_orphans([USER, THOUGHT, call("a"), call("b")], open_tail=True) == {}
    assert find_orphans([USER, call("a"), call("b")], open_tail=True) == {1: "open_call"}


def test_reasoning_ends_where_its_answer_was_taken_back() -> None:
    first, answer, later, last = stored([THOUGHT, ANSWER, THOUGHT, ANSWER])
    assert find_orphans([first, later, last]) == {0: "open_reasoning"}
    assert find_orphans([first, answer, later, last]) == {}


def test_messages_from_a_log_begin_where_no_reasoning_is_missing() -> None:
    assert first_certain([]) == 0
    assert first_certain(stored([ANSWER, ANSWER])) == 0, "nothing is before them"
    inside = stored([USER, ANSWER, call("a"), result("a"), ANSWER])[1:]
    assert first_certain(inside) == 2
    assert first_certain(stored([USER, ANSWER, thinking("so"), ANSWER])[1:]) == 1
    assert first_certain(stored([USER, ANSWER, ANSWER])[1:]) == 0, "only models speak"


def test_results_come_directly_behind_their_call() -> None:
    first, second = call("a"), call("b")
    messages = [USER, first, second, result("b"), ANSWER, result("a"), USER, result("c")]
    assert in_exchanges(messages) == [USER, first, result("a"), second, result("b"), ANSWER, USER, result("c")]


@given(turn=turns())
def test_exchanges_are_the_same_messages_and_stay_as_they_are(turn: list[Message]) -> None:
    exchanges = in_exchanges(turn)
    assert sorted(map(id, exchanges)) == sorted(map(id, turn))
    assert in_exchanges(exchanges) == exchanges
    for pair in find_pairs(exchanges):
        assert pair.results == tuple(range(pair.call + 1, pair.call + 1 + len(pair.results)))
