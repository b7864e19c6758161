"""What the model saw at a turn of the past: again from its record, or the nearest that can be made."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence

import msgspec

from reactor_memory.core.context.blocks import Part
from reactor_memory.core.context.context import Context
from reactor_memory.core.context.report import digest
from reactor_memory.core.log import operations as log
from reactor_memory.core.log.last_budgets import read_last_budget
from reactor_memory.core.manager import ConversationManager
from reactor_memory.core.validation import check_position, check_session_id
from reactor_memory.database.database import Database
from reactor_memory.database.deadlines import in_time
from reactor_memory.database.operations import Steps
from reactor_memory.errors import InvalidInputError
from reactor_memory.features.replay.records import (
    LoadRecord,
    RecordedMessage,
    read_records,
    same_digest,
    text_sha256,
)
from reactor_memory.models import Message, Session, Value

NO_RECORD = "no record of this load was kept (context.record): its summaries and its window were made again"

Nearest = Callable[[Sequence[Message], Message, int | None], Awaitable[Context]]
"""The context for a message after other messages, as a session of its own that begins with them gives it."""


class Replay(Value, frozen=True, kw_only=True):
    """The context of the turn that began with message `seq`.

    `is_exact`: byte for byte what the model saw, proven by the digest of the record. Else `missing` says what is not as
    it was. `parts` and `seqs` are those of the messages, `blocks` the parts that are blocks of lines; `budget` (tokens)
    and `query` those of the record.
    """

    session_id: str
    seq: int
    messages: tuple[Message, ...]
    parts: tuple[Part, ...]
    seqs: tuple[int | None, ...]
    is_exact: bool
    missing: tuple[str, ...] = ()
    digest: str = ""
    budget: int | None = None
    query: str | None = None
    created_at: int | None = None
    blocks: frozenset[Part] = frozenset()


class Replayer:
    """Makes contexts of the past again. It changes nothing.

    Each call has one deadline, ``store.timeout_seconds``; `user_id` is who asks.
    """

    def __init__(
        self, *, manager: ConversationManager, database: Database, nearest: Nearest, timeout_seconds: float
    ) -> None:
        self._manager = manager
        self._database = database
        self._nearest = nearest
        self.timeout_seconds = timeout_seconds

    @in_time
    async def last_budget(self, session_id: str) -> int | None:
        """The budget of the last load of a session, in tokens; 0: it gave none, so that ``context.max_tokens`` decided.
        None: no load is known. Loads of other processes count when they save, or close. Whose the session is, is not
        asked.
        """
        check_session_id(session_id, creating=False)
        since_the_last_save = self._manager.budgets.of(session_id)
        if since_the_last_save is not None:
            return since_the_last_save
        return await self._database.read(read_last_budget, session_id)

    async def replay(
        self, session_id: str, *, seq: int, user_id: str | None = None, budget: int | None = None
    ) -> Replay:
        """The context that the model got for the user message `seq`, or for the one before it that began the turn.

        From the record of the load if ``context.record`` kept it and nothing that it showed is gone; else from the
        messages before, summarized again by the offline summarizer, in `budget` tokens. The whole session up to there
        is read for that.

        Raises `SessionNotFoundError`, and `InvalidInputError` for a `seq` before which no turn began.
        """
        check_position("seq", seq, least=1)
        session = await self._manager.get_session(session_id, user_id=user_id)
        message = await self._beginning(session, seq, user_id)
        record = await self._record_of(session, message)
        if record is None:
            return await self._nearest_to(session, message, user_id, budget)
        return await self._again(session, message, record, user_id)

    @in_time
    async def _beginning(self, session: Session, seq: int, user_id: str | None) -> Message:
        """The user message with which the turn of message `seq` began."""
        if seq > session.last_seq:
            raise InvalidInputError("seq", f"is not in this session, which ends with message {session.last_seq}")
        until = seq
        while page := await self._manager.read_messages(
            session.session_id, user_id=user_id, until=until, last=50, archived=True
        ):
            found = next((message for message in reversed(page) if message.role == "user"), None)
            if found is not None:
                return found
            until = (page[0].seq or 1) - 1
        raise InvalidInputError("seq", "no user message is left at or before it: the turn was withdrawn or erased")

    @in_time
    async def _record_of(self, session: Session, message: Message) -> LoadRecord | None:
        """The last load before the message was stored. Loads of inherited turns belong to the conversation that stores
        them.
        """
        seq = message.seq or 1
        stored = next(each for each in session.branch if each.end_seq is None or seq <= each.end_seq)
        records = await self._database.read(read_records, stored.conversation_id, seq - 1)
        sha256 = text_sha256([message])
        return next((record for record in reversed(records) if record.current_sha256 == sha256), None)

    @in_time
    async def _again(self, session: Session, message: Message, record: LoadRecord, user_id: str | None) -> Replay:
        wanted = [each.seq for each in record.shown if each.seq is not None]
        wanted += [(message.seq or 1) + each.ahead for each in record.shown if each.ahead is not None]
        stored = await self._database.read(read_each, session.session_id, user_id, sorted(set(wanted)))
        return replayed(session.session_id, message.seq or 1, record, stored)

    async def _nearest_to(self, session: Session, message: Message, user_id: str | None, budget: int | None) -> Replay:
        seq = message.seq or 1
        stored = self._manager.stream_messages(session.session_id, user_id=user_id, archived=True)
        said = [each async for each in stored if (each.seq or 0) < seq]
        context = await self._nearest(said, message, budget)
        report = context.report
        missing = [NO_RECORD]
        if gone := _gaps({each.seq or 0 for each in said}, seq):
            missing.append(f"messages that are gone since: {gone}")
        return Replay(
            session_id=session.session_id,
            seq=seq,
            messages=tuple(context.messages),
            parts=report.parts,
            seqs=tuple(None if at is None else said[at - 1].seq for at in report.seqs),
            is_exact=False,
            missing=tuple(missing),
            digest=report.digest,
            budget=budget,
            blocks=report.blocks,
        )


def read_each(session_id: str, user_id: str | None, seqs: Sequence[int]) -> Steps[dict[int, Message]]:
    """Messages by their seq, archived ones too. Those between two that lie close are read along."""
    found: dict[int, Message] = {}
    for first, last in _runs(seqs):
        for message in (yield from log.read_originals(session_id, user_id, after=first - 1, until=last)):
            found[message.seq or 0] = message
    return found


CLOSE = 20


def _runs(seqs: Sequence[int], close: int = CLOSE) -> list[tuple[int, int]]:
    """The first and last of each run of ascending numbers that lie closer to each other than `close`."""
    runs: list[tuple[int, int]] = []
    for seq in seqs:
        if runs and seq - runs[-1][1] <= close:
            runs[-1] = (runs[-1][0], seq)
        else:
            runs.append((seq, seq))
    return runs


def _gaps(seqs: Iterable[int], end: int) -> str:
    """The numbers from 1 to before `end` that are not among `seqs`, as ranges."""
    gone = _runs(sorted(set(range(1, end)) - set(seqs)), close=1)
    return ", ".join(str(first) if first == last else f"{first}-{last}" for first, last in gone)


def replayed(session_id: str, seq: int, record: LoadRecord, stored: Mapping[int, Message]) -> Replay:
    """A context made again of its record and the messages that it showed."""
    made = [(each, _message_of(each, seq, stored)) for each in record.shown]
    kept = [(each, message) for each, message in made if message is not None]
    messages = tuple(message for _, message in kept)
    is_exact = len(kept) == len(made) and same_digest(messages, record)
    missing = [_missing(each, seq) for each, message in made if message is None]
    if not missing and not is_exact:
        missing = ["what is stored differs from what was shown: its digest is another one"]
    return Replay(
        session_id=session_id,
        seq=seq,
        messages=messages,
        parts=tuple(each.part for each, _ in kept),
        seqs=tuple(each.seq for each, _ in kept),
        is_exact=is_exact,
        missing=tuple(dict.fromkeys(missing)),
        digest=digest(messages),
        budget=record.budget,
        query=record.query,
        created_at=record.created_at,
        blocks=frozenset([each.part for each, _ in kept if each.is_block]),
    )


def _message_of(shown: RecordedMessage, seq: int, stored: Mapping[int, Message]) -> Message | None:
    if shown.message is not None:
        return msgspec.convert(shown.message, Message)
    if shown.seq is None and shown.ahead is None:
        return None
    return stored.get(shown.seq if shown.seq is not None else seq + (shown.ahead or 0))


def _missing(shown: RecordedMessage, seq: int) -> str:
    if shown.seq is None and shown.ahead is None:
        return f"{shown.part}: records do not keep them"
    return f"message {shown.seq if shown.seq is not None else seq + (shown.ahead or 0)} is gone"
