"""The operations on members, owners and the audit trail of groups.

Each generator is one transaction, or a part of one. Whoever changes members or owner locks the root of the group first,
so that these changes happen one after the other.
"""

from __future__ import annotations

from typing import Any

from msgspec import structs

from reactor_memory.core.log import operations as log
from reactor_memory.core.log.rows import key_of, object_from, to_json
from reactor_memory.core.log.user_rows import name_all_users, name_user
from reactor_memory.database.operations import Query, Row, Steps
from reactor_memory.errors import (
    SessionDeletedError,
    SessionNotFoundError,
    SessionOwnershipError,
    SharingConflictError,
)
from reactor_memory.features.sharing.models import NO_QUOTAS, AuditRecord, Membership, OwnershipTransfer, Quotas
from reactor_memory.features.sharing.quotas import check_everything, check_members
from reactor_memory.models import Session

# Members


def list_memberships(group_id: str) -> Steps[tuple[Membership, ...]]:
    """All members, the owner first, then in the order in which they joined."""
    yield from name_all_users()
    root = yield from log.find_session(group_id)
    if root is None or root.owner_id is None:
        return ()
    owner = Membership(group_id=group_id, user_id=root.owner_id, access_level="owner", created_at=root.created_at)
    return (owner, *(yield from members_of(group_id)))


def members_of(group_id: str) -> Steps[tuple[Membership, ...]]:
    """Without the owner."""
    return tuple(_membership(row) for row in (yield Query("memberships", {"group_id": group_id})))


def put_membership(
    membership: Membership, audit: AuditRecord, *, creating: bool, quotas: Quotas = NO_QUOTAS
) -> Steps[Membership | None]:
    """Add a member (None if there is one), or change the level of one (None if there is none); how it stands now. The
    owner is a member that this cannot change. Raises `SessionDeletedError` and `QuotaExceededError`.
    """
    root = yield from _locked_root(membership.group_id)
    if root.owner_id == membership.user_id:
        return None
    values = structs.asdict(membership)
    if creating:
        rows = yield Query("add_membership", values)
    else:
        rows = yield Query("change_membership", values)
    if not rows:
        return None
    if creating:
        yield from check_members(root.owner_id, quotas)
    yield from add_audit(audit)
    return _membership(rows[0])


def remove_membership(group_id: str, user_id: str, audit: AuditRecord) -> Steps[bool]:
    """Also takes back an offer of ownership to this user. False if there is no such member beside the owner."""
    yield from _locked_root(group_id)
    if not (yield Query("remove_membership", {"group_id": group_id, "user_id": user_id})):
        return False
    yield Query("delete_transfer_to", {"group_id": group_id, "user_id": user_id})
    yield from add_audit(audit)
    return True


def _locked_root(group_id: str) -> Steps[Session]:
    yield from name_all_users()
    root = yield from log.lock(group_id)
    if root is None:
        raise SessionNotFoundError(group_id)
    if root.deleted_at is not None:
        raise SessionDeletedError(group_id)
    return root


# Owners


def offer_ownership(transfer: OwnershipTransfer, audit: AuditRecord) -> Steps[OwnershipTransfer]:
    """The offer that is pending now: this one, or an older one of the group.

    Raises `SessionOwnershipError` if who gives it does not own the group, `SharingConflictError` if who gets it is no
    member, and `SessionDeletedError`.
    """
    root = yield from _locked_root(transfer.group_id)
    if root.owner_id != transfer.from_user_id:
        raise SessionOwnershipError(transfer.group_id)
    pending = yield from transfer_of(transfer.group_id)
    if pending is not None:
        return pending
    members = yield from members_of(transfer.group_id)
    if not any(member.user_id == transfer.to_user_id for member in members):
        raise SharingConflictError(transfer.group_id, "not_a_member", "only a member can become the owner: share first")
    yield from add_transfer(transfer)
    yield from add_audit(audit)
    return transfer


def transfer_of(group_id: str) -> Steps[OwnershipTransfer | None]:
    rows = yield Query("transfer_of_group", {"group_id": group_id})
    return _transfer(rows[0]) if rows else None


def add_transfer(transfer: OwnershipTransfer) -> Steps[None]:
    yield Query("add_transfer", structs.asdict(transfer))


def list_transfers(user_id: str) -> Steps[tuple[OwnershipTransfer, ...]]:
    """Those that this user gave or got, oldest first."""
    yield from name_user(user_id)
    return tuple(_transfer(row) for row in (yield Query("transfers_of_user", {"user_id": user_id})))


def accept_ownership(
    transfer_id: str, user_id: str, audit: AuditRecord, *, quotas: Quotas = NO_QUOTAS
) -> Steps[OwnershipTransfer | None]:
    """Make the recipient the owner of all conversations of the group, and the owner a manager. None if there is no such
    offer to `user_id`, or they are no member any more. Raises `QuotaExceededError` if they may not own so much.
    """
    transfer = yield from _locked_transfer(transfer_id, user_id)
    if transfer is None or transfer.to_user_id != user_id:
        return None
    key = key_of(transfer.group_id)
    if not (yield Query("remove_membership", key | {"user_id": user_id})):
        return None
    yield Query("hand_over", key | {"owner_id": transfer.from_user_id, "new_owner_id": user_id})
    before = Membership(
        group_id=transfer.group_id,
        user_id=transfer.from_user_id,
        access_level="manager",
        created_at=audit.created_at,
    )
    yield Query("add_membership", structs.asdict(before))
    yield Query("delete_transfers", key)
    yield from check_everything(user_id, quotas)
    yield from add_audit(audit)
    return transfer


def decline_ownership(transfer_id: str, user_id: str, audit: AuditRecord) -> Steps[OwnershipTransfer | None]:
    """Take the offer away, by who gave or got it."""
    transfer = yield from _locked_transfer(transfer_id, user_id)
    if transfer is None:
        return None
    yield Query("delete_transfers", key_of(transfer.group_id))
    yield from add_audit(audit)
    return transfer


def _locked_transfer(transfer_id: str, user_id: str) -> Steps[OwnershipTransfer | None]:
    """The offer by or to this user, if it is still pending when its group is locked."""
    yield from name_all_users()
    offers = map(_transfer, (yield Query("transfers_of_user", {"user_id": user_id})))
    group_id = next((offer.group_id for offer in offers if offer.transfer_id == transfer_id), None)
    if group_id is None:
        return None
    yield from log.lock(group_id)
    pending = yield from transfer_of(group_id)
    return pending if pending is not None and pending.transfer_id == transfer_id else None


# The audit trail


def add_audit(record: AuditRecord) -> Steps[None]:
    """One of this id that is there stays as it is."""
    yield Query("add_audit", audit_values(record))


def audit_values(record: AuditRecord) -> dict[str, Any]:
    return structs.asdict(record) | {"details": to_json(record.details)}


def list_audit(group_id: str, *, after: str = "", limit: int = 100) -> Steps[tuple[AuditRecord, ...]]:
    """Oldest first, behind the record `after`."""
    rows = yield Query("audit_records", {"group_id": group_id, "after": after, "limit": limit})
    return tuple(map(_audit_record, rows))


def forget_user(user_id: str) -> Steps[int]:
    """Take the user out of all groups. What they did stays on record, but not that it was they."""
    groups = [[row[0]] for row in (yield Query("groups_naming_user", {"user_id": user_id}))]
    values = {"user_id": user_id, "groups": to_json(groups) or "[]", "group_ids": [group_id for (group_id,) in groups]}
    memberships = yield Query("delete_memberships_of_user", values)
    transfers = yield Query("delete_transfers_of_user", values)
    yield Query("forget_actor", values)
    yield Query("forget_target", values)
    return len(memberships) + len(transfers)


def _membership(row: Row) -> Membership:
    group_id, user_id, access_level, created_at = row
    return Membership(group_id=group_id, user_id=user_id, access_level=access_level, created_at=created_at)


def _transfer(row: Row) -> OwnershipTransfer:
    transfer_id, group_id, from_user_id, to_user_id, created_at = row
    return OwnershipTransfer(
        transfer_id=transfer_id,
        group_id=group_id,
        from_user_id=from_user_id,
        to_user_id=to_user_id,
        created_at=created_at,
    )


def _audit_record(row: Row) -> AuditRecord:
    record_id, group_id, conversation_id, actor_id, client_id, action, target, details, created_at = row
    return AuditRecord(
        record_id=record_id,
        group_id=group_id,
        conversation_id=conversation_id,
        actor_id=actor_id,
        client_id=client_id,
        action=action,
        target=target,
        details=object_from(details),
        created_at=created_at,
    )
