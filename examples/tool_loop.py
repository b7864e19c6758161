"""A turn in which the model calls tools: every call of the model gets a context that fits the budget.

python examples/tool_loop.py
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from reactor_memory import Message, ToolCall, open_memory

STOCK = {"tea": 12, "coffee": 0}


async def scripted_model(messages: Sequence[Message]) -> Message:
    """Asks for the stock once, then answers from the result: what a model with tools does, without the model."""
    last = messages[-1]
    if last.role == "user":
        call = ToolCall(id="call-1", name="look_up_stock", arguments={"item": "tea"})
        return Message.assistant(tool_calls=[call])
    return Message.assistant(f"There are {last.content} packs of tea left.")


def run_tool(call: ToolCall) -> Message:
    item = call.arguments["item"] if isinstance(call.arguments, dict) else "tea"
    return Message.tool(str(STOCK[item]), tool_call_id=call.id, name=call.name)


async def main() -> None:
    async with open_memory("memory://") as memory:
        async with memory.turn("tools", "How much tea is left?", budget=2000) as turn:
            reply = await scripted_model(turn.messages())
            while reply.tool_calls:
                await turn.add(reply, *(run_tool(call) for call in reply.tool_calls))
                reply = await scripted_model(turn.messages())
            turn.answer(reply)
        for message in await memory.read_messages("tools"):
            calls = ", ".join(f"{call.name}({call.arguments})" for call in message.tool_calls)
            print(f"{message.seq} {message.role}: {message.content or calls}")


if __name__ == "__main__":
    asyncio.run(main())
