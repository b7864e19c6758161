"""A service on a store, and who calls it."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

from dependency_injector import providers

from reactor_memory import Settings
from reactor_memory.features.sharing.messages import NewMessage
from reactor_memory.features.sharing.models import Conversation
from reactor_memory.features.sharing.principals import OPERATIONS, Grant, Operation, Principal
from reactor_memory.models import Message
from reactor_memory.testing import FakeClock
from reactor_memory.wiring.service_container import ServiceContainer, open_service_container

ANN, BOB, CYD, EVE = (Principal(user_id=name) for name in ("ann", "bob", "cyd", "eve"))


def agent(
    *agent_names: str,
    client_id: str = "app",
    user_id: str | None = None,
    operations: tuple[Operation, ...] = OPERATIONS,
) -> Principal:
    grant = Grant(agent_names=agent_names or ("*",), operations=operations)
    return Principal(client_id=client_id, user_id=user_id, grant=grant)


@asynccontextmanager
async def service(url: str, *, clock: FakeClock | None = None, **sections: Any) -> AsyncGenerator[ServiceContainer]:
    settings = Settings(store={"url": url, "delete_grace_days": 30}, tokens={"counter": "estimate"}, **sections)

    def configure(container: ServiceContainer) -> None:
        if clock is not None:
            container.clock.override(providers.Object(clock))  # pyright: ignore[reportUnknownMemberType]

    async with open_service_container(settings, configure=configure) as container:
        yield container


async def begin(container: ServiceContainer, *texts: str, owner: Principal = ANN, **fields: Any) -> Conversation:
    """A conversation in which its owner said this."""
    conversation = await container.conversations().create(owner, **fields)
    await say(container, conversation.conversation_id, *texts, by=owner)
    return await container.conversations().get(owner, conversation.conversation_id)


async def say(container: ServiceContainer, conversation_id: str, *texts: str, by: Principal = ANN) -> list[Message]:
    messages = container.shared_messages()
    return [await messages.append_as_user(by, conversation_id, NewMessage(content=text)) for text in texts]


async def texts_of(container: ServiceContainer, conversation_id: str, by: Principal = ANN) -> list[str]:
    return [each.content for each in await container.shared_messages().list_for_user(by, conversation_id)]
