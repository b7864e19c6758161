"""Which ranges of a branch have a summary that stands for them, and where a new one may stand.

Pure functions of values, for stores with and without a database.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise

from msgspec.structs import replace

from reactor_memory.errors import InvalidInputError
from reactor_memory.models import BranchRange, Session
from reactor_memory.models.ledger import RangeSummary


def ranges_of_branch(
    branch: Sequence[BranchRange], summaries: Mapping[str, Sequence[RangeSummary]], *, live: bool
) -> tuple[RangeSummary, ...]:
    """The summaries of a branch in the order of their ranges, given those of each of its conversations.

    Of an ancestor only those count that end before the branch left it. A replaced one is live in a branch that does
    not show what replaced it.
    """
    own = [
        summary
        for part in branch
        for summary in summaries.get(part.conversation_id, ())
        if part.end_seq is None or summary.end_seq <= part.end_seq
    ]
    ids = {summary.summary_id for summary in own}
    chosen = [summary for summary in own if not live or summary.replaced_by not in ids]
    return tuple(sorted(chosen, key=lambda each: (each.start_seq, -each.end_seq, each.created_at, each.summary_id)))


def in_order(session: Session, new: Sequence[RangeSummary]) -> list[RangeSummary]:
    """`new` in the order of their ranges, as they are stored: live. Each holds own messages of the session, none the
    messages of another; else `InvalidInputError`.
    """
    ordered = sorted((replace(each, replaced_by=None) for each in new), key=lambda each: each.start_seq)
    first_own = session.branch[-1].start_seq
    for summary in ordered:
        if not 1 <= summary.start_seq <= summary.end_seq <= session.last_seq:
            raise InvalidInputError("end_seq", f"must be from start_seq to {session.last_seq}, the end of the session")
        if summary.start_seq < first_own:
            raise InvalidInputError(
                "start_seq", f"message {summary.start_seq} is inherited; summarise it in the session it belongs to"
            )
    for one, other in pairwise(ordered):
        if other.start_seq <= one.end_seq:
            raise InvalidInputError("start_seq", f"two new summaries hold message {other.start_seq}")
    if len({summary.summary_id for summary in ordered}) < len(ordered):
        raise InvalidInputError("summary_id", "stands twice; every summary needs an id of its own")
    return ordered


def replaced_by(summary: RangeSummary, live: Sequence[RangeSummary]) -> list[RangeSummary]:
    """The live summaries inside the range of a new one. `InvalidInputError` if one sticks out of it."""
    inside: list[RangeSummary] = []
    for each in live:
        if each.end_seq < summary.start_seq or summary.end_seq < each.start_seq:
            continue
        if not summary.start_seq <= each.start_seq <= each.end_seq <= summary.end_seq:
            held = f"{each.start_seq}..{each.end_seq}"
            raise InvalidInputError("start_seq", f"a summary stands for {held}; hold all of these messages or none")
        inside.append(each)
    return inside


def is_current(summary: RangeSummary, replaced: Sequence[RangeSummary], in_view: Mapping[int, str]) -> bool:
    """Whether the messages that `summary` was made of are those that are in view (ids by seq) and have no summary yet.

    `InvalidInputError` if it counts other messages than it names.
    """
    count = len(summary.message_ids) + sum(each.message_count for each in replaced)
    if summary.message_count != count:
        raise InvalidInputError("message_count", f"must be {count}: message_ids, and what replaced summaries count")
    uncovered = {
        message_id
        for seq, message_id in in_view.items()
        if summary.start_seq <= seq <= summary.end_seq
        and not any(each.start_seq <= seq <= each.end_seq for each in replaced)
    }
    return uncovered == set(summary.message_ids)


def check_forks(summary: RangeSummary, conversation_id: str, group: Iterable[Session]) -> None:
    """`InvalidInputError` if a fork shares messages whose content would be destroyed, and does not show the summary."""
    for session in group:
        for part in session.branch if session.deleted_at is None else ():
            if part.conversation_id != conversation_id or part.end_seq is None:
                continue
            if summary.start_seq <= part.end_seq < summary.end_seq:
                raise InvalidInputError(
                    "retention",
                    f"a fork goes its own way behind {part.end_seq} and needs these messages; end the range there",
                )


def restorable(session: Session, live: Sequence[RangeSummary], summary_id: str) -> RangeSummary | None:
    """The live summary to undo, if it is live."""
    summary = next((each for each in live if each.summary_id == summary_id), None)
    if summary is None:
        return None
    if summary.start_seq < session.branch[-1].start_seq:
        raise InvalidInputError("summary_id", "is inherited; restore it in the session it belongs to")
    if summary.retention == "delete":
        raise InvalidInputError("summary_id", "its messages were deleted; only archived or kept ones can be restored")
    return summary
