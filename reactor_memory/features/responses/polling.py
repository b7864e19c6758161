"""Noticing what other processes change in a store that does not tell: by looking, ever more seldom."""

from __future__ import annotations

import anyio

from reactor_memory.features.responses.models import Response, ResponseStore

GROWTH = 1.5


class PolledSignals:
    """`ResponseSignals` of any `ResponseStore`: the first look after `min_seconds`, the pauses grow up to
    `max_seconds`. Changes of this process need not wait for it.
    """

    def __init__(self, store: ResponseStore, *, min_seconds: float, max_seconds: float) -> None:
        self._store = store
        self._min_seconds = min_seconds
        self._max_seconds = max_seconds

    async def wait_for_change(self, known: Response, *, timeout_seconds: float) -> Response | None:
        pause, left = self._min_seconds, timeout_seconds
        while True:
            await anyio.sleep(min(pause, left))
            left -= pause
            latest = await self._store.get_response(known.conversation_id, known.response_id)
            if latest != known or left <= 0:
                return latest
            pause = min(pause * GROWTH, self._max_seconds)
