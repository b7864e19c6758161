"""Memory as one function of a pipeline of middlewares.

python examples/pipeline.py
"""

from __future__ import annotations

import asyncio

from reactor_memory import Message, open_memory
from reactor_memory.adapters.middleware import ModelCall, memory_middleware


async def echo(call: ModelCall) -> Message:
    """The end of the pipeline: the model."""
    return Message.assistant(f"{len(call.messages)} messages reached the model")


async def main() -> None:
    async with open_memory("memory://") as memory:
        remember = memory_middleware(memory, budget=2000)
        for text in ("first", "second", "third"):
            call = ModelCall(session_id="pipeline", message=Message.user(text), user_id="u1")
            answer = await remember(call, echo)
            print(f"{text}: {answer.content}")


if __name__ == "__main__":
    asyncio.run(main())
