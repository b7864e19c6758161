"""The controllers of plug-ins: below a prefix of their own, behind the guards of the service."""

from __future__ import annotations

from typing import Any

from litestar import Controller, Litestar, Router
from litestar.routes import HTTPRoute
from litestar.types import Empty

from reactor_memory.errors import PluginError, ReactorMemoryError
from reactor_memory.memory import Memory
from reactor_memory.server import guards
from reactor_memory.server.routes import Parts, router_of
from reactor_memory.wiring.plugins import Plugin, imported
from reactor_memory.wiring.service_container import ServiceContainer

PREFIX = "/v1/plugins"

BODY_SIZE = "request_max_body_size"

SETTLED = ("exception_handlers", BODY_SIZE, "request_class", "middleware", "before_request")
"""What the service decides for all addresses: how errors are told, and what is let in."""


def plugin_routers(container: ServiceContainer, parts: Parts) -> list[Router]:
    """A router for each plug-in that has routes. Their controllers may declare the parts of ours, and `memory`. Raises
    `PluginError`.
    """
    taking_part = [each for each in container.conditions().taking_part if each[0].routes]
    if not taking_part:
        return []
    memory = Memory(container)
    own: Parts = parts | {"memory": lambda: memory}
    return [_router(plugin, title, own) for plugin, title in taking_part]


def _router(plugin: Plugin, title: str, parts: Parts) -> Router:
    try:
        controllers = tuple(_controller(each) for each in plugin.routes)
        return router_of(f"{PREFIX}/{plugin.name}", "plugin", controllers, parts, {})
    except ReactorMemoryError as error:
        raise PluginError(title, f"its routes: {error}") from error
    except KeyError as error:
        raise PluginError(title, f"its routes declare the part {error}; there are: {', '.join(parts)}") from error
    except Exception as error:  # it is anybody's code
        raise PluginError(title, f"its routes cannot be served: {type(error).__name__}: {error}") from error


def _controller(given: Any) -> type[Controller]:
    controller = imported(given)
    if not (isinstance(controller, type) and issubclass(controller, Controller)):
        raise TypeError(f"{controller!r} is no litestar.Controller")
    return controller


def check_plugin_routes(app: Litestar) -> None:
    """Raises `PluginError` for an address of a plug-in that would go round what the service checks of all."""
    for route in app.routes:
        if route.path.startswith(f"{PREFIX}/"):
            name = route.path.split("/")[3]
            defect = _defect(route)
            if defect:
                raise PluginError(f"plug-in {name}", f"its route {route.path} {defect}")


def _defect(route: Any) -> str:
    if not isinstance(route, HTTPRoute):
        return "is none of HTTP"
    for handler, _ in route.route_handler_map.values():
        if guards.PUBLIC in handler.opt:
            return "is public: every address of a plug-in needs a caller"
        for layer in handler.ownership_layers[2:]:  # behind the application and the router
            changed = [name for name in SETTLED if _is_said(name, getattr(layer, name, Empty))]
            if changed:
                return f"sets {changed[0]}, which the service decides"
    return ""


def _is_said(name: str, value: Any) -> bool:
    """A size of None is one without a limit."""
    return value is not Empty and (bool(value) or name == BODY_SIZE)
