"""What recall asks the vectors of one branch."""

from __future__ import annotations

from reactor_memory.core.log.branches import group_of, ranges_between
from reactor_memory.core.log.rows import to_json
from reactor_memory.database.operations import Query, Steps
from reactor_memory.features.recall.vectors import Near, NearQuery
from reactor_memory.features.search.operations import LAST_SEQ, Visible, everything_of, nearest_places


def nearest_in_branch(query: NearQuery) -> Steps[tuple[Near, ...]]:
    """The messages of a branch that mean what is looked for, nearest first; of equals the newer one. Never what no
    context of the branch shows. Nothing here checks an owner: who asks has read the session.
    """
    parts = [
        Visible(
            0, part.start_seq, part.end_seq or query.until, part.conversation_id, "", group_of(part.conversation_id)
        )
        for part in ranges_between(query.branch, 0, query.until)
    ]
    similarities = yield from nearest_places(query, everything_of(parts, query.limit))
    if not similarities:
        return ()
    ends = {part.conversation_id: LAST_SEQ if part.end_seq is None else part.end_seq for part in query.branch}
    places = [(held_by, seq, ends[held_by]) for held_by, seq in similarities]
    rows = yield Query("messages_in_view", {"group_id": parts[0].group_id, "places": to_json(places)})
    found = (Near(seq=seq, similarity=similarities[held_by, seq]) for held_by, seq in rows)
    return tuple(sorted(found, key=lambda near: (-near.similarity, -near.seq)))
