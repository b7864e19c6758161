"""What the service has beside a memory: conversations that people share, and responses while they are written.

The controllers stand on all of it, so all of it is imported.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager

from dependency_injector import providers

from reactor_memory.errors import ConfigurationError
from reactor_memory.features.responses import wiring as responses
from reactor_memory.features.responses.response_streams import ResponseStreams
from reactor_memory.features.sharing.access import Access
from reactor_memory.features.sharing.audit import Audit
from reactor_memory.features.sharing.conversations import Conversations
from reactor_memory.features.sharing.members import Sharing
from reactor_memory.features.sharing.messages import Messages
from reactor_memory.features.sharing.models import Quotas
from reactor_memory.features.sharing.summaries import Summaries
from reactor_memory.settings.service_settings import ServiceSettings
from reactor_memory.settings.settings import Settings
from reactor_memory.wiring.container import Container
from reactor_memory.wiring.opening import opened
from reactor_memory.wiring.selection import message_limits


@asynccontextmanager
async def open_service_container(
    settings: Settings | None = None, *, configure: Callable[[ServiceContainer], None] | None = None
) -> AsyncGenerator[ServiceContainer]:
    """As `open_container`, with the parts of the service."""
    container = ServiceContainer(settings=settings if settings is not None else ServiceSettings())
    async with opened(container, configure):
        yield container


def settings_of_service(settings: Settings) -> ServiceSettings:
    """Raises `ConfigurationError` for settings of a memory alone."""
    if not isinstance(settings, ServiceSettings):
        raise ConfigurationError("http", "the service needs ServiceSettings, which have the sections auth and http")
    return settings


def quotas_of(settings: Settings) -> Quotas:
    return Quotas(**settings.quotas.model_dump(exclude={"max_summary_tokens_per_day"}))


class ServiceContainer(Container):
    """A `Container` with the parts of the service. What serves them over HTTP needs `ServiceSettings`."""

    service_settings = providers.Callable(settings_of_service, Container.settings)

    audit = providers.Singleton(Audit, database=Container.database, clock=Container.clock)
    access = providers.Singleton(Access, database=Container.database, audit=audit)
    quotas = providers.Callable(quotas_of, Container.settings)
    conversations = providers.Singleton(
        Conversations,
        access=access,
        database=Container.database,
        manager=Container.conversation_manager,
        background=Container.background_work,
        audit=audit,
        clock=Container.clock,
        limits=providers.Callable(message_limits, Container.settings),
        quotas=quotas,
        purge=Container.is_purging,
        forget_in=Container.forget_in,
    )
    shared_messages = providers.Singleton(
        Messages,
        access=access,
        database=Container.database,
        manager=Container.conversation_manager,
        quotas=quotas,
    )
    posted_summaries = providers.Singleton(
        Summaries,
        access=access,
        database=Container.database,
        poster=Container.summary_poster,
        quotas=quotas,
    )
    sharing = providers.Singleton(
        Sharing,
        access=access,
        database=Container.database,
        audit=audit,
        clock=Container.clock,
        quotas=quotas,
    )

    response_streams = providers.Singleton(
        ResponseStreams,
        access=access,
        database=Container.database,
        backend=providers.Singleton(responses.stream_backend_of, Container.response_store, Container.settings),
        clock=Container.clock,
        options=providers.Callable(responses.stream_options, Container.settings),
    )
