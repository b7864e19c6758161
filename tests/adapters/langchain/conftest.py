"""A memory on the loop of the test, and one on a loop of its own thread for synchronous agents."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import pytest
from anyio.from_thread import start_blocking_portal

from reactor_memory import Memory, open_memory


@pytest.fixture
async def memory() -> AsyncIterator[Memory]:
    async with open_memory("memory://") as memory:
        yield memory


@dataclass
class MemoryThread:
    memory: Memory

    def run(self, work: Any) -> Any:
        return asyncio.run_coroutine_threadsafe(work, self.memory.loop).result()


@contextmanager
def memory_on_a_thread() -> Iterator[MemoryThread]:
    """A memory on the event loop of a thread of its own, as a server has it."""
    with start_blocking_portal() as portal, portal.wrap_async_context_manager(open_memory("memory://")) as memory:
        yield MemoryThread(memory)


@pytest.fixture
def memory_thread() -> Iterator[MemoryThread]:
    with memory_on_a_thread() as memory:
        yield memory
