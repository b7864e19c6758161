"""What the features bring to contexts. Each is imported when there is something of it to show."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol

from reactor_memory.core.context.blocks import Verbatim
from reactor_memory.core.context.draft import Draft
from reactor_memory.core.context.message_counter import MessageCounter
from reactor_memory.core.load_requests import LoadRequest
from reactor_memory.core.sources import Asked, GuardedSource, Source, Views
from reactor_memory.database.database import Database
from reactor_memory.models import Message, Role, Session
from reactor_memory.models.requests import ContextRows
from reactor_memory.settings.settings import Settings
from reactor_memory.wiring.plugins import ConditionReport

if TYPE_CHECKING:
    from reactor_memory.features.notes.block import NotesBlock


def sources_of(*sources: Source | None, plugged: tuple[Source, ...] = ()) -> tuple[Source, ...]:
    """Those of the features that are on, in the order in which what they bring stands; then those of plug-ins."""
    return (*[source for source in sources if source is not None], *plugged)


def plugged_sources_of(report: ConditionReport, counter: MessageCounter, settings: Settings) -> tuple[Source, ...]:
    if not report.factories["source"]:
        return ()
    from reactor_memory.wiring.plugged_sources import plugged_sources

    return plugged_sources(report, counter, settings)


class PinSource(GuardedSource):
    """The pins of the session; those of facts have the role of memory."""

    name = "pins"

    def __init__(self, memory_role: Role) -> None:
        self._memory_role: Role = memory_role

    def stands(self, rows: ContextRows) -> bool:
        return bool(rows.pins)

    async def before_window(self, request: LoadRequest, rows: ContextRows) -> Verbatim | None:
        from reactor_memory.features.pins.verbatim_pins import verbatim_pins

        return verbatim_pins(rows.pins, self._memory_role)


def notes_source_of(database: Callable[[], Database], counter: MessageCounter, settings: Settings) -> NotesBlock | None:
    """None where no context shows notes."""
    if not settings.notes.enabled:
        return None
    from reactor_memory.features.notes.block import NotesBlock, NotesRenderer

    renderer = NotesRenderer(count_text=counter.of_text, overhead=settings.tokens.overhead_per_message)
    return NotesBlock(database(), renderer)


class PostedSource(GuardedSource):
    """The posted summary that rules, where a context would not say it, or wherever the caller wants it."""

    name = "posted summaries"

    def __init__(self, database: Database, counter: MessageCounter) -> None:
        self._database = database
        self._counter = counter

    def answers(self, request: LoadRequest, session: Session, *, has_memory: bool, is_cut: bool) -> bool:
        return is_cut or request.summaries == "always"

    async def for_question(self, draft: Draft, asked: Asked) -> Draft:
        from reactor_memory.features.posted_summaries.block import PostedBlock

        return await PostedBlock(self._database, count=self._counter.of_text).add_to(draft, asked.session)


def posted_source_of(in_database: str, database: Database, counter: MessageCounter) -> PostedSource | None:
    """None without a database, where nothing can be posted."""
    return PostedSource(database, counter) if in_database == "on" else None


class Recalls(Protocol):
    """Brings back passages that a context does not show. It raises nothing: a load does without it."""

    async def added(
        self,
        query: str | None,
        current: tuple[Message, ...],
        session: Session,
        user_id: str | None,
        draft: Draft,
        views: Views,
    ) -> Draft: ...


class RecallSource(GuardedSource):
    """What answers the query, or what the message to come names and the context does not show."""

    name = "recall"

    def __init__(self, recaller: Callable[[], Recalls]) -> None:
        self._recaller = recaller

    def answers(self, request: LoadRequest, session: Session, *, has_memory: bool, is_cut: bool) -> bool:
        by_itself = request.query is None and has_memory and request.current
        return session.last_seq > 1 and bool(request.query or by_itself)

    async def for_question(self, draft: Draft, asked: Asked) -> Draft:
        request, session = asked.request, asked.session
        return await self._recaller().added(
            request.query, request.current, session, request.user_id, draft, asked.views
        )
