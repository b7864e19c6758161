"""A store that logs what is appended: never the text, only how much."""

from __future__ import annotations

import logging

from reactor_memory.protocols import Appended, AppendRequest
from reactor_memory.settings import Settings
from reactor_memory.storage.sql_store import SqlStore

logger = logging.getLogger("sample_plugin.store")


class LoggingStore(SqlStore):
    """The store in memory, with a line in the log for each append, for opening and for closing."""

    async def open(self) -> None:
        logger.info("open")
        await super().open()

    async def close(self) -> None:
        await super().close()
        logger.info("close")

    async def append(self, request: AppendRequest) -> Appended:
        appended = await super().append(request)
        logger.info("append messages=%d", len(request.messages))
        return appended


def make_store(settings: Settings) -> LoggingStore:
    return LoggingStore()
