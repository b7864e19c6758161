"""What agents read and write: contexts, messages in bulk, summaries."""

from __future__ import annotations

from typing import Annotated, cast

from litestar import Controller, get, post
from litestar.params import JSONBody, QueryParameter

from reactor_memory.features.sharing import bodies
from reactor_memory.features.sharing.messages import Messages
from reactor_memory.features.sharing.models import Channel
from reactor_memory.features.sharing.summaries import Summaries
from reactor_memory.forms.losses import Provider
from reactor_memory.models.ledger import PostedMode
from reactor_memory.server import serializers
from reactor_memory.server.limits import BodyLimits
from reactor_memory.server.messages import message_page
from reactor_memory.server.new_messages import of_agent
from reactor_memory.server.paging import ServiceTokens
from reactor_memory.server.parameters import MAX_PAGE, After, Caller, ConversationId, Key, Limit
from reactor_memory.server.remembered_calls import REPEATED

OneChannel = Annotated[Channel | None, QueryParameter(name="channel")]
Budget = Annotated[
    int | None,
    QueryParameter(name="budget", ge=1, le=10_000_000, description="Tokens of all messages of the context."),
]
Query = Annotated[
    str | None,
    QueryParameter(
        name="query",
        max_length=10_000,
        pattern=r"^[^\x00]*$",
        description="What facts and older turns are wanted for; empty for none of them.",
    ),
]
MostMessages = Annotated[
    int | None,
    QueryParameter(name="limit", ge=1, le=MAX_PAGE, description="Messages at most; the newest one comes first."),
]
AfterMessageId = Annotated[
    str | None,
    QueryParameter(
        name="afterMessageId",
        min_length=1,
        max_length=255,
        description="Instead of a context, the messages behind this one.",
    ),
]
WithSummaries = Annotated[
    PostedMode,
    QueryParameter(
        name="summaries",
        description="When to say what an agent posted: where the context shows less than it covers, or always.",
    ),
]
InForm = Annotated[
    Provider | None,
    QueryParameter(name="form", description="Also give the messages as this provider takes them, as `request`."),
]
WithReport = Annotated[bool, QueryParameter(name="report", description="Tell what the context is made of.")]


class AgentController(Controller):
    path = "/conversations/{conversationId:str}"

    messages: Messages
    summaries: Summaries
    tokens: ServiceTokens
    limits: BodyLimits

    @get("/context", operation_id="getContext", opt={REPEATED: ("query", "afterMessageId")})
    async def get_context(
        self,
        principal: Caller,
        conversation_id: ConversationId,
        budget: Budget = None,
        question: Query = None,
        limit: MostMessages = None,
        after_message_id: AfterMessageId = None,
        report: WithReport = False,
        posted: WithSummaries = "auto",
        form: InForm = None,
    ) -> bodies.ConversationContext:
        """What the model is to get next: facts and narrative of what is old, then the newest messages."""
        encoded = await self.messages.context(
            principal,
            conversation_id,
            budget=budget,
            query=question,
            limit=limit,
            after_message_id=after_message_id,
            report=report,
            summaries=posted,
            form=serializers.context_with(form),
        )
        return cast("bodies.ConversationContext", encoded)

    @get("/messages", operation_id="listAgentMessages")
    async def list_agent_messages(
        self,
        principal: Caller,
        conversation_id: ConversationId,
        after: After = None,
        limit: Limit = 50,
        channel: OneChannel = None,
    ) -> bodies.MessagePage:
        """What users see, summaries, and what the calling agent wrote for itself; oldest first."""
        tokens = await self.tokens.of(principal, f"listAgentMessages {conversation_id}", channel)
        rows = await self.messages.list_for_agent(
            principal, conversation_id, after=tokens.after(after, int) or 0, limit=limit + 1, channel=channel
        )
        return message_page(rows, limit, conversation_id, tokens, whole=True)

    @post("/messages", operation_id="appendAgentMessages")
    async def append_agent_messages(
        self,
        principal: Caller,
        conversation_id: ConversationId,
        data: JSONBody[bodies.CreateAgentMessagesRequest],
        idempotency_key: Key = None,
    ) -> bodies.MessageList:
        """Add messages, all or none of them."""
        said = of_agent(data, self.limits)
        added = await self.messages.append_as_agent(principal, conversation_id, said, request_key=idempotency_key)
        return bodies.MessageList(data=[serializers.message(each, conversation_id, whole=True) for each in added])

    @post("/summaries", operation_id="createSummary")
    async def create_summary(
        self,
        principal: Caller,
        conversation_id: ConversationId,
        data: JSONBody[bodies.CreateSummaryRequest],
        idempotency_key: Key = None,
    ) -> bodies.Message:
        """What the older messages come to, in place of the narrative of the service; its title becomes the title of
        the conversation. Users do not see it.
        """
        posted = await self.summaries.post(
            principal,
            conversation_id,
            text=data.summary,
            title=data.title,
            until_message_id=data.until_message_id,
            summarized_at=data.summarized_at,
            request_key=idempotency_key,
        )
        return serializers.message(posted, conversation_id)
