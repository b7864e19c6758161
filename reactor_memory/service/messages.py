"""Messages of shared conversations: what users and agents see of them, what they append, and the context."""

from __future__ import annotations

from collections.abc import Sequence

from reactor_memory.manager import ConversationManager
from reactor_memory.memberships import Channel, ConversationStore
from reactor_memory.models import JsonObject, Message, Role, ToolCall, Value, Visibility
from reactor_memory.principals import Principal
from reactor_memory.service.access import Access


class NewMessage(Value, frozen=True, kw_only=True):
    """A message as a caller gives it. `metadata` must leave out the keys that are reserved for the service."""

    content: str
    role: Role = "user"
    visibility: Visibility = "user"
    metadata: JsonObject = {}
    parent_message_id: str | None = None
    tool_calls: tuple[ToolCall, ...] = ()
    tool_call_id: str | None = None
    name: str | None = None


class SharedContext(Value, frozen=True, kw_only=True):
    """What the model is to get. `next_after_message_id` names the newest message in it: what follows it is the next
    slice. `tokens` are those of `messages`; `report` is there when it was asked for.
    """

    conversation_id: str
    messages: tuple[Message, ...]
    next_after_message_id: str | None
    tokens: int
    report: JsonObject | None = None


class Messages:
    """Reads and appends for members and agents; each call checks the access of its caller first (`Access`)."""

    def __init__(self, *, access: Access, store: ConversationStore, manager: ConversationManager) -> None:
        self._access = access
        self._store = store
        self._manager = manager

    async def list_for_user(
        self, principal: Principal, conversation_id: str, *, after: int = 0, limit: int = 50, inherit: bool = True
    ) -> tuple[Message, ...]:
        """The messages for users behind seq `after`, oldest first."""
        raise NotImplementedError

    async def list_for_agent(
        self,
        principal: Principal,
        conversation_id: str,
        *,
        after: int = 0,
        limit: int = 50,
        channel: Channel | None = None,
    ) -> tuple[Message, ...]:
        """Those for users, summaries, and what the calling agent wrote for itself; or of these, those of `channel`."""
        raise NotImplementedError

    async def append_as_user(
        self, principal: Principal, conversation_id: str, message: NewMessage, *, request_key: str | None = None
    ) -> Message:
        """The message as it is stored. A repetition with the same `request_key` returns the first one."""
        raise NotImplementedError

    async def append_as_agent(
        self,
        principal: Principal,
        conversation_id: str,
        messages: Sequence[NewMessage],
        *,
        request_key: str | None = None,
    ) -> tuple[Message, ...]:
        """The messages as they are stored, all or none of them."""
        raise NotImplementedError

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
    ) -> SharedContext:
        """The context of `ConversationManager.load_history`, with at most the newest `limit` of its messages of the
        log; with `after_message_id` instead the messages of the log behind that one, in order.
        """
        raise NotImplementedError
