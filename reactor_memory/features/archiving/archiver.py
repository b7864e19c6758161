"""Archiving messages, and restoring them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from reactor_memory.core.validation import check_optional_id, check_position, check_session_id
from reactor_memory.database.database import Database
from reactor_memory.database.deadlines import in_time
from reactor_memory.errors import InvalidInputError
from reactor_memory.features.archiving import operations
from reactor_memory.features.archiving.models import Archived
from reactor_memory.features.posted_summaries.posting import PostedSummaries

if TYPE_CHECKING:
    from reactor_memory.core.ports import BackgroundWork, Clock, LedgerFold


class Archiver:
    """Takes messages out of view and brings them back. Each call has one deadline, ``store.timeout_seconds``. `user_id`
    is who asks; who is not the owner gets a `SessionOwnershipError`.
    """

    def __init__(
        self,
        *,
        database: Database,
        poster: PostedSummaries,
        background: BackgroundWork,
        refold: LedgerFold,
        clock: Clock,
        timeout_seconds: float,
    ) -> None:
        self._database = database
        self._poster = poster
        self._background = background
        self._refold = refold
        self._clock = clock
        self.timeout_seconds = timeout_seconds

    @in_time
    async def archive(
        self,
        session_id: str,
        *,
        user_id: str | None = None,
        until_seq: int | None = None,
        clear: bool = False,
        summary: str | None = None,
        idempotency_key: str | None = None,
    ) -> Archived:
        """Take the session's messages up to `until_seq` (None: all) out of view, until `restore` brings them back.

        Nothing is destroyed: `read_messages` gives them with `archived`, the numbering goes on, and their facts and
        narrative stay in contexts, in place of their text. With `clear` memory shows nothing of them: no facts, no
        narrative, no pins, and recall and searches do not find them. `summary` is posted in their place, as
        `post_summary` does. Archiving again what is archived changes nothing; with an `idempotency_key` the same
        summary is posted once, and a call that posts nothing archives nothing. Messages that were cleared and are
        archived by name (`until_seq`) are told of again.

        A branch archives its own messages: what it inherits stays in view, and forks that were made before go on
        showing what their parent archives.

        Raises `InvalidInputError` for an `until_seq` that is not a message of its own or that parts a tool call from
        its results, and for a summary that says nothing; `SessionNotFoundError`.
        """
        check_session_id(session_id, creating=False)
        check_optional_id("user_id", user_id)
        check_optional_id("idempotency_key", idempotency_key)
        if until_seq is not None:
            check_position("until_seq", until_seq, least=1)
        if idempotency_key is not None and summary is None:
            raise InvalidInputError("idempotency_key", "belongs to a summary: give one, or no key")
        post = (
            None
            if summary is None
            else await self._poster.in_place(
                session_id, summary, until_seq=until_seq, user_id=user_id, idempotency_key=idempotency_key
            )
        )
        archived = await self._database.write(
            operations.archive,
            session_id,
            user_id,
            until_seq=until_seq,
            cleared=bool(clear),
            post=post,
            now=self._clock(),
            refold=self._refold,
        )
        if archived.message_count:
            self._background.request(session_id)
        return archived

    @in_time
    async def restore(self, session_id: str, *, user_id: str | None = None, from_seq: int = 1) -> int:
        """Bring back what `archive` took out of view, from message `from_seq` on: into contexts, and what was cleared
        into memory, too. How many messages. What a summary of tiers or of chat memory archived comes back with that.

        Raises `SessionNotFoundError` for an unknown session.
        """
        check_session_id(session_id, creating=False)
        check_optional_id("user_id", user_id)
        check_position("from_seq", from_seq, least=1)
        count = await self._database.write(
            operations.restore, session_id, user_id, from_seq=from_seq, now=self._clock(), refold=self._refold
        )
        if count:
            self._background.request(session_id)
        return count
