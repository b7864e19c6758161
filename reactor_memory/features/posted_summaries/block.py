"""What an agent posted, for a context that would not say it."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from reactor_memory.core.context.blocks import Block
from reactor_memory.core.context.draft import Draft, with_block
from reactor_memory.database.operations import Steps
from reactor_memory.features.facts import operations as fact_operations
from reactor_memory.features.facts.frames import NARRATIVE
from reactor_memory.features.facts.merge import posted_lines
from reactor_memory.features.facts.prose import render_narrative
from reactor_memory.features.facts.withheld_facts import posted_without
from reactor_memory.models import BranchRange
from reactor_memory.models.ledger import PostedSummary


def told_posted(branch: Sequence[BranchRange]) -> Steps[PostedSummary | None]:
    """The posted summary that rules, without what is withheld."""
    posted = yield from fact_operations.read_posted(branch)
    return posted_without(posted, (yield from fact_operations.read_withheld(branch))) if posted else None


def with_posted(draft: Draft, posted: PostedSummary, *, count: Callable[[str], int]) -> Draft:
    """The draft with the lines of the posted summary that its narrative has not, before those that it has."""
    narrative = draft.block(NARRATIVE.part)
    told = narrative.lines if narrative else ()
    shown = {line.text for line in told}
    lines = render_narrative("\n".join(posted_lines(posted.text)), count=count)
    missing = [line for line in lines if line.text not in shown]
    return with_block(draft, Block(frame=NARRATIVE, lines=(*missing, *told))) if missing else draft
