"""How posted summaries are wired."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from reactor_memory.core.context.draft import Draft
from reactor_memory.core.context.message_counter import MessageCounter
from reactor_memory.core.load_requests import LoadRequest
from reactor_memory.core.sources import Asked, Source
from reactor_memory.database.database import Database
from reactor_memory.models import Session

if TYPE_CHECKING:
    from reactor_memory.features.posted_summaries.posting import PostedSummaries


def posted_summaries(*args: Any, **parts: Any) -> PostedSummaries:
    from reactor_memory.features.posted_summaries.posting import PostedSummaries

    return PostedSummaries(*args, **parts)


class PostedSource(Source):
    """The posted summary that rules, where a context would not say it, or wherever the caller wants it."""

    name = "posted summaries"

    def __init__(self, database: Database, counter: MessageCounter) -> None:
        self._database = database
        self._counter = counter

    def answers(self, request: LoadRequest, session: Session, *, has_memory: bool, is_cut: bool) -> bool:
        return is_cut or request.summaries == "always"

    async def for_question(self, draft: Draft, asked: Asked) -> Draft:
        from reactor_memory.features.posted_summaries.block import told_posted, with_posted

        posted = await self._database.read(told_posted, asked.session.branch)
        return draft if posted is None else with_posted(draft, posted, count=self._counter.of_text)


def posted_source_of(in_database: str, database: Database, counter: MessageCounter) -> PostedSource | None:
    """None without a database, where nothing can be posted."""
    return PostedSource(database, counter) if in_database == "on" else None
