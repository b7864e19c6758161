"""A chat with Gemini that remembers: its session is a file.

pip install reactor-memory
GEMINI_API_KEY=... python examples/providers/gemini_chat.py "My order number is A-1042." "What was my order number?"
"""

from __future__ import annotations

import asyncio
import sys

from google import genai

from reactor_memory import open_memory

MODEL = "gemini-2.5-flash"
SYSTEM = "You are a helpful assistant of a shop."


async def main(texts: list[str]) -> None:
    client = genai.Client()
    async with open_memory("agent.db") as memory:
        for text in texts:
            async with memory.turn("gemini-chat", text, budget=4000, system=SYSTEM) as turn:
                context = turn.context.to_gemini()
                config = {"system_instruction": context.get("system_instruction")}
                answer = await client.aio.models.generate_content(
                    model=MODEL, contents=context["contents"], config=config
                )
                turn.answer(answer.candidates[0].content.model_dump(exclude_none=True))
            print(answer.text)


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1:]))
