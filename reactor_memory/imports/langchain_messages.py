"""Messages of LangChain as JSON, from `messages_to_dict` or `dumpd`, in the form of OpenAI. LangChain is not needed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

import msgspec

from reactor_memory.imports.conversation import FormError
from reactor_memory.models import JsonObject

_ROLES: Mapping[str, str] = {
    "human": "user",
    "HumanMessage": "user",
    "HumanMessageChunk": "user",
    "ai": "assistant",
    "AIMessage": "assistant",
    "AIMessageChunk": "assistant",
    "system": "system",
    "SystemMessage": "system",
    "SystemMessageChunk": "system",
    "tool": "tool",
    "ToolMessage": "tool",
    "ToolMessageChunk": "tool",
    "function": "function",
    "FunctionMessage": "function",
    "chat": "chat",
    "ChatMessage": "chat",
}
_ORDERS = ("remove", "RemoveMessage")
_CALL_BLOCKS = ("tool_use", "tool_call", "function_call")


def is_of_langchain(item: object) -> bool:
    """Whether an object is a message of LangChain, and of no provider."""
    if not isinstance(item, dict) or "role" in item:
        return False
    known = cast("JsonObject", item)
    kind = known.get("type")
    return "lc" in known or (isinstance(kind, str) and (kind in _ROLES or kind in _ORDERS))


def in_form_of_openai(item: JsonObject) -> JsonObject:
    """Raises `FormError` for an item that is not a message."""
    kind = _kind_of(item)
    if kind in _ORDERS:
        raise FormError("is a RemoveMessage: an order, and no message")
    if kind not in _ROLES:
        raise FormError("is in no known form; expected a list of messages of LangChain")
    data = _object(item.get("kwargs") or item.get("data") or item)
    role = data.get("role") if _ROLES[kind] == "chat" else _ROLES[kind]
    calls = [_call(call) for call in _list(data.get("tool_calls"))] or _list(
        _object(data.get("additional_kwargs")).get("tool_calls")
    )
    found: JsonObject = {"role": role, "content": _content(data.get("content"), has_calls=bool(calls))}
    if calls:
        found["tool_calls"] = calls
    return found | {key: data[key] for key in ("tool_call_id", "name") if data.get(key)}


def _kind_of(item: JsonObject) -> str:
    """The last part of the path of its class, or its type."""
    kind: Any = [*_list(item.get("id")), ""][-2:][0] if "lc" in item else item.get("type")
    return kind if isinstance(kind, str) else ""


def _content(content: Any, *, has_calls: bool) -> Any:
    """Without the blocks that repeat the calls."""
    if not isinstance(content, list):
        return content or ""
    blocks = cast("list[Any]", content)
    return [block for block in blocks if not (has_calls and _object(block).get("type") in _CALL_BLOCKS)]


def _call(call: Any) -> JsonObject:
    if not isinstance(call, dict):
        raise FormError("tool_calls: is in no known form; expected a list of messages of LangChain")
    given = cast("JsonObject", call)
    arguments = msgspec.json.encode(given.get("args") or {}).decode()
    return {"id": given["id"], "type": "function", "function": {"name": given["name"], "arguments": arguments}}


def _object(value: Any) -> JsonObject:
    return cast("JsonObject", value) if isinstance(value, dict) else {}


def _list(value: Any) -> list[Any]:
    return cast("list[Any]", value) if isinstance(value, list) else []
