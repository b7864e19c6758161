"""How long-term notes are wired."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from reactor_memory.core.context.message_counter import MessageCounter
from reactor_memory.database.database import Database

if TYPE_CHECKING:
    from reactor_memory.core.ports import Clock
    from reactor_memory.features.notes.block import NotesBlock
    from reactor_memory.features.notes.long_term_memory import LongTermMemory
    from reactor_memory.settings.settings import Settings


def long_term_memory_of(database: Database, clock: Clock, settings: Settings) -> LongTermMemory:
    from reactor_memory.features.notes.long_term_memory import LongTermMemory

    notes = settings.notes
    return LongTermMemory(
        database=database, clock=clock, max_chars=notes.max_chars, allow_destructive=notes.allow_destructive
    )


def notes_source_of(database: Callable[[], Database], counter: MessageCounter, settings: Settings) -> NotesBlock | None:
    """None where no context shows notes."""
    if not settings.notes.enabled:
        return None
    from reactor_memory.features.notes.block import NotesBlock, NotesRenderer

    renderer = NotesRenderer(count_text=counter.of_text, overhead=settings.tokens.overhead_per_message)
    return NotesBlock(database(), renderer)
