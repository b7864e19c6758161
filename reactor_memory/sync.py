"""The library for scripts and other code that does not await.

``open_memory`` runs the library on an event loop in a thread of its own, so the calls work outside and inside a running
loop (which they hold up meanwhile)::

    from reactor_memory import sync

    with sync.open_memory(settings) as memory:
        with memory.turn("session-1", Message.user("hi"), user_id="u1") as turn:
            turn.answer(model(turn.messages()))

What it gives has the public calls of `ConversationManager`, with the same arguments, answers and errors.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Coroutine, Generator, Iterable, Iterator
from contextlib import AbstractAsyncContextManager, AbstractContextManager, closing, contextmanager
from functools import partial, wraps
from typing import Any, Concatenate, ParamSpec, TypeVar, overload

from anyio.from_thread import BlockingPortal, start_blocking_portal

from reactor_memory import container as opening
from reactor_memory.container import Container
from reactor_memory.context.report import Context
from reactor_memory.errors import StoreClosedError
from reactor_memory.manager import PAGE, ConversationManager
from reactor_memory.models import Message
from reactor_memory.settings import Settings
from reactor_memory.turn import Turn

P = ParamSpec("P")
T = TypeVar("T")


class SyncTurn:
    """A `Turn` whose answer may be streamed without awaiting."""

    def __init__(self, turn: Turn, call: Callable[[Callable[[], Context]], Context]) -> None:
        self._turn = turn
        self._call = call

    @property
    def message(self) -> Message:
        return self._turn.message

    @property
    def context(self) -> Context:
        """The context as it was loaded."""
        return self._turn.context

    def messages(self) -> list[Message]:
        """The context again with the tool traffic of this turn so far, fitted into the budget."""
        return self.current_context().messages

    def current_context(self) -> Context:
        """Like `messages`, with its report."""
        return self._call(self._turn.current_context)

    def add(self, *messages: Message) -> None:
        """Tool calls and their results, in the order in which they happened."""
        self._turn.add(*messages)

    def answer(self, answer: str | Message) -> None:
        """The final answer of the model. The last one given counts."""
        self._turn.answer(answer)

    def stream(self, chunks: Iterable[str]) -> Iterator[str]:
        """Pass a streamed answer through. It is the answer once it is complete; a broken or empty stream is none."""
        parts: list[str] = []
        for chunk in chunks:
            parts.append(chunk)
            yield chunk
        if text := "".join(parts):
            self.answer(text)

    def saved_messages(self) -> tuple[Message, ...]:
        """What is stored at the end: the user message, the tool traffic, the answer."""
        return self._turn.saved_messages()


def _waiting(
    method: Callable[Concatenate[ConversationManager, P], Coroutine[Any, Any, T]],
) -> Callable[Concatenate[SyncMemory, P], T]:
    """The call of the manager, waited for."""

    @wraps(method)
    def call(self: SyncMemory, *args: P.args, **kwargs: P.kwargs) -> T:
        return self.call(method, self.manager, *args, **kwargs)

    return call


def _block(
    method: Callable[Concatenate[ConversationManager, P], AbstractAsyncContextManager[Turn]],
) -> Callable[Concatenate[SyncMemory, P], AbstractContextManager[SyncTurn]]:
    """The block of the manager, entered and left without awaiting."""

    @wraps(method)
    @contextmanager
    def block(self: SyncMemory, *args: P.args, **kwargs: P.kwargs) -> Generator[SyncTurn]:
        with self.entered(method(self.manager, *args, **kwargs)) as turn:
            yield SyncTurn(turn, self.call)

    return block


class SyncMemory:
    """The public calls of `ConversationManager`, without awaiting. Any number of threads may share it.

    For another part of the library: ``memory.call(memory.container.message_store().check)``. The event loop runs in
    another thread, so a part that was replaced must not call this object from inside the library: it gets a
    `RuntimeError`. After the end of the block every call raises `StoreClosedError`.
    """

    def __init__(self, portal: BlockingPortal, container: Container) -> None:
        self.container = container
        self.manager = container.conversation_manager()
        self._portal: BlockingPortal | None = portal

    load_history = _waiting(ConversationManager.load_history)
    save_history = _waiting(ConversationManager.save_history)
    prepare_batch = _waiting(ConversationManager.prepare_batch)
    save_batch = _waiting(ConversationManager.save_batch)
    turn = _block(ConversationManager.turn)

    get_session = _waiting(ConversationManager.get_session)
    list_sessions = _waiting(ConversationManager.list_sessions)
    read_messages = _waiting(ConversationManager.read_messages)
    search = _waiting(ConversationManager.search)

    get_summary = _waiting(ConversationManager.get_summary)
    read_facts = _waiting(ConversationManager.read_facts)
    trace_facts = _waiting(ConversationManager.trace_facts)
    read_segments = _waiting(ConversationManager.read_segments)
    explain = _waiting(ConversationManager.explain)
    summarize = _waiting(ConversationManager.summarize)
    work_state = _waiting(ConversationManager.work_state)
    drain = _waiting(ConversationManager.drain)

    pin = _waiting(ConversationManager.pin)
    unpin = _waiting(ConversationManager.unpin)
    read_pins = _waiting(ConversationManager.read_pins)

    fork = _waiting(ConversationManager.fork)
    withdraw = _waiting(ConversationManager.withdraw)
    delete = _waiting(ConversationManager.delete)
    erase = _waiting(ConversationManager.erase)
    erase_user = _waiting(ConversationManager.erase_user)
    post_summary = _waiting(ConversationManager.post_summary)
    correct_fact = _waiting(ConversationManager.correct_fact)
    retract_fact = _waiting(ConversationManager.retract_fact)
    rebuild = _waiting(ConversationManager.rebuild)

    def stream_messages(self, session_id: str, *, user_id: str | None = None, after: int = 0) -> Iterator[Message]:
        """All messages after `after`, oldest first, read page by page."""
        while page := self.read_messages(session_id, user_id=user_id, after=after, limit=PAGE):
            yield from page
            after = page[-1].seq or 0

    @overload
    def call(self, function: Callable[P, Awaitable[T]], *args: P.args, **kwargs: P.kwargs) -> T: ...

    @overload
    def call(self, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T: ...

    def call(self, function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        """What `function` gives when it is called on the event loop of the library; awaited if it is to be awaited.

        A wait that is broken off, as by Ctrl-C, cancels the call.
        """
        waited_for = self._running().start_task_soon(partial(function, *args, **kwargs))
        try:
            return waited_for.result()
        except BaseException:
            waited_for.cancel()
            raise

    def entered(self, block: AbstractAsyncContextManager[T]) -> AbstractContextManager[T]:
        """A block of the library, to be entered and left without awaiting."""
        return self._running().wrap_async_context_manager(block)

    def close(self) -> None:
        """From now on every call is refused. The end of the block of `open_memory` does this."""
        self._portal = None

    def _running(self) -> BlockingPortal:
        if self._portal is None:
            raise StoreClosedError
        return self._portal


@contextmanager
def open_memory(
    settings: Settings | None = None, *, configure: Callable[[Container], None] | None = None
) -> Generator[SyncMemory]:
    """`reactor_memory.open_container` for code that does not await: all is closed at the end of the block, whatever
    ends it. Raises what that raises. `configure` is called in the thread of the library.
    """
    with (
        start_blocking_portal("asyncio") as portal,
        portal.wrap_async_context_manager(opening.open_container(settings, configure=configure)) as container,
        closing(SyncMemory(portal, container)) as memory,
    ):
        yield memory


__all__ = ["SyncMemory", "SyncTurn", "open_memory"]
