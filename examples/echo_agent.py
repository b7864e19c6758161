"""An agent with a memory, offline: the model is an echo that says what it was given.

Run it twice: the second run remembers the first.

    python examples/echo_agent.py
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from reactor_memory import Message, open_memory


async def echo_model(messages: Sequence[Message]) -> str:
    """Stands where the call of a real model stands: it takes messages and gives a text."""
    return f"I was given {len(messages)} messages; the last one says: {messages[-1].content}"


async def main() -> None:
    async with open_memory("echo-agent.db") as memory:
        for text in ("My order number is A-1042.", "Please send it to Oak Street 5.", "What did I order?"):
            async with memory.turn("echo-session", text, user_id="u1", budget=2000) as turn:
                answer = await echo_model(turn.messages())
                turn.answer(answer)
            print(f"user: {text}\nagent: {answer}\n")


if __name__ == "__main__":
    asyncio.run(main())
