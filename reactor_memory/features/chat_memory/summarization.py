"""What happens after messages were added (`MemoryManagementStrategy`): nothing, or a summary of every so many."""

from __future__ import annotations

from reactor_memory.features.chat_memory.runs import next_step
from reactor_memory.features.tiers.ranges import Ranges


class NoopStrategy:
    """Every message stays as it is."""

    async def post_add_messages_hook(
        self,
        conversation_id: str,
        added_messages_count: int,
        total_messages_count: int,
        *,
        user_id: str | None = None,
    ) -> None:
        """Nothing to do."""


class SummarizationStrategy:
    """As soon as `every` messages have no summary, a condensed text takes them in, as in tiers. After a failure, the
    next messages that are added bring it.
    """

    def __init__(self, *, ranges: Ranges, every: int) -> None:
        self._ranges = ranges
        self._every = every
        self._due: dict[str, int] = {}

    async def post_add_messages_hook(
        self,
        conversation_id: str,
        added_messages_count: int,
        total_messages_count: int,
        *,
        user_id: str | None = None,
    ) -> None:
        """Make the summaries that are due; while one call does so for a conversation, others leave theirs to it.

        What waited before these messages is made up for by one a call, so that switching summaries on for a long
        conversation holds nobody up.
        """
        due = added_messages_count // self._every + 1
        if conversation_id in self._due:
            self._due[conversation_id] += due
            return
        self._due[conversation_id] = due
        try:
            while known := self._due[conversation_id]:
                is_made = await self._summarize(conversation_id, user_id)
                self._due[conversation_id] -= 1 if is_made else known
        finally:
            del self._due[conversation_id]

    async def _summarize(self, conversation_id: str, user_id: str | None) -> bool:
        """Make the next summary, if one is due; another process may have been faster."""
        limit = 2 * self._every
        while True:
            view = await self._ranges.newest(conversation_id, user_id, limit=limit)
            step = next_step(view.messages, self._every)
            if step.writings:
                await self._ranges.carry_out(conversation_id, user_id, view, step)
                return True
            if len(view.messages) < limit:
                return False
            limit *= 2
