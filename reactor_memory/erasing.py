"""Content destroyed for good, in every place that the library knows: the log, what was derived from it, the index,
running work, and what belongs to a user.

Each step is a transaction, and done again it ends in the same state. So an erasure that was cut off is finished by
asking for it again.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import cast

from reactor_memory.errors import InvalidInputError
from reactor_memory.models import ErasedMessages, ErasedUser
from reactor_memory.protocols import (
    Clock,
    MessageStore,
    RecallIndex,
    Refold,
    SummaryScheduler,
    SummaryStore,
    UserData,
)

PAGE = 100
"""Groups of sessions that are looked up at a time."""


class Eraser:
    """Destroys messages, or all there is of a user. Owners are checked by the stores, as everywhere."""

    def __init__(
        self,
        *,
        messages: MessageStore,
        summaries: SummaryStore,
        index: RecallIndex,
        user_data: Sequence[UserData],
        scheduler: SummaryScheduler,
        refold: Refold,
        clock: Clock,
    ) -> None:
        self._messages = messages
        self._summaries = summaries
        self._summaries_are_apart = cast("object", messages) is not summaries
        self._index = index
        self._index_is_apart = cast("object", messages) is not index
        self._user_data = user_data
        self._scheduler = scheduler
        self._refold = refold
        self._clock = clock

    async def erase(self, session_id: str, user_id: str | None, ranges: Sequence[tuple[int, int]]) -> ErasedMessages:
        """As `ConversationManager.erase`."""
        now = self._clock()
        erased = await self._messages.erase(session_id, user_id, ranges=ranges, now=now, refold=self._refold)
        session_ids = tuple(branch.session.session_id for branch in erased.branches)
        await self._scheduler.cancel(session_ids)
        if self._summaries_are_apart:
            await self._summaries.forget_messages(erased.branches, now=now, refold=self._refold)
        for branch in erased.branches if self._index_is_apart else ():
            await self._index.truncate([branch.session.session_id], seq=branch.ranges[0][0])
        await self._messages.scrub()
        for branch in erased.branches:
            if branch.session.deleted_at is None:
                self._scheduler.messages_saved(branch.session.session_id, branch.session.last_seq)
        return ErasedMessages(message_count=erased.message_count, session_ids=session_ids)

    async def erase_user(self, user_id: str) -> ErasedUser:
        """As `ConversationManager.erase_user`."""
        sessions = rows = 0
        for data in self._user_data:
            rows += await data.forget_user(user_id, now=self._clock())
        after = ""
        while groups := await self._messages.owned_groups(user_id, after=after, limit=PAGE):
            for group in groups:
                sessions += await self._erase_group(group, user_id)
            after = groups[-1][0]
        await self._messages.scrub()
        return ErasedUser(session_count=sessions, row_count=rows)

    async def _erase_group(self, group: Sequence[str], user_id: str) -> int:
        """Marked first, so that nothing is written to it any more; whose it was is forgotten last, so that until then
        it is found again.
        """
        await self._messages.delete(group[0], user_id, now=self._clock(), purge=False)
        await self._scheduler.cancel(group)
        if self._summaries_are_apart:
            await self._summaries.forget(group)
        if self._index_is_apart:
            await self._index.forget(group)
        return len(await self._messages.erase_group(group[0], user_id, now=self._clock()))


def ranges_of(seq: int | Iterable[int]) -> tuple[tuple[int, int], ...]:
    """These positions as runs, ends included, in order. Raises `InvalidInputError` for anything but whole numbers."""
    if isinstance(seq, range) and seq and abs(seq.step) == 1:
        return ((min(seq), max(seq)),)
    given = seq if isinstance(seq, Iterable) else [seq]
    runs: list[tuple[int, int]] = []
    for each in sorted({_checked(each) for each in given}):
        if runs and runs[-1][1] == each - 1:
            runs[-1] = (runs[-1][0], each)
        else:
            runs.append((each, each))
    return tuple(runs)


def _checked(seq: object) -> int:
    if not isinstance(seq, int) or isinstance(seq, bool):
        raise InvalidInputError("seq", f"must be a whole number or several, is a {type(seq).__name__}")
    return seq
