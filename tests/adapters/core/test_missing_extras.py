"""The package without extras, for real: an adapter says what to install, and the rest works."""

from __future__ import annotations

from importlib import import_module

import pytest

from reactor_memory import Message, open_memory
from reactor_memory.errors import MissingExtraError
from reactor_memory.settings.settings import Settings

ADAPTERS = {
    "openai_agents": ("openai-agents", "openai-agents"),
    "mcp": ("mcp", "mcp"),
    "langchain": ("langchain", "langchain"),
    "langchain_postgres": ("langchain-core", "langchain"),
    "langgraph": ("langgraph", "langgraph"),
}


@pytest.mark.parametrize("adapter", ADAPTERS)
def test_an_adapter_names_the_extra_that_it_needs(adapter: str) -> None:
    package, extra = ADAPTERS[adapter]
    with pytest.raises(MissingExtraError) as raised:
        import_module(f"reactor_memory.adapters.{adapter}")
    assert (raised.value.package, raised.value.extra) == (package, extra)
    assert f"pip install 'reactor-memory[{extra}]'" in str(raised.value)


@pytest.mark.anyio
async def test_the_library_needs_no_extra() -> None:
    async with open_memory(Settings(store={"url": "memory://"}, summary={"enabled": True})) as memory:
        await memory.save_history("s", [Message.user("My order number is A-1042.")])
        assert [message.content for message in (await memory.load_history("s")).messages] == [
            "My order number is A-1042."
        ]
