"""A turn of the story in LangChain: tells, as JSON, what the model was given and what the memory may be asked."""

from __future__ import annotations

import asyncio
import json
import sys
from typing import Any

from langchain.agents import create_agent
from langchain_core.messages import BaseMessage
from langchain_core.tools import tool

from reactor_memory import Settings, open_memory
from reactor_memory.adapters.langchain import ReactorMemoryMiddleware
from tests.adapters.langchain.scripted import ScriptedModel, calling


@tool
def find_order(number: str) -> str:
    """The state of an order."""
    return "" if number == "A-0" else f"order {number} is on its way"


def told(message: BaseMessage) -> dict[str, Any]:
    calls = [call["id"] for call in getattr(message, "tool_calls", [])]
    return {
        "type": message.type,
        "text": message.text,
        "calls": calls,
        "answers": getattr(message, "tool_call_id", None),
    }


async def main(url: str, said: str, *numbers: str) -> None:
    look_up = [calling(*((f"lc{n}", "find_order", {"number": number}) for n, number in enumerate(numbers)), text="")]
    model = ScriptedModel(answers=[*(look_up if numbers else []), "I have looked it up."])
    async with open_memory(Settings(store={"url": url}, summary={"enabled": True})) as memory:
        middleware = ReactorMemoryMiddleware(memory, session_id="story", user_id="anna", budget=600)
        agent = create_agent(model, [find_order], middleware=[middleware])
        await agent.ainvoke({"messages": [{"role": "user", "content": said}]})
    print(json.dumps([told(message) for message in model.seen[-1]]))


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
