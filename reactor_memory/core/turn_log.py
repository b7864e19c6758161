"""What a turn stores while it runs: each message once, in the order in which it was given."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Generator, Iterable, Sequence
from contextlib import suppress
from hashlib import blake2b
from typing import Literal, Protocol, TypeAlias

import anyio
import msgspec

from reactor_memory.core.context.message_counter import MessageCounter
from reactor_memory.core.load_requests import as_given
from reactor_memory.core.validation import MessageLimits, check_messages
from reactor_memory.database.deadlines import forget_deadline
from reactor_memory.errors import IdempotencyConflictError, ReactorMemoryError, StoreError
from reactor_memory.models import Message, Value
from reactor_memory.models.requests import Appended, step_key
from reactor_memory.models.tool_roles import without_roles
from reactor_memory.models.turns import interrupted_results, is_answered

logger = logging.getLogger(__name__)

Durable: TypeAlias = Literal["step", "end"]
"""When a turn is stored: step by step, or whole at its end."""


class StoredTurn(Value, frozen=True, kw_only=True):
    """A turn as the log has it: its user message, and what followed. `last_seq`: where the log ended then."""

    message: Message
    following: tuple[Message, ...]
    last_seq: int

    @property
    def first_seq(self) -> int:
        return self.message.seq or 0

    @property
    def is_answered(self) -> bool:
        return is_answered((self.message, *self.following))

    def begins_with(self, message: Message | None) -> bool:
        return message is None or _same(message, as_given(self.message))


class Save(Protocol):
    """Appends a batch, once under its key."""

    def __call__(
        self, messages: Sequence[Message], *, idempotency_key: str | None, counter: MessageCounter | None
    ) -> Awaitable[Appended]: ...


class Stored:
    """What `Turn.add` gives: to be awaited, until what was added is stored. Raises what `save_history` raises."""

    def __init__(self, store: Callable[[], Awaitable[None]]) -> None:
        self._store = store

    def __await__(self) -> Generator[object, object, None]:
        return self._store().__await__()


class TurnLog:
    """Appends a turn to the log while it runs, and knows what of it the log has already.

    The user message is a batch under the key of the turn. A later batch has a key of its own, made of where the turn
    begins and what it follows: repeated it is stored once, and of two processes that go on with a turn one is refused.
    A batch whose fate is unknown is repeated as it was before anything follows it. `counter` is the one of the turn,
    which counts no text twice.
    """

    def __init__(
        self, session_id: str, save: Save, *, key: str | None, limits: MessageLimits, durable: Durable
    ) -> None:
        self.session_id = session_id
        self._save = save
        self._key = key
        self._limits = limits
        self._durable = durable
        self.traffic: list[Message] = []
        self.answer: tuple[Message, ...] = ()
        self.counter: MessageCounter | None = None
        self.seqs: list[int] = []
        self.first_seq = self._last_seq = 0
        self._known: list[Message] = []
        self.is_resumed = self._is_answered = False
        self._open: tuple[Message, ...] = ()
        self._waiting: list[Message] = []
        self._tried: tuple[Message, ...] = ()
        self._has_failed = False
        self._lock = anyio.Lock()
        self._task: asyncio.Task[None] | None = None

    @property
    def unanswered(self) -> tuple[Message, ...]:
        """The results to show for calls of a turn that goes on: nobody has told theirs yet."""
        return self._open

    # -- beginning ----------------------------------------------------------------------------------------------

    async def begin(self, message: Message) -> Appended | None:
        """Store the user message. A store that fails keeps no model from answering: it is stored with what follows, or
        the error is raised then. None: it is not stored yet.
        """
        self._waiting.append(message)
        if self._durable == "end":
            return None
        try:
            return await self.store()
        except StoreError as error:
            fields = {"session_id": self.session_id, "reason": type(error).__name__}
            logger.warning("user message not stored yet", extra=fields)
            return None

    def go_on(self, stored: StoredTurn) -> None:
        """Go on behind what the log has of the turn."""
        self.is_resumed = True
        self.first_seq, self._last_seq = stored.first_seq, stored.last_seq
        self.seqs[:] = [each.seq or 0 for each in (stored.message, *stored.following)]
        self.traffic = list(map(as_given, stored.following))
        self._open = tuple(interrupted_results(self.traffic))

    def repeat(self, stored: StoredTurn) -> None:
        """The turn is repeated under its key: what is given again is not stored again. A turn without its answer goes
        on where something else is given; one that has it stays as it is.
        """
        self.go_on(stored)
        self._known, self._is_answered = list(self.traffic), stored.is_answered
        if stored.is_answered:
            self.traffic = []

    # -- while it runs ------------------------------------------------------------------------------------------

    def put(self, messages: Sequence[Message], *, is_answer: bool = False) -> None:
        """What is to be stored next. What failed before and is given again is meant to be repeated. Raises
        `InvalidMessageError` and `LimitExceededError`.
        """
        check_messages(messages, self._limits)
        if self._has_failed and self._tried[-len(messages) :] == tuple(messages):
            return
        for message in messages:
            new = [*self._given_up(message), *self._unknown(message)]
            self._waiting += new
            if not is_answer:
                self.traffic += [message] if self._is_answered else new

    def _unknown(self, message: Message) -> Iterable[Message]:
        """The message, unless the log has it."""
        if not self._known:
            return (message,)
        if _same(message, self._known[0]):
            del self._known[0]
            return ()
        if self._is_answered:
            raise IdempotencyConflictError(self.session_id, self._key or "")
        self._known.clear()
        return (message,)

    def _given_up(self, message: Message) -> Iterable[Message]:
        """The results of calls that the turn goes on without."""
        if self._known or not self._open:
            return ()
        if message.role == "tool":
            self._open = tuple(each for each in self._open if each.tool_call_id != message.tool_call_id)
            return ()
        given_up, self._open = self._open, ()
        return given_up

    def soon(self) -> Stored:
        """Store what waits: at once if it is awaited, else as soon as the event loop has time for it."""
        if self._durable == "step" and self._waiting:
            with suppress(RuntimeError):  # a tool on a thread of its own: the next step or the end stores it
                asyncio.get_running_loop().call_soon(self._start)
        return Stored(self._acknowledged)

    def _start(self) -> None:
        if self._waiting and not self._lock.locked():
            self._task = asyncio.get_running_loop().create_task(self._aside())

    async def _aside(self) -> None:
        forget_deadline()
        with suppress(ReactorMemoryError):  # the next step or the end repeats it, and raises what it raises then
            await self.store()

    async def _acknowledged(self) -> None:
        if self._durable == "step":
            await self.store()

    async def store(self) -> Appended | None:
        """Append what waits. Raises what `save_history` raises; what was not stored waits on."""
        appended: Appended | None = None
        async with self._lock:
            while self._tried or self._waiting:
                if not self._tried:
                    count = self._batch_size()
                    self._tried, self._waiting = tuple(self._waiting[:count]), self._waiting[count:]
                self._has_failed = True
                appended = await self._save(self._tried, idempotency_key=self._next_key(), counter=self.counter)
                self.seqs += range(appended.first_seq, appended.first_seq + len(self._tried))
                self._has_failed, self._tried = False, ()
                self.first_seq, self._last_seq = self.first_seq or appended.first_seq, appended.last_seq
        return appended

    def _batch_size(self) -> int:
        """Of a turn that is stored at its end all; else a user message is stored, and repeated, by itself."""
        if self._durable == "end":
            return len(self._waiting)
        return self._limits.max_batch_messages if self.first_seq else 1

    def _next_key(self) -> str | None:
        return step_key(self.first_seq, self._last_seq) if self.first_seq else self._key

    # -- its end ------------------------------------------------------------------------------------------------

    async def finish(self) -> None:
        """Store the answer, and what is not stored yet."""
        if self.answer:
            self.put(self.answer, is_answer=True)
        await self.store()

    async def interrupted(self, message: Message) -> None:
        """Keep what was acknowledged or given; of a turn that is stored at its end what the user said, under another
        key: that of the turn stays free for the one that succeeds.
        """
        if self._durable == "step":
            await self.store()
        else:
            key = None if self._key is None else f"interrupted {blake2b(self._key.encode()).hexdigest()}"
            await self._save([message], idempotency_key=key, counter=self.counter)


def _same(given: Message, stored: Message) -> bool:
    """Whether the log has what is given; the time of a message without one is filled in there, and what tools do."""
    at = stored.created_at if given.created_at is None else given.created_at
    return msgspec.structs.replace(without_roles(as_given(given)), created_at=at) == without_roles(stored)
