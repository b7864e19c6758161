"""Who else may use a conversation, and who owns it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from reactor_memory.core.validation import check_optional_id
from reactor_memory.database.database import Database
from reactor_memory.errors import (
    AccessDeniedError,
    InvalidInputError,
    MemberNotFoundError,
    NotGrantedError,
    SessionError,
    SharingConflictError,
    TransferNotFoundError,
)
from reactor_memory.features.sharing import member_operations
from reactor_memory.features.sharing.access import Access, check_granted, user_of
from reactor_memory.features.sharing.audit import Audit
from reactor_memory.features.sharing.models import (
    AccessLevel,
    AuditRecord,
    Conversation,
    Membership,
    OwnershipTransfer,
    Quotas,
)
from reactor_memory.features.sharing.principals import Operation, Principal
from reactor_memory.features.sharing.repeated_requests import new_id

if TYPE_CHECKING:
    from reactor_memory.core.ports import Clock

SHARES: Operation = "on-behalf-of"
"""What a key needs to share, or to hand over, in the name of a user."""


class Sharing:
    """Members and owners of groups; each call checks the access of its caller first (`Access`).

    What is done with any conversation of a group holds for all of them.
    """

    def __init__(self, *, access: Access, database: Database, audit: Audit, clock: Clock, quotas: Quotas) -> None:
        self._access = access
        self._database = database
        self._audit = audit
        self._clock = clock
        self._quotas = quotas

    async def members(self, principal: Principal, conversation_id: str) -> tuple[Membership, ...]:
        """All members, the owner first, then in the order in which they joined."""
        user_of(principal)
        conversation = await self._access.conversation(principal, conversation_id, needs="reader", operation="read")
        return await self._database.read(member_operations.list_memberships, conversation.session.group_id)

    async def add(self, principal: Principal, conversation_id: str, user_id: str, level: AccessLevel) -> Membership:
        """Give a user access. Raises `SharingConflictError` (``already_member``) if they have some, and
        `QuotaExceededError`.
        """
        member = await self._put(principal, conversation_id, user_id, level, creating=True)
        if member is None:
            raise SharingConflictError(
                conversation_id, "already_member", "the user is a member already: change their level"
            )
        return member

    async def change(self, principal: Principal, conversation_id: str, user_id: str, level: AccessLevel) -> Membership:
        """Raises `MemberNotFoundError`, and as `remove` for the owner."""
        member = await self._put(principal, conversation_id, user_id, level, creating=False)
        if member is None:
            raise MemberNotFoundError(conversation_id)
        return member

    async def _put(
        self, principal: Principal, conversation_id: str, user_id: str, level: AccessLevel, *, creating: bool
    ) -> Membership | None:
        user_of(principal)
        conversation = await self._access.conversation(principal, conversation_id, needs="manager", operation=SHARES)
        check_optional_id("user_id", user_id)
        check_grantable(level)
        if not creating:
            check_not_owner(conversation, user_id)
        action = "share" if creating else "change_access"
        audit = self._audit.record(principal, conversation_id, action, target=user_id, details={"access_level": level})
        member = Membership(
            group_id=conversation.session.group_id, user_id=user_id, access_level=level, created_at=self._clock()
        )
        return await self._database.write(
            member_operations.put_membership, member, audit, creating=creating, quotas=self._quotas
        )

    async def remove(self, principal: Principal, conversation_id: str, user_id: str) -> None:
        """Take the access of a user away; members may leave by themselves.

        Raises `MemberNotFoundError`, and for the owner `SharingConflictError` (``sole_owner``) if they ask themselves,
        else `AccessDeniedError`.
        """
        leaving = user_of(principal) == user_id
        conversation = await self._access.conversation(
            principal, conversation_id, needs="reader" if leaving else "manager", operation=SHARES
        )
        check_not_owner(conversation, user_id)
        audit = self._audit.record(principal, conversation_id, "leave" if leaving else "remove", target=user_id)
        if not await self._database.write(
            member_operations.remove_membership, conversation.session.group_id, user_id, audit
        ):
            raise MemberNotFoundError(conversation_id)

    async def offer(
        self, principal: Principal, conversation_id: str, user_id: str, *, request_key: str | None = None
    ) -> OwnershipTransfer:
        """Offer to make a member the owner. Raises `SharingConflictError` (``transfer_pending``, ``not_a_member``)."""
        owner_id = user_of(principal)
        transfer_id = new_id(principal, request_key, "transfer", conversation_id, user_id)

        async def act(conversation: Conversation) -> OwnershipTransfer:
            check_optional_id("new_owner_user_id", user_id)
            if user_id == owner_id:
                raise InvalidInputError("new_owner_user_id", "names the owner: offer it to another member")
            transfer = OwnershipTransfer(
                transfer_id=transfer_id,
                group_id=conversation.session.group_id,
                from_user_id=owner_id,
                to_user_id=user_id,
                created_at=self._clock(),
            )
            audit = self._audit.record(principal, conversation_id, "offer_ownership", target=user_id)
            return await self._database.write(member_operations.offer_ownership, transfer, audit)

        pending = await self._access.acting(principal, conversation_id, act, needs="owner", operation=SHARES)
        if pending.transfer_id != transfer_id:
            raise SharingConflictError(conversation_id, "transfer_pending", "another offer waits for an answer")
        return pending

    async def transfers(self, principal: Principal) -> tuple[OwnershipTransfer, ...]:
        """The offers that the caller gave or got, oldest first; for an agent those of conversations of its grant."""
        user_id = user_of(principal)
        check_granted(principal, "read")
        found = await self._database.read(member_operations.list_transfers, user_id)
        return tuple([each for each in found if not principal.is_agent or await self._is_granted(principal, each)])

    async def accept(self, principal: Principal, transfer_id: str) -> None:
        """Own the group; who offered it becomes a manager. Raises `TransferNotFoundError`, and `QuotaExceededError` if
        the caller may not own so much.
        """
        transfer = await self._pending(principal, transfer_id)
        audit = self._audit.record(principal, transfer.group_id, "accept_ownership", target=transfer.from_user_id)
        if not await self._database.write(
            member_operations.accept_ownership, transfer_id, user_of(principal), audit, quotas=self._quotas
        ):
            raise TransferNotFoundError(transfer_id)

    async def decline(self, principal: Principal, transfer_id: str) -> None:
        """Take an offer away, by who gave or got it. Raises `TransferNotFoundError`."""
        transfer = await self._pending(principal, transfer_id)
        action = "cancel_transfer" if transfer.from_user_id == principal.user_id else "decline_ownership"
        audit = self._audit.record(principal, transfer.group_id, action, target=transfer.to_user_id)
        if not await self._database.write(member_operations.decline_ownership, transfer_id, user_of(principal), audit):
            raise TransferNotFoundError(transfer_id)

    async def _pending(self, principal: Principal, transfer_id: str) -> OwnershipTransfer:
        user_id = user_of(principal)
        check_granted(principal, SHARES)
        for transfer in await self._database.read(member_operations.list_transfers, user_id):
            if transfer.transfer_id == transfer_id:
                await self._access.conversation(principal, transfer.group_id, needs="reader", operation=SHARES)
                return transfer
        raise TransferNotFoundError(transfer_id)

    async def _is_granted(self, principal: Principal, transfer: OwnershipTransfer) -> bool:
        try:
            await self._access.conversation(principal, transfer.group_id, needs="reader", operation="read")
        except (SessionError, NotGrantedError):
            return False
        return True

    async def audit(
        self, principal: Principal, conversation_id: str, *, after: str = "", limit: int = 100
    ) -> tuple[AuditRecord, ...]:
        """Who changed what of the group, oldest first, behind the record `after`."""
        user_of(principal)
        conversation = await self._access.conversation(principal, conversation_id, needs="manager", operation="read")
        return await self._database.read(
            member_operations.list_audit, conversation.session.group_id, after=after, limit=limit
        )


def check_grantable(level: AccessLevel) -> None:
    """Raises `InvalidInputError`: nobody becomes the owner but by an offer that they accept."""
    if level == "owner":
        raise InvalidInputError("access_level", "cannot be owner: offer the ownership instead")


def check_not_owner(conversation: Conversation, user_id: str) -> None:
    """Nobody changes the access of the owner: raises `AccessDeniedError` for others, `SharingConflictError` for the
    owner.
    """
    if user_id != conversation.session.owner_id:
        return
    if conversation.access_level != "owner":
        raise AccessDeniedError(conversation.conversation_id, needed="owner")
    raise SharingConflictError(
        conversation.conversation_id, "sole_owner", "the owner stays until another member accepts the ownership"
    )
