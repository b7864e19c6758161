"""One session with its forks, as records hold it: two of them, and one for each message. Pure.

``log/G`` holds the sessions of the group G, ``made/G`` what was made of them and the state of the work on it,
``message/S/n`` message n that is stored under the session S, ``batch/S/k`` what was answered to the batch with key k.
The others are empty, and say by their names where something is to be found: ``owned/U/G``, ``due/K/G``, ``deleted/G``.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain
from typing import Any
from urllib.parse import quote

import msgspec
from msgspec.structs import replace

from reactor_memory.core.log.branches import ranges_between
from reactor_memory.errors import SessionDeletedError, SessionNotFoundError, SessionOwnershipError, StoreCorruptError
from reactor_memory.models import BranchRange, Message, Session
from reactor_memory.models.block_lines import BlockLines, Layout
from reactor_memory.models.ledger import SealedSegment, Segment, Summary


class Conversation(msgspec.Struct):
    """A session; `first_seq` is the first message that is stored under its own id."""

    session: Session
    first_seq: int = 1
    withdrawn: set[int] = msgspec.field(default_factory=set[int])
    is_purged: bool = False

    def visible(self, part: BranchRange) -> Iterator[tuple[str, int]]:
        """Where the messages of `part` are, newest first."""
        last = self.session.last_seq if part.end_seq is None else min(part.end_seq, self.session.last_seq)
        for seq in range(last, part.start_seq - 1, -1):
            if seq not in self.withdrawn:
                yield self.session.session_id, seq


class Work(msgspec.Struct):
    """The state of background work. `is_touched`: it was made due while a lease was out."""

    due_at: int | None = None
    lease_until: int = 0
    fence: int = 0
    attempts: int = 0
    is_parked: bool = False
    last_error: str | None = None
    is_touched: bool = False

    def make_due(self, now: int) -> None:
        self.due_at = now if self.due_at is None else min(self.due_at, now)
        self.is_touched = True


class Derived(msgspec.Struct):
    """What was made of one session. Segments are found by their end, layouts by budget and settings."""

    segments: dict[int, SealedSegment] = msgspec.field(default_factory=dict[int, SealedSegment])
    summary: Summary | None = None
    layouts: dict[str, Layout] = msgspec.field(default_factory=dict[str, Layout])

    def layout(self, budget: int, settings_fingerprint: str) -> Layout | None:
        """With its lines as they were given."""
        found = self.layouts.get(f"{budget} {settings_fingerprint}")
        return found and replace(found, fact_lines=tuple(found.fact_lines), narrative=tuple(found.narrative))

    def put_layout(self, layout: Layout, budget: int, settings_fingerprint: str) -> None:
        self.layouts[f"{budget} {settings_fingerprint}"] = layout


class Made(msgspec.Struct):
    derived: dict[str, Derived] = msgspec.field(default_factory=dict[str, Derived])
    work: dict[str, dict[str, Work]] = msgspec.field(default_factory=dict[str, dict[str, Work]])


class Family:
    """What the two records of a group say, to be looked at and changed."""

    def __init__(self, group_id: str, log: bytes | None, made: bytes | None) -> None:
        self.group_id = group_id
        self.sessions: dict[str, Conversation] = _read(_LOG, log) if log else {}
        self.made: Made = _read(_MADE, made) if made else Made()

    def find(self, session_id: str, user_id: str | None) -> Conversation | None:
        conversation = self.sessions.get(session_id)
        if conversation is None:
            return None
        if conversation.session.deleted_at is not None:
            raise SessionDeletedError(session_id)
        check_owner(conversation.session, user_id)
        return conversation

    def required(self, session_id: str, user_id: str | None) -> Conversation:
        conversation = self.find(session_id, user_id)
        if conversation is None:
            raise SessionNotFoundError(session_id)
        return conversation

    def lives(self, session_id: str) -> bool:
        conversation = self.sessions.get(session_id)
        return conversation is not None and conversation.session.deleted_at is None

    def derived(self, session_id: str) -> Derived:
        return self.made.derived.setdefault(session_id, Derived())

    def work(self, session_id: str, kind: str) -> Work:
        return self.made.work.setdefault(session_id, {}).setdefault(kind, Work())

    def find_work(self, session_id: str, kind: str) -> Work | None:
        return self.made.work.get(session_id, {}).get(kind)

    def segments(self, session_id: str) -> list[Segment]:
        return [each.segment for each in self.derived(session_id).segments.values()]

    def newest_first(
        self, branch: Sequence[BranchRange], after: int = 0, until: int | None = None
    ) -> Iterator[tuple[str, int]]:
        parts = reversed(ranges_between(branch, after, until))
        return chain.from_iterable(self.sessions[part.conversation_id].visible(part) for part in parts)

    def forget(self, session_id: str) -> None:
        """Everything that was made of it; who holds a lease cannot store what it made."""
        self.made.derived.pop(session_id, None)
        for kind, work in self.made.work.get(session_id, {}).items():
            self.made.work[session_id][kind] = Work(fence=work.fence + 1)

    def records(self) -> dict[str, bytes]:
        """As it is kept, with the empty records that say where to find it."""
        return dict.fromkeys(self._signs(), b"") | {
            log_name(self.group_id): _ENCODER.encode(self.sessions),
            made_name(self.group_id): _ENCODER.encode(self.made),
        }

    def _signs(self) -> Iterator[str]:
        group = quoted(self.group_id)
        for session_id, conversation in self.sessions.items():
            if conversation.session.deleted_at is None:
                yield f"{owned_by(conversation.session.owner_id)}{group}"
                for kind, work in self.made.work.get(session_id, {}).items():
                    if work.due_at is not None:
                        yield f"{due_for(kind)}{group}"
            elif not conversation.is_purged:
                yield f"{DELETED}{group}"


DELETED = "deleted/"
LOGS = "log/"


def quoted(name: str) -> str:
    """A name as a part of the name of a record: ASCII, without a slash."""
    return quote(name, safe="")


def log_name(group_id: str) -> str:
    return f"{LOGS}{quoted(group_id)}"


def made_name(group_id: str) -> str:
    return f"made/{quoted(group_id)}"


def owned_by(user_id: str | None) -> str:
    return "unowned/" if user_id is None else f"owned/{quoted(user_id)}/"


def due_for(kind: str) -> str:
    return f"due/{quoted(kind)}/"


def message_name(session_id: str, seq: int) -> str:
    return f"message/{quoted(session_id)}/{seq}"


def batches_of(session_id: str) -> str:
    return f"batch/{quoted(session_id)}/"


def check_owner(session: Session, user_id: str | None) -> None:
    if session.owner_id is not None and session.owner_id != user_id:
        raise SessionOwnershipError(session.session_id)


def to_record(value: object) -> bytes:
    return _ENCODER.encode(value)


def record_of(message: Message, turn: int | None) -> bytes:
    """The record of a message; of a step of a turn with the message that the turn begins with."""
    record = _ENCODER.encode(message)
    return record if turn is None else b"%s,%s%d}" % (record[:-1], _TURN_FIELD, turn)


def turn_of(record: bytes) -> int | None:
    """Where the turn begins whose step this is."""
    return _read(_STEP, record).turn if _TURN_FIELD in record else None


def message_from(record: bytes) -> Message:
    return _read(_MESSAGE, record)


def _plain(value: object) -> object:
    if isinstance(value, BlockLines):
        return list(value[:])
    raise NotImplementedError


def _read(decoder: msgspec.json.Decoder[Any], record: bytes) -> Any:
    try:
        return decoder.decode(record)
    except msgspec.MsgspecError:
        raise StoreCorruptError("store: a record is damaged") from None


class _Step(msgspec.Struct):
    turn: int | None = None


_TURN_FIELD = b'"turn":'
_ENCODER = msgspec.json.Encoder(enc_hook=_plain)
_STEP = msgspec.json.Decoder(_Step)
_MESSAGE = msgspec.json.Decoder(Message)
_LOG = msgspec.json.Decoder(dict[str, Conversation])
_MADE = msgspec.json.Decoder(Made)
