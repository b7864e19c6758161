"""How long-term notes are wired."""

from __future__ import annotations

from typing import TYPE_CHECKING

from reactor_memory.database.database import Database
from reactor_memory.wiring.settings import Settings

if TYPE_CHECKING:
    from reactor_memory.core.ports import Clock
    from reactor_memory.features.notes.long_term_memory import LongTermMemory


def long_term_memory_of(database: Database, clock: Clock, settings: Settings) -> LongTermMemory:
    from reactor_memory.features.notes.long_term_memory import LongTermMemory

    notes = settings.notes
    return LongTermMemory(
        database=database, clock=clock, max_chars=notes.max_chars, allow_destructive=notes.allow_destructive
    )
