"""Whether a part fits its plug point: the methods of the port, what they take, and whether they are awaited."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from importlib import import_module
from typing import Any

PORTS = {
    "database": "reactor_memory.database.database:Database",
    "record_store": "reactor_memory.core.ports:RecordStore",
    "message_store": "reactor_memory.core.ports:MessageStore",
    "summary_store": "reactor_memory.core.ports:SummaryStore",
    "summarizer": "reactor_memory.core.ports:Summarizer",
    "chat_model": "reactor_memory.features.chat.chat_model:ChatModel",
    "chat_agent": "reactor_memory.server.chat_agents:ChatAgent",
    "token_counter": "reactor_memory.core.ports:TokenCounter",
    "strategy": "reactor_memory.core.context.strategy:Strategy",
    "source": "reactor_memory.core.sources:Source",
    "recall_index": "reactor_memory.core.ports:RecallIndex",
    "embedder": "reactor_memory.core.ports:Embedder",
    "redactor": "reactor_memory.core.ports:Redactor",
    "memory_management": "reactor_memory.features.chat_memory.memory_management:MemoryManagementStrategy",
    "stream_store": "reactor_memory.features.responses.models:ResponseStore",
    "clock": "reactor_memory.core.ports:Clock",
}
"""What each plug point wants, imported when a part of it is checked."""

_ITSELF = "__call__"
_OURS = "reactor_memory."


def defect_of(part: object, plug_point: str) -> str:
    """What keeps the part from its plug point, naming the method; empty: nothing that can be seen without a call."""
    module, _, name = PORTS[plug_point].partition(":")
    port = getattr(import_module(module), name)
    found = (_member_defect(part, each, wanted) for each, wanted in _members(port))
    return next((f"{defect} ({name} wants it)" for defect in found if defect), "")


def _members(port: type) -> Iterator[tuple[str, Any]]:
    """Methods and properties that the port declares itself, or a port above it."""
    for kind in reversed(port.__mro__):
        for name, member in vars(kind).items():
            is_declared = inspect.isfunction(member) or isinstance(member, property)
            if is_declared and (name == _ITSELF or not name.startswith("_")) and kind.__module__.startswith(_OURS):
                yield name, member


def _member_defect(part: object, name: str, wanted: Any) -> str:
    if isinstance(wanted, property):
        return "" if hasattr(part, name) else f"it has no attribute {name}"
    if name == _ITSELF and not callable(part):
        return "it cannot be called"
    method = part if name == _ITSELF else getattr(part, name, None)
    if not callable(method):
        return f"it has no method {name}{_shown(wanted)}"
    return _call_defect(method, "it" if name == _ITSELF else name, wanted)


def _call_defect(method: Callable[..., Any], name: str, wanted: Callable[..., Any]) -> str:
    asked, given = inspect.iscoroutinefunction(wanted), _is_awaited(method)
    if given is not None and asked != given:
        return f"{name} must {'' if asked else 'not '}be asynchronous"
    try:
        inspect.signature(method).bind(*_positional(wanted), **_named(wanted))
    except TypeError as error:
        return f"{name} does not take {_shown(wanted)}: {error}"
    except ValueError:  # of what is not written in Python nobody knows
        pass
    return ""


def _is_awaited(method: Callable[..., Any]) -> bool | None:
    """None: that shows only when it is called."""
    function = method if inspect.isroutine(method) else getattr(type(method), _ITSELF, method)
    if inspect.iscoroutinefunction(function):
        return True
    returns = getattr(function, "__annotations__", {}).get("return", "")
    may_be = any(word in str(returns) for word in ("Awaitable", "Coroutine", "Future"))
    return None if may_be or not (inspect.isfunction(function) or inspect.ismethod(function)) else False


def _parameters(wanted: Callable[..., Any]) -> Iterator[inspect.Parameter]:
    return iter(list(inspect.signature(wanted).parameters.values())[1:])  # without self


def _positional(wanted: Callable[..., Any]) -> list[None]:
    usual = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    return [None for each in _parameters(wanted) if each.kind in usual]


def _named(wanted: Callable[..., Any]) -> dict[str, None]:
    return {each.name: None for each in _parameters(wanted) if each.kind is inspect.Parameter.KEYWORD_ONLY}


def _shown(wanted: Callable[..., Any]) -> str:
    parameters = [each.replace(annotation=inspect.Parameter.empty) for each in _parameters(wanted)]
    return str(inspect.Signature(parameters))
