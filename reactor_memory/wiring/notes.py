"""How long-term notes are wired."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from reactor_memory.core.context.message_counter import MessageCounter
from reactor_memory.core.ports import Clock
from reactor_memory.database.database import Database
from reactor_memory.wiring.settings import Settings

if TYPE_CHECKING:
    from reactor_memory.features.notes.block import ShownNotes
    from reactor_memory.features.notes.long_term_memory import LongTermMemory


def shown_notes_of(database: Callable[[], Database], counter: MessageCounter, settings: Settings) -> ShownNotes | None:
    """None where no context shows notes."""
    if not settings.notes.enabled:
        return None
    from reactor_memory.features.notes.block import NotesRenderer, ShownNotes

    renderer = NotesRenderer(count_text=counter.of_text, overhead=settings.tokens.overhead_per_message)
    return ShownNotes(database(), renderer)


def long_term_memory_of(database: Database, clock: Clock, settings: Settings) -> LongTermMemory:
    from reactor_memory.features.notes.long_term_memory import LongTermMemory

    notes = settings.notes
    return LongTermMemory(
        database=database, clock=clock, max_chars=notes.max_chars, allow_destructive=notes.allow_destructive
    )
