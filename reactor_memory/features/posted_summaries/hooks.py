"""What becomes of posted summaries when the log changes."""

from __future__ import annotations

from collections.abc import Sequence

from reactor_memory.core.log.hooks import LogHook
from reactor_memory.core.log.rows import key_of
from reactor_memory.database.operations import Query, Steps
from reactor_memory.features.posted_summaries.operations import posted_telling_of, take_posted
from reactor_memory.models import BranchRange, Session


class PostedSummariesHook(LogHook):
    def telling_of(self, group: Sequence[Session], parts: Sequence[BranchRange]) -> Steps[tuple[BranchRange, ...]]:
        return (yield from posted_telling_of(group, parts))

    def also_gone(self, group: Sequence[Session], parts: Sequence[BranchRange]) -> Steps[tuple[BranchRange, ...]]:
        return (yield from take_posted(group, parts))

    def on_purge(self, session_id: str) -> Steps[None]:
        yield Query("delete_posted_summaries", key_of(session_id))


HOOK = PostedSummariesHook()
