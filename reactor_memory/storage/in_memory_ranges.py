"""Summaries of ranges in the memory of this process (`protocols.RangeSummaryStore`)."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from msgspec.structs import replace

from reactor_memory.errors import InvalidInputError
from reactor_memory.models import BranchRange, Message, RangeSummary, Session
from reactor_memory.storage.covering import (
    check_border,
    check_forks,
    in_order,
    is_current,
    replaced_by,
    restorable,
    shown,
)


@dataclass
class Ranges:
    """The summaries of one conversation by their ids, and of archived messages (by seq) which one archived them."""

    summaries: dict[str, RangeSummary] = field(default_factory=dict[str, RangeSummary])
    archived: dict[int, str] = field(default_factory=dict[int, str])

    def hides(self, seq: int, last: int | None) -> bool:
        """Whether message `seq` is out of view in a branch that shows this conversation up to `last`."""
        by = self.archived.get(seq)
        return by is not None and (last is None or self.summaries[by].end_seq <= last)

    def undo(self, summary: RangeSummary) -> None:
        """As `storage.derived.undo_range`."""
        del self.summaries[summary.summary_id]
        for summary_id, each in self.summaries.items():
            if each.replaced_by == summary.summary_id:
                self.summaries[summary_id] = replace(each, replaced_by=None)
        self.archived = {seq: by for seq, by in self.archived.items() if by != summary.summary_id}

    def forget(self, start_seq: int, end_seq: int) -> None:
        """As `storage.derived.forget_ranges`."""
        for summary in list(self.summaries.values()):
            if summary.start_seq <= end_seq and start_seq <= summary.end_seq:
                self.undo(summary)

    def recount(self, tokenizer: str, count: Callable[[Message], int]) -> None:
        """As `storage.range_summaries.recount_range_summaries`, for all of them."""
        for summary_id, each in self.summaries.items():
            if each.tokenizer != tokenizer:
                tokens = count(Message.system(each.text))
                self.summaries[summary_id] = replace(each, token_count=tokens, tokenizer=tokenizer)

    def clear(self) -> None:
        self.summaries.clear()
        self.archived.clear()


class Conversation(Protocol):
    """What is stored of a conversation, as far as its ranges are concerned."""

    session: Session
    ranges: Ranges

    def entomb(self, start_seq: int, end_seq: int) -> int: ...


class InMemoryRanges(ABC):
    """The part of `InMemoryStore` that is a `RangeSummaryStore`."""

    @abstractmethod
    def _required(self, session_id: str, user_id: str | None) -> Conversation: ...

    @abstractmethod
    def _group(self, group_id: str) -> Iterable[Session]: ...

    @abstractmethod
    def _ranges_of(self, conversation_id: str) -> Ranges: ...

    @abstractmethod
    def _oldest_first(
        self, branch: Sequence[BranchRange], after: int = 0, until: int | None = None, *, with_archived: bool = False
    ) -> Iterator[Message]: ...

    async def read_range_summaries(
        self, session_id: str, user_id: str | None, *, live: bool = True
    ) -> tuple[RangeSummary, ...]:
        return self._shown(self._required(session_id, user_id).session.branch, live=live)

    async def put_range_summaries(
        self, session_id: str, user_id: str | None, new: Sequence[RangeSummary], *, expected: Sequence[str], now: int
    ) -> bool:
        conversation = self._required(session_id, user_id)
        session = conversation.session
        ordered = in_order(session, new)
        live = self._shown(session.branch, live=True)
        if {each.summary_id for each in live} != set(expected):
            return False
        replaced = {summary.summary_id: replaced_by(summary, live) for summary in ordered}
        if not all(self._is_current(session, each, replaced[each.summary_id]) for each in ordered):
            return False
        self._check(conversation, ordered)
        for summary in ordered:
            self._put(conversation, summary, replaced[summary.summary_id])
        conversation.session = replace(session, updated_at=max(session.updated_at, now))
        return True

    async def restore_range_summary(self, session_id: str, user_id: str | None, summary_id: str, *, now: int) -> bool:
        conversation = self._required(session_id, user_id)
        session = conversation.session
        summary = restorable(session, self._shown(session.branch, live=True), summary_id)
        if summary is None:
            return False
        conversation.ranges.undo(summary)
        conversation.session = replace(session, updated_at=max(session.updated_at, now))
        return True

    def _shown(self, branch: Sequence[BranchRange], *, live: bool) -> tuple[RangeSummary, ...]:
        owners = [part.conversation_id for part in branch]
        summaries = {owner: list(self._ranges_of(owner).summaries.values()) for owner in owners}
        return shown(branch, summaries, live=live)

    def _is_current(self, session: Session, summary: RangeSummary, replaced: Sequence[RangeSummary]) -> bool:
        messages = self._oldest_first(session.branch, summary.start_seq - 1, summary.end_seq)
        return is_current(summary, replaced, {each.seq or 0: each.message_id or "" for each in messages})

    def _check(self, conversation: Conversation, new: Sequence[RangeSummary]) -> None:
        session = conversation.session
        originals = list(self._oldest_first(session.branch, with_archived=True))
        for summary in new:
            if summary.summary_id in conversation.ranges.summaries:
                raise InvalidInputError("summary_id", "is taken; choose another one")
            if summary.retention == "delete":
                check_forks(summary, session.session_id, self._group(session.group_id))
            for border in (summary.start_seq - 1, summary.end_seq):
                check_border(originals, border)

    def _put(self, conversation: Conversation, summary: RangeSummary, replaced: Sequence[RangeSummary]) -> None:
        ranges = conversation.ranges
        ranges.summaries[summary.summary_id] = summary
        for each in replaced:
            ranges.summaries[each.summary_id] = replace(each, replaced_by=summary.summary_id)
        if summary.retention == "archive":
            branch = conversation.session.branch
            for message in self._oldest_first(branch, summary.start_seq - 1, summary.end_seq):
                ranges.archived[message.seq or 0] = summary.summary_id
        if summary.retention == "delete":
            conversation.entomb(summary.start_seq, summary.end_seq)
