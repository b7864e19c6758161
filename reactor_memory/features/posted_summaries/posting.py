"""Agents post summaries of their own."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, TypeAlias

from msgspec.structs import replace

from reactor_memory.core.batches import BatchMaker
from reactor_memory.core.validation import check_position, check_text
from reactor_memory.database.database import Database
from reactor_memory.database.deadlines import in_time
from reactor_memory.database.operations import Steps
from reactor_memory.errors import InvalidInputError
from reactor_memory.features.facts.plain_text import is_blank, visible
from reactor_memory.features.posted_summaries import operations as posted_summaries
from reactor_memory.features.posted_summaries.operations import PostRequest
from reactor_memory.models import JsonObject, Message
from reactor_memory.models.ledger import TITLE_KEY
from reactor_memory.text.borders import cut

if TYPE_CHECKING:
    from reactor_memory.core.ports import BackgroundWork, LedgerFold


MAX_TITLE_CHARACTERS = 200


def summary_message(text: str, title: str | None, author_id: str | None, metadata: JsonObject | None) -> Message:
    """The message that is posted. Raises `InvalidInputError` for a text that says nothing or that no store can keep."""
    check_text("text", text)
    if is_blank(text):
        raise InvalidInputError("text", "says nothing; give the summary")
    kept = {} if metadata is None else metadata
    if title is not None and type(kept) is dict:  # anything else is refused where messages are
        kept = {**kept, TITLE_KEY: title}
    return Message(role="summary", content=text, visibility="agent", author_id=author_id, metadata=kept)


def one_line_title(text: object) -> str:
    """The title on one line, without control characters, marks of direction and whatever else is invisible, cut to
    `MAX_TITLE_CHARACTERS`. Raises `InvalidInputError` for one that says nothing.
    """
    check_text("title", text)
    title = cut(visible(str(text)), MAX_TITLE_CHARACTERS).rstrip()
    if not title:
        raise InvalidInputError("title", "says nothing; give a title, or None to leave it as it is")
    return title


Post: TypeAlias = Callable[[int], Steps[tuple[Message, bool]]]
"""Appends a message that tells of those up to a seq; that message, and whether it was there before."""


class PostedSummaries:
    """Appends summaries, and lets them rule. Each call has one deadline, ``store.timeout_seconds``."""

    def __init__(
        self,
        *,
        database: Database,
        batches: BatchMaker,
        background: BackgroundWork,
        refold: LedgerFold,
        timeout_seconds: float,
    ) -> None:
        self._database = database
        self._batches = batches
        self._background = background
        self._refold = refold
        self.timeout_seconds = timeout_seconds

    @in_time
    async def post(
        self,
        session_id: str,
        *,
        text: str,
        until_seq: int,
        user_id: str | None = None,
        author_id: str | None = None,
        title: str | None = None,
        metadata: JsonObject | None = None,
        idempotency_key: str | None = None,
    ) -> Message:
        """Tell the messages 1..`until_seq` in other words: the message that was appended, of role ``summary`` and
        visibility ``agent``.

        From now on contexts tell `text` where they would tell the narrative of these messages; segments that end behind
        them go on telling theirs. Facts stay as they are, none is drawn from `text`, and no window shows it. Of several
        posted summaries the one with the largest `until_seq` rules, of equals the newest. Forks made behind the message
        have it, no other branch does. When a message of which it tells is erased or withdrawn, the text goes, too.

        With a `title` that becomes the title of the session: on one line, without what is invisible, cut to
        `MAX_TITLE_CHARACTERS`. It stands in the metadata of the message, too, and goes with it. Repeating it all with
        the same `idempotency_key` returns the first message; something else under that key raises
        `IdempotencyConflictError`.

        Raises `InvalidInputError` for a text or title that says nothing and for an `until_seq` that is not in the
        session, `InvalidMessageError` or `LimitExceededError` as `save_history` does, and `SessionNotFoundError`.
        """
        check_position("until_seq", until_seq, least=1)
        title = None if title is None else one_line_title(title)
        summary = summary_message(text, title, author_id, metadata)
        request = await self._request(session_id, user_id, summary, until_seq, title, idempotency_key)
        posted = await self._database.write(posted_summaries.post_summary, request, refold=self._refold)
        self._background.request(session_id)
        return posted

    async def in_place(
        self, session_id: str, text: str, *, until_seq: int | None, user_id: str | None, idempotency_key: str | None
    ) -> Post:
        """A part of the transaction that archives messages, which posts the summary in their place. Raises what `post`
        raises for its arguments.
        """
        message = summary_message(text, None, None, None)
        request = await self._request(session_id, user_id, message, until_seq, None, idempotency_key)
        return partial(posted_summaries.post_in_place, request, refold=self._refold)

    async def _request(
        self,
        session_id: str,
        user_id: str | None,
        summary: Message,
        until_seq: int | None,
        title: str | None,
        key: str | None,
    ) -> PostRequest:
        """`until_seq` None: how long the session is, is known when it is locked."""
        batch = await self._batches.prepared(
            session_id, [summary], user_id=user_id, idempotency_key=key, field="summary"
        )
        if key is not None:
            batch = replace(batch, fingerprint=f"{batch.fingerprint} {until_seq}")
        return PostRequest(batch=batch, until_seq=until_seq or 0, title=title)
