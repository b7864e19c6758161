"""A memory on the loop of the test, and one on a loop of its own thread for synchronous agents."""

import asyncio
import threading
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from typing import Any

import pytest

from reactor_memory import ConversationManager, Settings, open_memory


@pytest.fixture
async def manager() -> AsyncIterator[ConversationManager]:
    async with open_memory(Settings(store={"url": "memory://"})) as container:  # pyright: ignore
        yield container.conversation_manager()


@dataclass
class MemoryThread:
    manager: ConversationManager
    loop: asyncio.AbstractEventLoop

    def run(self, work: Any) -> Any:
        return asyncio.run_coroutine_threadsafe(work, self.loop).result()


@pytest.fixture
def memory_thread() -> Iterator[MemoryThread]:
    """An event loop in a thread, as a server has it, with a memory on it."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever)
    thread.start()
    opening = open_memory(Settings(store={"url": "memory://"}))  # pyright: ignore
    container = asyncio.run_coroutine_threadsafe(opening.__aenter__(), loop).result()
    try:
        yield MemoryThread(container.conversation_manager(), loop)
    finally:
        asyncio.run_coroutine_threadsafe(opening.__aexit__(None, None, None), loop).result()
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()
