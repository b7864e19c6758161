"""The graph that the development server of LangGraph loads: an agent with our memory and our store."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from langchain.agents import create_agent
from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
from langchain_core.messages import AIMessage

from reactor_memory import open_memory
from reactor_memory.adapters.langchain import ReactorMemoryMiddleware
from reactor_memory.adapters.langgraph import ReactorMemoryStore


class CountingModel(GenericFakeChatModel):
    """Says how many messages it was shown."""

    def _generate(self, messages: list[Any], *args: Any, **kwargs: Any) -> Any:
        self.messages = iter([AIMessage(f"saw {len(messages)}")])
        return super()._generate(messages, *args, **kwargs)


@asynccontextmanager
async def agent() -> AsyncIterator[Any]:
    async with open_memory("sqlite:///memory.db") as memory:
        store = ReactorMemoryStore(memory)
        await store.aput(("seen",), "k", {"n": 1})
        assert [item.key for item in await store.asearch(("seen",))] == ["k"]
        model = CountingModel(messages=iter([]))
        yield create_agent(model, middleware=[ReactorMemoryMiddleware(memory)], store=store)
