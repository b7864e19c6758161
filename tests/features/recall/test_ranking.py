"""Rare terms count for more; what is searched in parts ranks as if it were searched at once."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from reactor_memory.features.recall.entries import message_entries, searchable
from reactor_memory.features.recall.ranking import Postings, joined, rarity, scored
from reactor_memory.models import Message, ToolCall
from reactor_memory.models.index_requests import IndexAnswer

WORDS = st.sampled_from(["table", "taxi", "walrus", "door", "seven"])
LOGS = st.lists(st.lists(WORDS, min_size=1, max_size=5).map(" ".join), min_size=2, max_size=12).map(
    lambda texts: [Message.user(text, seq=seq) for seq, text in enumerate(texts, start=1)]
)


def findings(messages: list[Message], query: list[str]) -> IndexAnswer:
    postings = Postings()
    postings.add(message_entries(messages))
    found, frequencies = postings.find(query, last=1000)
    return IndexAnswer(found=tuple(found), frequencies=frequencies, total=len(messages))


def test_a_rare_term_says_more() -> None:
    assert rarity(1, 100) > rarity(2, 100) > rarity(100, 100) > 0
    assert rarity(5, 0) > 0


def test_a_short_entry_outranks_a_long_one_the_newer_wins() -> None:
    texts = enumerate(["taxi and many other words", "taxi", "taxi"], start=1)
    log = [Message.user(text, seq=seq) for seq, text in texts]
    assert [each.seq for each in scored(findings(log, ["taxi"])).found] == [3, 2, 1]


@given(LOGS, st.integers(1, 11), st.lists(WORDS, min_size=1, max_size=3, unique=True))
def test_two_parts_rank_like_one(log: list[Message], cut: int, query: list[str]) -> None:
    whole = scored(findings(log, query))
    parts = scored(joined(findings(log[:cut], query), findings(log[cut:], query)))
    assert [(each.seq, each.score) for each in parts.found] == [(each.seq, each.score) for each in whole.found]


@given(LOGS, st.integers(1, 12))
def test_postings_before_a_message_know_nothing_of_later_ones(log: list[Message], border: int) -> None:
    postings = Postings()
    postings.add(message_entries(log))
    found, _ = postings.before(border).find(["table", "taxi"], last=1000)
    assert all(each.seq < border for each in found)


def test_tool_arguments_are_searched_and_long_texts_only_in_front() -> None:
    call = ToolCall(id="c", name="cancelOrder", arguments={"order": {"id": 4711}})
    assert searchable(Message.assistant("ok", tool_calls=[call])).split() == ["ok", "cancelOrder", "order.id", "4711"]
    assert len(searchable(Message.user("x" * 100_000))) == 20_000


def test_a_turn_goes_from_a_user_message_to_the_next() -> None:
    log = [
        *(Message.assistant("hello", seq=1), Message.user("a", seq=2), Message.assistant("b", seq=3)),
        Message.user("c", seq=5),
    ]
    assert [entry.turn for entry in message_entries(log)] == [(1, 1), (2, 3), (2, 3), (5, 5)]
