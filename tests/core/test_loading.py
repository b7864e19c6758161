"""What a load leaves behind."""

from __future__ import annotations

import gc
from collections.abc import Generator
from contextlib import contextmanager

import pytest

from reactor_memory import Message, Settings, open_memory

pytestmark = pytest.mark.anyio


@contextmanager
def no_collection() -> Generator[None]:
    gc.collect()
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


@pytest.mark.parametrize("asked", [{}, {"budget": 4000, "message": "What was my order number?"}])
async def test_loads_leave_no_cycles_to_the_collector(asked: dict[str, object]) -> None:
    async with open_memory(Settings(store={"url": "memory://"}, background={"enabled": False})) as memory:
        await memory.save_history("s", [Message.user("My order is 4711."), Message.assistant("Noted.")] * 10)
        for _ in range(3):
            await memory.load_history("s", **asked)  # type: ignore[arg-type]
        with no_collection():
            for _ in range(20):
                await memory.load_history("s", **asked)  # type: ignore[arg-type]
            assert gc.collect() < 20 * 5
