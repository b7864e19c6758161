"""The whole service inside of a test: users with tokens, agents with keys, and no network between."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from typing import Any

from litestar import Litestar

from reactor_memory.features.sharing import key_operations
from reactor_memory.features.sharing.principals import ANY_AGENT, OPERATIONS, Grant, Operation
from reactor_memory.server.admission import admission_of
from reactor_memory.server.api_keys import new_key
from reactor_memory.server.app import create_app
from reactor_memory.server.development import DevelopmentIssuer
from reactor_memory.settings.service_settings import ServiceSettings
from reactor_memory.wiring.service_container import ServiceContainer, open_service_container

UNLIMITED = {"user_requests_per_minute": 0, "agent_requests_per_minute": 0, "failures_per_minute": 0}


class RunningService:
    """An application over an open store. What it gives are headers: who they are sent with is who calls."""

    def __init__(self, app: Litestar, container: ServiceContainer, issuer: DevelopmentIssuer) -> None:
        self.app = app
        self.container = container
        self._issuer = issuer

    def token(self, user_id: str) -> str:
        return self._issuer.token(user_id, now=self.container.clock()())

    def user(self, user_id: str) -> dict[str, str]:
        return {"Authorization": f"Bearer {self.token(user_id)}"}

    async def key(
        self,
        client_id: str,
        *,
        agent_names: Iterable[str] = (ANY_AGENT,),
        operations: Iterable[Operation] = OPERATIONS,
    ) -> str:
        grant = Grant(agent_names=tuple(agent_names), operations=tuple(operations))
        made = new_key(client_id, grant, now=self.container.clock()())
        await self.container.database().write(key_operations.add_api_key, made.key)
        return made.text


@asynccontextmanager
async def running_service(url: str, **sections: dict[str, Any]) -> AsyncIterator[RunningService]:
    """The service over the store at `url`, as `serve` sets it up. `sections` are settings."""
    settings = ServiceSettings(
        **{
            "auth": UNLIMITED,
            **sections,
            "store": {"url": url, "auto_migrate": True, "delete_grace_days": 30, **sections.get("store", {})},
            "summary": {"enabled": True, **sections.get("summary", {})},
            "search": {"enabled": True, **sections.get("search", {})},
        }  # type: ignore[arg-type]
    )
    async with open_service_container(settings) as container:
        issuer = DevelopmentIssuer()
        admission = admission_of(
            settings.auth, database=container.database(), clock=container.clock(), development=issuer
        )
        yield RunningService(create_app(container, authenticator=admission), container, issuer)
