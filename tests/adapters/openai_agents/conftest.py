"""An open memory, and no traces sent anywhere."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator

import pytest
from agents import set_tracing_disabled

from reactor_memory import Memory, Settings, open_memory


@pytest.fixture(autouse=True)
def no_traces() -> Iterator[None]:
    set_tracing_disabled(True)
    yield
    set_tracing_disabled(False)


@pytest.fixture
async def memory() -> AsyncIterator[Memory]:
    """A memory that summarizes, offline."""
    settings = Settings(store={"url": "memory://"}, summary={"enabled": True})
    async with open_memory(settings) as memory:
        yield memory
