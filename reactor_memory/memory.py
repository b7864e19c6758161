"""The door to the library: ``open_memory`` gives a `Memory` ::

    async with open_memory("agent.db") as memory:
        async with memory.turn("session-1", "What was my order number?", user_id="u1", budget=4000) as turn:
            turn.answer(await model(turn.messages()))

A `Memory` decides nothing: its calls are those of the manager, and its properties are the features of the container.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager
from os import PathLike, fspath
from os.path import expanduser
from typing import TYPE_CHECKING, Any, Unpack
from urllib.parse import quote

from reactor_memory.core.context.context import Context
from reactor_memory.core.context.given_messages import MessageLike, MessagesLike
from reactor_memory.core.load_requests import LoadArguments
from reactor_memory.core.manager import ConversationManager
from reactor_memory.core.turn import Turn
from reactor_memory.core.turn_log import Durable
from reactor_memory.database.blocking_calls import aside
from reactor_memory.database.forks import note_process
from reactor_memory.errors import ConfigurationError, InvalidInputError
from reactor_memory.features.tiers.wiring import is_progressive
from reactor_memory.models import JsonObject, Message, SearchHit, Session
from reactor_memory.models.requests import Appended, DeletedSessions
from reactor_memory.settings.setting_values import masked_url
from reactor_memory.settings.settings import Settings
from reactor_memory.wiring.container import Container
from reactor_memory.wiring.opening import open_container

if TYPE_CHECKING:
    from reactor_memory.features.active_sessions.directory import SessionDirectory
    from reactor_memory.features.archiving.archiver import Archived
    from reactor_memory.features.chat_memory.chat_memory import ChatMemoryService
    from reactor_memory.features.erasure.eraser import Erasure
    from reactor_memory.features.explain.explanation import Explanation
    from reactor_memory.features.facts.facts import Facts
    from reactor_memory.features.notes.long_term_memory import LongTermMemory
    from reactor_memory.features.overview.overview import Overview
    from reactor_memory.features.pins.pins import Pins
    from reactor_memory.features.replay.replayer import Replay
    from reactor_memory.features.search.message_search import MessageSearchService
    from reactor_memory.features.tiers.progressive_tiers import ProgressiveTiers
    from reactor_memory.models.leases import WorkState
    from reactor_memory.models.ledger import Summary
    from reactor_memory.models.session_pages import SessionPage

_WITHOUT_SLASHES = re.compile(r":?(?P<scheme>memory|sqlite|postgresql|postgres|file):(?!//)")
_URLS = {
    "memory": "memory://",
    "sqlite": "sqlite:///agent.db",
    "postgresql": "postgresql://host/name",
    "postgres": "postgresql://host/name",
    "file": "the path alone, or memory://,",
}


class Memory:
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
        self.container = container
        self.manager = container.conversation_manager()
        self.loop = asyncio.get_running_loop()
        self._process = note_process(self.loop)

    def __repr__(self) -> str:
        return f"<Memory of {masked_url(self.container.settings().store.url)}>"

    async def load_history(
        self,
        session_id: str,
        *,
        message: MessageLike | None = None,
        history: MessagesLike | None = None,
        traffic: MessagesLike = (),
        **arguments: Unpack[LoadArguments],
    ) -> Context:
        """The context for the next call of the model (`ConversationManager.load_history`)."""
        self._process.check()
        return await self.manager.load_history(
            session_id, message=message, history=history, traffic=traffic, **arguments
        )

    async def save_history(
        self,
        session_id: str,
        messages: MessagesLike,
        *,
        user_id: str | None = None,
        idempotency_key: str | None = None,
        agent_name: str | None = None,
    ) -> Appended:
        """Append a batch durably, whole or not at all (`ConversationManager.save_history`)."""
        return await self._own.save_history(
            session_id, messages, user_id=user_id, idempotency_key=idempotency_key, agent_name=agent_name
        )

    def turn(
        self,
        session_id: str,
        message: MessageLike | None = None,
        *,
        idempotency_key: str | None = None,
        resume: bool = False,
        durable: Durable = "step",
        **arguments: Unpack[LoadArguments],
    ) -> AbstractAsyncContextManager[Turn]:
        """Load, let the caller run the model inside the block, save each step (`ConversationManager.turn`)::

        async with memory.turn("session-1", "Where is my order?", user_id="u1", budget=4000) as turn:
            turn.answer(await model(turn.messages()))
        """
        return self._own.turn(
            session_id, message, idempotency_key=idempotency_key, resume=resume, durable=durable, **arguments
        )

    async def get_session(self, session_id: str, *, user_id: str | None = None) -> Session:
        """The session. Raises `SessionNotFoundError` if nothing was saved under this id."""
        return await self._own.get_session(session_id, user_id=user_id)

    async def list_sessions(
        self, *, user_id: str | None = None, limit: int = 50, cursor: str | None = None
    ) -> SessionPage:
        """The sessions of a user, newest activity first; of `user_id` None, the sessions without an owner."""
        return await self._own.list_sessions(user_id=user_id, limit=limit, cursor=cursor)

    async def read_messages(
        self,
        session_id: str,
        *,
        user_id: str | None = None,
        last: int | None = None,
        after: int = 0,
        until: int | None = None,
        limit: int | None = None,
        archived: bool = False,
    ) -> tuple[Message, ...]:
        """The messages with `after` < seq <= `until`, oldest first: the newest `last`, or the first `limit`. With
        `archived` those that were archived or cleared, too.
        """
        return await self._own.read_messages(
            session_id, user_id=user_id, last=last, after=after, until=until, limit=limit, archived=archived
        )

    def stream_messages(
        self, session_id: str, *, user_id: str | None = None, after: int = 0, archived: bool = False
    ) -> AsyncIterator[Message]:
        """All messages after `after`, oldest first, read page by page; as `read_messages`."""
        return self._own.stream_messages(session_id, user_id=user_id, after=after, archived=archived)

    async def recall(
        self, session_id: str, query: str, *, user_id: str | None = None, limit: int = 20
    ) -> tuple[SearchHit, ...]:
        """The passages of the session that share words with `query`, the best first."""
        return await self._own.search(session_id, query, user_id=user_id, limit=limit)

    async def summarize(
        self, session_id: str, *, user_id: str | None = None, timeout_seconds: float = 600.0
    ) -> Summary | None:
        """Do the background work of this session now (`ConversationManager.summarize`)."""
        return await self._own.summarize(session_id, user_id=user_id, timeout_seconds=timeout_seconds)

    async def get_summary(self, session_id: str, *, user_id: str | None = None) -> Summary | None:
        """The current summary, or None if nothing was summarized yet."""
        return await self._own.get_summary(session_id, user_id=user_id)

    async def work_state(self, session_id: str, *, user_id: str | None = None) -> WorkState | None:
        """Where the background work of the session stands."""
        return await self._own.work_state(session_id, user_id=user_id)

    async def drain(self) -> None:
        """Wait until this process has no background work left."""
        await self._own.drain()

    async def fork(self, session_id: str, *, at_seq: int, user_id: str | None = None) -> Session:
        """A new branch that shares the messages before `at_seq` and continues the numbering with `at_seq`. Raises
        `LimitExceededError` for too many forks of forks.
        """
        return await self._own.fork(session_id, at_seq=at_seq, user_id=user_id)

    async def delete(self, session_id: str, *, user_id: str | None = None) -> DeletedSessions:
        """Delete a session with everything derived from it (`ConversationManager.delete`)."""
        return await self._own.delete(session_id, user_id=user_id)

    async def archive(
        self,
        session_id: str,
        *,
        user_id: str | None = None,
        until_seq: int | None = None,
        clear: bool = False,
        summary: str | None = None,
        idempotency_key: str | None = None,
    ) -> Archived:
        """Take the session's messages up to `until_seq` (None: all) out of view (`Archiver.archive`)."""
        return await self._open.archiver().archive(
            session_id,
            user_id=user_id,
            until_seq=until_seq,
            clear=clear,
            summary=summary,
            idempotency_key=idempotency_key,
        )

    async def restore(self, session_id: str, *, user_id: str | None = None, from_seq: int = 1) -> int:
        """Bring back what `archive` took out of view, from message `from_seq` on; how many messages."""
        return await self._open.archiver().restore(session_id, user_id=user_id, from_seq=from_seq)

    async def explain(
        self,
        session_id: str,
        *,
        seq: int | None = None,
        fact: tuple[str, str] | None = None,
        message: MessageLike | None = None,
        **arguments: Unpack[LoadArguments],
    ) -> Explanation:
        """Why the context that `load_history` would give is as it is (`Explainer.explain`). Stores nothing."""
        return await self._open.explainer().explain(session_id, seq=seq, fact=fact, message=message, **arguments)

    async def preview(
        self,
        session_id: str,
        *,
        message: MessageLike | None = None,
        traffic: MessagesLike = (),
        **arguments: Unpack[LoadArguments],
    ) -> Context:
        """The context that `load_history` would give with these arguments. Stores nothing."""
        return await self._open.explainer().preview(session_id, message=message, traffic=traffic, **arguments)

    async def replay(
        self, session_id: str, *, seq: int, user_id: str | None = None, budget: int | None = None
    ) -> Replay:
        """The context that the model got for the user message `seq` (`Replayer.replay`)."""
        return await self._open.replayer().replay(session_id, seq=seq, user_id=user_id, budget=budget)

    async def post_summary(
        self,
        session_id: str,
        *,
        text: str,
        until_seq: int,
        user_id: str | None = None,
        author_id: str | None = None,
        title: str | None = None,
        metadata: JsonObject | None = None,
        idempotency_key: str | None = None,
    ) -> Message:
        """Tell the messages 1..`until_seq` in other words (`PostedSummaries.post`)."""
        return await self._open.summary_poster().post(
            session_id,
            text=text,
            until_seq=until_seq,
            user_id=user_id,
            author_id=author_id,
            title=title,
            metadata=metadata,
            idempotency_key=idempotency_key,
        )

    async def withdraw(self, session_id: str, *, user_id: str | None = None, seq: int | None = None) -> Message:
        """Take back the newest message in view (which `seq` names, if given), with the facts drawn from it."""
        return await self._open.erasure().withdraw(session_id, user_id=user_id, seq=seq)

    @property
    def _own(self) -> ConversationManager:
        self._process.check()
        return self.manager

    @property
    def _open(self) -> Container:
        self._process.check()
        return self.container

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
    try:
        return f"sqlite:///{quote(expanduser(given))}"  # noqa: PTH111 (a Path would not leave the rest as it is)
    except UnicodeEncodeError:
        raise InvalidInputError("store", "is a path that is not UTF-8; set LC_ALL=C.UTF-8, or name another") from None


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
) -> AbstractAsyncContextManager[Memory]:
    """A memory whose database is open and whose background work runs; all of it is closed at the end of the block.

    `store` is the path of an SQLite file, a URL (``memory://``, ``sqlite:///agent.db``, ``postgresql://host/name``), or
    `Settings`; without it, what the environment and the file of settings say. `configure` is called with the container
    before anything is made: the place to replace parts.

    Raises `ConfigurationError` for settings that cannot be met, `InvalidInputError` for a `store` that is nothing of
    these and where no event loop of asyncio runs, and `StoreError` if the database cannot be opened.
    """
    return _Opening(store, configure)


__all__ = ["Memory", "open_memory"]
