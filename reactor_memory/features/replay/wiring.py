"""How replay is wired: what keeps records of loads, and what shows one again."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractAsyncContextManager
from typing import TYPE_CHECKING, Any

from reactor_memory.core.context.context import Context
from reactor_memory.core.context.message_counter import MessageCounter
from reactor_memory.core.load_requests import LoadRequest
from reactor_memory.core.manager import nothing
from reactor_memory.database.database import Database
from reactor_memory.models import Message

if TYPE_CHECKING:
    from reactor_memory.core.manager import ConversationManager
    from reactor_memory.core.ports import Clock
    from reactor_memory.features.replay.replayer import Nearest, Replayer
    from reactor_memory.settings.settings import Settings

BATCH = 200
COPY = "replay"


def replayer(*args: Any, **parts: Any) -> Replayer:
    from reactor_memory.features.replay.replayer import Replayer

    return Replayer(*args, **parts)


def load_recorder_of(
    database: Callable[[], Database],
    clock: Clock,
    counter: MessageCounter,
    fingerprint: Callable[[], str],
    settings: Settings,
) -> Callable[[LoadRequest, Context, bool], AbstractAsyncContextManager[None]]:
    """What keeps records of loads, if the settings ask for any."""
    if settings.context.record == "off":
        return nothing
    from reactor_memory.features.replay.records import LoadRecorder

    return LoadRecorder(
        database=database(),
        clock=clock,
        tokenizer=lambda: counter.name,
        settings_fingerprint=fingerprint(),
        everything=settings.context.record == "all",
    )


def nearest_of(settings: Settings, open_copy: Callable[[Settings], AbstractAsyncContextManager[Any]]) -> Nearest:
    async def nearest(said: Sequence[Message], message: Message, budget: int | None) -> Context:
        """As a new session in memory shows it, under the same settings, once all of it is summarized."""
        async with open_copy(_offline(settings)) as container:
            manager: ConversationManager = container.conversation_manager()
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
