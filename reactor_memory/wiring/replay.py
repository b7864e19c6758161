"""How replay is wired."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from reactor_memory.core.context.context import Context
from reactor_memory.core.context.message_counter import MessageCounter
from reactor_memory.database.database import Database
from reactor_memory.models import Message
from reactor_memory.wiring.settings import Settings

if TYPE_CHECKING:
    from reactor_memory.core.ports import Clock
    from reactor_memory.features.replay.records import LoadRecorder
    from reactor_memory.features.replay.replayer import Nearest

BATCH = 200
COPY = "replay"


def load_recorder_of(
    database: Database, clock: Clock, counter: MessageCounter, fingerprint: str, settings: Settings
) -> LoadRecorder:
    from reactor_memory.features.replay.records import LoadRecorder

    return LoadRecorder(
        database=database,
        clock=clock,
        tokenizer=lambda: counter.name,
        settings_fingerprint=fingerprint,
        everything=settings.context.record == "all",
    )


def nearest_of(settings: Settings) -> Nearest:
    async def nearest(said: Sequence[Message], message: Message, budget: int | None) -> Context:
        """As a new session in memory shows it, under the same settings, once all of it is summarized."""
        from reactor_memory.wiring.opening import open_container

        async with open_container(_offline(settings)) as container:
            manager = container.conversation_manager()
            for start in range(0, len(said), BATCH):
                await manager.save_history(COPY, said[start : start + BATCH])
            await manager.drain()
            return await manager.load_history(COPY, message=message, budget=budget)

    return nearest


def _offline(settings: Settings) -> Settings:
    """The same settings for a session in memory that no model summarizes and nobody else reads."""
    summary = settings.summary.model_copy(update={"provider": "extractive"})
    changes = {
        "store": settings.store.model_copy(update={"url": "memory://"}),
        "summary": summary,
        "context": settings.context.model_copy(update={"record": "off"}),
        "notes": settings.notes.model_copy(update={"enabled": False}),
        "search": settings.search.model_copy(update={"enabled": False}),
        "background": settings.background.model_copy(update={"enabled": True}),
    }
    return settings.model_copy(update=changes)
