"""The newest turn of a session while it has no answer: it goes on, or was interrupted."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from reactor_memory.core.context.context import Context
from reactor_memory.core.context.report import ContextReport
from reactor_memory.features.explain.reasons import compaction_in_words
from reactor_memory.models import Message, Session
from reactor_memory.models.turns import interrupted_results, is_answered, last_turn_start
from reactor_memory.studio.studio import Studio

LEAST_READ, MOST_READ = 64, 4_096
"""In a turn of more messages, no beginning is looked for."""

LIVE_SECONDS = 600
"""A turn that did nothing for so long is looked at again only when somebody asks."""


class RunningTurn(NamedTuple):
    """What is stored of it, the user message first."""

    messages: Sequence[Message]

    @property
    def first_seq(self) -> int:
        return self.messages[0].seq or 1

    def may_go_on(self, now: int) -> bool:
        """`now`: microseconds since the epoch."""
        newest = max(message.created_at or 0 for message in self.messages)
        return now - newest < LIVE_SECONDS * 1_000_000

    def in_words(self, report: ContextReport | None) -> Iterator[str]:
        """How far it came, and what was done so that it fits, since when, and what that saves."""
        calls = sum(len(message.tool_calls) for message in self.messages)
        results = sum(message.role == "tool" for message in self.messages)
        yield f"the turn of message {self.first_seq:,} is unfinished: {calls:,} calls, {results:,} results so far"
        compaction = report.compaction if report else None
        if compaction is not None:
            yield f"{compaction_in_words(compaction)}; saves {compaction.saved_tokens:,} tokens in each context"


async def running_turn(studio: Studio, session: Session, newest: Sequence[Message] = ()) -> RunningTurn | None:
    """The newest turn, if it has no answer. `newest` are messages that were read already."""
    read, last = newest, LEAST_READ
    while not any(message.role == "user" for message in read) and last <= MOST_READ:
        read = await studio.memory.read_messages(session.session_id, user_id=session.owner_id, last=last)
        last = last * 4 if len(read) == last else MOST_READ + 1
    turn = read[last_turn_start(read) :]
    return RunningTurn(turn) if turn and turn[0].role == "user" and not is_answered(turn) else None


async def context_of(studio: Studio, session: Session, turn: RunningTurn, budget: int | None) -> Context:
    """What the model gets, or would get, for the next step of the turn."""
    message, *following = turn.messages
    return await studio.memory.preview(
        session.session_id,
        user_id=session.owner_id,
        message=message,
        traffic=[*following, *interrupted_results(following)],
        before_seq=turn.first_seq,
        budget=budget,
        on_overflow="drop_memory",
    )
