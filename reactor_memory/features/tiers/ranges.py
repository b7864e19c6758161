"""Reads what a session shows of itself, and carries out steps: the model is asked first, then all is stored at once."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from msgspec.structs import replace

from reactor_memory.core.context.message_counter import MessageCounter
from reactor_memory.core.validation import check_optional_id, check_session_id, new_message_id
from reactor_memory.database.database import Database
from reactor_memory.errors import InvalidInputError, SummarizationError
from reactor_memory.features.facts.prose import render_narrative
from reactor_memory.features.tiers import operations as range_summaries
from reactor_memory.features.tiers.plan import Step, View, Writing, covered_until, view_of
from reactor_memory.features.tiers.writer import TierWriter
from reactor_memory.models import Session, Value
from reactor_memory.models.ledger import Condensed, RangeSummary, Retention

if TYPE_CHECKING:
    from reactor_memory.core.ports import Clock, MessageStore

log = logging.getLogger(__name__)


class Carried(Value, frozen=True, kw_only=True):
    """The ids of the summaries that a step stored: none, if the session was changed meanwhile. `tokens` were read and
    written by the model all the same.
    """

    summary_ids: tuple[str, ...]
    tokens: int


class Ranges:
    """The ranges of sessions for which summaries stand; what becomes of their messages is told by `retention`.

    Owners are checked as by `ConversationManager`. A failure or the end of the process at any moment leaves a session
    as it was. Messages that a fork shows and that `delete` would take away from it are archived.
    """

    def __init__(
        self,
        *,
        messages: MessageStore,
        database: Database,
        writer: TierWriter,
        counter: MessageCounter,
        clock: Clock,
        retention: Retention,
    ) -> None:
        self._messages = messages
        self._database = database
        self._writer = writer
        self._counter = counter
        self._clock = clock
        self._retention: Retention = retention

    async def view(self, session_id: str, user_id: str | None) -> tuple[Session | None, View]:
        """All that the session shows."""
        session, live = await self._live(session_id, user_id)
        if session is None:
            return None, View()
        messages = await self._messages.read(session_id, user_id, after=covered_until(live))
        return session, view_of(session, live, messages)

    async def newest(self, session_id: str, user_id: str | None, *, limit: int) -> View:
        """The live summaries, and the first `limit` of the session's own messages that follow all of them."""
        session, live = await self._live(session_id, user_id)
        if session is None:
            return View()
        after = max([session.branch[-1].start_seq - 1, *(summary.end_seq for summary in live)])
        messages = await self._messages.read(session_id, user_id, after=after, limit=limit)
        return view_of(session, live, messages)

    async def _live(self, session_id: str, user_id: str | None) -> tuple[Session | None, tuple[RangeSummary, ...]]:
        """To be read before the messages: a step in between leaves fewer messages than it should, and the database
        refuses what is made of them.
        """
        check_session_id(session_id, creating=False)
        check_optional_id("user_id", user_id)
        session = await self._messages.get_session(session_id, user_id)
        if session is None:
            return None, ()
        return session, await self._database.read(range_summaries.read_range_summaries, session_id, user_id)

    async def carry_out(self, session_id: str, user_id: str | None, view: View, step: Step) -> Carried:
        """Write the summaries of `step`, which was made of `view`. Raises `SummarizationError`."""
        texts = [await self._writer.write(session_id, writing) for writing in step.writings]
        now = self._clock()
        new = [self._summary(each, text, now) for each, text in zip(step.writings, texts, strict=True)]
        expected = [summary.summary_id for summary in view.summaries]
        is_stored = await self._store(session_id, user_id, new, expected, now)
        return Carried(
            summary_ids=tuple(each.summary_id for each in new) if is_stored else (),
            tokens=sum(text.usage.total for text in texts),
        )

    async def restore(self, session_id: str, user_id: str | None, summary_id: str) -> bool:
        """Undo a live summary exactly; False if it is not live."""
        check_session_id(session_id, creating=False)
        check_optional_id("user_id", user_id)
        return await self._database.write(
            range_summaries.restore_range_summary, session_id, user_id, summary_id, now=self._clock()
        )

    async def _store(
        self, session_id: str, user_id: str | None, new: Sequence[RangeSummary], expected: Sequence[str], now: int
    ) -> bool:
        put = range_summaries.put_range_summaries
        try:
            return await self._database.write(put, session_id, user_id, new, expected=expected, now=now)
        except InvalidInputError as error:
            if error.field != "retention":
                raise
            log.info("messages that a fork needs are archived, not deleted", extra={"session_id": session_id})
            kept = [replace(each, retention="archive") for each in new]
            return await self._database.write(put, session_id, user_id, kept, expected=expected, now=now)

    def _summary(self, writing: Writing, written: Condensed, now: int) -> RangeSummary:
        text = harmless(written.text, self._counter.of_text)
        started_at, ended_at = writing.period
        return RangeSummary(
            summary_id=new_message_id(now),
            kind=writing.kind,
            start_seq=writing.start_seq,
            end_seq=writing.end_seq,
            message_count=writing.message_count,
            message_ids=writing.message_ids,
            text=text,
            token_count=self._counter.of_text(text),
            tokenizer=self._counter.name,
            started_at=started_at,
            ended_at=ended_at,
            created_at=now,
            retention=self._retention,
        )


def harmless(text: str, count: Callable[[str], int]) -> str:
    """`text`, line by line without what could pass for structure: it was made of words that anybody may have said."""
    lines = "\n".join(line.text for line in render_narrative(text, count=count))
    if not lines:
        raise SummarizationError("malformed", "the text is blank")
    return lines
