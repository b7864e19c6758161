"""An agent of the OpenAI Agents SDK that remembers an order number after sixty other turns, in 1,000 tokens.

python examples/openai_agents.py                   # a scripted model, offline
OPENAI_API_KEY=... python examples/openai_agents.py gpt-...    # a model of OpenAI
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator
from typing import Any

from agents import Agent, Model, ModelResponse, Runner, Usage, set_tracing_disabled
from openai.types.responses import ResponseOutputMessage, ResponseOutputText

from reactor_memory import open_memory
from reactor_memory.adapters.openai_agents import ReactorMemorySession


class ScriptedModel(Model):
    """Says whether it can see the order number."""

    async def get_response(self, system_instructions: Any, input: Any, *rest: Any, **options: Any) -> ModelResponse:  # noqa: A002
        text = "Your order number is A-1042." if "A-1042" in str(input) else "I do not know."
        content = ResponseOutputText(type="output_text", text=text, annotations=[])
        message = ResponseOutputMessage(
            id="msg_1", type="message", role="assistant", status="completed", content=[content]
        )
        return ModelResponse(output=[message], usage=Usage(), response_id=None)

    def stream_response(self, *rest: Any, **options: Any) -> AsyncIterator[Any]:
        raise NotImplementedError


async def main(model: str | None) -> None:
    set_tracing_disabled(True)
    agent = Agent(name="desk", instructions="Answer in one sentence.", model=model or ScriptedModel())
    async with open_memory("memory://") as memory:
        session = ReactorMemorySession(memory, "session-1", budget=1000)
        await Runner.run(agent, "My order number is A-1042.", session=session)
        for _ in range(60 if model is None else 15):
            await Runner.run(agent, "Tell me a little more about rivers, I like to listen.", session=session)
        await memory.drain()
        result = await Runner.run(agent, "What was my order number?", session=session)
        print(f"{len(await memory.read_messages('session-1'))} messages later: {result.final_output}")


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1] if len(sys.argv) > 1 else None))
