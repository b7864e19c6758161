"""What a load reads where the log and the summaries are in two stores."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from reactor_memory.models.requests import ContextQuery, ContextRows

if TYPE_CHECKING:
    from reactor_memory.core.ports import MessageStore, SummaryStore


class JoinedContextSource:
    """The log in one store, summaries in another: their answers put together."""

    def __init__(self, messages: MessageStore, summaries: SummaryStore) -> None:
        self._messages = messages
        self._summaries = summaries

    async def read_context(self, query: ContextQuery) -> ContextRows:
        """The log answers first: it checks the owner."""
        rows = await self._messages.read_context(query)
        if rows.session is None or query.trigger_message_count is None:
            return rows
        read = self._summaries.get_summary if query.facts else self._summaries.get_summary_head
        summary = await read(query.session_id)
        layout = await self._summaries.get_layout(
            query.session_id, budget=query.budget, settings_fingerprint=query.settings_fingerprint
        )
        return msgspec.structs.replace(rows, summary=summary, layout=layout)
