"""A chat with Claude that remembers: its session is a file.

pip install reactor-memory anthropic
ANTHROPIC_API_KEY=... python examples/providers/anthropic_chat.py "My order number is A-1042." "What was it again?"
"""

from __future__ import annotations

import asyncio
import sys

from anthropic import AsyncAnthropic

from reactor_memory import open_memory

MODEL = "claude-haiku-4-5"
SYSTEM = "You are a helpful assistant of a shop."


async def main(texts: list[str]) -> None:
    async with open_memory("agent.db") as memory, AsyncAnthropic() as client:
        for text in texts:
            async with memory.turn("anthropic-chat", text, budget=4000, system=SYSTEM) as turn:
                answer = await client.messages.create(model=MODEL, max_tokens=1000, **turn.context.to_anthropic())
                turn.answer({"role": answer.role, "content": [block.model_dump() for block in answer.content]})
            print("".join(block.text for block in answer.content if block.type == "text"))


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1:]))
