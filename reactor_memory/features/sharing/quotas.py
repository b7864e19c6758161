"""What a user may have at most (`Quotas`), checked in the transaction of a write, behind it.

What is refused is undone with its transaction. On PostgreSQL writes at the same moment do not see each other: they may
go beyond a quota by as many as there are.
"""

from __future__ import annotations

from reactor_memory.core.log.user_rows import name_all_users
from reactor_memory.database.operations import Step, Steps
from reactor_memory.errors import QuotaExceededError
from reactor_memory.features.sharing.models import Quotas


def check_everything(owner_id: str | None, quotas: Quotas) -> Steps[None]:
    """When conversations come to the owner as they are."""
    if owner_id is not None:
        yield from check_conversations(owner_id, quotas)
    yield from check_forks(owner_id, quotas)
    yield from check_members(owner_id, quotas)


def check_conversations(owner_id: str, quotas: Quotas) -> Steps[None]:
    limit = quotas.max_conversations
    if limit and (yield from _passes("count_roots", owner_id, limit)):
        raise _exceeded("conversation", limit, "conversations", "max_conversations")


def check_forks(owner_id: str | None, quotas: Quotas) -> Steps[None]:
    limit = quotas.max_forks
    if limit and owner_id is not None and (yield from _passes("count_forks", owner_id, limit)):
        raise _exceeded("fork", limit, "forks", "max_forks")


def check_members(owner_id: str | None, quotas: Quotas) -> Steps[None]:
    """Of all conversations of the owner."""
    limit = quotas.max_members
    if not limit or owner_id is None:
        return
    yield from name_all_users()
    if (yield from _passes("count_members", owner_id, limit)):
        raise _exceeded("member", limit, "members", "max_members")


def _passes(query: str, owner_id: str, limit: int) -> Steps[bool]:
    rows = yield Step(query, {"owner_id": owner_id, "limit": limit + 1})
    return rows[0][0] > limit


def _exceeded(field: str, limit: int, unit: str, setting: str) -> QuotaExceededError:
    return QuotaExceededError(field, limit=limit, left=0, unit=unit, setting=f"quotas.{setting}")
