"""What calls of a tool do: change something (``act``), look something up (``read``), or nothing that memory tells
(``think``). What is not declared the reader of calls learns from results.

A declaration of a tool says it with the hints of the Model Context Protocol (``annotations``). It stands with the
messages that call the tool, in their metadata, so that whoever reads the log later knows it, too.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Literal, TypeAlias, cast, get_args

from msgspec.structs import replace

from reactor_memory.models import Message

ToolRole: TypeAlias = Literal["act", "read", "think"]
ToolRoles: TypeAlias = Mapping[str, ToolRole]
"""Roles by the names of tools."""

NO_ROLES: ToolRoles = MappingProxyType({})

TOOL_ROLES = "tool_roles"
"""The key in the metadata of a message: the roles of tools that it calls."""

HINTS = "annotations"


def roles_of(tools: Iterable[Any]) -> dict[str, ToolRole]:
    """The roles that declarations of tools tell by ``readOnlyHint``, else by ``destructiveHint``: a tool that destroys
    acts. A declaration may have the form of any provider; one without hints tells nothing.
    """
    found: dict[str, ToolRole] = {}
    for declared in (each for tool in tools for each in _declarations(_fields(tool))):
        name, role = declared.get("name"), _role(hints_in(declared.get(HINTS)))
        if isinstance(name, str) and role:
            found[name] = role
    return found


def _declarations(tool: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """Itself, what stands in it under ``function``, and those that Gemini has in a list."""
    yield {**tool, **_fields(tool.get("function"))}
    for key in ("functionDeclarations", "function_declarations"):
        several = tool.get(key)
        if isinstance(several, Sequence) and not isinstance(several, str):
            yield from map(_fields, cast("Sequence[Any]", several))


def without_hints(tool: Any) -> Any:
    """The declaration as a provider gets it."""
    return {key: value for key, value in _fields(tool).items() if key != HINTS} if HINTS in _fields(tool) else tool


def hints_in(fields: Any) -> dict[str, bool]:
    """Those of the fields that are hints which tell a role."""
    told = {name: _fields(fields).get(name) for name in ("readOnlyHint", "destructiveHint")}
    return {name: hint for name, hint in told.items() if isinstance(hint, bool)}


def _role(hints: Mapping[str, bool]) -> ToolRole | None:
    if "readOnlyHint" in hints:
        return "read" if hints["readOnlyHint"] else "act"
    return "act" if hints.get("destructiveHint") else None


def with_roles(messages: Sequence[Message], roles: ToolRoles) -> Sequence[Message]:
    """The messages, those that call such tools with their roles; what a message says itself stays."""
    return [_with_roles(message, roles) for message in messages]


def _with_roles(message: Message, roles: ToolRoles) -> Message:
    told = {call.name: roles[call.name] for call in message.tool_calls if call.name in roles}
    if not told or TOOL_ROLES in message.metadata:
        return message
    return replace(message, metadata={**message.metadata, TOOL_ROLES: told})


def without_roles(message: Message) -> Message:
    """The message as it was before `with_roles`."""
    if TOOL_ROLES not in message.metadata:
        return message
    return replace(message, metadata={key: value for key, value in message.metadata.items() if key != TOOL_ROLES})


def roles_in(message: Message) -> ToolRoles:
    """The roles that a message tells; what is none is left out."""
    told = _fields(message.metadata.get(TOOL_ROLES))
    return {name: role for name, role in told.items() if role in get_args(ToolRole)}


def folded_name(name: str) -> str:
    """A name as settings and the environment may write it."""
    return name.casefold().replace("-", "_")


def _fields(value: Any) -> Mapping[str, Any]:
    return cast("Mapping[str, Any]", value) if isinstance(value, Mapping) else {}
