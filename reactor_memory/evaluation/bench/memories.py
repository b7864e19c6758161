"""The library, opened in the ways that a run measures: managers with different settings over one database."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from typing import TYPE_CHECKING, Any, TypeAlias, cast

from dependency_injector import providers

from reactor_memory.core.manager import ConversationManager
from reactor_memory.database.database import Database
from reactor_memory.models import Value
from reactor_memory.settings.settings import Settings
from reactor_memory.wiring.container import Container
from reactor_memory.wiring.opening import open_container

if TYPE_CHECKING:
    from reactor_memory.core.ports import Clock, MessageStore

SettingsOf: TypeAlias = Callable[..., Settings]
"""Makes settings out of sections; what they do not say comes from where settings come from."""

USER = "bench"
BUDGET = 4_000
"""Tokens of the contexts that are trimmed."""


class Memories(Value, frozen=True, kw_only=True):
    """`take_last`: the newest 20 messages; `take_200`: the newest 200. `hierarchical` leaves the background work to
    other processes, `working` does it.
    """

    store: MessageStore
    now: Clock
    take_last: ConversationManager
    take_200: ConversationManager
    hierarchical: ConversationManager
    working: ConversationManager


def take_last_settings(settings_of: SettingsOf, *, messages: int = 20) -> Settings:
    return settings_of(
        summary={"enabled": False}, history={"strategy": "take_last", "max_conversation_turns": messages // 2}
    )


def hierarchical_settings(settings_of: SettingsOf, *, background: bool) -> Settings:
    return settings_of(summary={"enabled": True}, history={"strategy": "auto"}, background={"enabled": background})


@asynccontextmanager
async def memories(settings_of: SettingsOf, kept: Database | None = None) -> AsyncGenerator[Memories]:
    """All of them over one database: `kept`, or the one that the settings name."""
    async with AsyncExitStack() as opened:

        async def manager(settings: Settings, over: Database | None) -> Container:
            return await opened.enter_async_context(open_container(settings, configure=_on(over)))

        first = await manager(take_last_settings(settings_of), kept)
        shared = first.database()
        take_200 = await manager(take_last_settings(settings_of, messages=200), shared)
        hierarchical = await manager(hierarchical_settings(settings_of, background=False), shared)
        working = await manager(hierarchical_settings(settings_of, background=True), shared)
        yield Memories(
            store=first.message_store(),
            now=first.clock(),
            take_last=first.conversation_manager(),
            take_200=take_200.conversation_manager(),
            hierarchical=hierarchical.conversation_manager(),
            working=working.conversation_manager(),
        )


def _on(database: Database | None) -> Callable[[Container], None]:
    def configure(container: Container) -> None:
        if database is not None:
            cast("Any", container.database).override(providers.Object(database))

    return configure
