"""How much of a budget recall may take, and from what."""

from __future__ import annotations

from typing import Any

import pytest

from reactor_memory.features.recall.recaller import LEAST_SHARE, LEAST_TOKENS, Room, room_of


def room(**given: Any) -> Room:
    usual = {"budget": 2_000, "free": 0, "memory": 900, "spare": 400, "newest": 500, "others": 100, "share": 0.75}
    return room_of(**(usual | {"is_explicit": False} | given))


def test_a_message_that_asks_takes_from_the_window_alone() -> None:
    assert room() == Room(most=int(LEAST_SHARE * 2_000), free=0, memory=0)


@pytest.mark.parametrize("newest", [890, 950, 1_000])
def test_memory_gives_way_where_the_newest_turns_leave_no_room(newest: int) -> None:
    found = room(newest=newest)
    assert found.memory == int(LEAST_SHARE * 2_000) - (1_000 - newest)
    assert found.most == int(LEAST_SHARE * 2_000)


def test_memory_keeps_its_share() -> None:
    assert room(newest=1_000, spare=130) == Room(most=130, free=130, memory=130)


def test_memory_gives_no_way_to_a_single_passage() -> None:
    budget = int((2 * LEAST_TOKENS - 1) / LEAST_SHARE)
    assert room(budget=budget, memory=700, newest=budget - 800).memory == 0


def test_who_asks_for_something_gets_what_memory_can_spare() -> None:
    assert room(is_explicit=True, share=0.9) == Room(most=900, free=400, memory=400)
