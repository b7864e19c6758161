"""A chat with OpenAI that remembers: its session is a file.

pip install reactor-memory openai
OPENAI_API_KEY=... python examples/providers/openai_chat.py "My order number is A-1042." "What was my order number?"
"""

from __future__ import annotations

import asyncio
import sys

from openai import AsyncOpenAI

from reactor_memory import open_memory

MODEL = "gpt-5-mini"
SYSTEM = "You are a helpful assistant of a shop."


async def main(texts: list[str]) -> None:
    async with open_memory("agent.db") as memory, AsyncOpenAI() as client:
        for text in texts:
            async with memory.turn("openai-chat", text, budget=4000, system=SYSTEM) as turn:
                answer = await client.chat.completions.create(model=MODEL, messages=turn.context.to_openai())
                turn.answer(answer.choices[0].message.model_dump())
            print(answer.choices[0].message.content)


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1:]))
