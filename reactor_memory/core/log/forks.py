"""Branches that share messages with the session that they leave."""

from __future__ import annotations

from reactor_memory.core.log.branches import group_of, is_fork, ranges_between
from reactor_memory.core.log.hooks import hooks
from reactor_memory.core.log.operations import lock_required
from reactor_memory.core.log.rows import key_of, to_json
from reactor_memory.database.operations import Query, Steps
from reactor_memory.errors import InvalidInputError, LimitExceededError
from reactor_memory.models import BranchRange, Session


def fork(session_id: str, user_id: str | None, *, at_seq: int, fork_id: str, now: int) -> Steps[Session]:
    parent = yield from lock_required(session_id, user_id)
    if not 1 <= at_seq <= parent.last_seq + 1:
        raise InvalidInputError("at_seq", f"must be from 1 to {parent.last_seq + 1}")
    if not is_fork(fork_id) or group_of(fork_id) != parent.group_id:
        raise InvalidInputError("fork_id", "must be the id of the group, then ~ and a random part")
    branch = branch_for_fork(parent, fork_id, at_seq)
    session = Session(
        session_id=fork_id,
        group_id=parent.group_id,
        owner_id=parent.owner_id,
        last_seq=at_seq - 1,
        branch=branch,
        created_at=now,
        updated_at=now,
        forked_from_id=session_id,
        forked_at_seq=at_seq,
    )
    inserted = yield Query("insert_fork", _fork_values(session, now))
    if not inserted:
        raise InvalidInputError("fork_id", "is taken; choose another random part")
    for hook in hooks():
        yield from hook.on_fork(parent, fork_id, at_seq)
    return session


def _fork_values(session: Session, now: int) -> dict[str, object]:
    return {
        **key_of(session.session_id),
        "owner_id": session.owner_id,
        "last_seq": session.last_seq,
        "path": to_json(session.branch),
        "forked_from_id": session.forked_from_id,
        "forked_at_seq": session.forked_at_seq,
        "now": now,
    }


def branch_for_fork(session: Session, fork_id: str, at_seq: int) -> tuple[BranchRange, ...]:
    """The branch that shares 1..`at_seq`-1 with `session` and continues with messages of its own."""
    shared = ranges_between(session.branch, 0, at_seq - 1)
    return (*shared, BranchRange(conversation_id=fork_id, start_seq=at_seq))


MAX_FORK_DEPTH = 200
"""Of how many conversations a fork of forks may share messages."""


def check_fork_depth(session: Session, at_seq: int, *, field: str = "at_seq") -> None:
    """Raises `LimitExceededError` if a fork of `session` would share messages of too many conversations."""
    depth = len(ranges_between(session.branch, 0, at_seq - 1))
    if depth > MAX_FORK_DEPTH:
        raise LimitExceededError(
            field,
            actual=depth,
            limit=MAX_FORK_DEPTH,
            unit="conversations to share messages of",
            instead="fork at an earlier message",
        )
