"""What the suites of all adapters share."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager
from typing import NamedTuple

import pytest

from reactor_memory import Memory, open_memory
from tests.scenes.loop_watch import free_loop


class FreeMemory(NamedTuple):
    """A memory, and `watched`, inside which no step of its event loop may take long."""

    memory: Memory
    watched: Callable[[], AbstractAsyncContextManager[None]]


@pytest.fixture
async def free_memory() -> AsyncIterator[FreeMemory]:
    """An adapter does its work in another thread than the memory, or lets it go on."""
    async with open_memory("memory://") as memory:
        yield FreeMemory(memory, free_loop)
