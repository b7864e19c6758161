"""Who else may use a conversation, and who owns it."""

from __future__ import annotations

from reactor_memory.memberships import AccessLevel, AuditRecord, ConversationStore, Membership, OwnershipTransfer
from reactor_memory.principals import Principal
from reactor_memory.protocols import Clock
from reactor_memory.service.access import Access
from reactor_memory.service.auditing import Audit


class Sharing:
    """Members and owners of groups; each call checks the access of its caller first (`Access`). Not for agents."""

    def __init__(self, *, access: Access, store: ConversationStore, audit: Audit, clock: Clock) -> None:
        self._access = access
        self._store = store
        self._audit = audit
        self._clock = clock

    async def members(self, principal: Principal, conversation_id: str) -> tuple[Membership, ...]:
        """All members, the owner first, then in the order in which they joined."""
        raise NotImplementedError

    async def add(self, principal: Principal, conversation_id: str, user_id: str, level: AccessLevel) -> Membership:
        """Give a user access. Raises `SharingConflictError` (``already_member``) if they have some."""
        raise NotImplementedError

    async def change(self, principal: Principal, conversation_id: str, user_id: str, level: AccessLevel) -> Membership:
        """Raises `MemberNotFoundError`."""
        raise NotImplementedError

    async def remove(self, principal: Principal, conversation_id: str, user_id: str) -> None:
        """Take the access of a user away; members may leave by themselves. Raises `MemberNotFoundError`."""
        raise NotImplementedError

    async def offer(
        self, principal: Principal, conversation_id: str, user_id: str, *, request_key: str | None = None
    ) -> OwnershipTransfer:
        """Offer to make a member the owner. Raises `SharingConflictError` (``transfer_pending``, ``not_a_member``)."""
        raise NotImplementedError

    async def transfers(self, principal: Principal) -> tuple[OwnershipTransfer, ...]:
        """The offers that the caller gave or got, oldest first."""
        raise NotImplementedError

    async def accept(self, principal: Principal, transfer_id: str) -> None:
        """Own the group; who offered it becomes a manager. Raises `TransferNotFoundError`."""
        raise NotImplementedError

    async def decline(self, principal: Principal, transfer_id: str) -> None:
        """Take an offer away, by who gave or got it. Raises `TransferNotFoundError`."""
        raise NotImplementedError

    async def audit(
        self, principal: Principal, conversation_id: str, *, after: str = "", limit: int = 100
    ) -> tuple[AuditRecord, ...]:
        """Who changed what of the group, oldest first, behind the record `after`."""
        raise NotImplementedError
