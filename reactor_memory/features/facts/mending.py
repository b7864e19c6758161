"""What was drawn from the log and cannot be read any more is taken away, and drawn from it anew."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, TypeAlias

from reactor_memory.core.log.summaries import hold
from reactor_memory.database.driver_errors import DAMAGE
from reactor_memory.database.operations import Steps
from reactor_memory.models import BranchRange
from reactor_memory.models.leases import Lease

if TYPE_CHECKING:
    from reactor_memory.core.ports import Clock, MessageStore
    from reactor_memory.database.database import Database

log = logging.getLogger(__name__)

Step: TypeAlias = Callable[[Lease], Awaitable[int | None]]


def drop_damaged(branch: Sequence[BranchRange], *, now: int) -> Steps[bool]:
    """Of the conversations of the branch, take away what was drawn from those of which some cannot be read: whether
    there was such a one. What people said of facts stays.
    """
    # what each process opens with, and few need
    from reactor_memory.features.facts.operations import drop_drawn, is_damaged

    is_any = False
    for session_id in sorted({part.conversation_id for part in branch}):
        if (yield from hold(session_id)) and (yield from is_damaged(session_id)):
            yield from drop_drawn(session_id, now=now)
            is_any = True
    return is_any


def mended(step: Step, *, messages: MessageStore, database: Database, clock: Clock) -> Step:
    """`step`, which goes on from the log where it cannot read what was drawn from it before."""

    async def do(lease: Lease) -> int | None:
        try:
            return await step(lease)
        except DAMAGE:
            session = (await messages.read_background(lease.session_id, limit=1)).session
            if not await database.write(drop_damaged, session.branch, now=clock()):
                raise
            log.warning("what is derived is damaged and made again", extra={"session_id": lease.session_id})
            return 0

    return do
