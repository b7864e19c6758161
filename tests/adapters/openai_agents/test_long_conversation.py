"""One long conversation through two sessions: what the model still sees at its end, in a small budget."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from agents import Agent, Runner, Session, SessionSettings, SQLiteSession, function_tool
from openai.types.responses import ResponseOutputItem

from reactor_memory import Memory
from reactor_memory.adapters.openai_agents import ReactorMemorySession
from reactor_memory.tokens.tiktoken_counter import TiktokenCounter
from tests.adapters.openai_agents.scripted import ScriptedModel, calls, says, texts

pytestmark = pytest.mark.anyio

TURNS = 80
BUDGET = 800
LIMIT = 40
OVERHEAD = 4
TOPICS = ("rivers", "castles", "birds", "bread", "music", "ships", "gardens", "clouds", "trains")


@function_tool
def book_table(restaurant: str, guests: int) -> str:
    """Book a table."""
    return json.dumps({"status": "confirmed", "reference": "QX-7731"})


def question(turn: int) -> str:
    if turn == 0:
        return "Hello, my order number is A-1042 and it has not arrived."
    if turn == 3:
        return "Please book a table for 4 at the Golden Lion."
    return f"Please tell me a little more about {TOPICS[turn % len(TOPICS)]}, I like to listen."


def answers(turn: int) -> list[list[ResponseOutputItem]]:
    if turn == 3:
        return [
            [calls("book_table", '{"restaurant": "Golden Lion", "guests": 4}', "c3")],
            [says("The reference is QX-7731.")],
        ]
    topic = TOPICS[turn % len(TOPICS)]
    return [[says(f"Well, about {topic} one could go on and on, and people who know {topic} often do so with joy.")]]


async def hold(session: Session, drain: Callable[[], Any] | None = None) -> list[dict[str, Any]]:
    """The whole conversation; what the model is given in its last turn."""
    model = ScriptedModel(*(answer for turn in range(TURNS) for answer in answers(turn)))
    agent = Agent(name="desk", model=model, tools=[book_table])
    for turn in range(TURNS):
        await Runner.run(agent, question(turn), session=session)
        if drain is not None:
            await drain()
    return model.seen[-1]


async def test_what_was_said_early_is_still_seen_in_the_budget(memory: Memory) -> None:
    settings = SessionSettings(limit=LIMIT)
    ours = await hold(ReactorMemorySession(memory, "s", budget=BUDGET, session_settings=settings), memory.drain)
    plain = SQLiteSession("s", session_settings=settings)
    theirs = await hold(plain)
    plain.close()
    for detail in ("A-1042", "Golden Lion"):
        assert detail in texts(ours)
        assert detail not in texts(theirs)
    assert tokens(ours[:-1]) <= BUDGET < tokens(theirs)
    assert ours[-1]["content"] == theirs[-1]["content"] == question(TURNS - 1)
    newest = [item for item in ours if item.get("role") != "system"]
    assert newest == theirs[-len(newest) :]
    assert len(newest) > 5


def tokens(items: list[dict[str, Any]]) -> int:
    counter = TiktokenCounter("o200k_base")
    return sum(counter.count(said(item)) + OVERHEAD for item in items)


def said(item: dict[str, Any]) -> str:
    content = item.get("content", "")
    return content if isinstance(content, str) else "".join(part["text"] for part in content)
