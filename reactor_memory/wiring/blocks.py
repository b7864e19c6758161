"""What the features bring to contexts. Each is imported when there is something of it to show."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

from reactor_memory.core.context.blocks import Verbatim
from reactor_memory.core.context.draft import Draft
from reactor_memory.core.context.message_counter import MessageCounter
from reactor_memory.core.load_requests import LoadRequest
from reactor_memory.database.database import Database
from reactor_memory.models import Role, Session
from reactor_memory.models.requests import ContextRows
from reactor_memory.wiring.settings import Settings

if TYPE_CHECKING:
    from reactor_memory.core.loading import BlockSource
    from reactor_memory.features.notes.block import NotesBlock


def block_sources_of(*sources: BlockSource | None) -> tuple[BlockSource, ...]:
    """Those of the features that are on, in the order in which what they bring stands."""
    return tuple([source for source in sources if source is not None])


class PinBlock:
    """`BlockSource`: the pins of the session; those of facts have the role of memory."""

    def __init__(self, memory_role: Role) -> None:
        self._memory_role: Role = memory_role

    async def read(self, request: LoadRequest, rows: ContextRows) -> Verbatim | None:
        """Raises `StoreCorruptError` if a pin is not, byte for byte, what was pinned."""
        if not rows.pins:
            return None
        from reactor_memory.features.pins.verbatim_pins import verbatim_pins

        return verbatim_pins(rows.pins, self._memory_role)


def notes_block_of(database: Callable[[], Database], counter: MessageCounter, settings: Settings) -> NotesBlock | None:
    """None where no context shows notes."""
    if not settings.notes.enabled:
        return None
    from reactor_memory.features.notes.block import NotesBlock, NotesRenderer

    renderer = NotesRenderer(count_text=counter.of_text, overhead=settings.tokens.overhead_per_message)
    return NotesBlock(database(), renderer)


def posted_block_of(
    in_database: str, database: Database, counter: MessageCounter
) -> Callable[[Draft, Session], Awaitable[Draft]] | None:
    """What adds posted summaries to drafts. None without a database, where nothing can be posted."""

    async def add_to(draft: Draft, session: Session) -> Draft:
        from reactor_memory.features.posted_summaries.block import PostedBlock

        return await PostedBlock(database, count=counter.of_text).add_to(draft, session)

    return add_to if in_database == "on" else None
