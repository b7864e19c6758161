"""Turns of the story with the OpenAI Agents SDK: tells, as JSON, what the model was given in the first and the last."""

from __future__ import annotations

import asyncio
import json
import sys

from agents import Agent, Runner, function_tool, set_tracing_disabled

from reactor_memory import Settings, open_memory
from reactor_memory.adapters.openai_agents import ReactorMemorySession
from tests.adapters.openai_agents.scripted import ScriptedModel, calls, says, thinks

SMALL_TALK = "Please tell me a little more about rivers, I like to listen."
ANSWER = "Well, about rivers one could go on and on, and people who know them often do so with joy."


@function_tool
def book_table(restaurant: str, guests: int) -> str:
    """Book a table."""
    return "" if guests > 6 else f"booked at {restaurant}"


async def main(url: str, small_talk: str) -> None:
    set_tracing_disabled(True)
    both = [
        thinks("two tables"),
        calls("book_table", '{"restaurant":"Golden Lion","guests":4}', "oa1"),
        calls("book_table", '{"restaurant": "Blue Swan", "guests": 9}', "oa2"),
    ]
    chat = [[says(ANSWER)] for _ in range(int(small_talk))]
    model = ScriptedModel(both, [says("The Golden Lion is booked, the Blue Swan is not.")], *chat)
    agent = Agent(name="desk", model=model, tools=[book_table])
    async with open_memory(Settings(store={"url": url}, summary={"enabled": True})) as memory:
        session = ReactorMemorySession(memory, "story", user_id="anna", budget=600)
        for said in ("Book for 4 and for 9.", *[SMALL_TALK for _ in chat]):
            await Runner.run(agent, said, session=session)
            await memory.drain()
    print(json.dumps([model.seen[0], model.seen[-1]]))


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
