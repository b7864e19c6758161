"""A turn whose process kills itself (``SIGKILL``) in the middle: a statement and a deed are acknowledged, and of a
second call nobody knows what came of it.

``URL``: prints ``ack`` when the deed is stored, and ``ack call`` when the second call is.
"""

from __future__ import annotations

import asyncio
import sys

from reactor_memory import Message, ToolCall, open_memory
from tests.acceptance.scenes import USER, settings
from tests.proofs.dying_processes import die, say

SAID = "My order number is A-1042, please cancel it and refund 80 EUR."


def call(call_id: str, name: str, **arguments: object) -> Message:
    return Message.assistant(tool_calls=[ToolCall(id=call_id, name=name, arguments=arguments)])


async def act(url: str) -> None:
    async with open_memory(settings(url)) as memory, memory.turn("s", SAID, user_id=USER) as turn:
        done = Message.tool('{"status": "cancelled", "order_id": "A-1042"}', tool_call_id="c1")
        await turn.add(call("c1", "cancel_order", order_id="A-1042"), done)
        say("ack", "deed")
        await turn.add(call("c2", "refund_payment", order_id="A-1042", amount_eur=80))
        say("ack", "call")
        die()


if __name__ == "__main__":
    asyncio.run(act(sys.argv[1]))
