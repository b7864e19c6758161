"""The door to the library: ``open_memory`` gives a `Memory` ::

    async with open_memory("agent.db") as memory:
        async with memory.turn("session-1", "What was my order number?", user_id="u1", budget=4000) as turn:
            turn.answer(await model(turn.messages()))

A `Memory` decides nothing: its calls are those of the manager, and its properties are the features of the container.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from functools import wraps
from importlib import import_module
from inspect import signature
from operator import attrgetter
from os import PathLike, fspath
from os.path import expanduser
from types import FunctionType
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, TypeVar
from urllib.parse import quote

from reactor_memory.core.context_managers import AsyncBlock
from reactor_memory.core.manager import ConversationManager
from reactor_memory.database.blocking_calls import aside
from reactor_memory.database.forks import Process, note_process
from reactor_memory.errors import ConfigurationError, InvalidInputError
from reactor_memory.wiring.container import Container
from reactor_memory.wiring.opening import open_container
from reactor_memory.wiring.selection import is_progressive
from reactor_memory.wiring.setting_values import masked_url
from reactor_memory.wiring.settings import Settings

if TYPE_CHECKING:
    from reactor_memory.features.active_sessions.directory import SessionDirectory
    from reactor_memory.features.archiving.archiver import Archiver
    from reactor_memory.features.chat_memory.chat_memory import ChatMemoryService
    from reactor_memory.features.erasure.eraser import Erasure
    from reactor_memory.features.explain.explainer import Explainer
    from reactor_memory.features.facts.facts import Facts
    from reactor_memory.features.notes.long_term_memory import LongTermMemory
    from reactor_memory.features.overview.overview import Overview
    from reactor_memory.features.pins.pins import Pins
    from reactor_memory.features.posted_summaries.posting import PostedSummaries
    from reactor_memory.features.replay.replayer import Replayer
    from reactor_memory.features.search.message_search import MessageSearchService
    from reactor_memory.features.tiers.progressive_tiers import ProgressiveTiers

P = ParamSpec("P")
T = TypeVar("T")

_FEATURES = "reactor_memory.features"

_WITHOUT_SLASHES = re.compile(r":?(?P<scheme>memory|sqlite|postgresql|postgres|file):(?!//)")
_URLS = {
    "memory": "memory://",
    "sqlite": "sqlite:///agent.db",
    "postgresql": "postgresql://host/name",
    "postgres": "postgresql://host/name",
    "file": "the path alone, or memory://,",
}


class _Calls:
    """Calls of the manager, and of other parts."""

    _process: Process

    def __init__(self, manager: ConversationManager) -> None:
        self.manager = manager

    def __init_subclass__(cls) -> None:
        for name, call in vars(cls).items():
            if isinstance(call, FunctionType):
                call.__name__ = name
                call.__qualname__ = f"{cls.__qualname__}.{name}"


def _call_of(
    method: Callable[Concatenate[Any, P], T], part_of: Callable[[Any], Any] = attrgetter("manager")
) -> Callable[Concatenate[_Calls, P], T]:
    """The call of a part. Wrong arguments are refused under the name that it has here."""
    taken = signature(method)
    positional = [each.name for each in taken.parameters.values() if each.kind is each.POSITIONAL_OR_KEYWORD][1:]
    named = [each for each in taken.parameters.values() if each.kind is each.KEYWORD_ONLY]
    known = {each.name for each in named}
    needed = {each.name for each in named if each.default is each.empty}

    @wraps(method)
    def call(self: _Calls, /, *args: P.args, **kwargs: P.kwargs) -> T:
        if not (len(args) == len(positional) and needed <= kwargs.keys() <= known):  # binding takes longer
            try:
                taken.bind(self, *args, **kwargs)
            except TypeError as fault:
                raise TypeError(f"{call.__qualname__}(): {fault}") from None
        self._process.check()  # pyright: ignore[reportPrivateUsage] (a method of its own)
        return getattr(part_of(self), method.__name__)(*args, **kwargs)

    return call


class _Later:
    """A call of a feature, which is imported when it is first asked for."""

    def __init__(self, method: str, part_of: Callable[[Any], Any]) -> None:
        self._method = method
        self._part_of = part_of

    def __set_name__(self, owner: type[_Calls], name: str) -> None:
        self._name = name

    def __get__(self, instance: _Calls | None, owner: type[_Calls]) -> Any:
        module, _, path = self._method.partition(":")
        call: Any = _call_of(attrgetter(path)(import_module(module)), self._part_of)
        call.__name__, call.__qualname__ = self._name, f"{owner.__qualname__}.{self._name}"
        setattr(owner, self._name, call)
        return getattr(owner if instance is None else instance, self._name)


class Memory(_Calls):
    """The memory of agents: two calls a turn, or one `turn`, and a property for each feature.

    `user_id` is who asks. A session belongs to the user of its first save (None, the default: to everybody, for ever);
    everyone else gets a `SessionOwnershipError` from every call, and a deleted session raises `SessionDeletedError`.

    Where a message is taken, a `Message`, a text (what the user said) or a dict in the form of OpenAI, Anthropic or
    Gemini is; where several are, one or a list of them. Anything else raises `InvalidMessageError`, which says what
    would be right.

    A feature that the settings have not switched on raises a `ConfigurationError` that names the setting. `container`
    holds every part: ``memory.container.summarizer()``. A memory answers on the event loop on which it was opened,
    `loop`; `reactor_memory.sync` and the adapters reach it from other threads and loops.
    """

    def __init__(self, container: Container) -> None:
        super().__init__(container.conversation_manager())
        self.container = container
        self.loop = asyncio.get_running_loop()
        self._process = note_process(self.loop)

    def __repr__(self) -> str:
        return f"<Memory of {masked_url(self.container.settings().store.url)}>"

    load_history = _call_of(ConversationManager.load_history)
    save_history = _call_of(ConversationManager.save_history)
    turn = _call_of(ConversationManager.turn)

    get_session = _call_of(ConversationManager.get_session)
    list_sessions = _call_of(ConversationManager.list_sessions)
    read_messages = _call_of(ConversationManager.read_messages)
    stream_messages = _call_of(ConversationManager.stream_messages)
    recall = _call_of(ConversationManager.search)

    summarize = _call_of(ConversationManager.summarize)
    get_summary = _call_of(ConversationManager.get_summary)
    work_state = _call_of(ConversationManager.work_state)
    drain = _call_of(ConversationManager.drain)

    fork = _call_of(ConversationManager.fork)
    delete = _call_of(ConversationManager.delete)

    if TYPE_CHECKING:
        archive = _call_of(Archiver.archive)
        restore = _call_of(Archiver.restore)
        explain = _call_of(Explainer.explain)
        preview = _call_of(Explainer.preview)
        post_summary = _call_of(PostedSummaries.post)
        withdraw = _call_of(Erasure.withdraw)
        replay = _call_of(Replayer.replay)
    else:
        archive = _Later(f"{_FEATURES}.archiving.archiver:Archiver.archive", lambda memory: memory.container.archiver())
        restore = _Later(f"{_FEATURES}.archiving.archiver:Archiver.restore", lambda memory: memory.container.archiver())
        explain = _Later(
            f"{_FEATURES}.explain.explainer:Explainer.explain", lambda memory: memory.container.explainer()
        )
        preview = _Later(
            f"{_FEATURES}.explain.explainer:Explainer.preview", lambda memory: memory.container.explainer()
        )
        post_summary = _Later(
            f"{_FEATURES}.posted_summaries.posting:PostedSummaries.post",
            lambda memory: memory.container.summary_poster(),
        )
        withdraw = _Later(f"{_FEATURES}.erasure.eraser:Erasure.withdraw", lambda memory: memory.container.erasure())
        replay = _Later(f"{_FEATURES}.replay.replayer:Replayer.replay", lambda memory: memory.container.replayer())

    @property
    def pins(self) -> Pins:
        """Messages and facts that every context of a session shows."""
        return self.container.pins()

    @property
    def facts(self) -> Facts:
        """What the messages of a session state."""
        return self.container.facts()

    @property
    def erasure(self) -> Erasure:
        """Messages and users that are to be forgotten, with everything that was made of them."""
        return self.container.erasure()

    @property
    def notes(self) -> LongTermMemory:
        """What an agent keeps about a user; contexts show it with ``notes.enabled``."""
        return self.container.long_term_memory()

    @property
    def sessions(self) -> SessionDirectory:
        """In which session a user talks to an agent."""
        return self.container.session_directory()

    @property
    def overview(self) -> Overview:
        """The sessions of everybody, for whoever operates the store: no call checks who owns a session."""
        return self.container.overview()

    @property
    def chat_memory(self) -> ChatMemoryService:
        """Conversations as lists of messages, with summaries in place of older ones."""
        return self.container.chat_memory()

    @property
    def search(self) -> MessageSearchService:
        """All conversations of a user, by words and by meaning. Raises `ConfigurationError` without
        ``search.enabled``: nothing fills the index then. `recall` looks into one session.
        """
        if not self.container.settings().search.enabled:
            raise ConfigurationError("search.enabled", "is false, so conversations are not indexed: set it to true")
        return self.container.message_search()

    @property
    def tiers(self) -> ProgressiveTiers:
        """Progressive summarisation. Raises `ConfigurationError` unless that is the strategy, and on."""
        settings = self.container.settings()
        if not is_progressive(settings):
            raise ConfigurationError("history.strategy", "has no tiers: set it to progressive")
        if not settings.tiers.enabled:
            raise ConfigurationError("tiers.enabled", "is false, so there are no tiers: set it to true")
        return self.container.tiers()


def settings_of(store: str | PathLike[str] | Settings | None = None) -> Settings:
    """The settings, with the store that a path or a URL names; None: all of them as they are set."""
    if store is None:
        return Settings()
    if isinstance(store, Settings):
        return store
    return Settings(store={"url": url_of(store)})


def url_of(store: str | PathLike[str]) -> str:
    """The address of a store. A path stands for its SQLite database. Raises `InvalidInputError`."""
    given: Any = fspath(store) if isinstance(store, PathLike) else store
    if not isinstance(given, str) or not given:
        raise InvalidInputError("store", "must be a path, such as agent.db, a URL or Settings")
    if without_slashes := _WITHOUT_SLASHES.match(given):
        remedy = "write {}, or ./ before the name of a file".format(_URLS[without_slashes["scheme"]])
        raise InvalidInputError("store", f"is neither a URL nor a path: {remedy}")
    if given.startswith("memory://") and given != "memory://":
        raise InvalidInputError("store", "has something behind memory://, which takes nothing: write memory://")
    if "://" in given:
        return given
    return f"sqlite:///{quote(expanduser(given))}"  # noqa: PTH111 (a Path would not leave the rest as it is)


class _Opening(AbstractAsyncContextManager[Memory]):
    def __init__(
        self, store: str | PathLike[str] | Settings | None, configure: Callable[[Container], None] | None
    ) -> None:
        self._store = store
        self._configure = configure

    async def __aenter__(self) -> Memory:
        _check_loop()
        self._opened = open_container(await aside(settings_of, self._store), configure=self._configure)
        return Memory(await self._opened.__aenter__())

    async def __aexit__(self, *raised: object) -> None:
        await self._opened.__aexit__()


def _check_loop() -> None:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        raise InvalidInputError(
            "loop",
            "no event loop of asyncio runs here, which the drivers need: under trio use "
            "reactor_memory.sync.open_memory in a thread (trio.to_thread.run_sync), or run anyio on asyncio",
        ) from None


def open_memory(
    store: str | PathLike[str] | Settings | None = None, *, configure: Callable[[Container], None] | None = None
) -> AsyncBlock[Memory]:
    """A memory whose database is open and whose background work runs; all of it is closed at the end of the block.

    `store` is the path of an SQLite file, a URL (``memory://``, ``sqlite:///agent.db``, ``postgresql://host/name``), or
    `Settings`; without it, what the environment and the file of settings say. `configure` is called with the container
    before anything is made: the place to replace parts.

    Raises `ConfigurationError` for settings that cannot be met, `InvalidInputError` for a `store` that is nothing of
    these and where no event loop of asyncio runs, and `StoreError` if the database cannot be opened.
    """
    return AsyncBlock(_Opening(store, configure), "open_memory", "async with open_memory(...) as memory")


__all__ = ["Memory", "open_memory"]
