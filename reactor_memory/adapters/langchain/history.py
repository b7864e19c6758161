"""A session as the chat history of LangChain (`BaseChatMessageHistory`, which LangChain removes in its version 2)."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress

from langchain_core.chat_history import BaseChatMessageHistory
from langchain_core.messages import BaseMessage

from reactor_memory.adapters.langchain.message_conversion import from_messages, to_message
from reactor_memory.adapters.loop_bridge import Crossing
from reactor_memory.errors import InvalidInputError, SessionNotFoundError
from reactor_memory.memory import Memory


class ReactorMemoryChatHistory(BaseChatMessageHistory):
    """The context of a session as its messages; what is added goes to the log.

    The view does not change from the first look until this object adds something: `RunnableWithMessageHistory` takes
    its length for the messages that it need not store again. So make one object a run, as its factory does.

    `budget` (tokens) holds for the view. Every thread and event loop may use it; on the thread of the loop on which the
    memory was opened the synchronous methods raise `InvalidInputError`. All methods raise what `load_history` and
    `save_history` raise.
    """

    def __init__(
        self,
        memory: Memory,
        session_id: str,
        *,
        user_id: str | None = None,
        budget: int | None = None,
    ) -> None:
        super().__init__()
        self._memory = memory
        self._session_id = session_id
        self._user_id = user_id
        self._budget = budget
        self._crossing = Crossing(memory.loop)
        self._view: list[BaseMessage] | None = None

    @property
    def messages(self) -> list[BaseMessage]:  # pyright: ignore[reportIncompatibleVariableOverride]
        if self._view is None:
            self._view = self._crossing.call(self._load)
        return list(self._view)

    async def aget_messages(self) -> list[BaseMessage]:
        if self._view is None:
            self._view = await self._crossing.acall(self._load)
        return list(self._view)

    def add_messages(self, messages: Sequence[BaseMessage]) -> None:
        """Append the messages durably, all or none of them."""
        self._crossing.call(lambda: self._add(messages))

    async def aadd_messages(self, messages: Sequence[BaseMessage]) -> None:
        await self._crossing.acall(lambda: self._add(messages))

    def clear(self) -> None:
        """Archive everything: the session goes on, empty, and memory shows nothing of what was said, until
        ``memory.restore``. Nothing is destroyed, which ``memory.erasure.erase`` does by name. Raises
        `InvalidInputError` in a fork, whose first messages are another session's: begin a new session instead.
        """
        self._crossing.call(self._clear)

    async def aclear(self) -> None:
        await self._crossing.acall(self._clear)

    async def _load(self) -> list[BaseMessage]:
        context = await self._memory.load_history(self._session_id, user_id=self._user_id, budget=self._budget)
        return from_messages(context.messages)

    async def _add(self, messages: Sequence[BaseMessage]) -> None:
        if messages:
            batch = [to_message(message) for message in messages]
            await self._memory.save_history(self._session_id, batch, user_id=self._user_id)
        self._view = None

    async def _clear(self) -> None:
        with suppress(SessionNotFoundError):
            session = await self._memory.get_session(self._session_id, user_id=self._user_id)
            if session.forked_from_id is not None:
                raise InvalidInputError("session_id", "is a fork, which cannot be cleared; begin a new session instead")
            await self._memory.archive(self._session_id, user_id=self._user_id, clear=True)
        self._view = None
