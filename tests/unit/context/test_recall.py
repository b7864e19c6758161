"""Older turns that answer a query come back whole, best first within their room."""

from __future__ import annotations

from reactor_memory.context.recall import TurnRanking
from reactor_memory.models import Message, ToolCall


def turn(number: int, question: str, answer: str) -> tuple[Message, Message]:
    return Message.user(question, seq=2 * number - 1), Message.assistant(answer, seq=2 * number)


LOG = (
    *turn(1, "I would like a table at the Blue Door", "Booked for seven"),
    *turn(2, "What is the weather?", "It rains"),
    *turn(3, "And a taxi to the Blue Door please", "On its way"),
    *turn(4, "What is the weather tomorrow?", "Sun"),
)


def best(query: str, room: int = 1000) -> list[int]:
    ranking = TurnRanking(query)
    ranking.add(LOG[:3])  # pages may end inside a turn
    ranking.add(LOG[3:])
    return [message.seq or 0 for message in ranking.best(room, count=lambda message: 10)]


def test_turns_come_whole_and_in_the_order_of_the_log() -> None:
    assert best("who takes me to the BLUE door?") == [1, 2, 5, 6]


def test_the_best_turn_comes_first_when_there_is_room_for_one() -> None:
    assert best("a taxi to the blue door", room=20) == [5, 6]


def test_a_query_without_a_hit_recalls_nothing() -> None:
    assert best("Zürich") == []
    assert TurnRanking("anything").best(100, count=lambda message: 1) == ()


def test_arguments_of_tool_calls_are_searched() -> None:
    ranking = TurnRanking("order 4711")
    call = ToolCall(id="c", name="cancel", arguments={"order": "4711"})
    ranking.add([Message.user("please", seq=1), Message.assistant(tool_calls=[call], seq=2)])
    assert [message.seq for message in ranking.best(100, count=lambda message: 1)] == [1, 2]
