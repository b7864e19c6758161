"""What a load showed, in so few words that the context can be made again: messages of the log by their seq, the rest
as text. Each record says with a digest what the model saw.
"""

from __future__ import annotations

import hashlib
import logging
from collections.abc import AsyncGenerator, Callable, Iterator, Sequence
from contextlib import asynccontextmanager
from itertools import count
from typing import TYPE_CHECKING

import anyio
import msgspec

from reactor_memory.core.context.blocks import Part
from reactor_memory.core.context.context import Context
from reactor_memory.core.context.report import ContextReport, digest
from reactor_memory.core.load_requests import LoadRequest
from reactor_memory.core.log.rows import key_of
from reactor_memory.core.log.summaries import hold
from reactor_memory.database.database import Database
from reactor_memory.database.operations import Query, Steps
from reactor_memory.errors import StoreError, StoreReadOnlyError
from reactor_memory.models import JsonObject, Message, Value

if TYPE_CHECKING:
    from reactor_memory.core.ports import Clock

log = logging.getLogger(__name__)

RECORD_SECONDS = 0.25
"""A load waits no longer for its record to be stored."""

_REFERRED: frozenset[Part] = frozenset({"window", "recalled"})
_CURRENT: Part = "current"
_NOT_KEPT: frozenset[Part] = frozenset({"notes"})
"""Notes belong to a user, not to a session: a record would keep them when the user is forgotten."""


class RecordedMessage(Value, frozen=True, kw_only=True, omit_defaults=True):
    """A message of a context: one of the log (`seq`), one of the turn to come (`ahead`, from 0), a text, or nothing if
    the record does not keep it. `is_block`: the text is the lines of a block.
    """

    part: Part
    seq: int | None = None
    ahead: int | None = None
    message: JsonObject | None = None
    is_block: bool = False


class LoadRecord(Value, frozen=True, kw_only=True):
    """One load. `seq` is the last message that was stored then; `current_sha256` of the text of the message to come,
    `digest` of the whole context. `budget` is in tokens, None if none was given; `created_at` in microseconds UTC.
    """

    seq: int
    ordinal: int = 0
    budget: int | None
    query: str | None
    current_sha256: str
    settings_fingerprint: str
    tokenizer: str
    digest: str
    shown: tuple[RecordedMessage, ...]
    created_at: int


class LoadRecorder:
    """Keeps what loads showed. `everything`: not only those of turns."""

    def __init__(
        self,
        *,
        database: Database,
        clock: Clock,
        tokenizer: Callable[[], str],
        settings_fingerprint: str,
        everything: bool,
    ) -> None:
        self._database = database
        self._clock = clock
        self._tokenizer = tokenizer
        self._settings_fingerprint = settings_fingerprint
        self._everything = everything

    @asynccontextmanager
    async def __call__(self, request: LoadRequest, context: Context, is_turn: bool) -> AsyncGenerator[None]:
        """Store a record, if it is one of those that are kept; of a session that its turn begins, at the end of the
        block, in which the turn is saved.
        """
        if not is_turn and not self._everything:
            yield
            return
        record = self._record_of(request, context)
        is_stored = await self._store(store_record, request.session_id, record)
        try:
            yield
        finally:
            if is_turn and is_stored is False:
                await self._store(store_first_record, request.session_id, record)

    def _record_of(self, request: LoadRequest, context: Context) -> LoadRecord:
        return LoadRecord(
            seq=0,
            budget=request.budget,
            query=request.query,
            current_sha256=text_sha256(request.current),
            settings_fingerprint=self._settings_fingerprint,
            tokenizer=self._tokenizer(),
            digest=context.report.digest,
            shown=tuple(entries_of(context)),
            created_at=self._clock(),
        )

    async def _store(
        self, operation: Callable[[str, LoadRecord], Steps[bool]], session_id: str, record: LoadRecord
    ) -> bool | None:
        """Whether there is such a session; None if that is not known. A load does without a record rather than fail or
        wait.
        """
        try:
            with anyio.move_on_after(RECORD_SECONDS):
                return await self._database.write_relaxed(operation, session_id, record)
        except StoreReadOnlyError:
            pass
        except StoreError as error:
            log.warning("load record not stored", extra={"session_id": session_id, "reason": type(error).__name__})
        return None


def text_sha256(messages: Sequence[Message]) -> str:
    """Of the first message: a turn is known by what the user said."""
    return hashlib.sha256(messages[0].content.encode(errors="surrogatepass")).hexdigest() if messages else ""


def entries_of(context: Context) -> Iterator[RecordedMessage]:
    """How each message of a context can be made again."""
    report, ahead = context.report, count()
    whole = _whole_parts(report)
    for part, seq, message in zip(report.parts, report.seqs, context.messages, strict=True):
        if part in _NOT_KEPT:
            yield RecordedMessage(part=part)
        elif part in whole and seq is not None:
            yield RecordedMessage(part=part, seq=seq)
        elif part in whole and part == _CURRENT:
            yield RecordedMessage(part=part, ahead=next(ahead))
        else:
            yield RecordedMessage(part=part, message=_stored_form(message), is_block=part in report.blocks)


def _whole_parts(report: ContextReport) -> frozenset[Part]:
    """The parts whose messages stand as they are stored."""
    clamped = {entry.part for entry in report.clamped}
    cut = {entry.part for entry in report.dropped if entry.part == "current"}
    return frozenset(part for part in (*_REFERRED, _CURRENT) if part not in clamped | cut)


def _stored_form(message: Message) -> JsonObject:
    """What a digest covers."""
    kept = {
        "role": message.role,
        "content": message.content,
        "parts": message.parts,
        "tool_calls": message.tool_calls,
        "tool_call_id": message.tool_call_id,
        "name": message.name,
    }
    return msgspec.to_builtins({name: value for name, value in kept.items() if value})


def same_digest(messages: Sequence[Message], record: LoadRecord) -> bool:
    return digest(messages) == record.digest


# Operations


def store_record(session_id: str, record: LoadRecord) -> Steps[bool]:
    """At the end of the session, if there is one."""
    if not (yield from hold(session_id)):
        return False
    last_seq, ordinal = (yield Query("end_of_load_records", key_of(session_id)))[0]
    yield _insertion(session_id, record, last_seq, ordinal)
    return True


def store_first_record(session_id: str, record: LoadRecord) -> Steps[bool]:
    """Of a load before the first message, now that the session is there."""
    if not (yield from hold(session_id)):
        return False
    ordinal = (yield Query("first_load_records", key_of(session_id)))[0][0]
    yield _insertion(session_id, record, 0, ordinal)
    return True


def _insertion(session_id: str, record: LoadRecord, seq: int, last_ordinal: int | None) -> Query:
    values = msgspec.structs.asdict(record) | {"seq": seq, "ordinal": (last_ordinal or 0) + 1}
    shown = msgspec.json.encode(record.shown).decode()
    return Query("store_load_record", key_of(session_id) | values | {"shown": shown})


def read_records(conversation_id: str, seq: int) -> Steps[tuple[LoadRecord, ...]]:
    """The records of loads at message `seq`, oldest first."""
    rows = yield Query("load_records", key_of(conversation_id) | {"seq": seq})
    return tuple(map(_record_from, rows))


def _record_from(row: Sequence[object]) -> LoadRecord:
    *values, shown, created_at = row
    names = LoadRecord.__struct_fields__
    fields = dict(zip(names, [*values, msgspec.json.decode(str(shown)), created_at], strict=True))
    return msgspec.convert(fields, LoadRecord)
