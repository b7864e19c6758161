"""What whoever operates a store may see: the sessions of everybody, and whose they are."""

from __future__ import annotations

from reactor_memory.core.log import listing
from reactor_memory.core.log import operations as log
from reactor_memory.core.validation import check_session_id
from reactor_memory.database.database import Database
from reactor_memory.database.deadlines import in_time
from reactor_memory.errors import InvalidInputError
from reactor_memory.features.overview.agent_settings import AgentSettings, read_settings
from reactor_memory.models import Session
from reactor_memory.models.session_pages import SessionPage


class Overview:
    """Looks at a store as its operator: no call checks who owns a session. Never give it to users.

    Each call has one deadline, ``store.timeout_seconds``.
    """

    def __init__(self, *, database: Database, timeout_seconds: float) -> None:
        self._database = database
        self.timeout_seconds = timeout_seconds

    @in_time
    async def sessions(self, *, limit: int = 50, cursor: str | None = None, text: str | None = None) -> SessionPage:
        """The sessions of everybody, newest activity first; with `text` those whose id, owner or title holds it,
        whatever its case. Without an index for `text`, every session is looked at.
        """
        if limit < 1:
            raise InvalidInputError("limit", "must be at least 1")
        return await self._database.read(
            listing.list_sessions, None, limit=limit, cursor=cursor, of_all=True, text=text or None
        )

    @in_time
    async def beginning_with(self, text: str, *, user_id: str | None = None, limit: int = 10) -> tuple[Session, ...]:
        """At most `limit` sessions whose ids begin with `text`, by id; with `user_id` those that this user owns, or
        nobody. Forks are found by a text that begins with the id of their root and ``~``. A session of exactly this id
        comes first, also if it was deleted.
        """
        check_session_id(text, creating=False)
        return await self._database.read(listing.list_beginning, text, user_id, limit=limit)

    @in_time
    async def owner_of(self, session_id: str) -> str | None:
        """Whose the session is; None: nobody's, or there is none."""
        check_session_id(session_id, creating=False)
        session = await self._database.read(log.find_session, session_id)
        return session.owner_id if session else None

    @in_time
    async def forks(self, session_id: str) -> tuple[Session, ...]:
        """The root of the session and all its forks, oldest first; empty if there is no such session."""
        check_session_id(session_id, creating=False)
        return await self._database.read(listing.read_group, session_id)

    @in_time
    async def agent_settings(self) -> AgentSettings | None:
        """The settings of the agent that saved last, as far as they decide what a context shows; None: none are kept,
        as nothing was saved or ``store.keep_settings`` is false.
        """
        return await self._database.read(read_settings)
