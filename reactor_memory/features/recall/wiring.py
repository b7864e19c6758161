"""How recall is wired: the index in the database, and what brings passages to a context."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Protocol

from reactor_memory.core.context.draft import Draft
from reactor_memory.core.load_requests import LoadRequest
from reactor_memory.core.sources import Asked, Source, Views
from reactor_memory.database.database import Database
from reactor_memory.models import Message, Session

if TYPE_CHECKING:
    from reactor_memory.core.ports import RecallIndex
    from reactor_memory.features.recall.indexer import Indexer
    from reactor_memory.features.recall.recaller import Recaller, RecallOptions
    from reactor_memory.settings.settings import Settings


def no_recall_index(settings: Settings) -> RecallIndex:
    from reactor_memory.features.recall.database_index import NoRecallIndex

    return NoRecallIndex()


def sql_recall_index(database: Database) -> RecallIndex:
    from reactor_memory.features.recall.database_index import SqlRecallIndex

    return SqlRecallIndex(database)


def recall_options(settings: Settings) -> RecallOptions:
    from reactor_memory.features.recall.recaller import RecallOptions

    return RecallOptions(default=settings.recall.default, overhead=settings.tokens.overhead_per_message)


def indexer(*args: Any, **parts: Any) -> Indexer:
    from reactor_memory.features.recall.indexer import Indexer

    return Indexer(*args, **parts)


def recaller(*args: Any, **parts: Any) -> Recaller:
    from reactor_memory.features.recall.recaller import Recaller

    return Recaller(*args, **parts)


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


class RecallSource(Source):
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
