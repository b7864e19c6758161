"""What happens after messages were added (`MemoryManagementStrategy`): nothing, or a summary of every so many."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from typing import Protocol

from msgspec.structs import replace

from reactor_memory.chat_memory.runs import next_run
from reactor_memory.context.rendering import render_narrative
from reactor_memory.database.database import Database
from reactor_memory.errors import InvalidInputError, SummarizationError
from reactor_memory.models import Message, RangeSummary, Retention
from reactor_memory.protocols import Clock, MessageStore
from reactor_memory.storage import range_summaries
from reactor_memory.validation import new_message_id

log = logging.getLogger(__name__)

KIND = "summary"
"""Of the range summaries that are made here."""


class WriteSummary(Protocol):
    """Tells in few words what `messages` of the conversation say, which pays for it. Raises `SummarizationError`."""

    async def __call__(self, conversation_id: str, messages: Sequence[Message]) -> str: ...


class NoopStrategy:
    """Every message stays as it is."""

    async def post_add_messages_hook(
        self,
        conversation_id: str,
        added_messages_count: int,
        total_messages_count: int,
        *,
        user_id: str | None = None,
    ) -> None:
        """Nothing to do."""


class SummarizationStrategy:
    """As soon as `every` messages have no summary, one takes them in; what becomes of them is told by `retention`.

    The text is written before anything is stored; then summary, links and retention are stored in one transaction, if
    the conversation still is what was read. So a failure or the end of the process at any moment leaves all messages
    as they were, and the next messages that are added bring the summary. Messages that a fork shows and that `delete`
    would take away from it are archived.
    """

    def __init__(
        self,
        *,
        messages: MessageStore,
        database: Database,
        write: WriteSummary,
        count: Callable[[str], int],
        tokenizer: str,
        clock: Clock,
        every: int,
        retention: Retention,
    ) -> None:
        self._messages = messages
        self._database = database
        self._write = write
        self._count = count
        self._tokenizer = tokenizer
        self._clock = clock
        self._every = every
        self._retention: Retention = retention
        self._due: dict[str, int] = {}

    async def post_add_messages_hook(
        self,
        conversation_id: str,
        added_messages_count: int,
        total_messages_count: int,
        *,
        user_id: str | None = None,
    ) -> None:
        """Make the summaries that are due; while one call does so for a conversation, others leave theirs to it.

        What waited before these messages is made up for by one a call, so that switching summaries on for a long
        conversation holds nobody up.
        """
        due = added_messages_count // self._every + 1
        if conversation_id in self._due:
            self._due[conversation_id] += due
            return
        self._due[conversation_id] = due
        try:
            while known := self._due[conversation_id]:
                is_made = await self._summarize(conversation_id, user_id)
                self._due[conversation_id] -= 1 if is_made else known
        finally:
            del self._due[conversation_id]

    async def _summarize(self, conversation_id: str, user_id: str | None) -> bool:
        """Make the next summary, if one is due; another process may have been faster."""
        live = await self._database.read(range_summaries.read_range_summaries, conversation_id, user_id)
        run = await self._next_run(conversation_id, user_id, live)
        if not run:
            return False
        text = await self._write(conversation_id, run)
        await self._store(conversation_id, user_id, self._summary(run, text), live)
        return True

    async def _next_run(
        self, conversation_id: str, user_id: str | None, live: Sequence[RangeSummary]
    ) -> Sequence[Message]:
        session = await self._messages.get_session(conversation_id, user_id)
        own_start = session.branch[-1].start_seq if session else 1
        after = max([own_start - 1, *(summary.end_seq for summary in live)])
        limit = 2 * self._every
        while True:
            messages = await self._messages.read(conversation_id, user_id, after=after, limit=limit)
            run = next_run(messages, self._every)
            if run or len(messages) < limit:
                return run
            limit *= 2

    def _summary(self, run: Sequence[Message], text: str) -> RangeSummary:
        now = self._clock()
        text = harmless(text, self._count)
        times = [message.created_at or now for message in run]
        return RangeSummary(
            summary_id=new_message_id(now),
            kind=KIND,
            start_seq=run[0].seq or 0,
            end_seq=run[-1].seq or 0,
            message_count=len(run),
            message_ids=tuple(message.message_id or "" for message in run),
            retention=self._retention,
            text=text,
            token_count=self._count(text),
            tokenizer=self._tokenizer,
            started_at=min(times),
            ended_at=max(times),
            created_at=now,
        )

    async def _store(
        self, conversation_id: str, user_id: str | None, summary: RangeSummary, live: Sequence[RangeSummary]
    ) -> None:
        expected = [each.summary_id for each in live]
        now = summary.created_at
        try:
            await self._database.write(
                range_summaries.put_range_summaries, conversation_id, user_id, [summary], expected=expected, now=now
            )
        except InvalidInputError as error:
            if error.field != "retention":
                raise
            log.info("messages that a fork needs are archived, not deleted", extra={"session_id": conversation_id})
            kept = replace(summary, retention="archive")
            await self._database.write(
                range_summaries.put_range_summaries, conversation_id, user_id, [kept], expected=expected, now=now
            )


def harmless(text: str, count: Callable[[str], int]) -> str:
    """`text`, line by line without what could pass for structure: it was made of words that anybody may have said."""
    lines = "\n".join(line.text for line in render_narrative(text, count=count))
    if not lines:
        raise SummarizationError("malformed", "the text is blank")
    return lines
