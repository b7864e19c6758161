"""What goes over the wire: the bodies of requests and answers.

JSON names are in camel case. Times are ISO 8601 in UTC with microseconds. Unknown fields of a request are refused, so
that a field which cannot be set (such as ``ownerUserId``) is never passed over in silence.
"""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Literal, TypeAlias

import msgspec
from msgspec import UNSET, Meta, UnsetType

from reactor_memory import models
from reactor_memory.core.context.blocks import Part
from reactor_memory.core.context.context import ProviderForms
from reactor_memory.features.sharing.models import AccessLevel, Channel
from reactor_memory.models import Given, JsonObject, ResponseState, Role, SearchType, Visibility

MessageRole: TypeAlias = Literal["user", "assistant", "system", "tool", "agent"]
GivenLevel: TypeAlias = Literal["reader", "writer", "manager"]
FinalState: TypeAlias = Literal["completed", "failed", "stopped"]

Time: TypeAlias = Annotated[datetime, Meta(tz=True)]
Title: TypeAlias = Annotated[str, Meta(max_length=500)]
UserId: TypeAlias = Annotated[str, Meta(min_length=1, max_length=255)]
Text: TypeAlias = Annotated[str, Meta(min_length=1)]
AgentName: TypeAlias = Annotated[str, Meta(min_length=1, max_length=100)]


class Request(msgspec.Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """The base of bodies that come in."""


class Answer(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """The base of bodies that go out."""


# -- conversations ----------------------------------------------------------------------------------------------------


class CreateConversationRequest(Request, frozen=True, kw_only=True):
    title: Title | None = None
    metadata: JsonObject | None = None
    agent_name: AgentName | None = None


class UpdateConversationRequest(Request, frozen=True, kw_only=True):
    """`title` null takes the title away."""

    title: Title | None


class ConversationSummary(Answer, frozen=True, kw_only=True):
    """`conversationGroupId` is the id of the root, which all its forks share. `isDamaged` stands there, as true, where
    rows of the conversation cannot be read; the rest is what can.
    """

    id: str
    conversation_group_id: str
    title: str | None
    owner_user_id: str | None
    created_at: Time
    updated_at: Time
    last_message_preview: str | None
    access_level: AccessLevel
    is_damaged: bool | UnsetType = UNSET


class Conversation(ConversationSummary, frozen=True, kw_only=True):
    metadata: JsonObject
    agent_name: str | None
    forked_at_conversation_id: str | None
    forked_at_message_id: str | None
    vectorized_at: Time | None


class ConversationPage(Answer, frozen=True, kw_only=True):
    data: list[ConversationSummary]
    next_cursor: str | None


class TierSummary(Answer, frozen=True, kw_only=True):
    """A text that stands for the messages `startSeq` to `endSeq`, `messageCount` of them, said from `startedAt` to
    `endedAt`. `level`: ``condensed`` or ``compressed`` (tiers), or ``summary`` (chat memory).
    """

    id: str
    level: str
    message_count: int
    start_seq: int
    end_seq: int
    started_at: Time
    ended_at: Time
    created_at: Time
    text: str


class TierSummaryList(Answer, frozen=True, kw_only=True):
    data: list[TierSummary]


class ConversationFork(Answer, frozen=True, kw_only=True):
    """`forked_from_message_id` is the last message that the fork shares; null for the root, and for a fork at the first
    message.
    """

    conversation_id: str
    fork_id: str
    forked_from_conversation_id: str | None
    forked_from_message_id: str | None
    title: str | None
    created_at: Time
    is_current_fork: bool


class ForkPage(Answer, frozen=True, kw_only=True):
    data: list[ConversationFork]
    next_cursor: str | None


# -- messages ---------------------------------------------------------------------------------------------------------


class CreateUserMessageRequest(Request, frozen=True, kw_only=True):
    """`content` is a text. What else a user says is `given`: one message in the form of OpenAI, Anthropic, Gemini or
    Ollama, such as one with pictures.
    """

    content: Text | UnsetType = UNSET
    given: msgspec.Raw | UnsetType = UNSET
    metadata: JsonObject | None = None
    parent_message_id: str | None = None


class ToolCallBody(Request, frozen=True, kw_only=True):
    """`metadata` is what the provider wants back with the call, such as a thought signature."""

    id: str
    name: str
    arguments: JsonObject | str = {}
    metadata: JsonObject | UnsetType = UNSET


class CreateAgentMessageRequest(Request, frozen=True, kw_only=True):
    role: MessageRole
    content: str
    visibility: Visibility = "user"
    metadata: JsonObject | None = None
    parent_message_id: str | None = None
    parts: list[JsonObject] = []
    tool_calls: list[ToolCallBody] = []
    tool_call_id: str | None = None
    name: str | None = None


class CreateAgentMessagesRequest(Request, frozen=True, kw_only=True):
    """Either `messages`, or `given`: a message, a list of messages or items, a request or a response, as OpenAI,
    Anthropic, Gemini or Ollama take and give it. It goes back to the same provider as it came.
    """

    messages: Annotated[list[CreateAgentMessageRequest], Meta(min_length=1)] | UnsetType = UNSET
    given: msgspec.Raw | UnsetType = UNSET


class _Said(Answer, frozen=True, kw_only=True):
    """The fields of every message. `parts`: content that is neither text nor a tool call. `outcome`: whether a tool
    result succeeded, by the flags of its provider. `given`, for agents only: the form in which its provider gave it.
    """

    conversation_id: str
    role: Role
    visibility: Visibility
    channel: Channel
    content: str
    metadata: JsonObject
    parent_message_id: str | None
    user_id: str | None
    parts: list[JsonObject] | UnsetType = UNSET
    tool_calls: list[ToolCallBody] | UnsetType = UNSET
    tool_call_id: str | UnsetType = UNSET
    name: str | UnsetType = UNSET
    outcome: Literal["ok", "failed"] | UnsetType = UNSET
    given: Given | UnsetType = UNSET


class Message(_Said, frozen=True, kw_only=True):
    id: str
    seq: int
    created_at: Time


class MessagePage(Answer, frozen=True, kw_only=True):
    data: list[Message]
    next_cursor: str | None


class MessageList(Answer, frozen=True, kw_only=True):
    data: list[Message]


class ForkRequest(Request, frozen=True, kw_only=True):
    title: Title | None = None
    new_message: CreateUserMessageRequest | None = None


# -- sharing ----------------------------------------------------------------------------------------------------------


class ShareConversationRequest(Request, frozen=True, kw_only=True):
    user_id: UserId
    access_level: GivenLevel


class UpdateMembershipRequest(Request, frozen=True, kw_only=True):
    access_level: GivenLevel


class ConversationMembership(Answer, frozen=True, kw_only=True):
    conversation_id: str
    user_id: str
    access_level: AccessLevel
    created_at: Time


class MembershipList(Answer, frozen=True, kw_only=True):
    data: list[ConversationMembership]


class TransferOwnershipRequest(Request, frozen=True, kw_only=True):
    new_owner_user_id: UserId


class OwnershipTransfer(Answer, frozen=True, kw_only=True):
    id: str
    conversation_id: str
    from_user_id: str
    to_user_id: str
    created_at: Time


class TransferList(Answer, frozen=True, kw_only=True):
    data: list[OwnershipTransfer]


class AuditEntry(Answer, frozen=True, kw_only=True):
    """`user_id` did it, or `client_id`, alone or on behalf of the user; `target` is whom or what it was done to."""

    id: str
    conversation_id: str
    user_id: str | None
    client_id: str | None
    action: str
    target: str | None
    details: JsonObject
    created_at: Time


class AuditPage(Answer, frozen=True, kw_only=True):
    data: list[AuditEntry]
    next_cursor: str | None


# -- agents -----------------------------------------------------------------------------------------------------------


class ContextMessage(_Said, frozen=True, kw_only=True):
    """A message as the model is to get it: whole, with the part of the context that it belongs to. `id` is null for
    what memory says (facts, narrative, notes, pins), which users do not see.
    """

    id: str | None
    seq: int | None
    part: Part
    created_at: Time | None


class ConversationContext(Answer, ProviderForms, frozen=True, kw_only=True):
    """`report` is there when it was asked for (``report=true``), and so is `request` (``form=anthropic``): the messages
    as this provider takes them. `remarks` are there where there are some, such as on what was damaged and left out.
    """

    conversation_id: str
    messages: list[ContextMessage]
    next_after_message_id: str | None
    tokens: int
    remarks: list[str] | UnsetType = UNSET
    report: JsonObject | UnsetType = UNSET
    request: JsonObject | list[JsonObject] | UnsetType = UNSET

    def to_messages(self) -> list[models.Message]:
        """The messages as values of this library."""
        return [_message(shown) for shown in self.messages]

    def _shown(self) -> tuple[list[models.Message], None]:
        return self.to_messages(), None


def _message(shown: ContextMessage) -> models.Message:
    return models.Message(
        role=shown.role,
        content=shown.content,
        parts=tuple(shown.parts or ()),
        tool_calls=tuple(map(tool_call, shown.tool_calls or ())),
        tool_call_id=shown.tool_call_id or None,
        name=shown.name or None,
        metadata=shown.metadata,
        visibility=shown.visibility,
        seq=shown.seq,
        given=shown.given or None,
    )


def tool_call(body: ToolCallBody) -> models.ToolCall:
    return models.ToolCall(id=body.id, name=body.name, arguments=body.arguments, metadata=body.metadata or {})


class CreateSummaryRequest(Request, frozen=True, kw_only=True):
    title: Text
    summary: Text
    until_message_id: Text
    summarized_at: Time


# -- search -----------------------------------------------------------------------------------------------------------


class SearchMessagesRequest(Request, frozen=True, kw_only=True):
    query: Text
    top_k: Annotated[int, Meta(ge=1, le=200)] = 20
    conversation_ids: Annotated[list[str], Meta(max_length=200)] | None = None
    before: str | None = None
    search_type: SearchType = "auto"
    cursor: str | None = None


class SearchResult(Answer, frozen=True, kw_only=True):
    message: Message
    score: float
    highlights: str | None


class SearchResults(Answer, frozen=True, kw_only=True):
    """`isDamaged` stands there, as true, where some of the index could not be read: it is missing here until background
    work has made it again.
    """

    data: list[SearchResult]
    next_cursor: str | None
    is_damaged: bool | UnsetType = UNSET


# -- response streams -------------------------------------------------------------------------------------------------


class StartResponseRequest(Request, frozen=True, kw_only=True):
    producer: Annotated[str, Meta(max_length=100)] | None = None


class ResponseChunksRequest(Request, frozen=True, kw_only=True):
    """`first_event` is the number of the first of these pieces, from 1: repeating a request does no harm."""

    fence: Annotated[int, Meta(ge=1)]
    first_event: Annotated[int, Meta(ge=1)]
    texts: Annotated[list[str], Meta(min_length=1, max_length=1000)]


class FinishResponseRequest(Request, frozen=True, kw_only=True):
    """`message_id` names the message that holds the whole answer, if the agent stored it."""

    fence: Annotated[int, Meta(ge=1)]
    state: FinalState = "completed"
    message_id: Annotated[str, Meta(min_length=1, max_length=255)] | None = None


class Response(Answer, frozen=True, kw_only=True):
    """`stop_requested` asks the producer to end, and to finish the response as ``stopped``."""

    id: str
    conversation_id: str
    producer: str | None
    fence: int
    state: ResponseState
    last_event: int
    stop_requested: bool
    message_id: str | None
    created_at: datetime
    updated_at: datetime
    expires_at: datetime


class ResponseList(Answer, frozen=True, kw_only=True):
    data: list[Response]


class ResponsePiece(Answer, frozen=True, kw_only=True):
    """The data of an event ``piece``."""

    event: int
    text: str


# -- everything else --------------------------------------------------------------------------------------------------


class Deletion(Answer, frozen=True, kw_only=True):
    """A conversation is deleted, and shown to nobody. `left` names where bytes of it still are; background work goes on
    until they are gone.
    """

    is_scrubbed: bool = True
    left: list[str] = []


class Health(Answer, frozen=True, kw_only=True):
    status: Literal["ok"] = "ok"


class Readiness(Answer, frozen=True, kw_only=True):
    """`checks` says of each part ``ok`` or what keeps it from serving, without addresses or secrets."""

    status: Literal["ready", "unavailable", "stopping"]
    checks: dict[str, str]


class Problem(Answer, frozen=True, kw_only=True):
    """RFC 9457, as ``application/problem+json``. `code` is stable, `detail` is for people.
    `left` and `limit` tell of a quota how much of it is left.
    """

    type: str = "about:blank"
    title: str
    status: int
    code: str
    detail: str
    request_id: str
    errors: list[FieldProblem] | UnsetType = UNSET
    left: int | UnsetType = UNSET
    limit: int | UnsetType = UNSET


class FieldProblem(Answer, frozen=True, kw_only=True):
    field: str
    problem: str
