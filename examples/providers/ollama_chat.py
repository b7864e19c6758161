"""A chat with a model on this machine that remembers: nothing leaves it, the summaries of the memory included.

pip install reactor-memory openai
ollama pull llama3.2
python examples/providers/ollama_chat.py "My order number is A-1042." "What was my order number?"
"""

from __future__ import annotations

import asyncio
import os
import sys

from openai import AsyncOpenAI

from reactor_memory import open_memory

MODEL = "llama3.2"
SERVER = os.environ.get("OLLAMA_HOST", "http://127.0.0.1:11434")


async def main(texts: list[str]) -> None:
    async with open_memory("agent.db") as memory, AsyncOpenAI(base_url=f"{SERVER}/v1", api_key="ollama") as client:
        for text in texts:
            async with memory.turn("ollama-chat", text, budget=2000) as turn:
                answer = await client.chat.completions.create(model=MODEL, messages=turn.context.to_openai())
                turn.answer(answer.choices[0].message.model_dump())
            print(answer.choices[0].message.content)


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1:]))
