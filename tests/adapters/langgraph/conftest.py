"""An open memory, and one on a loop of its own thread for synchronous graphs."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
from anyio.from_thread import start_blocking_portal

from reactor_memory import Memory, Settings, open_memory


@pytest.fixture(params=["memory", "sqlite"])
def settings(request: pytest.FixtureRequest, tmp_path: Path) -> Settings:
    """Made beside the loop: they read the file of settings."""
    url = "memory://" if request.param == "memory" else f"sqlite:///{tmp_path}/memory.db"
    return Settings(
        store={"url": url},  # pyright: ignore
        summary={"enabled": True, "trigger_message_count": 4, "recent_message_count": 2, "segment_message_count": 2},  # pyright: ignore
    )


@pytest.fixture
async def memory(settings: Settings) -> AsyncIterator[Memory]:
    async with open_memory(settings) as memory:
        yield memory


@pytest.fixture(scope="session")
def memory_thread() -> Iterator[Memory]:
    settings = Settings(store={"url": "memory://"})  # pyright: ignore
    with start_blocking_portal() as portal, portal.wrap_async_context_manager(open_memory(settings)) as memory:
        yield memory
