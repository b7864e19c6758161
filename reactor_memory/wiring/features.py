"""How the features are wired whose parts are hardly more than their class.

Each is imported when it is made: without its folder the rest saves and loads.
"""

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
from reactor_memory.settings.settings import Settings
from reactor_memory.wiring.options import settings_fingerprint

if TYPE_CHECKING:
    from reactor_memory.core.manager import ConversationManager
    from reactor_memory.core.ports import Clock
    from reactor_memory.features.active_sessions.directory import SessionDirectory
    from reactor_memory.features.archiving.archiver import Archiver
    from reactor_memory.features.erasure.eraser import Aftermath, Erasure
    from reactor_memory.features.explain.explainer import Explainer
    from reactor_memory.features.notes.long_term_memory import LongTermMemory
    from reactor_memory.features.overview.overview import Overview
    from reactor_memory.features.pins.pins import Pins, PinWriter
    from reactor_memory.features.posted_summaries.posting import PostedSummaries
    from reactor_memory.features.replay.replayer import Nearest, Replayer
    from reactor_memory.features.retention.pruner import Pruner


def aftermath(*args: Any, **parts: Any) -> Aftermath:
    from reactor_memory.features.erasure.eraser import Aftermath

    return Aftermath(*args, **parts)


def erasure(*args: Any, **parts: Any) -> Erasure:
    from reactor_memory.features.erasure.eraser import Erasure

    return Erasure(*args, **parts)


def pruner(*args: Any, **parts: Any) -> Pruner:
    from reactor_memory.features.retention.pruner import Pruner

    return Pruner(*args, **parts)


def pin_writer(*args: Any, **parts: Any) -> PinWriter:
    from reactor_memory.features.pins.pins import PinWriter

    return PinWriter(*args, **parts)


def pins(*args: Any, **parts: Any) -> Pins:
    from reactor_memory.features.pins.pins import Pins

    return Pins(*args, **parts)


def posted_summaries(*args: Any, **parts: Any) -> PostedSummaries:
    from reactor_memory.features.posted_summaries.posting import PostedSummaries

    return PostedSummaries(*args, **parts)


def archiver(*args: Any, **parts: Any) -> Archiver:
    from reactor_memory.features.archiving.archiver import Archiver

    return Archiver(*args, **parts)


def replayer(*args: Any, **parts: Any) -> Replayer:
    from reactor_memory.features.replay.replayer import Replayer

    return Replayer(*args, **parts)


def overview(*args: Any, **parts: Any) -> Overview:
    from reactor_memory.features.overview.overview import Overview

    return Overview(*args, **parts)


def explainer(*args: Any, **parts: Any) -> Explainer:
    from reactor_memory.features.explain.explainer import Explainer

    return Explainer(*args, **parts)


def session_directory(*args: Any, **parts: Any) -> SessionDirectory:
    from reactor_memory.features.active_sessions.directory import SessionDirectory

    return SessionDirectory(*args, **parts)


def long_term_memory_of(database: Database, clock: Clock, settings: Settings) -> LongTermMemory:
    from reactor_memory.features.notes.long_term_memory import LongTermMemory

    notes = settings.notes
    return LongTermMemory(
        database=database, clock=clock, max_chars=notes.max_chars, allow_destructive=notes.allow_destructive
    )


BATCH = 200
COPY = "replay"


def load_recorder_of(
    database: Callable[[], Database], clock: Clock, counter: MessageCounter, settings: Settings
) -> Callable[[LoadRequest, Context, bool], AbstractAsyncContextManager[None]]:
    """What keeps records of loads, if the settings ask for any."""
    if settings.context.record == "off":
        return nothing
    from reactor_memory.features.replay.records import LoadRecorder

    return LoadRecorder(
        database=database(),
        clock=clock,
        tokenizer=lambda: counter.name,
        settings_fingerprint=settings_fingerprint(settings),
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
