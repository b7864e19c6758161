"""A streamed answer: it is saved once it is complete. A stream that breaks leaves the user message alone.

python examples/streaming.py
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence

from reactor_memory import Message, open_memory


async def stream_model(messages: Sequence[Message], *, breaks: bool = False) -> AsyncIterator[str]:
    for word in f"you said: {messages[-1].content}".split():
        if breaks and word == "goodbye":
            raise ConnectionError("the stream broke")
        yield word + " "


async def main() -> None:
    async with open_memory("memory://") as memory:
        async with memory.turn("stream", "hello there") as turn:
            async for chunk in turn.stream(stream_model(turn.messages())):
                print(chunk, end="", flush=True)
        print()
        try:
            async with memory.turn("stream", "and goodbye") as turn:
                async for _ in turn.stream(stream_model(turn.messages(), breaks=True)):
                    pass
        except ConnectionError as error:
            print(f"failed: {error}")
        for message in await memory.read_messages("stream"):
            print(f"{message.seq} {message.role}: {message.content}")


if __name__ == "__main__":
    asyncio.run(main())
