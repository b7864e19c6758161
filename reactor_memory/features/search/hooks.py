"""What becomes of the index of all conversations when the log changes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from reactor_memory.core.log.hooks import LogHook
from reactor_memory.database.operations import Steps
from reactor_memory.features.search import operations as search
from reactor_memory.models import Session

if TYPE_CHECKING:
    from reactor_memory.core.ports import LedgerFold


class SearchHook(LogHook):
    merges = ("merge_search",)
    derives = "search index"

    def damaged(self, session_id: str | None) -> Steps[tuple[str, ...]]:
        return (yield from search.damaged_entries(None if session_id is None else [session_id], vector_bytes=None))

    def make_again(self, session_id: str) -> Steps[None]:
        yield from search.forget([session_id])

    def out_of_view(self, conversation_id: str, start: int, end: int, *, destroyed: bool) -> Steps[None]:
        yield from search.forget_range(conversation_id, start, end)

    def on_memory_changed(
        self, session: Session, *, back_from: int | None, is_other: bool, now: int, refold: LedgerFold
    ) -> Steps[None]:
        if back_from is not None:
            yield from search.index_again(session.session_id, max(back_from, session.branch[-1].start_seq))

    def on_purge(self, session_id: str) -> Steps[None]:
        yield from search.forget([session_id])

    def health(self) -> Steps[tuple[tuple[str, str], ...]]:
        return (search.state_detail((yield from search.search_backlog())),)


HOOK = SearchHook()
