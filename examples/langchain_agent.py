"""An agent of LangChain that calls tools and remembers an order number after forty other turns, in 1,000 tokens.

python examples/langchain_agent.py                                           # a scripted model, offline
GEMINI_API_KEY=... python examples/langchain_agent.py google_genai:gemini-...    # with langchain-google-genai
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Sequence
from typing import Any

from langchain.agents import create_agent
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.tools import tool

from reactor_memory import open_memory
from reactor_memory.adapters.langchain import LongTermMemoryTool, ReactorMemoryMiddleware


@tool
def find_order(number: str) -> str:
    """Where an order is."""
    return f"order {number} is in Ulm"


class ScriptedModel(BaseChatModel):
    """Looks an order up and notes something at once, if it can see the number of the order."""

    @property
    def _llm_type(self) -> str:
        return "scripted"

    def bind_tools(self, tools: Sequence[Any], **options: Any) -> ScriptedModel:
        return self

    def _generate(self, messages: list[BaseMessage], *arguments: Any, **options: Any) -> ChatResult:
        return ChatResult(generations=[ChatGeneration(message=self._answer(messages))])

    def _answer(self, messages: list[BaseMessage]) -> AIMessage:
        if messages[-1].type == "tool":
            found = next(message.text for message in messages if message.type == "tool" and "order" in message.text)
            return AIMessage(f"Your {found}.")
        if "Where" not in messages[-1].text:
            return AIMessage("I see.")
        if not any("A-1042" in message.text for message in messages):
            return AIMessage("I do not know which order you mean.")
        note = {"operation": "append", "content": "Asks about order A-1042."}
        calls = [("call-1", "find_order", {"number": "A-1042"}), ("call-2", "manage_long_term_memory", note)]
        return AIMessage("", tool_calls=[{"id": id_, "name": name, "args": args} for id_, name, args in calls])


async def main(model: str | None) -> None:
    async with open_memory("memory://") as memory:
        agent = create_agent(
            model or ScriptedModel(),
            [find_order, LongTermMemoryTool(memory, "u1", "desk")],
            system_prompt="Answer in one sentence.",
            middleware=[ReactorMemoryMiddleware(memory, user_id="u1", budget=1000)],
        )

        async def ask(text: str) -> str:
            thread = {"configurable": {"thread_id": "session-1"}}
            result = await agent.ainvoke({"messages": [{"role": "user", "content": text}]}, thread)
            return result["messages"][-1].text

        await ask("My order number is A-1042.")
        for _ in range(40 if model is None else 10):
            await ask("Tell me a little more about rivers, I like to listen to you when you talk about them.")
        await memory.drain()
        answer = await ask("Where is my order?")
        stored = await memory.read_messages("session-1", user_id="u1")
        print(f"{len(stored)} messages later: {answer}")
        print(f"Noted: {(await memory.notes.read('u1', 'desk')).text}")


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1] if len(sys.argv) > 1 else None))
