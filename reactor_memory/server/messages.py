"""Messages as a user sees and sends them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

from litestar import Controller, get, post
from litestar.params import JSONBody, QueryParameter

from reactor_memory.features.sharing import bodies
from reactor_memory.features.sharing.messages import Messages
from reactor_memory.models import Message
from reactor_memory.server import serializers
from reactor_memory.server.limits import BodyLimits
from reactor_memory.server.new_messages import of_user
from reactor_memory.server.paging import ListingTokens, ServiceTokens
from reactor_memory.server.parameters import After, Caller, ConversationId, Key, Limit

Inherit = Annotated[
    bool,
    QueryParameter(name="inherit", description="With false, of a fork its own messages only."),
]


class MessageController(Controller):
    path = "/conversations/{conversationId:str}/messages"

    messages: Messages
    tokens: ServiceTokens
    limits: BodyLimits

    @get("", operation_id="listMessages")
    async def list_messages(
        self,
        principal: Caller,
        conversation_id: ConversationId,
        after: After = None,
        limit: Limit = 50,
        inherit: Inherit = True,
    ) -> bodies.MessagePage:
        """What users see of the conversation, oldest first. A fork begins with what it shares."""
        tokens = await self.tokens.of(principal, f"listMessages {conversation_id}", inherit)
        rows = await self.messages.list_for_user(
            principal, conversation_id, after=tokens.after(after, int) or 0, limit=limit + 1, inherit=inherit
        )
        return message_page(rows, limit, conversation_id, tokens)

    @post("", operation_id="appendMessage")
    async def append_message(
        self,
        principal: Caller,
        conversation_id: ConversationId,
        data: JSONBody[bodies.CreateUserMessageRequest],
        idempotency_key: Key = None,
    ) -> bodies.Message:
        """Add what the user says; for writers."""
        said = of_user(data, self.limits)
        added = await self.messages.append_as_user(principal, conversation_id, said, request_key=idempotency_key)
        return serializers.message(added, conversation_id)


def message_page(
    rows: Sequence[Message], limit: int, conversation_id: str, tokens: ListingTokens, *, whole: bool = False
) -> bodies.MessagePage:
    """The first `limit` of `rows`, which are one more if another page follows."""
    shown, cursor = tokens.page(rows, limit, lambda row: row.seq)
    data = [serializers.message(row, conversation_id, whole=whole) for row in shown]
    return bodies.MessagePage(data=data, next_cursor=cursor)
