"""An open memory, and no traces sent anywhere."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator

import pytest
from agents import set_tracing_disabled

from reactor_memory import ConversationManager, Settings, open_container


@pytest.fixture(autouse=True)
def no_traces() -> Iterator[None]:
    set_tracing_disabled(True)
    yield
    set_tracing_disabled(False)


@pytest.fixture
async def manager() -> AsyncIterator[ConversationManager]:
    """A memory that summarizes, offline."""
    settings = Settings(store={"url": "memory://"}, summary={"enabled": True})
    async with open_container(settings) as container:
        yield container.conversation_manager()
