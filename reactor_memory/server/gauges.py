"""What is read from the memory when metrics are asked for."""

from __future__ import annotations

from collections.abc import Mapping

import anyio

from reactor_memory.core.log import background_work
from reactor_memory.errors import StoreError
from reactor_memory.features.search import operations as search
from reactor_memory.models.requests import SUMMARIZE
from reactor_memory.server.readiness import READY_SECONDS
from reactor_memory.wiring.service_container import ServiceContainer

MOST_WORK = 1000

GAUGES = {
    "store_up": "1 if the database answered now.",
    "open_streams": "Responses that are being followed in this process.",
    "summary_work_due": f"Conversations that wait for their summary, {MOST_WORK} at most; of the whole database.",
    "summary_work_failing": f"Those whose last try failed, {MOST_WORK} at most; of the whole database.",
    "summary_work_parked": f"Those that were given up until somebody asks, {MOST_WORK} at most; of the whole database.",
    "summary_tokens_today": "Tokens spent on summaries this day (UTC); of the whole database.",
    "search_words_waiting": "Messages whose words are not indexed yet; of the whole database.",
    "search_meanings_waiting": "Messages that were not embedded yet; of the whole database.",
    "search_parked": "Messages that were given up by search; of the whole database.",
    "summarizer_breaker_open": "1 while the provider of summaries is left alone after failures.",
}


class Readings:
    """Reads the gauges. What the database does not tell in time is left out."""

    def __init__(self, container: ServiceContainer) -> None:
        self._summaries = container.summary_store()
        self._database = container.database()
        self._caps = container.spending_caps()
        self._breaker = container.breaker()
        self._streams = container.response_streams()
        self._clock = container.clock()
        self._searches = container.settings().search.enabled
        self._embedder = container.embedder() if self._searches else None

    async def read(self) -> Mapping[str, float]:
        values = {
            "open_streams": self._streams.open_streams,
            "summarizer_breaker_open": float(self._breaker.is_open),
            "store_up": 0.0,
        }
        try:
            with anyio.move_on_after(READY_SECONDS):
                return values | await self._stored() | await self._waiting() | {"store_up": 1.0}
        except StoreError:
            pass
        return values

    async def _stored(self) -> dict[str, float]:
        due = await self._summaries.due([SUMMARIZE], now=self._clock(), limit=MOST_WORK)
        work = await self._database.read(background_work.list_work, SUMMARIZE, limit=MOST_WORK)
        parked = sum(each.parked for each in work)
        return {
            "summary_work_due": len(due[SUMMARIZE]),
            "summary_work_failing": len(work) - parked,
            "summary_work_parked": parked,
            "summary_tokens_today": await self._caps.spent_today(),
        }

    async def _waiting(self) -> dict[str, float]:
        if not self._searches:
            return {}
        backlog = await self._database.read_long(
            search.search_backlog, model=self._embedder.name if self._embedder else None
        )
        return {
            "search_words_waiting": backlog.words,
            "search_meanings_waiting": backlog.meanings,
            "search_parked": backlog.parked,
        }
