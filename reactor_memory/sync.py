"""The library for scripts and other code that does not await.

``open_memory`` runs the library on an event loop in a thread of its own, so the calls work outside and inside a running
loop (which they hold up meanwhile)::

    from reactor_memory import sync

    with sync.open_memory("agent.db") as memory:
        with memory.turn("session-1", "hi", user_id="u1") as turn:
            turn.answer(model(turn.messages()))

What it gives has the calls and properties of `Memory`, with the same arguments, answers and errors.
"""

from __future__ import annotations

import asyncio
import atexit
import threading
from collections.abc import Awaitable, Callable, Coroutine, Generator, Iterable, Iterator
from concurrent.futures import Future, InvalidStateError
from contextlib import AbstractAsyncContextManager, AbstractContextManager, contextmanager, suppress
from functools import partial, wraps
from os import PathLike
from time import monotonic
from typing import Any, Concatenate, Generic, ParamSpec, TypeVar, overload

from anyio.from_thread import BlockingPortal

from reactor_memory import memory as awaited
from reactor_memory.core.context.context import Context
from reactor_memory.core.context.given_messages import MessagesLike
from reactor_memory.core.manager import PAGE
from reactor_memory.core.turn import Turn
from reactor_memory.database.forks import Process
from reactor_memory.errors import StoreClosedError
from reactor_memory.features.active_sessions.directory import SessionDirectory
from reactor_memory.features.chat_memory.chat_memory import ChatMemoryService
from reactor_memory.features.erasure.eraser import Erasure
from reactor_memory.features.facts.facts import Facts
from reactor_memory.features.notes.long_term_memory import LongTermMemory
from reactor_memory.features.notes.tool import ManageLongTermMemoryTool
from reactor_memory.features.overview.overview import Overview
from reactor_memory.features.pins.pins import Pins
from reactor_memory.features.search.message_search import MessageSearchService
from reactor_memory.features.tiers.progressive_tiers import ProgressiveTiers
from reactor_memory.memory import Memory
from reactor_memory.models import JsonObject, Message
from reactor_memory.settings.settings import Settings
from reactor_memory.wiring.container import Container

P = ParamSpec("P")
T = TypeVar("T")


class SyncTurn:
    """A `Turn` whose answer may be streamed without awaiting."""

    def __init__(self, turn: Turn, call: Callable[..., Any]) -> None:
        self._turn = turn
        self._call = call

    def __repr__(self) -> str:
        return f"<Sync{repr(self._turn)[1:]}"

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

    @property
    def seq(self) -> int | None:
        """Where the user message stands in the session; None while it is not stored."""
        return self._turn.seq

    @property
    def is_resumed(self) -> bool:
        """Whether the turn began before and goes on, behind what it had stored then."""
        return self._turn.is_resumed

    def add(self, *messages: MessagesLike) -> None:
        """Store tool calls and their results, in the order in which they happened; as `Turn.add`, awaited."""
        self._call(self._added, messages)

    async def _added(self, messages: tuple[MessagesLike, ...]) -> None:
        await self._turn.add(*messages)

    def answer(self, answer: MessagesLike) -> None:
        """The final answer of the model, or a list that ends with it. The last one given counts."""
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


class _Loop:
    """The event loop of the library, in a thread of its own."""

    def __init__(self, portal: BlockingPortal) -> None:
        self._portal: BlockingPortal | None = portal
        self._process = Process()

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
        return _Entered(self, self._running().wrap_async_context_manager(block))

    def close(self) -> None:
        """From now on every call is refused."""
        self._portal = None

    def left(self, block: AbstractContextManager[T], raised: tuple[Any, ...]) -> bool | None:
        """Leave a block, if that can be done here and now."""
        kind = raised[0]
        is_over = self._portal is None or not self._process.is_this
        if is_over and kind is not None and not issubclass(kind, Exception):
            return None  # the program ends, or this process does: the parent leaves its own block
        self._running()
        return block.__exit__(*raised)

    def _running(self) -> BlockingPortal:
        self._process.check()
        if self._portal is None:
            raise StoreClosedError
        return self._portal


class _Entered(AbstractContextManager[T], Generic[T]):
    """A block on the event loop of the library."""

    def __init__(self, loop: _Loop, block: AbstractContextManager[T]) -> None:
        self._loop = loop
        self._block = block

    def __enter__(self) -> T:
        return self._block.__enter__()

    def __exit__(self, *raised: Any) -> bool | None:
        return self._loop.left(self._block, raised)


class _Waited:
    """A part of the library whose calls are waited for."""

    def __init__(self, part: Any, loop: _Loop) -> None:
        self._part = part
        self._loop = loop

    def _wait_for(self, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """What the call of this name gives."""
        return self._loop.call(getattr(self._part, name), *args, **kwargs)


@overload
def _waiting(method: Callable[Concatenate[Any, P], Coroutine[Any, Any, T]]) -> Callable[Concatenate[Any, P], T]: ...


@overload
def _waiting(method: Callable[Concatenate[Any, P], T]) -> Callable[Concatenate[Any, P], T]: ...


def _waiting(method: Callable[..., Any]) -> Callable[..., Any]:
    """The call of the part, waited for."""

    @wraps(method)
    def call(self: _Waited, /, *args: Any, **kwargs: Any) -> Any:
        return self._wait_for(method.__name__, args, kwargs)  # pyright: ignore[reportPrivateUsage] (a method of its own)

    return call


def _turn(
    method: Callable[Concatenate[Any, P], AbstractAsyncContextManager[Turn]],
) -> Callable[Concatenate[SyncMemory, P], AbstractContextManager[SyncTurn]]:
    """The block of the memory, entered and left without awaiting."""

    @contextmanager
    @wraps(method)
    def turn(self: SyncMemory, *args: P.args, **kwargs: P.kwargs) -> Generator[SyncTurn]:
        with self.entered(method(self.memory, *args, **kwargs)) as entered:
            yield SyncTurn(entered, self.call)

    return turn


class SyncPins(_Waited):
    """`Pins`, without awaiting."""

    add = _waiting(Pins.add)
    remove = _waiting(Pins.remove)
    note = _waiting(Pins.note)
    list = _waiting(Pins.list)


class SyncFacts(_Waited):
    """`Facts`, without awaiting."""

    list = _waiting(Facts.list)
    trace = _waiting(Facts.trace)
    correct = _waiting(Facts.correct)
    retract = _waiting(Facts.retract)
    mute = _waiting(Facts.mute)
    unmute = _waiting(Facts.unmute)
    segments = _waiting(Facts.segments)
    rebuild = _waiting(Facts.rebuild)


class SyncOverview(_Waited):
    """`Overview`, without awaiting."""

    sessions = _waiting(Overview.sessions)
    owner_of = _waiting(Overview.owner_of)
    forks = _waiting(Overview.forks)
    agent_settings = _waiting(Overview.agent_settings)
    beginning_with = _waiting(Overview.beginning_with)


class SyncErasure(_Waited):
    """`Erasure`, without awaiting."""

    erase = _waiting(Erasure.erase)
    erase_user = _waiting(Erasure.erase_user)
    withdraw = _waiting(Erasure.withdraw)


class SyncNotesTool(_Waited):
    """`ManageLongTermMemoryTool`, without awaiting."""

    _part: ManageLongTermMemoryTool

    @property
    def name(self) -> str:
        return self._part.name

    @property
    def operations(self) -> tuple[str, ...]:
        """Those that are switched on."""
        return self._part.operations

    @property
    def description(self) -> str:
        return self._part.description

    @property
    def input_schema(self) -> JsonObject:
        """A JSON schema of the arguments; all of them may be left out."""
        return self._part.input_schema

    __call__ = _waiting(ManageLongTermMemoryTool.__call__)


class SyncNotes(_Waited):
    """`LongTermMemory`, without awaiting."""

    read = _waiting(LongTermMemory.read)
    versions = _waiting(LongTermMemory.versions)
    apply = _waiting(LongTermMemory.apply)
    undo = _waiting(LongTermMemory.undo)

    def tool(self, user_id: str, agent_name: str) -> SyncNotesTool:
        """The tool with which the agent keeps its notes about this user."""
        return SyncNotesTool(self._part.tool(user_id, agent_name), self._loop)


class SyncSessions(_Waited):
    """`SessionDirectory`, without awaiting."""

    resolve = _waiting(SessionDirectory.resolve)
    get_or_create = _waiting(SessionDirectory.get_or_create)
    switch = _waiting(SessionDirectory.switch)
    start_new = _waiting(SessionDirectory.start_new)
    heartbeat = _waiting(SessionDirectory.heartbeat)
    list = _waiting(SessionDirectory.list)
    deactivate_stale = _waiting(SessionDirectory.deactivate_stale)


class SyncChatMemory(_Waited):
    """`ChatMemoryService`, without awaiting."""

    add_messages = _waiting(ChatMemoryService.add_messages)
    get_messages = _waiting(ChatMemoryService.get_messages)
    clear_messages = _waiting(ChatMemoryService.clear_messages)
    get_summarization_metadata = _waiting(ChatMemoryService.get_summarization_metadata)
    list_summarization_metadata = _waiting(ChatMemoryService.list_summarization_metadata)


class SyncSearch(_Waited):
    """`MessageSearchService`, without awaiting."""

    search = _waiting(MessageSearchService.search)


class SyncTiers(_Waited):
    """`ProgressiveTiers`, without awaiting. A listener is called in the thread of the library."""

    stats = _waiting(ProgressiveTiers.stats)
    summarize = _waiting(ProgressiveTiers.summarize)
    restore = _waiting(ProgressiveTiers.restore)
    summarize_if_due = _waiting(ProgressiveTiers.summarize_if_due)
    listen = _waiting(ProgressiveTiers.listen)

    @property
    def auto_threshold(self) -> int:
        """A session of no more messages than this is never summarised by itself."""
        return self._part.auto_threshold


class SyncMemory(_Waited):
    """A `Memory` without awaiting. Any number of threads may share it.

    For another part of the library: ``memory.call(memory.container.message_store().check)``. The event loop runs in
    another thread, so a part that was replaced must not call this object from inside the library: it gets a
    `RuntimeError`. After the end of the block every call raises `StoreClosedError`. For what runs on the event loop of
    the library, `memory` is the one that is awaited.
    """

    def __init__(self, portal: BlockingPortal, memory: Memory) -> None:
        loop = _Loop(portal)
        super().__init__(memory, loop)
        self.memory = memory
        self.container = memory.container
        self.call = loop.call
        self.entered = loop.entered
        self.close = loop.close

    def __repr__(self) -> str:
        return f"<Sync{repr(self.memory)[1:]}"

    load_history = _waiting(Memory.load_history)
    save_history = _waiting(Memory.save_history)
    turn = _turn(Memory.turn)

    get_session = _waiting(Memory.get_session)
    list_sessions = _waiting(Memory.list_sessions)
    read_messages = _waiting(Memory.read_messages)
    recall = _waiting(Memory.recall)
    explain = _waiting(Memory.explain)
    preview = _waiting(Memory.preview)
    replay = _waiting(Memory.replay)

    summarize = _waiting(Memory.summarize)
    get_summary = _waiting(Memory.get_summary)
    post_summary = _waiting(Memory.post_summary)
    work_state = _waiting(Memory.work_state)
    drain = _waiting(Memory.drain)

    fork = _waiting(Memory.fork)
    withdraw = _waiting(Memory.withdraw)
    archive = _waiting(Memory.archive)
    restore = _waiting(Memory.restore)
    delete = _waiting(Memory.delete)

    def stream_messages(
        self, session_id: str, *, user_id: str | None = None, after: int = 0, archived: bool = False
    ) -> Iterator[Message]:
        """All messages after `after`, oldest first, read page by page; with `archived` those out of view, too."""
        while page := self.read_messages(session_id, user_id=user_id, after=after, limit=PAGE, archived=archived):
            yield from page
            after = page[-1].seq or 0

    @property
    def pins(self) -> SyncPins:
        """Messages and facts that every context of a session shows."""
        return SyncPins(self.memory.pins, self._loop)

    @property
    def facts(self) -> SyncFacts:
        """What the messages of a session state."""
        return SyncFacts(self.memory.facts, self._loop)

    @property
    def overview(self) -> SyncOverview:
        """The sessions of everybody, for whoever operates the store."""
        return SyncOverview(self.memory.overview, self._loop)

    @property
    def erasure(self) -> SyncErasure:
        """Messages and users that are to be forgotten."""
        return SyncErasure(self.memory.erasure, self._loop)

    @property
    def notes(self) -> SyncNotes:
        """What an agent keeps about a user."""
        return SyncNotes(self.memory.notes, self._loop)

    @property
    def sessions(self) -> SyncSessions:
        """In which session a user talks to an agent."""
        return SyncSessions(self.memory.sessions, self._loop)

    @property
    def chat_memory(self) -> SyncChatMemory:
        """Conversations as lists of messages, with summaries in place of older ones."""
        return SyncChatMemory(self.memory.chat_memory, self._loop)

    @property
    def search(self) -> SyncSearch:
        """All conversations of a user, by words and by meaning."""
        return SyncSearch(self.memory.search, self._loop)

    @property
    def tiers(self) -> SyncTiers:
        """Progressive summarisation."""
        return SyncTiers(self.memory.tiers, self._loop)


class _Opening(AbstractContextManager[SyncMemory]):
    """A memory on an event loop in a thread of its own. One that is never closed is when the program ends."""

    def __init__(
        self, store: str | PathLike[str] | Settings | None, configure: Callable[[Container], None] | None
    ) -> None:
        self._store = store
        self._configure = configure
        self._process = Process()
        self._opened: Future[tuple[BlockingPortal, Memory]] = Future()
        self._closed: Future[None] = Future()
        self._thread = threading.Thread(target=self._run, name="reactor-memory", daemon=True)
        self._waited: SyncMemory | None = None

    def __enter__(self) -> SyncMemory:
        self._process = Process()
        self._thread.start()
        try:
            portal, memory = self._opened.result()
        except BaseException:
            if self._opened.done():
                self._thread.join()
            raise
        self._waited = SyncMemory(portal, memory)
        _left_open.add(self)
        return self._waited

    def __exit__(self, kind: object, error: object, traceback: object) -> None:
        _left_open.discard(self)
        if self._waited is None or not self._process.is_this:
            return
        self._stop(self._waited, cancel=error is not None)
        self._thread.join()
        self._closed.result()

    def at_exit(self, ends: float) -> None:
        """Close it, if that takes a moment; what was acknowledged is stored anyway."""
        if self._waited is not None and self._process.is_this:
            self._stop(self._waited, cancel=True)
            self._thread.join(max(0.0, ends - monotonic()))

    def _stop(self, waited: SyncMemory, *, cancel: bool) -> None:
        waited.close()
        portal, _ = self._opened.result()
        with suppress(RuntimeError):  # it has ended by itself
            portal.start_task_soon(portal.stop, cancel)

    def _run(self) -> None:
        try:
            asyncio.run(self._serve())
        except BaseException as error:
            self._fail(error)
        else:
            if not self._closed.done():
                self._closed.set_result(None)

    async def _serve(self) -> None:
        async with BlockingPortal() as portal:
            try:
                async with awaited.open_memory(self._store, configure=self._configure) as memory:
                    self._opened.set_result((portal, memory))
                    await portal.sleep_until_stopped()
            except Exception as error:  # as it is, not in a group
                self._fail(error)

    def _fail(self, error: BaseException) -> None:
        with suppress(InvalidStateError):  # that it ends after a failure tells nothing more
            (self._closed if self._opened.done() else self._opened).set_exception(error)


_left_open: set[_Opening] = set()

END_SECONDS = 0.5
"""How long memories that were not closed may take to close when the program ends."""


@atexit.register
def _close_left_open() -> None:
    ends = monotonic() + END_SECONDS
    for opening in [*_left_open]:
        opening.at_exit(ends)


def open_memory(
    store: str | PathLike[str] | Settings | None = None, *, configure: Callable[[Container], None] | None = None
) -> AbstractContextManager[SyncMemory]:
    """`reactor_memory.open_memory` for code that does not await: all is closed at the end of the block, whatever ends
    it; without an end, when the program ends. Takes and raises what that does. `configure` is called in the thread of
    the library.
    """
    return _Opening(store, configure)


__all__ = ["SyncMemory", "SyncTurn", "open_memory"]
