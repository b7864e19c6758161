"""Conversations of a user: begin, find, rename, fork, delete, restore."""

from __future__ import annotations

from typing import Annotated

from litestar import Controller, Response, delete, get, patch, post
from litestar.openapi import ResponseSpec
from litestar.params import JSONBody, QueryParameter

from reactor_memory.database.database import Database
from reactor_memory.features.sharing import bodies
from reactor_memory.features.sharing.conversations import Conversations
from reactor_memory.features.sharing.models import ListMode
from reactor_memory.features.tiers.operations import read_range_summaries
from reactor_memory.server import serializers
from reactor_memory.server.idempotency import AnsweredRequests, KeyedRequest
from reactor_memory.server.limits import BodyLimits
from reactor_memory.server.new_messages import of_user
from reactor_memory.server.paging import ServiceTokens
from reactor_memory.server.parameters import After, Caller, ConversationId, Key, Limit, MessageId, Words

Mode = Annotated[ListMode, QueryParameter(name="mode")]


class ConversationController(Controller):
    path = "/conversations"

    conversations: Conversations
    database: Database
    tokens: ServiceTokens
    answered: AnsweredRequests
    limits: BodyLimits

    @get("", operation_id="listConversations")
    async def list_conversations(
        self, principal: Caller, after: After = None, limit: Limit = 20, words: Words = None, mode: Mode = "all"
    ) -> bodies.ConversationPage:
        """Those that the user owns or is a member of, newest activity first. `query` is looked for in titles and
        metadata.
        """
        tokens = await self.tokens.of(principal, "listConversations", words, mode)
        rows = await self.conversations.list(
            principal, mode=mode, text=words, after=tokens.after(after, tuple[int, str]), limit=limit + 1
        )
        shown, cursor = tokens.page(rows, limit, lambda row: (row.session.updated_at, row.conversation_id))
        return bodies.ConversationPage(data=list(map(serializers.conversation_summary, shown)), next_cursor=cursor)

    @post("", operation_id="createConversation")
    async def create_conversation(
        self, principal: Caller, data: JSONBody[bodies.CreateConversationRequest], idempotency_key: Key = None
    ) -> Response[bodies.Conversation]:
        """A new conversation that the user owns."""
        self.limits.check_metadata(data.metadata)
        return await self.answered.once(
            idempotency_key,
            KeyedRequest(principal=principal, operation=("createConversation",), body=data),
            lambda key: self.conversations.create(
                principal, title=data.title, metadata=data.metadata, agent_name=data.agent_name, request_key=key
            ),
            serializers.conversation,
        )

    @get("/{conversationId:str}", operation_id="getConversation")
    async def get_conversation(self, principal: Caller, conversation_id: ConversationId) -> bodies.Conversation:
        return serializers.conversation(await self.conversations.get(principal, conversation_id))

    @get("/{conversationId:str}/tiers", operation_id="listTierSummaries")
    async def list_tier_summaries(self, principal: Caller, conversation_id: ConversationId) -> bodies.TierSummaryList:
        """The texts that stand for older messages, in their order: those of tiers and of the chat memory."""
        found = await self.conversations.get(principal, conversation_id)
        live = await self.database.read(read_range_summaries, conversation_id, found.session.owner_id)
        return bodies.TierSummaryList(data=[serializers.tier_summary(each) for each in live])

    @patch("/{conversationId:str}", operation_id="updateConversation")
    async def update_conversation(
        self, principal: Caller, conversation_id: ConversationId, data: JSONBody[bodies.UpdateConversationRequest]
    ) -> bodies.Conversation:
        """Give it another title; for writers."""
        return serializers.conversation(await self.conversations.rename(principal, conversation_id, data.title))

    @delete(
        "/{conversationId:str}",
        operation_id="deleteConversation",
        status_code=202,
        responses={204: ResponseSpec(None, description="Deleted; nothing is left of what was to go at once.")},
    )
    async def delete_conversation(
        self, principal: Caller, conversation_id: ConversationId
    ) -> Response[bodies.Deletion | None]:
        """Delete a root with all its forks, a fork with those below it; for managers. It can be restored for a time.
        Answered with 202 if that time is none and some of it is not gone yet.
        """
        gone = await self.conversations.delete(principal, conversation_id)
        if gone.is_scrubbed:
            return Response(None, status_code=204)
        return Response(bodies.Deletion(is_scrubbed=False, left=list(gone.left)), status_code=202)

    @post("/{conversationId:str}/restore", operation_id="restoreConversation", status_code=200)
    async def restore_conversation(
        self, principal: Caller, conversation_id: ConversationId, idempotency_key: Key = None
    ) -> Response[bodies.Conversation]:
        """Bring back what was deleted together; for the owner."""
        return await self.answered.once(
            idempotency_key,
            KeyedRequest(
                principal=principal, operation=("restoreConversation",), conversation_id=conversation_id, status=200
            ),
            lambda _: self.conversations.restore(principal, conversation_id),
            serializers.conversation,
        )

    @post("/{conversationId:str}/messages/{messageId:str}/fork", operation_id="forkConversation")
    async def fork_conversation(
        self,
        principal: Caller,
        conversation_id: ConversationId,
        message_id: MessageId,
        data: JSONBody[bodies.ForkRequest],
        idempotency_key: Key = None,
    ) -> Response[bodies.Conversation]:
        """A conversation that shares what stands before a message of a user, and may begin with another in its place;
        for writers.
        """
        said = None if data.new_message is None else of_user(data.new_message, self.limits, "newMessage.")
        return await self.answered.once(
            idempotency_key,
            KeyedRequest(
                principal=principal,
                operation=("forkConversation", message_id),
                conversation_id=conversation_id,
                body=data,
            ),
            lambda key: self.conversations.fork(
                principal, conversation_id, message_id, title=data.title, first=said, request_key=key
            ),
            serializers.conversation,
        )

    @get("/{conversationId:str}/forks", operation_id="listForks")
    async def list_forks(
        self, principal: Caller, conversation_id: ConversationId, after: After = None, limit: Limit = 20
    ) -> bodies.ForkPage:
        """The conversation that all are forks of, then its forks in the order of their creation."""
        tokens = await self.tokens.of(principal, "listForks", conversation_id)
        rows = await self.conversations.forks(
            principal, conversation_id, after=tokens.after(after, tuple[int, str]), limit=limit + 1
        )
        shown, cursor = tokens.page(rows, limit, lambda row: (row.session.created_at, row.conversation_id))
        return bodies.ForkPage(data=[serializers.fork(row, conversation_id) for row in shown], next_cursor=cursor)
