"""Who else may use a conversation, who owns it, and who changed what."""

from __future__ import annotations

from litestar import Controller, Response, delete, get, patch, post
from litestar.params import JSONBody

from reactor_memory.features.sharing import bodies
from reactor_memory.features.sharing.members import Sharing
from reactor_memory.server import serializers
from reactor_memory.server.idempotency import AnsweredRequests, KeyedRequest
from reactor_memory.server.paging import ServiceTokens
from reactor_memory.server.parameters import After, Caller, ConversationId, Key, Limit, MemberId, TransferId


class SharingController(Controller):
    path = "/conversations/{conversationId:str}"

    sharing: Sharing
    tokens: ServiceTokens
    answered: AnsweredRequests

    @get("/memberships", operation_id="listMemberships")
    async def list_memberships(self, principal: Caller, conversation_id: ConversationId) -> bodies.MembershipList:
        """All members of the conversation and its forks, the owner first."""
        members = await self.sharing.members(principal, conversation_id)
        return bodies.MembershipList(data=[serializers.membership(member, conversation_id) for member in members])

    @post("/memberships", operation_id="shareConversation")
    async def share_conversation(
        self,
        principal: Caller,
        conversation_id: ConversationId,
        data: JSONBody[bodies.ShareConversationRequest],
        idempotency_key: Key = None,
    ) -> Response[bodies.ConversationMembership]:
        """Give another user access to the conversation and its forks; for managers."""
        return await self.answered.once(
            idempotency_key,
            KeyedRequest(
                principal=principal, operation=("shareConversation",), conversation_id=conversation_id, body=data
            ),
            lambda _: self.sharing.add(principal, conversation_id, data.user_id, data.access_level),
            lambda member: serializers.membership(member, conversation_id),
        )

    @patch("/memberships/{userId:str}", operation_id="updateMembership")
    async def update_membership(
        self,
        principal: Caller,
        conversation_id: ConversationId,
        user_id: MemberId,
        data: JSONBody[bodies.UpdateMembershipRequest],
    ) -> bodies.ConversationMembership:
        """Change what a member may do; for managers."""
        member = await self.sharing.change(principal, conversation_id, user_id, data.access_level)
        return serializers.membership(member, conversation_id)

    @delete("/memberships/{userId:str}", operation_id="removeMembership")
    async def remove_membership(self, principal: Caller, conversation_id: ConversationId, user_id: MemberId) -> None:
        """Take the access of a member away; for managers, and for the member."""
        await self.sharing.remove(principal, conversation_id, user_id)

    @post("/transfer-ownership", operation_id="transferOwnership", status_code=202)
    async def transfer_ownership(
        self,
        principal: Caller,
        conversation_id: ConversationId,
        data: JSONBody[bodies.TransferOwnershipRequest],
        idempotency_key: Key = None,
    ) -> Response[bodies.OwnershipTransfer]:
        """Offer the conversation and its forks to a member, who may accept; for the owner."""
        return await self.answered.once(
            idempotency_key,
            KeyedRequest(
                principal=principal,
                operation=("transferOwnership",),
                conversation_id=conversation_id,
                body=data,
                status=202,
            ),
            lambda key: self.sharing.offer(principal, conversation_id, data.new_owner_user_id, request_key=key),
            serializers.transfer,
        )

    @get("/audit", operation_id="listAudit")
    async def list_audit(
        self, principal: Caller, conversation_id: ConversationId, after: After = None, limit: Limit = 50
    ) -> bodies.AuditPage:
        """Who changed what of the conversation and its forks, oldest first; for managers."""
        tokens = await self.tokens.of(principal, f"listAudit {conversation_id}")
        rows = await self.sharing.audit(
            principal, conversation_id, after=tokens.after(after, str) or "", limit=limit + 1
        )
        shown, cursor = tokens.page(rows, limit, lambda row: row.record_id)
        return bodies.AuditPage(data=list(map(serializers.audit_entry, shown)), next_cursor=cursor)


class TransferController(Controller):
    path = "/ownership-transfers"

    sharing: Sharing
    answered: AnsweredRequests

    @get("", operation_id="listOwnershipTransfers")
    async def list_ownership_transfers(self, principal: Caller) -> bodies.TransferList:
        """The offers that the user made or got."""
        return bodies.TransferList(data=[serializers.transfer(one) for one in await self.sharing.transfers(principal)])

    @post("/{transferId:str}/accept", operation_id="acceptOwnershipTransfer", status_code=204)
    async def accept_ownership_transfer(
        self, principal: Caller, transfer_id: TransferId, idempotency_key: Key = None
    ) -> Response[None]:
        """Own what was offered; the owner becomes a manager."""
        asked = KeyedRequest(principal=principal, operation=("acceptOwnershipTransfer", transfer_id), status=204)
        return await self.answered.once(
            idempotency_key, asked, lambda _: self.sharing.accept(principal, transfer_id), _nothing
        )

    @delete("/{transferId:str}", operation_id="declineOwnershipTransfer")
    async def decline_ownership_transfer(self, principal: Caller, transfer_id: TransferId) -> None:
        """Take an offer away: its sender cancels it, its recipient declines."""
        await self.sharing.decline(principal, transfer_id)

    @post("/{transferId:str}/decline", operation_id="refuseOwnershipTransfer", status_code=204)
    async def refuse_ownership_transfer(
        self, principal: Caller, transfer_id: TransferId, idempotency_key: Key = None
    ) -> Response[None]:
        """The same as deleting it."""
        asked = KeyedRequest(principal=principal, operation=("refuseOwnershipTransfer", transfer_id), status=204)
        return await self.answered.once(
            idempotency_key, asked, lambda _: self.sharing.decline(principal, transfer_id), _nothing
        )


def _nothing(done: None) -> None:
    """The answer about what leaves nothing to tell."""
