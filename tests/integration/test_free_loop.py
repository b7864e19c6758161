"""What users and models send never holds the event loop, and with it everybody else, for long."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from reactor_memory.container import Container, open_container
from reactor_memory.models import Message
from reactor_memory.searching import MessageSearch
from reactor_memory.settings import Settings
from tests.loop_watch import free_loop

pytestmark = pytest.mark.anyio


@pytest.fixture(params=["memory", "sqlite"])
async def container(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Container]:
    url = "memory://" if request.param == "memory" else f"sqlite:///{tmp_path}/memory.db"
    async with open_container(Settings(store={"url": url}, search={"enabled": True})) as container:
        yield container


async def test_a_search_that_marks_thousands_of_words(container: Container) -> None:
    manager = container.conversation_manager()
    for _ in range(10):
        await manager.save_history("s", [Message.user("zz1." * 5000)], user_id="ann")
    await container.background_work().run_once()
    search = container.message_search()
    async with free_loop():
        found = await search.search(MessageSearch(text="zz1", user_id="ann"))
    assert len(found.hits) == 10
    assert all("⟦zz1⟧" in hit.highlight for hit in found.hits)
