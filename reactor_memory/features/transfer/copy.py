"""Sessions moved from one database to another, as they are stored.

A group is copied conversation by conversation, each behind the one that it was forked from, and its messages page by
page in the order of the log. So what the target shows is at any moment the beginning of what the source shows, and a
copy that was broken off, however it was, goes on behind the last message that arrived. Of deleted sessions only the ids
arrive, so that none is used again. What is derived from the log is not copied: the target makes it again, under its own
settings.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from typing import TYPE_CHECKING

from msgspec.structs import replace

from reactor_memory.core.log.walks import list_groups
from reactor_memory.database.database import Database
from reactor_memory.errors import CopyConflictError, SessionNotFoundError
from reactor_memory.features.entries import operations as entry_rows
from reactor_memory.features.entries.models import Entry
from reactor_memory.features.transfer import operations as transfer
from reactor_memory.features.transfer.operations import StoredConversation, StoredMessage, StoredUser, list_users
from reactor_memory.models import Session, Value

if TYPE_CHECKING:
    from reactor_memory.core.ports import Clock

PAGE = 500
"""Messages that are in memory, and in one transaction, at once."""


class Copied(Value, frozen=True, kw_only=True):
    """What the source holds of what was asked for, and how many of its messages, and versions of notes, were not in the
    target before.
    """

    sessions: int = 0
    messages: int = 0
    copied: int = 0
    notes_copied: int = 0

    def __add__(self, other: Copied) -> Copied:
        return Copied(
            sessions=self.sessions + other.sessions,
            messages=self.messages + other.messages,
            copied=self.copied + other.copied,
            notes_copied=self.notes_copied + other.notes_copied,
        )


Advance = Callable[[int], None]
"""Told how many messages were done since the last call."""


class SessionCopier:
    """Copies groups of sessions, and the notes, active sessions and items of users, from `source` to `target`, both
    open: those of `owner_id`, or all.

    Nobody should write to a session while it is copied. What the target holds already stays as it is, so a session may
    have grown there meanwhile; if it has grown in the source only, the rest is copied.
    """

    def __init__(self, source: Database, target: Database, *, clock: Clock, owner_id: str | None = None) -> None:
        self._source = source
        self._target = target
        self._clock = clock
        self._owner_id = owner_id

    async def compare(self) -> Copied:
        """How much there is to copy. Raises `CopyConflictError` if the target holds another session under an id of the
        source; writes nothing.
        """
        found = Copied()
        async with aclosing(self._groups()) as groups:
            async for group_id in groups:
                found += await self.compare_group(group_id)
        return found

    async def compare_group(self, group_id: str) -> Copied:
        """`compare`, for one group. Raises `SessionNotFoundError` if the source has none of this id."""
        group = await self._source.read(transfer.export_group, group_id)
        if not group:
            raise SessionNotFoundError(group_id)
        present = await self._present(group_id)
        for stored in group:
            if (known := present.get(stored.session.session_id)) is not None:
                await self._check_same(stored, known)
        return Copied(sessions=len(group), messages=sum(stored.message_count for stored in group))

    async def copy(self, advance: Advance) -> Copied:
        """Copy what is missing, and compare it with the source when it has arrived. Raises `CopyConflictError`."""
        done = Copied()
        async with aclosing(self._groups()) as groups:
            async for group_id in groups:
                done += await self.copy_group(group_id, advance)
        async with aclosing(self._users()) as users:
            async for user_id in users:
                done += Copied(notes_copied=await self._copy_user(user_id))
        return done

    async def copy_group(self, group_id: str, advance: Advance) -> Copied:
        """`copy`, for one group."""
        done = await self.compare_group(group_id)
        present = await self._present(group_id)
        for stored in await self._source.read(transfer.export_group, group_id):
            done += Copied(copied=await self._copy(stored, present.get(stored.session.session_id), advance))
        return done

    async def _groups(self) -> AsyncGenerator[str]:
        after = ""
        while page := await self._source.read(list_groups, owner_id=self._owner_id, after=after):
            for group_id in page:
                yield group_id
            after = page[-1]

    async def _users(self) -> AsyncGenerator[str]:
        if self._owner_id is not None:
            yield self._owner_id
            return
        yield ""
        after = ""
        while page := await self._source.read(list_users, after=after):
            for user_id in page:
                yield user_id
            after = page[-1]

    async def _copy_user(self, user_id: str) -> int:
        missing = _missing(
            await self._source.read(transfer.export_user, user_id),
            await self._target.read(transfer.export_user, user_id),
        )
        await self._target.write(transfer.import_user, missing)
        return len(missing.entries)

    async def _present(self, group_id: str) -> dict[str, StoredConversation]:
        return {
            stored.session.session_id: stored for stored in await self._target.read(transfer.export_group, group_id)
        }

    async def _check_same(self, stored: StoredConversation, known: StoredConversation) -> None:
        """Whether both are the same session: begun by the same act, with the same last message that both have."""
        ours, theirs = stored.session, known.session
        if ours.deleted_at is not None or theirs.deleted_at is not None:
            return
        if _origin(ours) != _origin(theirs):
            raise CopyConflictError(ours.session_id)
        last = min(ours.last_seq, theirs.last_seq)
        if last >= stored.first_seq:
            both = [await _message_at(database, ours.session_id, last) for database in (self._source, self._target)]
            if both[0].message.message_id != both[1].message.message_id:
                raise CopyConflictError(ours.session_id)

    async def _copy(self, stored: StoredConversation, known: StoredConversation | None, advance: Advance) -> int:
        """Copy what is missing of one conversation; how many messages."""
        if stored.session.deleted_at is not None:
            await self._copy_tombstone(stored, known)
            return 0
        if known is not None and known.session.deleted_at is not None:
            advance(stored.message_count)
            return 0
        if known is None:
            await self._target.write(transfer.import_conversation, stored)
        session_id, begin = stored.session.session_id, stored.first_seq - 1
        arrived = begin if known is None else known.session.last_seq
        unfinished = known is None or known.importing
        advance(min(arrived - begin, stored.message_count))
        copied = await self._copy_messages(session_id, arrived, advance)
        if copied or unfinished:
            await self._check_equal(session_id, begin if unfinished else arrived)
            new = [each for each in stored.entries if unfinished or (each.seq or 0) > arrived]
            await self._target.write(entry_rows.import_all, entry_rows.of_session(session_id), new)
            await self._target.write(transfer.finish_import, session_id, due_at=self._clock())
        return copied

    async def _copy_tombstone(self, stored: StoredConversation, known: StoredConversation | None) -> None:
        """Of a deleted conversation only its id arrives, so that it is not used again."""
        if known is not None and known.importing and known.session.deleted_at is None:
            raise CopyConflictError(stored.session.session_id)
        if known is None:
            await self._target.write(transfer.import_conversation, _tombstone(stored))
        if known is None or known.importing:
            await self._target.write(transfer.finish_import, stored.session.session_id, due_at=None)

    async def _copy_messages(self, session_id: str, after: int, advance: Advance) -> int:
        copied = 0
        while page := await self._source.read(transfer.export_messages, session_id, after=after, limit=PAGE):
            if not await self._target.write(transfer.import_messages, session_id, page):
                raise CopyConflictError(session_id)
            copied += len(page)
            advance(len(page))
            after = page[-1].seq
        return copied

    async def _check_equal(self, session_id: str, after: int) -> None:
        """Every message behind `after` arrived as it is in the source."""
        while page := await self._source.read(transfer.export_messages, session_id, after=after, limit=PAGE):
            if await self._target.read(transfer.export_messages, session_id, after=after, limit=len(page)) != page:
                raise CopyConflictError(session_id)
            after = page[-1].seq


async def _message_at(database: Database, conversation_id: str, seq: int) -> StoredMessage:
    return (await database.read(transfer.export_messages, conversation_id, after=seq - 1, limit=1))[0]


def _missing(ours: StoredUser, theirs: StoredUser) -> StoredUser:
    """What the target lacks. Texts that went on there stay as they are: no version is put behind another one."""
    agents = {active.agent_name for active in theirs.active}
    newest = {_key(each): each for each in theirs.entries}
    going_on = {key: entry.version for key, entry in newest.items() if entry in ours.entries}
    return StoredUser(
        user_id=ours.user_id,
        active=tuple(active for active in ours.active if active.agent_name not in agents),
        entries=tuple(
            each
            for each in ours.entries
            if _key(each) not in newest or each.version > going_on.get(_key(each), each.version)
        ),
        items=ours.items,
    )


def _key(entry: Entry) -> tuple[str, str]:
    return entry.kind, entry.name


def _tombstone(stored: StoredConversation) -> StoredConversation:
    return StoredConversation(
        session=replace(stored.session, title=None),
        agent_name=stored.agent_name,
        audit=stored.audit,
        purged_at=stored.session.deleted_at if stored.purged_at is None else stored.purged_at,
    )


def _origin(session: Session) -> tuple[object, ...]:
    return session.owner_id, session.created_at, session.branch, session.forked_at_seq
