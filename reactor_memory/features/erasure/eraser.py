"""Content destroyed for good, in every place that the library knows: the log, what was derived from it, the index,
running work, and what belongs to a user.

Each step is a transaction, and done again it ends in the same state. What is left to do is noted in the transaction
that begins an erasure. So one that was cut off goes on by itself, as background work.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import TYPE_CHECKING, TypeAlias

from reactor_memory.core.log import deletion
from reactor_memory.core.log import operations as log_operations
from reactor_memory.core.log.scrubbing import CALL_SECONDS, FILES, LONG_SECONDS, scrub
from reactor_memory.core.validation import check_optional_id, check_position, check_session_id
from reactor_memory.database.database import Database
from reactor_memory.database.deadlines import in_time
from reactor_memory.errors import InvalidInputError, ReactorMemoryError
from reactor_memory.features.erasure import operations as erasure
from reactor_memory.features.erasure.models import ErasedMessages, ErasedUser
from reactor_memory.models import Message
from reactor_memory.models.leases import Lease
from reactor_memory.models.requests import ERASE_USER, FORGET, ErasedBranch, Withdrawn
from reactor_memory.models.seq_ranges import joined_ranges
from reactor_memory.text.caches import forget_texts

if TYPE_CHECKING:
    from reactor_memory.core.ports import BackgroundWork, Clock, KeptElsewhere, LedgerFold, MessageStore

log = logging.getLogger(__name__)

Positions: TypeAlias = int | Iterable[int | tuple[int, int]]
"""A seq, several of them (a ``range`` too), or pairs of the first and the last of a range."""

PAGE = 100
"""Groups of sessions that are looked up at a time."""


class LeftBehindError(ReactorMemoryError):
    """Something that was destroyed is still in a place that background work comes back to."""

    reason = "readers"

    def __init__(self, place: str) -> None:
        super().__init__(f"erased text is left in the {place} of the database: somebody reads them")


class Aftermath:
    """What is left to do when the log has erased: outside of its database, in its files, in memory.

    The calls that a caller waits for tell what is left, by name, and background work goes on with that; those that go
    on raise what hinders them.
    """

    def __init__(
        self,
        *,
        database: Database,
        elsewhere: Sequence[KeptElsewhere],
        notes_sessions: bool,
        is_in_database: bool,
        clock: Clock,
    ) -> None:
        """`notes_sessions`: whether the log notes what is left to do elsewhere when sessions or messages go;
        `is_in_database`: whether it has files to scrub.
        """
        self._database = database
        self._elsewhere = elsewhere
        self.notes_sessions = notes_sessions
        self._is_in_database = is_in_database
        self._clock = clock

    @property
    def is_elsewhere(self) -> bool:
        """Whether anything is kept elsewhere."""
        return bool(self._elsewhere)

    async def of_messages(
        self, branches: Sequence[ErasedBranch], message_ids: Sequence[str], lease: Lease | None
    ) -> tuple[str, ...]:
        """Without a lease an earlier erasure in the same session was not finished, and stays to be done."""
        left = await self._tried(lambda part: part.messages_gone(branches, message_ids))
        await self._settle(lease, left)
        return (*left, *await self.of_files())

    async def of_withdrawn(self, withdrawn: Withdrawn, lease: Lease | None) -> None:
        """As `of_messages`; nothing was destroyed."""
        ids = [withdrawn.message.message_id or ""]
        await self._settle(lease, await self._tried(lambda part: part.messages_gone(withdrawn.gone(), ids)))

    async def of_sessions(self, session_ids: Sequence[str]) -> tuple[str, ...]:
        """The log has removed these sessions: what is kept of them elsewhere goes, and then the note of that."""
        left = await self.of_removed(session_ids)
        return (*left, *await self.of_files(merging_seconds=CALL_SECONDS))

    async def of_removed(self, session_ids: Sequence[str]) -> tuple[str, ...]:
        """As `of_sessions`, but for the files."""
        left = await self._tried(lambda part: part.forget(session_ids))
        if self.notes_sessions and session_ids:
            await self._database.write(erasure.settle, session_ids, FORGET, left=left, now=self._clock())
        return left

    async def of_group(self, group: Sequence[str], user_id: str) -> tuple[int, tuple[str, ...]]:
        """Erase a group that is marked as deleted; how many sessions were. Whose it was is forgotten last, so that
        until then it is found.
        """
        purged = await self._database.write(erasure.purge_group, group[0], user_id, now=self._clock())
        left = await self._tried(lambda part: part.forget(group))
        await self._database.write(erasure.settle_group, group[0], user_id, left=left, now=self._clock())
        return len(purged), left

    async def of_files(self, *, merging_seconds: float = LONG_SECONDS) -> tuple[str, ...]:
        """What was destroyed leaves the files, and the memory of this process."""
        forget_texts()
        is_clean = not self._is_in_database or await scrub(self._database, seconds=merging_seconds)
        return () if is_clean else (FILES,)

    async def go_on_with_files(self, lease: Lease) -> None:
        """Scrub the files for whoever could not. Raises `LeftBehindError` if it cannot be done now either."""
        if not await scrub(self._database):
            raise LeftBehindError(FILES)

    async def go_on_with_messages(self, lease: Lease) -> None:
        """Finish an erasure that was cut off. Which messages were concerned is not known any more, so everything that
        was ever erased or withdrawn in the group is forgotten once more.
        """
        branches, message_ids = await self._database.write(erasure.tombstones, lease.session_id)
        for part in self._elsewhere:
            await part.messages_gone(branches, message_ids)
        await self._settle(lease, ())

    async def go_on_with_session(self, lease: Lease) -> None:
        """Finish the deletion of a session."""
        for part in self._elsewhere:
            await part.forget([lease.session_id])
        await self._database.write(erasure.drop_work, [lease.session_id], FORGET)

    async def go_on_with_group(self, lease: Lease) -> None:
        """Finish the erasure of a user for one of their groups."""
        owner, group = await self._database.write(erasure.group_to_erase, lease.session_id)
        if owner is None:
            return await self._database.write(erasure.drop_work, [lease.session_id], ERASE_USER)
        await self._database.write(deletion.delete, group[0], owner, now=self._clock(), purge=False)
        await self._database.write(erasure.purge_group, group[0], owner, now=self._clock())
        for part in self._elsewhere:
            await part.forget(group)
        return await self._database.write(erasure.settle_group, group[0], owner, left=(), now=self._clock())

    async def _tried(self, take_away: Callable[[KeptElsewhere], Awaitable[None]]) -> tuple[str, ...]:
        """Where that failed. A part of a plug-in may fail in any way; one that fails keeps no other from trying."""
        left: list[str] = []
        for part in self._elsewhere:
            try:
                await take_away(part)
            except Exception as error:
                reason = type(error).__name__
                log.warning("erased text is left elsewhere", extra={"where": part.name, "reason": reason})
                left.append(part.name)
        return tuple(left)

    async def _settle(self, lease: Lease | None, left: Sequence[str]) -> None:
        if lease is not None:
            await self._database.write(erasure.finish, lease, left=left, now=self._clock())


class Erasure:
    """Destroys messages, or all there is of a user, and takes messages back. The operations check owners, as
    everywhere. Each call but `erase_user` has one deadline, ``store.timeout_seconds``.
    """

    def __init__(
        self,
        *,
        database: Database,
        messages: MessageStore,
        aftermath: Aftermath,
        background: BackgroundWork,
        refold: LedgerFold,
        clock: Clock,
        lease_seconds: float,
        timeout_seconds: float,
    ) -> None:
        self._database = database
        self._messages = messages
        self._aftermath = aftermath
        self._background = background
        self._refold = refold
        self._clock = clock
        self._lease_microseconds = int(lease_seconds * 1e6)
        self.timeout_seconds = timeout_seconds

    @in_time
    async def erase(self, session_id: str, *, seq: Positions, user_id: str | None = None) -> ErasedMessages:
        """Destroy messages: the one at `seq`, or several (a ``range``, pairs of first and last), inherited ones too.

        A tombstone stays for each, so no position changes. Every branch that showed one loses, in the same
        transaction, the facts and the narrative of its segments that held it, its pins, layouts and entries of the
        index, the texts that stood for it and what people corrected of its facts. What was not erased of these
        segments is read again in the background, and until then the report of a context names it. Work that runs
        meanwhile cannot bring anything back. The other half of a pair of tool call and result stays in the log, and no
        context shows it. Erasing again what is erased does no harm.

        Raises `InvalidInputError` for a position that the session does not have, and `SessionNotFoundError`.
        """
        check_session_id(session_id, creating=False)
        check_optional_id("user_id", user_id)
        return await self._erase(session_id, user_id, ranges_of(seq))

    async def _erase(self, session_id: str, user_id: str | None, ranges: Sequence[tuple[int, int]]) -> ErasedMessages:
        message_ids = await self._ids(session_id, user_id, ranges)
        erased, lease = await self._database.write(
            erasure.begin,
            session_id,
            user_id,
            ranges=ranges,
            now=self._clock(),
            refold=self._refold,
            lease_microseconds=self._lease_microseconds,
        )
        session_ids = tuple(branch.session.session_id for branch in erased.branches)
        await self._background.cancel(session_ids)
        left = await self._aftermath.of_messages(erased.branches, message_ids, lease)
        for branch in erased.branches:
            if branch.session.deleted_at is None:
                self._background.messages_saved(branch.session.session_id, branch.session.last_seq)
        return ErasedMessages(
            message_count=erased.message_count, session_ids=session_ids, is_scrubbed=not left, left=left
        )

    @in_time
    async def withdraw(self, session_id: str, *, user_id: str | None = None, seq: int | None = None) -> Message:
        """Take back the newest message in view (which `seq` names, if given): none that a summary has archived. Facts
        drawn from it go with it.
        """
        check_session_id(session_id, creating=False)
        if seq is not None:
            check_position("seq", seq)
        withdrawn, lease = await self._withdrawn(session_id, user_id, seq)
        await self._aftermath.of_withdrawn(withdrawn, lease)
        for branch in withdrawn.branches:
            self._background.messages_saved(branch.session_id, branch.last_seq)
        return withdrawn.message

    async def _withdrawn(self, session_id: str, user_id: str | None, seq: int | None) -> tuple[Withdrawn, Lease | None]:
        """Under a lease only where something is left to do after it."""
        now = self._clock()
        if not self._aftermath.notes_sessions:
            return await self._messages.withdraw(session_id, user_id, seq=seq, now=now, refold=self._refold), None
        return await self._database.write(
            erasure.begin_withdrawal,
            session_id,
            user_id,
            seq=seq,
            now=now,
            refold=self._refold,
            lease_microseconds=self._lease_microseconds,
        )

    async def _ids(self, session_id: str, user_id: str | None, ranges: Sequence[tuple[int, int]]) -> list[str]:
        """The ids of these messages, if anything elsewhere goes by them."""
        if not self._aftermath.is_elsewhere:
            return []
        found = await self._database.read(log_operations.read_ranges, session_id, user_id, ranges)
        return [message.message_id for message in found if message.message_id is not None]

    async def erase_user(self, user_id: str) -> ErasedUser:
        """Destroy everything of a user: the sessions that they own with all forks and all that was derived, also those
        that were deleted within the grace time, their notes with every version, and which sessions were active.

        The ids of the sessions stay deleted. One session after the other: cut off, it is finished by asking again.
        What the user saves meanwhile may stay. Somebody who reads meanwhile keeps the bytes in the files of SQLite, and
        what is kept elsewhere may not be reached: the answer tells (`ErasedUser.is_scrubbed`).
        """
        check_optional_id("user_id", user_id)
        if user_id is None:  # pyright: ignore[reportUnnecessaryComparison] (callers need not check types)
            raise InvalidInputError("user_id", "names no user; sessions without an owner are deleted one by one")
        rows = await self._database.write(
            erasure.begin_user, user_id, now=self._clock(), lease_microseconds=self._lease_microseconds
        )
        sessions, after, left = 0, "", dict[str, None]()
        while groups := await self._database.read(erasure.owned_groups, user_id, after=after, limit=PAGE):
            for group in groups:
                count, failed = await self._erase_group(group, user_id)
                sessions, left = sessions + count, left | dict.fromkeys(failed)
            after = groups[-1][0]
        left |= dict.fromkeys(await self._aftermath.of_files())
        return ErasedUser(session_count=sessions, row_count=rows, is_scrubbed=not left, left=tuple(left))

    async def _erase_group(self, group: Sequence[str], user_id: str) -> tuple[int, tuple[str, ...]]:
        """Marked first, so that nothing is written to it any more."""
        await self._database.write(deletion.delete, group[0], user_id, now=self._clock(), purge=False)
        await self._background.cancel(group)
        return await self._aftermath.of_group(group, user_id)


def ranges_of(seq: Positions) -> tuple[tuple[int, int], ...]:
    """These positions as runs that do not touch, ends included, in order. Raises `InvalidInputError` for anything but
    whole numbers and pairs of them.
    """
    if isinstance(seq, range) and seq and abs(seq.step) == 1:
        return ((min(seq), max(seq)),)
    given = seq if isinstance(seq, Iterable) else [seq]
    return joined_ranges(map(_run, given))


def _run(each: object) -> tuple[int, int]:
    match each:
        case int() if not isinstance(each, bool):
            return each, each
        case (int() as start, int() as end) if start <= end:
            return start, end
        case _:
            pass
    raise InvalidInputError("seq", "must be a whole number, several, or pairs of the first and the last of a range")
