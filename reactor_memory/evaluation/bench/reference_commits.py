"""The reference for many writers: a bare group commit, one transaction for all that wait. Nothing is checked."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any


class Commits:
    def __init__(self, commit: Callable[[list[Any]], Awaitable[Any]]) -> None:
        self.commit = commit
        self.waiting: list[tuple[list[Any], asyncio.Future[None]]] = []
        self.drain: asyncio.Task[None] | None = None

    async def append(self, rows: list[Any]) -> None:
        self.waiting.append((rows, asyncio.get_running_loop().create_future()))
        done = self.waiting[-1][1]
        self.drain = self.drain or asyncio.create_task(self.write_all())
        await done

    async def write_all(self) -> None:
        while batch := self.waiting:
            self.waiting = []
            await self.commit([row for rows, _ in batch for row in rows])
            for _, done in batch:
                done.set_result(None)
        self.drain = None
