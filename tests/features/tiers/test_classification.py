"""Tiers by the number of messages, with turns and pairs whole."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from reactor_memory.features.tiers.classification import COMPRESSED, CONDENSED, Tiers, TierSizes, classify, cuts
from reactor_memory.models import Message, ToolCall
from reactor_memory.models.turns import find_pairs
from tests.core.context.histories import logs, stored
from tests.scenes.tables import each_row

sizes = st.builds(
    TierSizes, recent_count=st.integers(0, 12), condensed_count=st.integers(0, 20), longest_turn=st.integers(1, 30)
)


def talk(messages: int) -> tuple[Message, ...]:
    return stored([Message.user("q") if number % 2 else Message.assistant("a") for number in range(1, messages + 1)])


def seqs(messages: tuple[Message, ...]) -> list[int | None]:
    return [message.seq for message in messages]


@each_row(
    ("length", "compress", "condense", "recent"),
    [(0, 0, 0, 0), (20, 0, 0, 20), (22, 0, 2, 20), (70, 0, 50, 20), (72, 2, 50, 20), (102, 32, 50, 20)],
)
def test_newest_20_stay_50_before_are_condensed_rest_is_compressed(
    length: int, compress: int, condense: int, recent: int
) -> None:
    tiers = classify(talk(length), TierSizes())
    assert (len(tiers.to_compress), len(tiers.to_condense), len(tiers.recent)) == (compress, condense, recent)


def test_a_turn_is_recent_as_a_whole() -> None:
    tiers = classify(talk(41), TierSizes(recent_count=2, condensed_count=2))  # the last turn has no answer yet
    assert seqs(tiers.recent) == [39, 40, 41]
    assert seqs(tiers.to_condense) == [37, 38]


def test_without_recent_messages_a_turn_that_goes_on_still_stays() -> None:
    none = TierSizes(recent_count=0, condensed_count=4)
    assert seqs(classify(talk(10), none).recent) == []
    assert seqs(classify(talk(11), none).recent) == [11]


def test_an_over_long_turn_is_cut_between_its_pairs() -> None:
    traffic = [
        message
        for number in range(6)
        for message in (
            Message.assistant(tool_calls=[ToolCall(id=f"c{number}", name="look")]),
            Message.tool("found", tool_call_id=f"c{number}"),
        )
    ]
    tiers = classify(
        stored([Message.user("q"), *traffic]), TierSizes(recent_count=3, condensed_count=3, longest_turn=8)
    )
    assert seqs(tiers.recent) == [10, 11, 12, 13]
    assert seqs(tiers.to_condense) == [6, 7, 8, 9]
    assert seqs(tiers.to_compress) == [1, 2, 3, 4, 5]


def test_call_that_may_still_be_answered_stays_with_its_results() -> None:
    calls = [ToolCall(id="c1", name="look"), ToolCall(id="c2", name="look")]
    open_turn = [Message.user("q"), *[Message.assistant("thinking")] * 5, Message.assistant(tool_calls=calls)]
    log = stored([*open_turn, Message.tool("one", tool_call_id="c1")])
    tiers = classify(log, TierSizes(recent_count=0, condensed_count=2, longest_turn=2))
    assert seqs(tiers.recent) == [7, 8]


def test_what_precedes_a_call_still_open_goes_last() -> None:
    slow, quick = (Message.assistant(tool_calls=[ToolCall(id=key, name="look")]) for key in ("slow", "quick"))
    turn = [
        Message.user("q"),
        *[Message.assistant("thinking")] * 4,
        slow,
        quick,
        Message.tool("one", tool_call_id="quick"),
    ]
    sizes = TierSizes(recent_count=2, condensed_count=2, longest_turn=2)
    assert seqs(classify(stored(turn), sizes).recent) == [6, 7, 8]


@given(log=logs(), sizes=sizes)
def test_every_message_is_in_exactly_one_tier(log: tuple[Message, ...], sizes: TierSizes) -> None:
    tiers = classify(log, sizes)
    assert tiers.to_compress + tiers.to_condense + tiers.recent == log
    assert len(tiers.recent) >= min(sizes.recent_count, len(log))
    if tiers.to_compress:
        assert len(tiers.to_condense) >= sizes.condensed_count


@given(log=logs(), sizes=sizes)
def test_pairs_never_straddle_a_border(log: tuple[Message, ...], sizes: TierSizes) -> None:
    for cut in cuts(log, sizes.longest_turn):
        for pair in find_pairs(log):
            assert pair.call >= cut or not pair.results or pair.results[-1] < cut


@given(log=logs(), sizes=sizes)
def test_no_pair_straddles_border_when_its_last_result_comes_later(log: tuple[Message, ...], sizes: TierSizes) -> None:
    """What was classified stays right when the turn goes on with the results that were missing."""
    waiting = [call.id for message in log[-1:] for call in message.tool_calls if message.role == "assistant"]
    later = stored([*log, *(Message.tool("late", tool_call_id=key) for key in waiting)])
    border = len(classify(log, sizes).to_compress) + len(classify(log, sizes).to_condense)
    for pair in find_pairs(later):
        if pair.results and pair.results[-1] >= len(log):
            assert pair.call >= border


def test_a_level_puts_everything_into_one_tier() -> None:
    log = talk(102)
    assert len(classify(log, TierSizes().at(CONDENSED)).to_condense) == 82
    assert len(classify(log, TierSizes().at(COMPRESSED)).to_compress) == 82
    assert classify(log, TierSizes().at(None)) == classify(log, TierSizes())
    assert classify((), TierSizes()) == Tiers()
