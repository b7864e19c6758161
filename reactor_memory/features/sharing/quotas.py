"""What a user may have at most (`Quotas`), checked in the transaction of a write, behind it; for messages before it.

What is refused is undone with its transaction. Writes at the same moment may not see each other: they may go beyond a
quota by as many as there are.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, TypeAlias

from reactor_memory.core.log.rows import key_of, message_values, stored_bytes
from reactor_memory.core.log.user_rows import name_all_users
from reactor_memory.database.operations import Query, Steps
from reactor_memory.errors import QuotaExceededError
from reactor_memory.features.sharing.models import Quotas
from reactor_memory.models import Message, Session

_Holding: TypeAlias = Literal["roots", "forks", "members", "bytes"]
_HOLDINGS: tuple[_Holding, ...] = ("roots", "forks", "members", "bytes")
"""In the order of the columns of `holdings_of_owner`."""


def check_everything(owner_id: str | None, quotas: Quotas) -> Steps[None]:
    """When conversations come to the owner as they are."""
    if owner_id is not None:
        yield from check_conversations(owner_id, quotas)
    yield from check_forks(owner_id, quotas)
    yield from check_members(owner_id, quotas)
    yield from check_stored_bytes(owner_id, quotas)


def check_conversations(owner_id: str, quotas: Quotas) -> Steps[None]:
    limit = quotas.max_conversations
    if limit and (yield from _held("roots", owner_id, limit + 1)) > limit:
        raise _exceeded("conversation", limit, "conversations", "max_conversations")


def check_forks(owner_id: str | None, quotas: Quotas) -> Steps[None]:
    limit = quotas.max_forks
    if limit and owner_id is not None and (yield from _held("forks", owner_id, limit + 1)) > limit:
        raise _exceeded("fork", limit, "forks", "max_forks")


def check_members(owner_id: str | None, quotas: Quotas) -> Steps[None]:
    """Of all conversations of the owner."""
    limit = quotas.max_members
    if not limit or owner_id is None:
        return
    yield from name_all_users()
    if (yield from _held("members", owner_id, limit + 1)) > limit:
        raise _exceeded("member", limit, "members", "max_members")


def check_stored_bytes(owner_id: str | None, quotas: Quotas, more: int = 0) -> Steps[None]:
    """`more`: bytes that are to be stored beside those of all conversations of the owner."""
    limit = quotas.max_stored_bytes
    if not limit or owner_id is None:
        return
    stored = yield from _held("bytes", owner_id, 1)
    if stored + more > limit:
        raise _exceeded("content", limit, "bytes", "max_stored_bytes", left=limit - stored)


def check_room(session: Session, messages: Sequence[Message], key: str | None, quotas: Quotas) -> Steps[None]:
    """For messages of one batch; a repetition, known by its `key`, needs none."""
    try:
        yield from check_stored_bytes(session.owner_id, quotas, stored_bytes(map(message_values, messages)))
    except QuotaExceededError:
        if not (yield Query("find_batch", key_of(session.session_id) | {"batch_key": key})):
            raise


def _held(kind: _Holding, owner_id: str, most: int) -> Steps[int]:
    """How many of a kind an owner has, counted up to `most`; bytes are all counted."""
    values = dict.fromkeys(_HOLDINGS, 0) | {kind: most, "owner_id": owner_id}
    return (yield Query("holdings_of_owner", values))[0][_HOLDINGS.index(kind)]


def _exceeded(field: str, limit: int, unit: str, setting: str, *, left: int = 0) -> QuotaExceededError:
    return QuotaExceededError(field, limit=limit, left=max(0, left), unit=unit, setting=f"quotas.{setting}")
