"""The log as records: a `MessageStore` over a `RecordStore`."""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator, Mapping, Sequence
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
    StoreCorruptError,
)
from reactor_memory.features.record_store.families import Families, Records
from reactor_memory.features.record_store.record_family import (
    DELETED,
    LOGS,
    Conversation,
    Family,
    batches_of,
    check_owner,
    message_from,
    message_name,
    owned_by,
    quoted,
    record_of,
    to_record,
    turn_of,
)
from reactor_memory.models import Message, Session
from reactor_memory.models.requests import (
    SUMMARIZE,
    Appended,
    AppendRequest,
    BackgroundRows,
    ContextQuery,
    ContextRows,
    StoreHealth,
    Withdrawn,
    turn_of_step,
)
from reactor_memory.models.session_pages import SessionPage, SessionPreview

PORTION = 100
"""Messages that a load reads at once, until its budget is full."""


class RecordMessageStore:
    """Costs grow with the forks of a session and with its segments, and those of a listing with the sessions of the
    user.
    """

    def __init__(self, families: Families) -> None:
        self._families = families

    async def open(self) -> None:
        await self._families.open()

    async def close(self) -> None:
        await self._families.close()

    async def append(self, request: AppendRequest) -> Appended:
        key = request.idempotency_key
        batch = None if key is None else f"{batches_of(request.session_id)}{quoted(key)}"

        def deed(family: Family, found: Mapping[str, bytes]) -> tuple[Appended, Records]:
            conversation = family.find(request.session_id, request.user_id) or _begun(family, request)
            if batch is not None and batch in found:
                return _replayed(found[batch], request), {}
            before = conversation.session.last_seq
            appended = Appended(first_seq=before + 1, last_seq=before + len(request.messages))
            numbered = [replace(message, seq=seq) for seq, message in enumerate(request.messages, start=before + 1)]
            conversation.session = replace(conversation.session, last_seq=appended.last_seq, updated_at=request.now)
            every = request.work_every
            if every is not None and appended.last_seq // every > before // every:
                family.work(request.session_id, SUMMARIZE).make_due(request.now)
            turn = turn_of_step(key or "")
            records = {message_name(request.session_id, each.seq or 0): record_of(each, turn) for each in numbered}
            answer = {} if batch is None else {batch: to_record((request.fingerprint, appended))}
            return appended, records | answer

        return await self._families.change(group_of(request.session_id), deed, () if batch is None else (batch,))

    async def get_session(self, session_id: str, user_id: str | None) -> Session | None:
        conversation = (await self._family(session_id)).find(session_id, user_id)
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
        family = await self._family(session_id)
        conversation = family.find(session_id, user_id)
        if conversation is None:
            return ()
        newest = list(islice(family.newest_first(conversation.session.branch, after, until), last))
        return await self._messages(newest[::-1][:limit])

    async def read_context(self, query: ContextQuery) -> ContextRows:
        family = await self._family(query.session_id)
        conversation = family.find(query.session_id, query.user_id)
        if conversation is None:
            return ContextRows()
        session, derived = conversation.session, family.derived(query.session_id)
        newest = family.newest_first(session.branch)
        summary = derived.summary
        messages, steps = await self._window(newest, session.last_seq, query)
        return ContextRows(
            session=session,
            summary=summary if query.facts or summary is None else summary.head,
            layout=derived.layout(query.budget, query.settings_fingerprint),
            messages=messages,
            steps=steps,
        )

    async def _window(
        self, newest: Iterator[tuple[str, int]], length: int, query: ContextQuery
    ) -> tuple[tuple[Message, ...], dict[int, int]]:
        """The messages, oldest first, and where the turns begin whose steps they are."""
        if query.trigger_message_count is None or length <= query.trigger_message_count:
            records = await self._records(list(islice(newest, query.last_count + query.before_count))[::-1])
            messages = tuple(map(message_from, records))
            return messages, _steps(messages, records)
        window: list[Message] = []
        steps: dict[int, int] = {}
        tokens, rest = 0, islice(newest, query.max_messages)
        while tokens <= query.max_tokens and (portion := list(islice(rest, PORTION))):
            records = await self._records(portion)
            messages = tuple(map(message_from, records))
            steps |= _steps(messages, records)
            for message in messages:
                window.append(message)
                tokens += (message.token_count or 0) + query.overhead
                if tokens > query.max_tokens:
                    break
        return tuple(window[::-1]), steps

    async def read_ranges(
        self, session_id: str, user_id: str | None, ranges: Sequence[tuple[int, int]]
    ) -> tuple[Message, ...]:
        family = await self._family(session_id)
        conversation = family.find(session_id, user_id)
        if conversation is None:
            return ()
        branch = conversation.session.branch
        parts = (family.newest_first(branch, start - 1, end) for start, end in ranges)
        places = {seq: place for part in parts for place, seq in part}
        return await self._messages([(places[seq], seq) for seq in sorted(places)])

    async def read_background(self, session_id: str, *, after: int = 0, limit: int = 1000) -> BackgroundRows:
        family = await self._family(session_id)
        conversation = family.sessions.get(session_id)
        if conversation is None:
            raise SessionNotFoundError(session_id)
        session = conversation.session
        if session.deleted_at is not None:
            raise SessionDeletedError(session_id)
        places = list(family.newest_first(session.branch, after))[::-1][:limit]
        records = await self._records(places)
        messages = tuple(map(message_from, records))
        return BackgroundRows(session=session, messages=messages, steps=_steps(messages, records))

    async def list_sessions(self, user_id: str | None, *, limit: int = 50, cursor: str | None = None) -> SessionPage:
        begin = None if cursor is None else _place(decode_cursor(cursor))
        own: list[tuple[Session, Family]] = []
        async for family in self._families.groups(owned_by(user_id)):
            sessions = (each.session for each in family.sessions.values())
            live = (each for each in sessions if each.owner_id == user_id and each.deleted_at is None)
            own += ((each, family) for each in live if begin is None or _place(each) > begin)
        page = heapq.nsmallest(limit + 1, own, key=lambda each: _place(each[0]))
        shown, has_more = page[:limit], len(page) > limit > 0
        end = shown[-1][0] if has_more else None
        return SessionPage(
            sessions=tuple([await self._preview(session, family) for session, family in shown]),
            next_cursor=end and encode_cursor(Cursor(updated_at=end.updated_at, session_id=end.session_id)),
        )

    async def _preview(self, session: Session, family: Family) -> SessionPreview:
        return SessionPreview(
            session_id=session.session_id,
            owner_id=session.owner_id,
            title=session.title,
            preview=preview_of(await self._first_said(list(family.newest_first(session.branch))[::-1])),
            last_seq=session.last_seq,
            created_at=session.created_at,
            updated_at=session.updated_at,
        )

    async def _first_said(self, places: Sequence[tuple[str, int]]) -> str:
        """What the user said first."""
        for start in range(0, len(places), PORTION):
            for message in await self._messages(places[start : start + PORTION]):
                if message.role == "user" and message.visibility == "user":
                    return message.content
        return ""

    async def fork(self, session_id: str, user_id: str | None, *, at_seq: int, fork_id: str, now: int) -> Session:
        def deed(family: Family, found: Mapping[str, bytes]) -> tuple[Session, Records]:
            parent = family.required(session_id, user_id).session
            if not 1 <= at_seq <= parent.last_seq + 1:
                raise InvalidInputError("at_seq", f"must be from 1 to {parent.last_seq + 1}")
            if not is_fork(fork_id) or group_of(fork_id) != parent.group_id:
                raise InvalidInputError("fork_id", "must be the id of the group, then ~ and a random part")
            if fork_id in family.sessions:
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
            family.sessions[fork_id] = Conversation(session=session, first_seq=at_seq)
            return session, {}

        return await self._families.change(group_of(session_id), deed)

    async def withdraw(
        self, session_id: str, user_id: str | None, *, seq: int | None, now: int, refold: LedgerFold
    ) -> Withdrawn:
        def deed(family: Family, found: Mapping[str, bytes]) -> tuple[tuple[int, tuple[Session, ...]], Records]:
            conversation = family.required(session_id, user_id)
            newest = next(family.newest_first(conversation.session.branch), None)
            position = _withdrawable(conversation, newest, seq)
            conversation.withdrawn.add(position)
            conversation.session = replace(conversation.session, updated_at=now)
            live = (each.session for each in family.sessions.values() if each.session.deleted_at is None)
            return (position, tuple(each for each in live if _shows(each, session_id, position))), {}

        position, showing = await self._families.change(group_of(session_id), deed)
        (message,) = await self._messages([(session_id, position)])
        return Withdrawn(message=message, conversation_id=session_id, branches=showing)

    async def delete(self, session_id: str, user_id: str | None, *, now: int, purge: bool) -> tuple[str, ...]:
        below: list[str] = []

        def deed(family: Family, found: Mapping[str, bytes]) -> tuple[tuple[str, ...], Records]:
            conversation = family.sessions.get(session_id)
            if conversation is None:
                raise SessionNotFoundError(session_id)
            check_owner(conversation.session, user_id)
            below[:] = _with_forks_below(family, session_id)
            gone = [each for each in below if family.lives(each)]
            for each in gone:
                family.sessions[each].session = replace(family.sessions[each].session, deleted_at=now)
            return tuple(gone), {}

        gone = await self._families.change(group_of(session_id), deed)
        if purge:
            await self._purge(group_of(session_id), below)
        return gone

    async def purge_deleted(self, *, before: int, limit: int = 100) -> int:
        count = 0
        async for family in self._families.groups(DELETED):
            every = (each.session for each in family.sessions.values() if not each.is_purged)
            waiting = [each.session_id for each in every if (each.deleted_at or before) < before]
            count += await self._purge(family.group_id, waiting[: limit - count])
        return count

    async def _purge(self, group_id: str, session_ids: Sequence[str]) -> int:
        """Take away the content of sessions that are deleted."""
        batches: dict[str, None] = {}
        for prefix in map(batches_of, session_ids):
            batches |= {f"{prefix}{name}": None async for name in self._families.names(prefix)}

        def deed(family: Family, found: Mapping[str, bytes]) -> tuple[int, Records]:
            chosen = [each for each in map(family.sessions.__getitem__, session_ids) if not each.is_purged]
            return len(chosen), _purged(family, chosen) | batches

        return await self._families.change(group_id, deed) if session_ids else 0

    async def check(self) -> StoreHealth:
        groups = [name async for name in self._families.names(LOGS)]
        return StoreHealth(details=(("store", self._families.name), ("sessions", str(len(groups)))))

    async def _family(self, session_id: str) -> Family:
        return await self._families.family(group_of(session_id))

    async def _messages(self, places: Sequence[tuple[str, int]]) -> tuple[Message, ...]:
        """What is stored there, in this order."""
        return tuple(map(message_from, await self._records(places)))

    async def _records(self, places: Sequence[tuple[str, int]]) -> list[bytes]:
        names = [message_name(session_id, seq) for session_id, seq in places]
        found = await self._families.read(names)
        for (session_id, _), name in zip(places, names, strict=True):
            if name not in found:
                owner = (await self._family(session_id)).sessions.get(session_id)
                if owner is not None and owner.session.deleted_at is not None:
                    raise SessionDeletedError(session_id)
                raise StoreCorruptError("store: the record of a message is missing")
        return [found[name] for name in names]


def _steps(messages: Iterable[Message], records: Iterable[bytes]) -> dict[int, int]:
    """Of messages where the turn begins whose steps they are."""
    turns = ((message.seq or 0, turn_of(record)) for message, record in zip(messages, records, strict=True))
    return {seq: turn for seq, turn in turns if turn is not None}


def _begun(family: Family, request: AppendRequest) -> Conversation:
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
    return family.sessions.setdefault(request.session_id, Conversation(session=session))


_BATCH = msgspec.json.Decoder(tuple[str, Appended])


def _replayed(record: bytes, request: AppendRequest) -> Appended:
    """The first answer to this key."""
    fingerprint, first = _BATCH.decode(record)
    if fingerprint != request.fingerprint:
        raise IdempotencyConflictError(request.session_id, request.idempotency_key or "")
    return replace(first, replayed=True)


def _withdrawable(conversation: Conversation, newest: tuple[str, int] | None, seq: int | None) -> int:
    """The position to withdraw: the newest visible message, if it is the conversation's own and the one asked for."""
    if newest is None:
        raise InvalidInputError("seq", "there is no message to withdraw")
    if newest[1] < conversation.first_seq:
        raise InvalidInputError("seq", f"message {newest[1]} is inherited; withdraw it in the session it belongs to")
    if seq is not None and seq != newest[1]:
        raise InvalidInputError("seq", f"only the newest message can be withdrawn, which is {newest[1]}")
    return newest[1]


def _shows(session: Session, conversation_id: str, seq: int) -> bool:
    parts = (part for part in session.branch if part.conversation_id == conversation_id)
    return any(part.start_seq <= seq <= (session.last_seq if part.end_seq is None else part.end_seq) for part in parts)


def _with_forks_below(family: Family, session_id: str) -> list[str]:
    """The session, then the forks that descend from it, which began later."""
    below = [session_id]
    for each, conversation in family.sessions.items():
        below += [each] if conversation.session.forked_from_id in below else []
    return below


def _purged(family: Family, conversations: Iterable[Conversation]) -> dict[str, None]:
    """Take their content away; the records that go with it."""
    gone: dict[str, None] = {}
    for each in conversations:
        session = each.session
        gone |= dict.fromkeys(
            message_name(session.session_id, seq) for seq in range(each.first_seq, session.last_seq + 1)
        )
        each.withdrawn.clear()
        each.is_purged = True
        family.forget(session.session_id)
    return gone


def _place(row: Session | Cursor) -> tuple[int, str]:
    return -row.updated_at, row.session_id
