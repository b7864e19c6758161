"""An agent with a tool for the chat server that needs no model: it shows what it was given."""

from __future__ import annotations

import re
from collections.abc import AsyncGenerator
from typing import Any

from reactor_memory import Memory, Message
from reactor_memory.models import ToolCall
from reactor_memory.server.chat_agents import Asked


class OfflineAgent:
    """``remember ...`` writes into the notes by the tool of the library, ``what do you know?`` tells them, ``what did I
    say first?`` tells the oldest user message in the context; everything else is echoed, word by word.
    """

    def __init__(self) -> None:
        self.failure: Exception | None = None

    async def answer(self, memory: Memory, asked: Asked) -> AsyncGenerator[str]:
        given: Any = {"user_id": asked.user_id, "agent_name": asked.agent_id, "system": asked.system}
        async with memory.turn(asked.session_id, asked.message, **given) as turn:
            said = asked.message.lower()
            text = f"You said: {asked.message}"
            if said.startswith("remember "):
                text = await self._note(memory, turn, asked)
            elif said.startswith("what do you know"):
                text = _notes_in(turn.messages()) or "Nothing yet."
            elif said.startswith("what did i say first"):
                text = next(message.content for message in turn.messages() if message.role == "user")
            elif said.startswith("who are you"):
                text = asked.system or "nobody"

            async def words() -> AsyncGenerator[str]:
                for word in re.findall(r"\s*\S+", text):
                    if self.failure is not None:
                        raise self.failure
                    yield word

            async for piece in turn.stream(words()):
                yield piece

    async def _note(self, memory: Memory, turn: Any, asked: Asked) -> str:
        arguments = {"operation": "append", "content": f"- {asked.message[len('remember ') :]}"}
        call = ToolCall(id="c1", name="manage_long_term_memory", arguments=arguments)
        told = await memory.notes.tool(asked.user_id, asked.agent_id)(**arguments)
        await turn.add(Message.assistant("", tool_calls=(call,)), Message.tool(told, tool_call_id="c1"))
        return told if told.startswith("Error") else "I have written that down."


def _notes_in(messages: Any) -> str:
    blocks = (message.content for message in messages if message.role == "system")
    notes = next((block for block in blocks if block.startswith("Agent Notes:")), "")
    return "\n".join(notes.splitlines()[2:])
