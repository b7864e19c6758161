"""What becomes of posted summaries when the log changes."""

from __future__ import annotations

from collections.abc import Sequence

from reactor_memory.core.log.hooks import LogHook
from reactor_memory.database.operations import Steps
from reactor_memory.features.posted_summaries.operations import posted_telling_of, take_posted
from reactor_memory.models import BranchRange, Session


class PostedSummariesHook(LogHook):
    def telling_of(self, group: Sequence[Session], parts: Sequence[BranchRange]) -> Steps[tuple[BranchRange, ...]]:
        return (yield from posted_telling_of(group, parts))

    def also_gone(self, group: Sequence[Session], parts: Sequence[BranchRange]) -> Steps[tuple[BranchRange, ...]]:
        return (yield from take_posted(group, parts))


HOOK = PostedSummariesHook()
