"""What is kept outside the database of the log follows when messages go."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from reactor_memory.models.requests import ErasedBranch

if TYPE_CHECKING:
    from reactor_memory.core.ports import Clock, LedgerFold, RecallIndex, SummaryStore
    from reactor_memory.features.responses.models import ResponseStore


class SummariesElsewhere:
    """`KeptElsewhere` for the summaries of a store that is no database."""

    name = "summaries"

    def __init__(self, summaries: SummaryStore, *, refold: LedgerFold, clock: Clock) -> None:
        self._summaries = summaries
        self._refold = refold
        self._clock = clock
        self.forget = summaries.forget

    async def messages_gone(self, branches: Sequence[ErasedBranch], message_ids: Sequence[str]) -> None:
        await self._summaries.invalidate(branches, now=self._clock(), refold=self._refold)


class IndexElsewhere:
    """`KeptElsewhere` for a recall index of a plug-in."""

    name = "recall index"

    def __init__(self, index: RecallIndex) -> None:
        self._index = index
        self.forget = index.forget

    async def messages_gone(self, branches: Sequence[ErasedBranch], message_ids: Sequence[str]) -> None:
        for branch in branches:
            await self._index.truncate([branch.session.session_id], seq=branch.ranges[0][0])


class ResponsesElsewhere:
    """`KeptElsewhere` for responses that are being written."""

    name = "responses"

    def __init__(self, responses: ResponseStore) -> None:
        self._responses = responses

    async def messages_gone(self, branches: Sequence[ErasedBranch], message_ids: Sequence[str]) -> None:
        await self._responses.forget_answers([branch.session.session_id for branch in branches], message_ids)
        await self._responses.forget_responses([each.session.session_id for each in branches if each.is_emptied])

    async def forget(self, session_ids: Sequence[str]) -> None:
        await self._responses.forget_responses(session_ids)
