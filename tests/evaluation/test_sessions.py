"""Turns, and sessions without their tools."""

from __future__ import annotations

from reactor_memory.evaluation.probes import Probe
from reactor_memory.evaluation.sessions import LabelledSession, split_turns, without_tools
from reactor_memory.models import Message, ToolCall
from tests.scenes.tables import each_row

CALL = ToolCall(id="c1", name="book", arguments={"seats": 2})
ASKS = Message.user("two seats at Luigi's")
CALLS = Message.assistant(tool_calls=[CALL])
SAYS_AND_CALLS = Message.assistant("one moment", tool_calls=[CALL])
RESULT = Message.tool("table 7", tool_call_id="c1")
ANSWERS = Message.assistant("booked")


@each_row(
    ("messages", "lengths"),
    [
        ([], []),
        ([ASKS], [1]),
        ([ASKS, CALLS, RESULT, ANSWERS, ASKS, ANSWERS], [4, 2]),
        ([ANSWERS, ANSWERS, ASKS, ASKS], [2, 1, 1]),
        ([ANSWERS], [1]),
    ],
)
def test_a_turn_begins_with_each_user_message(messages: list[Message], lengths: list[int]) -> None:
    turns = list(split_turns(messages))
    assert [len(turn) for turn in turns] == lengths
    assert [message for turn in turns for message in turn] == messages


def test_text_only_drops_calls_results_and_call_only_messages() -> None:
    session = LabelledSession(name="s", messages=(ASKS, CALLS, SAYS_AND_CALLS, RESULT, ANSWERS))
    assert without_tools(session).messages == (ASKS, Message.assistant("one moment"), ANSWERS)


def test_text_only_asks_for_what_one_remaining_message_answers() -> None:
    said = Probe(question="How many seats at Luigi's?", anchor=("Luigi's",), value=("2", "two"))
    only_in_result = Probe(question="Which table?", anchor=("table",), value=("7",))
    over_two_messages = Probe(question="Booked where?", anchor=("booked",), value=("Luigi's",))
    session = LabelledSession(
        name="s", messages=(ASKS, CALLS, RESULT, ANSWERS), probes=(said, only_in_result, over_two_messages)
    )
    assert without_tools(session).probes == (said,)


def test_text_only_finds_the_evidence_at_its_new_place() -> None:
    messages = (CALLS, RESULT, ASKS, ANSWERS)
    stated = Probe(question="How many?", anchor=("Luigi's",), value=("two",), evidence=(0, 2))
    free = Probe(question="How did it end?", anchor=(), value=("to everybody's delight",), evidence=(3,))
    lost = Probe(question="Which table?", anchor=(), value=("a nice one",), evidence=(1,))
    session = without_tools(LabelledSession(name="s", messages=messages, probes=(stated, free, lost)))
    assert [(probe.question, probe.evidence) for probe in session.probes] == [
        ("How many?", (0,)),
        ("How did it end?", (1,)),
    ]
