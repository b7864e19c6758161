"""A container whose stores are open and whose background work runs."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable, Callable, Iterable, Iterator
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from typing import TYPE_CHECKING, Any, Generic, TypeVar, cast

import anyio
import anyio.to_thread
from dependency_injector import providers

from reactor_memory.database.blocking_calls import aside
from reactor_memory.database.forks import Process
from reactor_memory.errors import MissingExtraError
from reactor_memory.features.chat_memory.wiring import NOOP, SUMMARIZING
from reactor_memory.features.tiers.wiring import is_progressive
from reactor_memory.settings.settings import Settings
from reactor_memory.text import languages
from reactor_memory.wiring.container import Container

if TYPE_CHECKING:
    from reactor_memory.core.ports import Summarizer, TokenCounter
    from reactor_memory.wiring.opened_parts import PartsContainer

C = TypeVar("C", bound=Container)


class open_container(AbstractAsyncContextManager[Container]):  # noqa: N801 (it reads as what it does)
    """A container whose stores are open and whose background work runs; all of it is closed at the end of the block.

    `configure` is called with the container before anything is made: the place to override parts. Later that is a
    `ConfigurationError`, since parts hold each other. Raises `ConfigurationError` for settings that cannot be met, and
    `StoreError` if the database cannot be opened.
    """

    def __init__(
        self, settings: Settings | None = None, *, configure: Callable[[Container], None] | None = None
    ) -> None:
        self._settings = settings
        self._configure = configure

    async def __aenter__(self) -> Container:
        container = Container(settings=self._settings if self._settings is not None else await aside(Settings))
        self._opened = opened(container, self._configure)
        await self._opened.__aenter__()
        return container

    async def __aexit__(self, *raised: object) -> None:
        await self._opened.__aexit__()


class opened(AbstractAsyncContextManager[None], Generic[C]):  # noqa: N801 (it reads as what it is)
    """While the stores of `container` are open and its background work runs.

    No generator: the loop would close those that are left open beside each other, and each would fail.
    """

    def __init__(self, container: C, configure: Callable[[C], None] | None) -> None:
        self._container = container
        self._configure = configure
        self._stack = AsyncExitStack()

    async def __aenter__(self) -> None:
        self._process = Process()
        self._container.open_copy.override(providers.Object(open_container))  # pyright: ignore[reportUnknownMemberType]
        if self._container.settings().telemetry.enabled:
            _observe(self._container)
        if self._configure is not None:
            self._configure(self._container)
        cast("PartsContainer", self._container).seal()
        try:
            await aside(self._container.conditions)  # reads what packages announce
            if not languages.are_read():
                await anyio.to_thread.run_sync(languages.read_languages)
            await _open_parts(self._container, self._stack)
        except BaseException:
            await self.__aexit__()
            raise

    async def __aexit__(self, *raised: object) -> None:
        if self._process.is_this:
            await _close_all(self._stack)


def _observe(container: Container) -> None:
    try:
        from reactor_memory.wiring import telemetry
    except ImportError:
        raise MissingExtraError("telemetry.enabled", package="opentelemetry-api", extra="otel") from None
    telemetry.observe(container)


async def _close_all(opened: AsyncExitStack) -> None:
    """Close everything, also while being cancelled: what stays open would hold threads, connections and leases.

    That is bounded by the grace time of the background work. A task that is cancelled again gives up the wait.
    """
    with anyio.CancelScope(shield=True):
        closing = asyncio.ensure_future(opened.aclose())
        try:
            await asyncio.shield(closing)
        except asyncio.CancelledError:
            await asyncio.wait([closing])
            raise


async def _open_parts(container: Container, opened: AsyncExitStack) -> None:
    """Make every part, so that a mistake shows here, then open what has a life, in the order in which data flows."""
    for closer in container.conditions().closers:
        opened.push_async_callback(_finished, closer)
    container.conversation_manager()
    if container.settings().chat_memory.strategy != NOOP:
        container.chat_memory()
    _warm_up(container.token_counter(), opened)
    message_store, summary_store = container.message_store(), container.summary_store()
    if container.settings().summary.enabled:
        container.redactor()
    for summarizer in _summarizers_in_use(container):
        opened.push_async_callback(summarizer.aclose)
    stores = {
        id(part): part
        for part in (
            container.database(),
            message_store,
            summary_store,
            container.recall_index() if container.where_index_is() == "elsewhere" else None,
            container.response_store() if container.where_responses_are() == "elsewhere" else None,
        )
        if part is not None
    }
    if container.settings().search.enabled and (embedder := container.embedder()) is not None:
        opened.push_async_callback(embedder.aclose)
    await _open_each(opened, stores.values())
    if container.in_database() == "on" and not container.database().is_read_only:
        opened.push_async_callback(container.conversation_manager().keep_budgets)
    if not container.database().is_read_only:  # then nothing works in the background, where every claim would fail
        await _open_each(opened, (container.background_work(),))


async def _open_each(opened: AsyncExitStack, parts: Iterable[Any]) -> None:
    for part in parts:
        opened.push_async_callback(part.close)
        await part.open()


def _summarizers_in_use(container: Container) -> Iterator[Summarizer]:
    settings = container.settings()
    is_chat_summarizing = settings.chat_memory.strategy == SUMMARIZING
    is_shared = settings.chat_memory.shares_summarizer
    if settings.summary.enabled or is_progressive(settings) or (is_chat_summarizing and is_shared):
        yield container.summarizer()
    if is_chat_summarizing and not is_shared:
        yield container.chat_summarizer()


def _warm_up(counter: TokenCounter, opened: AsyncExitStack) -> None:
    """Let the tokenizer load in a thread while the stores open and the caller goes on: the first save needs it."""
    loading = asyncio.get_running_loop().run_in_executor(None, counter.count, "")
    loading.add_done_callback(_seen)
    opened.push_async_callback(asyncio.wait, [loading])


def _seen(loading: asyncio.Future[int]) -> None:
    """Take note of a failure without raising it: whoever counts meets the same error."""
    if not loading.cancelled():
        loading.exception()


async def _finished(closer: Callable[[], Awaitable[None] | None]) -> None:
    result = closer()
    if inspect.isawaitable(result):
        await result
