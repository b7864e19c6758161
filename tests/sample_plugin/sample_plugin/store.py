"""A `MessageStore` without a database. It logs what is appended: never the text, only how much."""

from __future__ import annotations

import heapq
import logging
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice

import msgspec
from msgspec.structs import replace

from reactor_memory.core.log.branches import group_of, is_fork, root_branch
from reactor_memory.core.log.forks import branch_for_fork
from reactor_memory.core.log.paging import Cursor, decode_cursor, encode_cursor, preview_of
from reactor_memory.core.ports import LedgerFold
from reactor_memory.errors import (
    IdempotencyConflictError,
    InvalidInputError,
    SessionDeletedError,
    SessionNotFoundError,
    StoreClosedError,
)
from reactor_memory.models import Message, Session
from reactor_memory.models.requests import (
    SUMMARIZE,
    Appended,
    AppendRequest,
    ContextQuery,
    ContextRows,
    StoreHealth,
    Withdrawn,
)
from reactor_memory.models.session_pages import SessionPage, SessionPreview
from reactor_memory.wiring.settings import Settings
from sample_plugin.state import Conversation, State, check_owner, state_at
from sample_plugin.summaries import SampleSummaries

logger = logging.getLogger("sample_plugin.store")


class SampleStore:
    """The log in dictionaries. `summaries` is the `SummaryStore` over the same state."""

    def __init__(self, state: State) -> None:
        self._all = state
        self._is_open = False
        self.summaries = SampleSummaries(state)

    async def open(self) -> None:
        logger.info("open")
        self._is_open = True

    async def close(self) -> None:
        if self._is_open:
            logger.info("close")
        self._is_open = False

    @property
    def _state(self) -> State:
        if not self._is_open:
            raise StoreClosedError
        return self._all

    async def append(self, request: AppendRequest) -> Appended:
        conversation = self._state.find(request.session_id, request.user_id) or self._begun(request)
        replayed = _replayed(conversation, request)
        if replayed is not None:
            return replayed
        before = conversation.session.last_seq
        appended = Appended(first_seq=before + 1, last_seq=before + len(request.messages))
        numbered = enumerate(request.messages, start=before + 1)
        conversation.messages += [_copied(replace(message, seq=seq)) for seq, message in numbered]
        conversation.session = replace(conversation.session, last_seq=appended.last_seq, updated_at=request.now)
        if request.idempotency_key is not None:
            conversation.batches[request.idempotency_key] = (request.fingerprint, appended)
        every = request.work_every
        if every is not None and appended.last_seq // every > before // every:
            self._state.work[request.session_id, SUMMARIZE].make_due(request.now)
        logger.info("append messages=%d", len(request.messages))
        return appended

    def _begun(self, request: AppendRequest) -> Conversation:
        if is_fork(request.session_id):
            raise SessionNotFoundError(request.session_id)
        session = Session(
            session_id=request.session_id,
            group_id=request.session_id,
            owner_id=request.user_id,
            last_seq=0,
            branch=root_branch(request.session_id),
            created_at=request.now,
            updated_at=request.now,
        )
        return self._state.conversations.setdefault(request.session_id, Conversation(session=session))

    async def get_session(self, session_id: str, user_id: str | None) -> Session | None:
        conversation = self._state.find(session_id, user_id)
        return None if conversation is None else conversation.session

    async def read(
        self,
        session_id: str,
        user_id: str | None,
        *,
        after: int = 0,
        until: int | None = None,
        last: int | None = None,
        limit: int | None = None,
    ) -> tuple[Message, ...]:
        conversation = self._state.find(session_id, user_id)
        if conversation is None:
            return ()
        newest = self._state.newest_first(conversation.session.branch, after, until)
        return _oldest_first(islice(newest, last))[:limit]

    async def read_context(self, query: ContextQuery) -> ContextRows:
        conversation = self._state.find(query.session_id, query.user_id)
        if conversation is None:
            return ContextRows()
        session, derived = conversation.session, self._state.derived[query.session_id]
        summary = derived.summary
        window = _window(self._state.newest_first(session.branch), session.last_seq, query)
        return ContextRows(
            session=session,
            summary=summary if query.facts or summary is None else summary.head,
            layout=derived.layouts.get((query.budget, query.settings_fingerprint)),
            messages=_oldest_first(window),
        )

    async def read_ranges(
        self, session_id: str, user_id: str | None, ranges: Sequence[tuple[int, int]]
    ) -> tuple[Message, ...]:
        parts = [await self.read(session_id, user_id, after=start - 1, until=end) for start, end in ranges]
        found = {message.seq or 0: message for part in parts for message in part}
        return tuple(found[seq] for seq in sorted(found))

    async def read_background(
        self, session_id: str, *, after: int = 0, limit: int = 1000
    ) -> tuple[Session, tuple[Message, ...]]:
        conversation = self._state.conversations.get(session_id)
        if conversation is None:
            raise SessionNotFoundError(session_id)
        if conversation.session.deleted_at is not None:
            raise SessionDeletedError(session_id)
        session = conversation.session
        return session, _oldest_first(self._state.newest_first(session.branch, after))[:limit]

    async def list_sessions(self, user_id: str | None, *, limit: int = 50, cursor: str | None = None) -> SessionPage:
        begin = None if cursor is None else _place(decode_cursor(cursor))
        sessions = (each.session for each in self._state.conversations.values())
        own = (each for each in sessions if each.owner_id == user_id and each.deleted_at is None)
        rest = (each for each in own if begin is None or _place(each) > begin)
        page = heapq.nsmallest(limit + 1, rest, key=_place)
        shown, has_more = page[:limit], len(page) > limit > 0
        end = Cursor(updated_at=shown[-1].updated_at, session_id=shown[-1].session_id) if has_more else None
        return SessionPage(
            sessions=tuple(map(self._preview, shown)), next_cursor=None if end is None else encode_cursor(end)
        )

    def _preview(self, session: Session) -> SessionPreview:
        messages = _oldest_first(self._state.newest_first(session.branch))
        of_user = (each.content for each in messages if each.role == "user" and each.visibility == "user")
        return SessionPreview(
            session_id=session.session_id,
            owner_id=session.owner_id,
            title=session.title,
            preview=preview_of(next(of_user, "")),
            last_seq=session.last_seq,
            created_at=session.created_at,
            updated_at=session.updated_at,
        )

    async def fork(self, session_id: str, user_id: str | None, *, at_seq: int, fork_id: str, now: int) -> Session:
        parent = self._state.required(session_id, user_id).session
        if not 1 <= at_seq <= parent.last_seq + 1:
            raise InvalidInputError("at_seq", f"must be from 1 to {parent.last_seq + 1}")
        if not is_fork(fork_id) or group_of(fork_id) != parent.group_id:
            raise InvalidInputError("fork_id", "must be the id of the group, then ~ and a random part")
        if fork_id in self._state.conversations:
            raise InvalidInputError("fork_id", "is taken; choose another random part")
        session = Session(
            session_id=fork_id,
            group_id=parent.group_id,
            owner_id=parent.owner_id,
            last_seq=at_seq - 1,
            branch=branch_for_fork(parent, fork_id, at_seq),
            created_at=now,
            updated_at=now,
            forked_from_id=session_id,
            forked_at_seq=at_seq,
        )
        self._state.conversations[fork_id] = Conversation(session=session, first_seq=at_seq)
        return session

    async def withdraw(
        self, session_id: str, user_id: str | None, *, seq: int | None, now: int, refold: LedgerFold
    ) -> Withdrawn:
        conversation = self._state.required(session_id, user_id)
        newest = next(self._state.newest_first(conversation.session.branch), None)
        position = _withdrawable(conversation, newest, seq)
        conversation.withdrawn.add(position)
        conversation.session = replace(conversation.session, updated_at=now)
        sessions = (each.session for each in self._state.conversations.values())
        showing = (each for each in sessions if each.deleted_at is None and _shows(each, session_id, position))
        message = conversation.messages[position - conversation.first_seq]
        return Withdrawn(message=_copied(message), conversation_id=session_id, branches=tuple(showing))

    async def delete(self, session_id: str, user_id: str | None, *, now: int, purge: bool) -> tuple[str, ...]:
        conversation = self._state.conversations.get(session_id)
        if conversation is None:
            raise SessionNotFoundError(session_id)
        check_owner(conversation.session, user_id)
        below = list(self._with_forks_below(session_id))
        gone = [each for each in below if each.session.deleted_at is None]
        for each in gone:
            each.session = replace(each.session, deleted_at=now)
        if purge:
            self._purge(below)
        return tuple(each.session.session_id for each in gone)

    async def purge_deleted(self, *, before: int, limit: int = 100) -> int:
        every = (each for each in self._state.conversations.values() if not each.is_purged)
        waiting = (each for each in every if (each.session.deleted_at or before) < before)
        return self._purge(list(islice(waiting, limit)))

    async def check(self) -> StoreHealth:
        conversations = self._state.conversations.values()
        messages = sum(len(each.messages) for each in conversations)
        return StoreHealth(
            details=(("store", "sample"), ("sessions", str(len(conversations))), ("messages", str(messages)))
        )

    def _with_forks_below(self, session_id: str) -> Iterator[Conversation]:
        """The conversation, then the forks that descend from it."""
        below = {session_id}
        for each in self._state.conversations.values():
            if each.session.session_id in below or each.session.forked_from_id in below:
                below.add(each.session.session_id)
                yield each

    def _purge(self, conversations: Iterable[Conversation]) -> int:
        chosen = [each for each in conversations if not each.is_purged]
        for each in chosen:
            each.purge()
            self._state.forget(each.session.session_id)
        return len(chosen)


def _replayed(conversation: Conversation, request: AppendRequest) -> Appended | None:
    """The first answer to this key, if there was one."""
    if request.idempotency_key is None or request.idempotency_key not in conversation.batches:
        return None
    fingerprint, first = conversation.batches[request.idempotency_key]
    if fingerprint != request.fingerprint:
        raise IdempotencyConflictError(request.session_id, request.idempotency_key)
    return replace(first, replayed=True)


def _oldest_first(newest_first: Iterable[Message]) -> tuple[Message, ...]:
    return tuple(map(_copied, list(newest_first)[::-1]))


_MESSAGE = msgspec.json.Decoder(Message)


def _copied(message: Message) -> Message:
    """The message, sharing nothing that can be changed."""
    return _MESSAGE.decode(msgspec.json.encode(message))


def _window(newest: Iterator[Message], length: int, query: ContextQuery) -> list[Message]:
    """What a load shows, newest first."""
    if query.trigger_message_count is None or length <= query.trigger_message_count:
        return list(islice(newest, query.last_count + query.before_count))
    window: list[Message] = []
    tokens = 0
    for message in islice(newest, query.max_messages):
        window.append(message)
        tokens += (message.token_count or 0) + query.overhead
        if tokens > query.max_tokens:
            break
    return window


def _withdrawable(conversation: Conversation, newest: Message | None, seq: int | None) -> int:
    """The position to withdraw: the newest visible message, if it is the conversation's own and the one asked for."""
    if newest is None or newest.seq is None:
        raise InvalidInputError("seq", "there is no message to withdraw")
    if newest.seq < conversation.first_seq:
        raise InvalidInputError("seq", f"message {newest.seq} is inherited; withdraw it in the session it belongs to")
    if seq is not None and seq != newest.seq:
        raise InvalidInputError("seq", f"only the newest message can be withdrawn, which is {newest.seq}")
    return newest.seq


def _shows(session: Session, conversation_id: str, seq: int) -> bool:
    parts = (part for part in session.branch if part.conversation_id == conversation_id)
    return any(part.start_seq <= seq <= (session.last_seq if part.end_seq is None else part.end_seq) for part in parts)


def _place(row: Session | Cursor) -> tuple[int, str]:
    return -row.updated_at, row.session_id


def make_store(settings: Settings) -> SampleStore:
    return SampleStore(state_at(settings.store.url))
