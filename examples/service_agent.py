"""An agent behind the HTTP Memory Service: it reads the context, writes its answer piece by piece, and stores it.

Start the service with ``reactor-memory serve --dev``, make a key with ``reactor-memory keys create --client parrot
--agent '*' --allow read,append,respond``, ask something in a conversation (``docs/http-service.md``), then::

    python examples/service_agent.py http://127.0.0.1:8080 $KEY $CONVERSATION
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator, Sequence

from reactor_memory.client import MemoryServiceClient
from reactor_memory.features.sharing.bodies import ContextMessage, CreateAgentMessageRequest


async def model(messages: Sequence[ContextMessage]) -> AsyncIterator[str]:
    """Your model."""
    for word in f"You said: {messages[-1].content}".split():
        yield word + " "


async def answer(client: MemoryServiceClient, conversation_id: str) -> str:
    """Answer the newest message of a conversation; whoever follows the response reads along."""
    context = await client.get_context(conversation_id, budget=2000)
    said = ""
    async with client.write_response(conversation_id, producer="parrot") as writer:
        async for token in model(context.messages):
            said += token
            if not await writer.write(token):
                break  # somebody pressed stop; what was said so far is stored
        message = CreateAgentMessageRequest(role="assistant", content=said)
        stored = await client.append_agent_messages(conversation_id, [message], idempotency_key=writer.response.id)
        writer.message_id = stored.data[0].id
    return said


async def main(address: str, key: str, conversation_id: str) -> None:
    async with MemoryServiceClient(address, api_key=key) as client:
        print(await answer(client, conversation_id))


if __name__ == "__main__":
    if len(sys.argv) != 4:
        sys.exit("usage: service_agent.py ADDRESS KEY CONVERSATION_ID (reactor-memory keys create makes a key)")
    asyncio.run(main(*sys.argv[1:]))
