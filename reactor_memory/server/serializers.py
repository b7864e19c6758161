"""What the services return, as it goes over the wire."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from functools import cache
from typing import Any, overload

from msgspec import UNSET

from reactor_memory import forms
from reactor_memory.core.context.blocks import Part
from reactor_memory.features.responses import models as responses
from reactor_memory.features.sharing import bodies
from reactor_memory.features.sharing import models as sharing
from reactor_memory.features.sharing.messages import SharedContext
from reactor_memory.features.sharing.models import (
    PARENT_MESSAGE_ID,
    RESERVED_METADATA,
    AuditRecord,
    Membership,
    OwnershipTransfer,
    channel_of,
)
from reactor_memory.forms.losses import Provider
from reactor_memory.models import JsonObject, Message, ToolCall, is_reasoning
from reactor_memory.models.ledger import RangeSummary
from reactor_memory.server.json_answers import Encoded

_TOLD: tuple[Part, ...] = ("narrative", "compressed", "condensed")
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_FIRST, _LAST = -62_135_596_800_000_000, 253_402_300_799_999_999
"""What a date can tell, in microseconds since the epoch."""


@overload
def time(microseconds: int) -> datetime: ...
@overload
def time(microseconds: int | None) -> datetime | None: ...
def time(microseconds: int | None) -> datetime | None:
    """The time; the first or last one that there is for what lies beyond."""
    if microseconds is None:
        return None
    if not _FIRST <= microseconds <= _LAST:
        microseconds = _FIRST if microseconds < _FIRST else _LAST
    return _EPOCH + timedelta(0, 0, microseconds)


def conversation_summary(shown: sharing.Conversation) -> bodies.ConversationSummary:
    return bodies.ConversationSummary(**_summary_fields(shown))


def conversation(shown: sharing.Conversation) -> bodies.Conversation:
    return bodies.Conversation(
        **_summary_fields(shown),
        metadata=shown.metadata,
        agent_name=shown.agent_name,
        forked_at_conversation_id=shown.session.forked_from_id,
        forked_at_message_id=shown.forked_at_message_id,
        vectorized_at=time(shown.vectorized_at),
    )


def _summary_fields(shown: sharing.Conversation) -> dict[str, Any]:
    session = shown.session
    return {
        "id": session.session_id,
        "conversation_group_id": session.group_id,
        "title": session.title,
        "owner_user_id": session.owner_id,
        "created_at": time(session.created_at),
        "updated_at": time(session.updated_at),
        "last_message_preview": shown.preview or None,
        "access_level": shown.access_level or "reader",
        "is_damaged": True if shown.is_damaged else UNSET,
    }


def tier_summary(shown: RangeSummary) -> bodies.TierSummary:
    return bodies.TierSummary(
        id=shown.summary_id,
        level=shown.kind,
        message_count=shown.message_count,
        start_seq=shown.start_seq,
        end_seq=shown.end_seq,
        started_at=time(shown.started_at),
        ended_at=time(shown.ended_at),
        created_at=time(shown.created_at),
        text=shown.text,
    )


def fork(shown: sharing.Conversation, current_id: str) -> bodies.ConversationFork:
    session = shown.session
    return bodies.ConversationFork(
        conversation_id=session.session_id,
        fork_id=session.session_id,
        forked_from_conversation_id=session.forked_from_id,
        forked_from_message_id=shown.forked_at_message_id,
        title=session.title,
        created_at=time(session.created_at),
        is_current_fork=session.session_id == current_id,
    )


def message(shown: Message, conversation_id: str, *, whole: bool = False) -> bodies.Message:
    """`conversation_id` is the conversation in which it is seen. `whole`: for an agent, with what only models read."""
    return bodies.Message(
        id=shown.message_id or "",
        seq=shown.seq or 0,
        channel=channel_of(shown),
        visibility=shown.visibility,
        created_at=time(_stored_at(shown) if shown.created_at is None else shown.created_at),
        **_said(shown, conversation_id, whole=whole),
    )


def _said(shown: Message, conversation_id: str, *, whole: bool) -> dict[str, Any]:
    metadata = shown.metadata
    said: dict[str, Any] = {
        "conversation_id": conversation_id,
        "role": shown.role,
        "content": shown.content,
        "metadata": _own(metadata) if metadata else metadata,
        "parent_message_id": metadata.get(PARENT_MESSAGE_ID),
        "user_id": shown.author_id if shown.role == "user" else None,
    }
    if shown.parts:
        said["parts"] = [part for part in shown.parts if whole or not is_reasoning(part)] or UNSET
    if shown.tool_calls:
        said["tool_calls"] = [_tool_call(call, whole=whole) for call in shown.tool_calls]
    if shown.tool_call_id is not None:
        said["tool_call_id"] = shown.tool_call_id
    if shown.name is not None:
        said["name"] = shown.name
    if shown.role == "tool" and shown.outcome:
        said["outcome"] = shown.outcome
    if whole and shown.given is not None:
        said["given"] = shown.given
    return said


def _stored_at(message: Message) -> int:
    """When a message was stored, as its id says: of one that was imported without a time."""
    return int((message.message_id or "0").replace("-", "")[:12], 16) * 1000


@cache
def context_with(form: Provider | None) -> Callable[[SharedContext], Encoded]:
    """What makes the body of a context (`bodies.ConversationContext`), always the same for a form."""
    return lambda shown: Encoded(_context(shown, form))


def _context(shown: SharedContext, form: Provider | None) -> bodies.ConversationContext:
    return bodies.ConversationContext(
        conversation_id=shown.conversation_id,
        messages=[
            _context_message(message, part, shown.conversation_id)
            for message, part in zip(shown.messages, shown.parts, strict=True)
        ],
        next_after_message_id=shown.next_after_message_id,
        tokens=shown.tokens,
        remarks=list(shown.remarks) or UNSET,
        report=UNSET if shown.report is None else shown.report,
        request=UNSET if form is None else getattr(forms, f"to_{form}")(shown.messages),
    )


def membership(shown: Membership, conversation_id: str) -> bodies.ConversationMembership:
    return bodies.ConversationMembership(
        conversation_id=conversation_id,
        user_id=shown.user_id,
        access_level=shown.access_level,
        created_at=time(shown.created_at),
    )


def transfer(shown: OwnershipTransfer) -> bodies.OwnershipTransfer:
    return bodies.OwnershipTransfer(
        id=shown.transfer_id,
        conversation_id=shown.group_id,
        from_user_id=shown.from_user_id,
        to_user_id=shown.to_user_id,
        created_at=time(shown.created_at),
    )


def audit_entry(shown: AuditRecord) -> bodies.AuditEntry:
    return bodies.AuditEntry(
        id=shown.record_id,
        conversation_id=shown.conversation_id,
        user_id=shown.actor_id,
        client_id=shown.client_id,
        action=shown.action,
        target=shown.target,
        details=shown.details,
        created_at=time(shown.created_at),
    )


def response(shown: responses.Response) -> bodies.Response:
    return bodies.Response(
        id=shown.response_id,
        conversation_id=shown.conversation_id,
        producer=shown.producer,
        fence=shown.fence,
        state=shown.state,
        last_event=shown.last_event,
        stop_requested=shown.stop_requested,
        message_id=shown.message_id,
        created_at=time(shown.created_at),
        updated_at=time(shown.updated_at),
        expires_at=time(shown.expires_at),
    )


def piece(shown: responses.Piece) -> bodies.ResponsePiece:
    return bodies.ResponsePiece(event=shown.event, text=shown.text)


def _context_message(shown: Message, part: Part, conversation_id: str) -> bodies.ContextMessage:
    is_memory = shown.message_id is None
    told: sharing.Channel = "SUMMARY" if part in _TOLD else "MEMORY"
    return bodies.ContextMessage(
        id=shown.message_id,
        seq=shown.seq,
        visibility="agent" if is_memory else shown.visibility,
        channel=told if is_memory else channel_of(shown),
        part=part,
        created_at=time(shown.created_at),
        **_said(shown, conversation_id, whole=True),
    )


def _own(metadata: JsonObject) -> JsonObject:
    return {key: value for key, value in metadata.items() if not key.startswith(RESERVED_METADATA)}


def _tool_call(call: ToolCall, *, whole: bool) -> bodies.ToolCallBody:
    metadata = call.metadata if whole and call.metadata else UNSET
    return bodies.ToolCallBody(id=call.id, name=call.name, arguments=call.arguments, metadata=metadata)
