"""LangChain's agent as the agent of the chat server: the turn is stored, the notes are its tool."""

from __future__ import annotations

from collections.abc import AsyncIterator
from types import SimpleNamespace
from typing import Any

import pytest

from reactor_memory import Memory, SessionOwnershipError, Settings, open_memory
from reactor_memory.adapters.langchain import LangChainAgent
from reactor_memory.errors import ChatModelError
from tests.adapters.langchain.scripted import ScriptedModel, calling

pytestmark = pytest.mark.anyio


@pytest.fixture
def with_notes() -> Settings:
    """Settings are read from a file: before the loop runs, as a detector of blocking calls demands."""
    return Settings(store={"url": "memory://"}, notes={"enabled": True})


@pytest.fixture
async def noting(with_notes: Settings) -> AsyncIterator[Memory]:
    async with open_memory(with_notes) as memory:
        yield memory


async def answer(memory: Memory, model: ScriptedModel, message: str, *, user_id: str = "ann") -> str:
    asked: Any = SimpleNamespace(
        user_id=user_id, agent_id="travel", session_id="s", message=message, system="You plan journeys."
    )
    return "".join([piece async for piece in LangChainAgent(model).answer(memory, asked)])


async def test_turn_with_a_tool_is_stored_and_known_later(noting: Memory) -> None:
    note = calling(("c1", "manage_long_term_memory", {"operation": "append", "content": "- window seats"}))
    model = ScriptedModel(answers=[note, "I have written that down.", "Gladly."])
    assert await answer(noting, model, "Remember window seats") == "I have written that down."
    stored = await noting.read_messages("s", user_id="ann", last=10)
    assert [message.role for message in stored] == ["user", "assistant", "tool", "assistant"]
    assert await answer(noting, model, "Book it") == "Gladly."
    told = "".join(str(message.content) for message in model.seen[-1])
    assert "You plan journeys." in told
    assert "- window seats" in told


async def test_failures_are_told_apart(noting: Memory) -> None:
    await answer(noting, ScriptedModel(answers=["hello"]), "hello")
    with pytest.raises(ChatModelError, match="RuntimeError"):
        await answer(noting, ScriptedModel(answers=[RuntimeError("secret")]), "again")
    with pytest.raises(SessionOwnershipError):
        await answer(noting, ScriptedModel(answers=["hello"]), "let me in", user_id="bob")
