"""Sessions of any length out of one text."""

from __future__ import annotations

import re

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from reactor_memory.evaluation.bench.bench_sessions import (
    CROWD_SIZE,
    appended,
    crowd_size,
    session_of,
    wanted_sessions,
)
from reactor_memory.models import Message, ToolCall

TEXTS = (
    Message.user("order 31415 again, for 2 at 19:30"),
    Message.assistant(
        "", tool_calls=[ToolCall(id="c1", name="order", arguments={"id": "31415", "seats": 2, "price": 1250})]
    ),
    Message.tool('{"order_id": "31415", "table": 777}', tool_call_id="c1"),
    Message.assistant("Done: 31415."),
)


@given(size=st.integers(1, 30))
def test_a_session_has_its_length_and_ends_with_the_text(size: int) -> None:
    session = list(session_of(TEXTS, size, seed=0))
    assert len(session) == size
    assert session[-4:] == list(TEXTS)[-min(size, 4) :]


def test_the_newest_messages_do_not_depend_on_the_length() -> None:
    longer, shorter = list(session_of(TEXTS, 4000, seed=1)), list(session_of(TEXTS, 1000, seed=1))
    assert longer[-1000:] == shorter


def test_earlier_pass_has_other_numbers_which_agree_with_each_other() -> None:
    user, call, result, answer, *_ = session_of(TEXTS, 8, seed=0)
    order = re.findall(r"\d{3,}", user.content)[0]
    assert order != "31415"
    assert isinstance(call.tool_calls[0].arguments, dict)
    assert call.tool_calls[0].arguments["id"] == order
    assert msgspec.json.decode(result.content)["order_id"] == order
    assert answer.content == f"Done: {order}."


def test_small_numbers_stay_so_that_times_and_amounts_survive() -> None:
    user, call, *_ = session_of(TEXTS, 8, seed=0)
    assert user.content.endswith("again, for 2 at 19:30")
    assert isinstance(call.tool_calls[0].arguments, dict)
    assert call.tool_calls[0].arguments["seats"] == 2


def test_a_result_follows_the_call_of_its_own_pass() -> None:
    session = list(session_of(TEXTS, 40, seed=0))
    ids = [call.id for message in session for call in message.tool_calls]
    assert len(set(ids)) == len(ids) == 10
    assert [message.tool_call_id for message in session if message.role == "tool"] == ids


def test_the_seed_decides_the_numbers() -> None:
    first, again, other = (list(session_of(TEXTS, 40, seed=seed)) for seed in (0, 0, 1))
    assert first == again
    assert first[:-4] != other[:-4]


def test_malformed_arguments_stay_text() -> None:
    text = Message.assistant("", tool_calls=[ToolCall(id="c", name="n", arguments='{"id": 12345')])
    first = next(session_of((text,), 2, seed=0))
    arguments = first.tool_calls[0].arguments
    assert isinstance(arguments, str)
    assert re.fullmatch(r'\{"id": \d{5}', arguments)
    assert arguments != '{"id": 12345'


def test_without_text_there_is_no_session() -> None:
    with pytest.raises(ValueError, match="no text"):
        list(session_of((), 10, seed=0))


@given(size=st.integers(50, 100_000), calls=st.integers(1, 1000))
def test_no_session_that_is_written_grows_by_more_than_fifth(size: int, calls: int) -> None:
    sessions = appended(size, calls)
    most = -(-calls // len(sessions))
    assert 2 * most <= size / 5 + 2


def test_only_what_the_works_need_is_made() -> None:
    assert [each.session_id for each in wanted_sessions(["load_last_20"], [100], 10)] == ["read-100"]
    memories = [each for each in wanted_sessions(["load_hierarchical", "append_turn"], [100, 1000], 10) if each.memory]
    assert [each.size for each in memories] == [100, 1000]
    crowd = [each for each in wanted_sessions(["concurrent_32"], [100], 10) if each.session_id.startswith("crowd-")]
    assert len(crowd) == 96
    assert {each.size for each in crowd} == {100}


def test_a_crowd_is_no_longer_than_the_longest_session() -> None:
    assert crowd_size([100, 200]) == 200
    assert crowd_size([100, 100_000]) == CROWD_SIZE
