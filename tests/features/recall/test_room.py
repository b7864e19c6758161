"""How much of a budget recall may take, and from what."""

from __future__ import annotations

from typing import Any

import pytest

from reactor_memory.features.recall.choice import tokens_of
from reactor_memory.features.recall.room import (
    LEAST_SHARE,
    PASSAGE_SHARE,
    PASSAGE_TOKENS,
    Room,
    filled,
    had_first,
    room_beside,
    room_of,
)
from reactor_memory.models import Message
from reactor_memory.models.block_lines import BlockLine
from reactor_memory.models.index_requests import IndexHit, Passage


def room(**given: Any) -> Room:
    usual = {"budget": 2_000, "free": 0, "memory": 900, "spare": 400, "newest": 500, "others": 100, "share": 0.75}
    return room_of(**(usual | {"is_explicit": False} | given))


def test_a_message_that_asks_takes_from_the_window_alone() -> None:
    assert room() == Room(most=int(LEAST_SHARE * 2_000), free=0, memory=0)


def test_a_query_that_found_little_takes_what_is_free() -> None:
    assert room(is_explicit=True, may_take=False, free=120) == Room(most=120, free=120, memory=0)
    assert room(is_explicit=True, free=120) == Room(most=900, free=520, memory=400)


@pytest.mark.parametrize("newest", [760, 950, 1_000])
def test_memory_gives_way_where_the_newest_turns_leave_no_room(newest: int) -> None:
    found = room(newest=newest)
    assert found.memory == int(LEAST_SHARE * 2_000) - (1_000 - newest)
    assert found.most == int(LEAST_SHARE * 2_000)


@pytest.mark.parametrize("budget", [600, 800, 1_000, 1_500])
def test_a_small_budget_holds_a_whole_passage_that_answers(budget: int) -> None:
    memory, newest = int(0.65 * budget), int(0.15 * budget)
    passage = min(PASSAGE_TOKENS, int(PASSAGE_SHARE * budget))
    found = room(budget=budget, memory=memory, newest=newest, others=20, spare=int(0.4 * budget))
    assert found.most >= passage
    assert found.memory == max(0, passage - (budget - 20 - memory - newest))


def test_memory_keeps_its_share() -> None:
    assert room(newest=1_000, spare=130) == Room(most=130, free=130, memory=130)


def test_who_asks_for_something_gets_what_memory_can_spare() -> None:
    assert room(is_explicit=True, share=0.9) == Room(most=900, free=400, memory=400)


def test_what_answers_no_better_takes_only_what_is_free() -> None:
    assert room(may_take=False) == Room(most=0, free=0, memory=0)
    assert room(may_take=False, free=90) == Room(most=90, free=90, memory=0)
    assert room(may_take=False, newest=1_000) == Room(most=0, free=0, memory=0)


def hit(seq: int, score: float, tokens: int = 30) -> IndexHit:
    return IndexHit(passage=Passage(seq=seq, start=0, end_seq=seq, end=5, tokens=tokens), score=score)


def seqs(hits: list[IndexHit]) -> list[int]:
    return [each.passage.seq for each in hits]


BEST, WEAK = hit(3, 9.0), hit(8, 0.4)


def test_free_room_takes_what_answers_less_and_what_left() -> None:
    left = [Message.user(f"words of message {seq}", seq=seq) for seq in (20, 22, 24)]
    found, shown = [BEST, hit(30, 5.0), WEAK, hit(22, 0.1)], frozenset({30})
    assert seqs(filled([BEST], found, left, shown, Room(1_000, 1_000, 0))) == [3, 8, 22, 24, 20]
    assert seqs(filled([BEST], found, (), shown, Room(1_000, tokens_of([BEST, WEAK]), 0))) == [3, 8]


def test_nothing_gives_way_for_what_fills() -> None:
    assert seqs(filled([BEST], [BEST, WEAK], (), frozenset(), Room(1_000, 60, 0))) == [3]
    assert seqs(filled([BEST], [BEST, WEAK], (), frozenset(), Room(1_000, 1_000, 950))) == [3]


def test_what_leaves_the_window_comes_back_before_others() -> None:
    found = [hit(3, 9.0), hit(20, 5.0), hit(8, 4.0), hit(22, 0.4)]
    had = frozenset({20, 22})
    assert seqs(had_first(found, frozenset(), had, 0.5)) == [3, 20, 8, 22]
    assert seqs(had_first(found, frozenset({20}), had, 0.5)) == [3, 8, 22]
    assert seqs(had_first(found, frozenset(), frozenset(), 0.5)) == [3, 20, 8, 22]


def test_lines_of_memory_take_of_the_same_room() -> None:
    lines = [BlockLine(text="one", tokens=40), BlockLine(text="two", tokens=25)]
    assert room_beside(Room(200, 100, 30), lines) == Room(135, 35, 30)
    assert room_beside(Room(50, 20, 0), lines) == Room(0, 0, 0)
