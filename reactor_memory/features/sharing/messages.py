"""Messages of shared conversations: what users and agents see of them, what they append, and the context."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeVar

import msgspec
from msgspec.structs import replace

from reactor_memory.core.context.blocks import Part
from reactor_memory.core.context.context import Context
from reactor_memory.core.manager import ConversationManager
from reactor_memory.core.validation import MAX_ID_LENGTH, check_messages, check_text
from reactor_memory.database.database import Database
from reactor_memory.errors import InvalidInputError, MessageNotFoundError
from reactor_memory.features.sharing import operations as conversations
from reactor_memory.features.sharing.access import Access, check_granted, client_of, user_of
from reactor_memory.features.sharing.models import (
    PARENT_MESSAGE_ID,
    RESERVED_METADATA,
    Channel,
    Conversation,
    MessagesQuery,
    Quotas,
)
from reactor_memory.features.sharing.principals import Operation, Principal
from reactor_memory.features.sharing.quotas import check_room
from reactor_memory.features.sharing.repeated_requests import batch_key
from reactor_memory.models import (
    Given,
    JsonObject,
    Message,
    Role,
    Session,
    ToolCall,
    Value,
    Visibility,
    is_instruction,
    is_kept_by_author,
    is_posted_summary,
)
from reactor_memory.models.ledger import PostedMode

T = TypeVar("T")

CONTINUED = 200
"""Messages of the log that follow at most, if nobody says how many."""


class NewMessage(Value, frozen=True, kw_only=True):
    """A message as a caller gives it. `metadata` must leave out the keys that are reserved for the service."""

    content: str
    role: Role = "user"
    visibility: Visibility = "user"
    metadata: JsonObject = {}
    parent_message_id: str | None = None
    parts: tuple[JsonObject, ...] = ()
    tool_calls: tuple[ToolCall, ...] = ()
    tool_call_id: str | None = None
    name: str | None = None
    given: Given | None = None


class SharedContext(Value, frozen=True, kw_only=True):
    """What the model is to get, and the parts that it belongs to. `next_after_message_id` names the newest message in
    it: what follows it is the next slice. `tokens` are those of `messages`; `remarks`, in words, and `report`, if asked
    for, tell of the context before a limit cut it.
    """

    conversation_id: str
    messages: tuple[Message, ...]
    parts: tuple[Part, ...]
    next_after_message_id: str | None
    tokens: int
    report: JsonObject | None = None
    remarks: tuple[str, ...] = ()


def _as_shared(shown: SharedContext) -> SharedContext:
    return shown


_AS_SHARED: Any = _as_shared


class Messages:
    """Reads and appends for members and agents; each call checks the access of its caller first (`Access`)."""

    def __init__(self, *, access: Access, database: Database, manager: ConversationManager, quotas: Quotas) -> None:
        self._access = access
        self._database = database
        self._manager = manager
        self._quotas = quotas

    async def list_for_user(
        self, principal: Principal, conversation_id: str, *, after: int = 0, limit: int = 50, inherit: bool = True
    ) -> tuple[Message, ...]:
        """The messages for users behind seq `after`, oldest first: all of the branch, or with `inherit` False those of
        the conversation alone.
        """
        user_of(principal)
        conversation = await self._access.conversation(principal, conversation_id, needs="reader", operation="read")
        query = MessagesQuery(
            session=conversation.session, user_id=principal.user_id, after=after, limit=limit, inherit=inherit
        )
        return await self._database.read(conversations.read_visible, query)

    async def list_for_agent(
        self,
        principal: Principal,
        conversation_id: str,
        *,
        after: int = 0,
        limit: int = 50,
        channel: Channel | None = None,
    ) -> tuple[Message, ...]:
        """Those for users, summaries, what is for all agents, and what the calling agent wrote for itself; or of these,
        those of `channel`.
        """
        client_id = client_of(principal)
        conversation = await self._access.conversation(principal, conversation_id, needs="reader", operation="read")
        query = MessagesQuery(
            session=conversation.session,
            user_id=principal.user_id,
            client_id=client_id,
            channel=channel,
            after=after,
            limit=limit,
        )
        return await self._database.read(conversations.read_visible, query)

    async def append_as_user(
        self, principal: Principal, conversation_id: str, message: NewMessage, *, request_key: str | None = None
    ) -> Message:
        """The message as it is stored. A repetition with the same `request_key` returns the first one; raises
        `MessageNotFoundError` if it was erased since.
        """
        stored = await self._append(principal, conversation_id, [said_by_user(principal, message)], request_key)
        return stored[0]

    async def append_as_agent(
        self,
        principal: Principal,
        conversation_id: str,
        messages: Sequence[NewMessage],
        *,
        request_key: str | None = None,
    ) -> tuple[Message, ...]:
        """The messages as they are stored, all or none of them. A repetition with the same `request_key` returns those
        of them that were not erased since; raises `MessageNotFoundError` if all were. Raises `NotGrantedError` for
        messages that are system text or that users do not see, unless the key is granted ``instruct``.
        """
        return await self._append(
            principal, conversation_id, [said_by_agent(principal, each) for each in messages], request_key
        )

    async def _append(
        self, principal: Principal, conversation_id: str, messages: Sequence[Message], request_key: str | None
    ) -> tuple[Message, ...]:
        async def act(conversation: Conversation) -> tuple[Message, ...]:
            key = batch_key(principal, request_key)
            return await self._append_to(conversation, messages, key, client_id=principal.client_id)

        check_granted(principal, "append")
        operation: Operation = "instruct" if any(map(is_instruction, messages)) else "append"
        return await self._access.acting(principal, conversation_id, act, needs="writer", operation=operation)

    async def _append_to(
        self, conversation: Conversation, messages: Sequence[Message], key: str | None, *, client_id: str | None
    ) -> tuple[Message, ...]:
        session = conversation.session
        check_messages(messages, self._manager.limits)  # who calls a service is told what was wrong
        await check_parents(self._database, session, messages, client_id)
        batch = await self._manager.prepare_batch(
            session.session_id, messages, user_id=session.owner_id, idempotency_key=key
        )
        if self._quotas.max_stored_bytes:
            await self._database.read(check_room, session, batch.messages, key, self._quotas)
        appended = await self._manager.save_batch(batch)
        if session.title is None and any(map(_may_be_title, messages)):
            await self._database.write(conversations.title_conversation, session.session_id)
        if not appended.replayed:
            return tuple(replace(each, seq=seq) for seq, each in enumerate(batch.messages, appended.first_seq))
        stored = await self._manager.read_messages(
            session.session_id, user_id=session.owner_id, after=appended.first_seq - 1, until=appended.last_seq
        )
        if not stored:
            raise MessageNotFoundError(session.session_id)
        return stored

    async def context(
        self,
        principal: Principal,
        conversation_id: str,
        *,
        budget: int | None = None,
        query: str | None = None,
        limit: int | None = None,
        after_message_id: str | None = None,
        report: bool = False,
        summaries: PostedMode = "auto",
        form: Callable[[SharedContext], T] = _AS_SHARED,
    ) -> T:
        """The context of `ConversationManager.load_history`, of at most `limit` messages: the oldest of the window
        leave first; with `after_message_id` instead the messages of the log behind that one, in order, without posted
        summaries. What other agents keep for themselves is in neither. The notes about the owner, which other
        conversations are the source of, are not for an agent that calls on behalf of another member.

        It is given as `form` makes it, which must not be changed: it may be given again (`Context.once`).
        """
        client_id = client_of(principal)
        if after_message_id is not None:
            check_text("after_message_id", after_message_id)

        async def act(conversation: Conversation) -> T:
            if after_message_id is not None:
                return form(await self._continued(conversation, client_id, after_message_id, limit or CONTINUED))
            session = conversation.session
            has_notes = principal.user_id in (None, session.owner_id)
            context = await self._manager.load_history(
                session.session_id,
                user_id=session.owner_id,
                agent_name=conversation.agent_name if has_notes else None,
                budget=budget,
                query=query,
                reader_id=client_id,
                summaries=summaries,
            )
            return context.once(
                (limit, report, form),
                lambda whole: form(shared_context(session.session_id, whole, limit=limit, report=report)),
            )

        return await self._access.acting(principal, conversation_id, act, needs="reader", operation="read")

    async def _continued(
        self, conversation: Conversation, client_id: str, message_id: str, limit: int
    ) -> SharedContext:
        session = conversation.session
        last = await self._database.read(conversations.find_message, session, message_id)
        if last is None:
            raise InvalidInputError("after_message_id", "is no message of this conversation: ask for the context anew")
        messages = await self._manager.read_messages(
            session.session_id, user_id=session.owner_id, after=last.seq or 0, limit=limit
        )
        shown = tuple(each for each in messages if _is_visible_to(client_id, each))
        return SharedContext(
            conversation_id=session.session_id,
            messages=shown,
            parts=("window",) * len(shown),
            next_after_message_id=messages[-1].message_id if messages else message_id,
            tokens=sum(each.token_count or 0 for each in shown),
        )


def _is_visible_to(client_id: str, message: Message) -> bool:
    return not is_posted_summary(message) and (message.author_id == client_id or not is_kept_by_author(message))


async def check_parents(
    database: Database,
    session: Session,
    messages: Iterable[Message],
    client_id: str | None,
    *,
    before_seq: int | None = None,
) -> None:
    """Raises `InvalidInputError` for a message that answers none of those that the caller sees in the conversation."""
    for parent_id in {parent for each in messages if (parent := each.metadata.get(PARENT_MESSAGE_ID))}:
        parent = await database.read(conversations.find_message, session, parent_id)
        if parent is None or not _is_seen(client_id, parent) or (before_seq and (parent.seq or 0) >= before_seq):
            raise InvalidInputError(
                "parent_message_id", "is no message of this conversation: leave it out, or name one"
            )


def _is_seen(client_id: str | None, message: Message) -> bool:
    if client_id is None:
        return message.visibility == "user" and message.role != "summary"
    return message.author_id == client_id or not is_kept_by_author(message)


def said_by_user(principal: Principal, new: NewMessage) -> Message:
    """What a user says, themselves or through an agent. Raises `InvalidInputError` for reserved metadata."""
    fields = {"parts": new.parts, "name": new.name, "given": new.given}
    return Message.user(new.content, metadata=stored_metadata(new), author_id=user_of(principal), **fields)


def said_by_agent(principal: Principal, new: NewMessage) -> Message:
    """What an agent writes: in the name of a user only what that user said, and can see. Raises `InvalidInputError`."""
    client_id = client_of(principal)
    said_by_user = new.role == "user" and new.visibility == "user"
    return Message(
        role=new.role,
        content=new.content,
        visibility=new.visibility,
        metadata=stored_metadata(new),
        parts=new.parts,
        tool_calls=new.tool_calls,
        tool_call_id=new.tool_call_id,
        name=new.name,
        given=new.given,
        author_id=principal.user_id if said_by_user else client_id,  # by a key alone: of no user that we know
    )


def stored_metadata(new: NewMessage) -> JsonObject:
    """The metadata with the message that is answered. Raises `InvalidInputError`."""
    check_unreserved(new.metadata)
    if new.parent_message_id is None:
        return new.metadata
    if not 1 <= len(new.parent_message_id) <= MAX_ID_LENGTH:
        raise InvalidInputError("parent_message_id", f"must have 1 to {MAX_ID_LENGTH} characters")
    check_text("parent_message_id", new.parent_message_id)
    return {**new.metadata, PARENT_MESSAGE_ID: new.parent_message_id}


def check_unreserved(metadata: Iterable[str]) -> None:
    """Raises `InvalidInputError` if one of these keys is the service's own."""
    if any(key.startswith(RESERVED_METADATA) for key in metadata):
        raise InvalidInputError("metadata", f"has a key that begins with {RESERVED_METADATA}, which is reserved")


def _may_be_title(message: Message) -> bool:
    return message.role == "user" and message.visibility == "user"


def shared_context(conversation_id: str, context: Context, *, limit: int | None, report: bool) -> SharedContext:
    """The context as it goes to an agent, cut to `limit` messages."""
    told = context.report
    cut = left_out(context, limit)
    kept = [place for place in range(len(context.messages)) if place not in cut]
    shown = [context.messages[place] for place in kept]
    newest = max((each for each in shown if each.message_id), key=lambda each: each.seq or 0, default=None)
    return SharedContext(
        conversation_id=conversation_id,
        messages=tuple(shown),
        parts=tuple(told.parts[place] for place in kept),
        next_after_message_id=newest and newest.message_id,
        tokens=told.total_tokens - sum((context.messages[place].token_count or 0) + told.overhead for place in cut),
        report=msgspec.to_builtins(told) if report else None,
        remarks=told.remarks,
    )


def left_out(context: Context, limit: int | None) -> frozenset[int]:
    """Where the messages stand that a context of `limit` messages leaves out: the oldest of the window down to its
    newest, then of memory what stands last. Turns that were recalled leave together, and no result stays without its
    call.
    """
    parts = context.report.parts
    if limit is None or len(parts) <= limit:
        return frozenset()
    window = [place for place, part in enumerate(parts) if part == "window"]
    memory = [place for place, part in enumerate(parts) if part != "window"]
    newest = window[-max(limit - len(memory), 1) :]
    first = next((place for place in newest if context.messages[place].role != "tool"), len(parts))
    shown = {place for place in newest if place >= first}
    kept = memory[: limit - len(shown)]
    if len(kept) < len(memory):
        kept = [place for place in kept if parts[place] != "recalled"]
    return frozenset(range(len(parts))) - shown - set(kept)
