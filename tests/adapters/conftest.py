"""What the suites of all adapters share.

With `DETECT_BLOCKING=1` every test of an adapter runs under a detector of blocking calls, as graphs do in the
development server of LangGraph: what our package does on a thread of an event loop may not block it.
"""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractAsyncContextManager
from typing import NamedTuple

import pytest

from reactor_memory import Memory, open_memory
from tests.scenes.loop_watch import free_loop

if os.environ.get("DETECT_BLOCKING"):
    from blockbuster import blockbuster_ctx

    @pytest.fixture(autouse=True)
    def detector(request: pytest.FixtureRequest) -> Iterator[None]:
        if request.node.get_closest_marker("blocking"):
            yield
            return
        with blockbuster_ctx("reactor_memory"):
            yield


class FreeMemory(NamedTuple):
    """A memory, and `watched`, inside which no step of its event loop may take long."""

    memory: Memory
    watched: Callable[[], AbstractAsyncContextManager[None]]


@pytest.fixture
async def free_memory() -> AsyncIterator[FreeMemory]:
    """An adapter does its work in another thread than the memory, or lets it go on."""
    async with open_memory("memory://") as memory:
        yield FreeMemory(memory, free_loop)
