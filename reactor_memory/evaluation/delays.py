"""Random delays in the work of a container: a replay with them must give the same bytes as one without."""

from __future__ import annotations

import inspect
import random
from typing import Any, cast

import anyio
from dependency_injector import providers

from reactor_memory.wiring.container import Container

LONGEST_SECONDS = 0.004
SHARE = 0.2
"""So many calls are delayed, before and after; every other one only lets other tasks go first."""


class Delayed:
    """Another part, each of whose asynchronous methods now and then takes its time."""

    def __init__(self, part: object, chance: random.Random) -> None:
        self._part = part
        self._chance = chance

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._part, name)
        if not inspect.iscoroutinefunction(found):
            return found

        async def call(*arguments: Any, **options: Any) -> Any:
            await self._pause()
            answer = await found(*arguments, **options)
            await self._pause()
            return answer

        return call

    async def _pause(self) -> None:
        await anyio.sleep(self._chance.random() * LONGEST_SECONDS if self._chance.random() < SHARE else 0)


def delay(container: Container, seed: int) -> None:
    """Delay the stores and the summarizer of a container; call it before anything is made."""
    chance = random.Random(seed)  # noqa: S311
    log, summaries = container.message_store(), container.summary_store()
    delayed = Delayed(log, chance)
    _override(container.message_store, delayed)
    _override(container.summary_store, delayed if summaries is log else Delayed(summaries, chance))
    if container.settings().summary.enabled:
        _override(container.summarizer, Delayed(container.summarizer(), chance))


def _override(provider: object, by: object) -> None:
    cast("Any", provider).override(providers.Object(by))
