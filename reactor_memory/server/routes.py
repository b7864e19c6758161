"""Which controllers there are, and where."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

from litestar import Controller, Router
from litestar.di import Provide

from reactor_memory.server import guards
from reactor_memory.server.agents import AgentController
from reactor_memory.server.conversations import ConversationController
from reactor_memory.server.explorer import ExplorerController
from reactor_memory.server.messages import MessageController
from reactor_memory.server.responses import (
    ResponseReadingController,
    ResponseWritingController,
    RunningResponseController,
)
from reactor_memory.server.search import SearchController
from reactor_memory.server.sharing import SharingController, TransferController
from reactor_memory.server.system import SystemController
from reactor_memory.wiring.service_container import ServiceContainer

SYSTEM: tuple[type[Controller], ...] = (SystemController,)
FOR_USERS: tuple[type[Controller], ...] = (
    ConversationController,
    MessageController,
    SharingController,
    TransferController,
    ResponseReadingController,
    RunningResponseController,
    SearchController,
)
FOR_AGENTS: tuple[type[Controller], ...] = (AgentController, ResponseWritingController)

Parts: TypeAlias = dict[str, Callable[[], object]]
"""How to get what controllers stand on, by the names of their attributes."""

Routes: TypeAlias = Callable[[ServiceContainer, Parts], list[Router]]
"""What is served instead of `routers`."""


def routers(parts: Parts | None = None) -> list[Router]:
    """All controllers with their parts; without parts they can be described, and not be called."""
    return [
        router_of("/", "system", (ExplorerController,), parts, {}),
        router_of("/v1", "system", SYSTEM, parts, {}),
        router_of("/v1/user", "user", FOR_USERS, parts, {guards.CALLERS: guards.USERS}),
        router_of("/v1/agent", "agent", FOR_AGENTS, parts, {guards.CALLERS: guards.AGENTS}),
    ]


def router_of(
    path: str, tag: str, controllers: tuple[type[Controller], ...], parts: Parts | None, options: dict[str, Any]
) -> Router:
    """Controllers below a path; they may ask for `principal`, who calls."""
    return Router(
        path,
        route_handlers=[controller if parts is None else _with_parts(parts, controller) for controller in controllers],
        tags=[tag],
        opt=options,
        dependencies={"principal": Provide(guards.caller, sync_to_thread=False)},
    )


def _with_parts(parts: Parts, controller: type[Controller]) -> type[Controller]:
    """The controller with the parts that it declares, found once and not for every request."""
    declared = vars(controller).get("__annotations__", {})
    return type(controller.__name__, (controller,), {name: parts[name]() for name in declared})
