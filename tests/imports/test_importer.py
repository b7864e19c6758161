"""What is stored together, and in which order, while an import prepares what comes next."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing

import anyio
import anyio.lowlevel
import pytest

from reactor_memory import Settings, open_container
from reactor_memory.core.manager import ConversationManager
from reactor_memory.errors import StoreFullError
from reactor_memory.evaluation.transcripts import Line
from reactor_memory.imports.importer import BATCH, Importer, one_ahead
from reactor_memory.models import Message
from reactor_memory.models.requests import Appended, AppendRequest

pytestmark = pytest.mark.anyio


@pytest.fixture
async def manager() -> AsyncIterator[ConversationManager]:
    async with open_container(Settings(store={"url": "memory://"}, tokens={"counter": "estimate"})) as container:
        yield container.conversation_manager()


def line(session_id: str, count: int) -> Line:
    return Line("f:1", session_id, tuple(Message.user(f"text {number}") for number in range(count)), tuple)


class Watched:
    """Stands before a manager: which batches were being stored at the same time. Those of `full` cannot be stored."""

    def __init__(self, manager: ConversationManager, full: str = "") -> None:
        self._manager = manager
        self._full = full
        self._under_way: list[str] = []
        self.together: list[tuple[str, ...]] = []
        manager.save_batch, self._save = self.save_batch, manager.save_batch

    async def save_batch(self, batch: AppendRequest) -> Appended:
        is_first = not self._under_way
        self._under_way.append(f"{batch.session_id} {batch.idempotency_key}")
        await anyio.lowlevel.checkpoint()
        if is_first:
            self.together.append(tuple(self._under_way))
        try:
            if batch.session_id == self._full:
                raise StoreFullError("store: full")
            return await self._save(batch)
        finally:
            self._under_way.pop()


class TestPortions:
    async def test_short_sessions_are_stored_together(self, manager: ConversationManager) -> None:
        watched = Watched(manager)
        importer = Importer(manager, user_id=None)
        told: list[int] = []
        assert await importer.store_lines([line(f"s{n}", BATCH // 2) for n in range(3)], told.append) == BATCH // 2 * 3
        assert watched.together == [("s0 import:0", "s1 import:0"), ("s2 import:0",)]
        assert told == [BATCH, BATCH // 2]

    async def test_a_batch_waits_for_the_one_before_it(self, manager: ConversationManager) -> None:
        watched = Watched(manager)
        importer = Importer(manager, user_id=None, batch=4)
        await importer.store_lines([line("s", 10)], lambda count: None)
        assert watched.together == [("s import:0",), ("s import:4",), ("s import:8",)]

    async def test_nothing_follows_a_batch_that_was_not_stored(self, manager: ConversationManager) -> None:
        watched = Watched(manager, full="s")
        importer = Importer(manager, user_id=None, batch=4)
        with pytest.raises(StoreFullError):
            await importer.store_lines([line("s", 10)], lambda count: None)
        assert watched.together == [("s import:0",)]

    async def test_the_others_of_a_portion_are_stored_nevertheless(self, manager: ConversationManager) -> None:
        Watched(manager, full="s1")
        lines = [line(f"s{number}", 3) for number in range(3)]
        with pytest.raises(StoreFullError):
            await Importer(manager, user_id=None).store_lines(lines, lambda count: None)
        stored = [session.session_id for session in (await manager.list_sessions()).sessions]
        assert sorted(stored) == ["s0", "s2"]

    async def test_what_is_there_is_told_too(self, manager: ConversationManager) -> None:
        importer = Importer(manager, user_id=None)
        await importer.store_lines([line("s", 3)], lambda count: None)
        told: list[int] = []
        assert await importer.store_lines([line("s", 5)], told.append) == 2
        assert await importer.store_lines([line("s", 5)], told.append) == 0
        assert told == [5, 5]


class TestOneAhead:
    def numbers(self, made: list[int]) -> AsyncGenerator[int]:
        async def make() -> AsyncGenerator[int]:
            for number in range(1, 4):
                await anyio.lowlevel.checkpoint()
                made.append(number)
                yield number
            raise OSError("read")

        return make()

    async def test_the_next_value_is_made_while_one_is_used(self) -> None:
        made: list[int] = []
        async with aclosing(one_ahead(self.numbers(made))) as ahead:
            for number in (1, 2, 3):
                assert await anext(ahead) == number
                await anyio.wait_all_tasks_blocked()
                assert made == [1, 2, 3][: number + 1]
            with pytest.raises(OSError, match="read"):
                await anext(ahead)

    async def test_nothing_runs_on_behind_it(self) -> None:
        made: list[int] = []
        steps = self.numbers(made)
        async with aclosing(one_ahead(steps)) as ahead:
            assert await anext(ahead) == 1
        await anyio.wait_all_tasks_blocked()
        assert made in ([1], [1, 2])
        assert await anext(steps, None) is None
