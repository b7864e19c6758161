"""Turns that run at once in one session."""

from __future__ import annotations

import random
from collections.abc import Iterable, Sequence

from reactor_memory import Memory, Message
from reactor_memory.models.requests import step_key
from tests.acceptance.scenes import USER


class AtOnce:
    """Turns that run at once in the session ``s``, of which each stores its batches one after the other."""

    def __init__(self, memory: Memory, turns: Sequence[Sequence[Sequence[Message]]]) -> None:
        self._memory = memory
        self._left = [list(turn) for turn in turns]
        self._began: dict[int, int] = {}
        self._last = 0

    def go_on(self, memory: Memory) -> None:
        """In another process."""
        self._memory = memory

    async def store(self, order: Iterable[int]) -> None:
        """The next batch of a turn for each number of the order."""
        for number in order:
            key = step_key(self._began[number], self._last) if number in self._began else None
            batch = self._left[number].pop(0)
            appended = await self._memory.save_history("s", batch, user_id=USER, idempotency_key=key)
            self._last = appended.last_seq
            self._began.setdefault(number, self._last)


def order_of(turns: Sequence[Sequence[object]], chance: random.Random, most_at_once: int) -> list[int]:
    """Which turn does something next: at most so many run at once."""
    left = [len(turn) for turn in turns]
    order: list[int] = []
    while any(left):
        running = [number for number, batches in enumerate(left) if batches][:most_at_once]
        number = chance.choice(running)
        left[number] -= 1
        order.append(number)
    return order
