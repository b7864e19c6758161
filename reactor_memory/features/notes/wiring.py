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

MAX_CHARS = 4000
"""What the notes about one user may hold. A change that would make them longer is refused."""


def long_term_memory_of(database: Database, clock: Clock, settings: Settings) -> LongTermMemory:
    from reactor_memory.features.notes.long_term_memory import LongTermMemory

    return LongTermMemory(
        database=database, clock=clock, max_chars=MAX_CHARS, allow_destructive=settings.notes.allow_destructive
    )


def notes_source_of(database: Callable[[], Database], counter: MessageCounter, settings: Settings) -> NotesBlock | None:
    """None where no context shows notes."""
    if not settings.notes.enabled:
        return None
    from reactor_memory.features.notes.block import NotesBlock, NotesRenderer

    renderer = NotesRenderer(count_text=counter.of_text, overhead=settings.tokens.overhead_per_message)
    return NotesBlock(database(), renderer)
