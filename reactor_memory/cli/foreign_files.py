"""Conversations in files of others: messages and requests of OpenAI, Anthropic and Gemini, messages of LangChain, and
the exports of ChatGPT and Claude.

Sources: LangChain's `messages_to_dict` and `dumpd`; the `conversations.json` of an export of ChatGPT, where each
conversation is a tree of which the branch to `current_node` was seen last, and of Claude. The forms of the providers
are read where all messages are (`reactor_memory.core.context.given_messages`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any, Literal, cast

import msgspec

from reactor_memory.core.context.given_messages import messages_of
from reactor_memory.errors import ImportFormatError, InvalidInputError
from reactor_memory.evaluation.session_files import entries_of
from reactor_memory.evaluation.transcripts import Line, first_bytes, problem_of
from reactor_memory.models import JsonObject, Message, Role

Entry = Mapping[str, Any]

_REQUEST = ("messages", "contents", "input")
_LANGCHAIN: Mapping[str, str] = {
    "human": "user",
    "HumanMessage": "user",
    "ai": "assistant",
    "AIMessage": "assistant",
    "AIMessageChunk": "assistant",
    "system": "system",
    "SystemMessage": "system",
    "tool": "tool",
    "ToolMessage": "tool",
}
_FIRST_KEYS = (b'"mapping"', b'"messages"', b'"system"', b'"title"', b'"contents"')
_EXPECTED = "a list of messages, or an object with messages, mapping (ChatGPT) or chat_messages (Claude)"


class _Author(msgspec.Struct):
    role: Role
    name: str | None = None


class _Content(msgspec.Struct):
    parts: list[Any] = []
    text: str | None = None


class _Said(msgspec.Struct):
    author: _Author
    content: _Content = msgspec.field(default_factory=_Content)
    create_time: float | None = None
    metadata: JsonObject | None = None


class _Node(msgspec.Struct):
    message: _Said | None = None
    parent: str | None = None
    children: list[str] = []


class _ChatGpt(msgspec.Struct):
    """A conversation in the export of ChatGPT."""

    mapping: dict[str, _Node]
    current_node: str | None = None


class _Block(msgspec.Struct):
    type: str = ""
    text: str | None = None


class _ClaudeMessage(msgspec.Struct):
    sender: Literal["human", "assistant"]
    text: str = ""
    content: list[_Block] = []
    created_at: datetime | None = None


class _Claude(msgspec.Struct):
    """A conversation in the export of Claude."""

    chat_messages: list[_ClaudeMessage]


def is_foreign(path: Path) -> bool:
    """Whether a file is none of our own, which hold an object with ``id`` and ``messages`` in every line."""
    begin = first_bytes(path).lstrip()
    if not begin.startswith(b"{"):
        return begin.startswith(b"[")
    try:
        first = msgspec.json.decode(begin.partition(b"\n")[0])
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return _is_first_of_lines(begin) or begin[1:].lstrip().startswith(_FIRST_KEYS)
    return "id" not in first and any(key in first for key in (*_REQUEST, "body", "mapping", "chat_messages"))


def _is_first_of_lines(begin: bytes) -> bool:
    """Whether an object goes on in the next line, as one that was printed for people does."""
    line, goes_on, _ = begin.partition(b"\n")
    return bool(goes_on) and line.rstrip().endswith((b"{", b"[", b","))


def read_foreign(path: Path, *, max_bytes: int) -> Iterator[Line]:
    """The conversations of a file. Those without an id of their own are named after the file, and numbered if there are
    several. Raises `ImportFormatError`, which names the place and what would be right.
    """
    found = list(_conversations(path, max_bytes))
    for number, (where, session_id, messages) in enumerate(found, start=1):
        name = path.name.partition(".")[0]
        own = name if len(found) == 1 else f"{name}-{number}"
        yield Line(where, session_id or own, messages, tuple)


def _conversations(path: Path, max_bytes: int) -> Iterator[tuple[str, str | None, tuple[Message, ...]]]:
    entries = entries_of(path)
    if entries and not _is_conversation(_decoded(f"{path}[0]", entries[0])):
        whole = [_decoded(f"{path}[{number}]", entry) for number, entry in enumerate(entries)]
        yield str(path), None, _read(str(path), lambda: _of_messages(whole))
        return
    for number, entry in enumerate(entries):
        where = f"{path}[{number}]" if len(entries) > 1 else str(path)
        if 0 <= max_bytes < len(bytes(entry)):
            raise ImportFormatError(where, f"has more than {max_bytes} bytes (limits.max_session_bytes)")
        value = _decoded(where, entry)
        messages = _read(where, lambda value=value: _of_conversation(value))
        if messages:
            yield where, _id_of(value), messages


def _decoded(where: str, entry: msgspec.Raw) -> Any:
    try:
        return msgspec.json.decode(entry)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        raise ImportFormatError(where, "is not valid JSON") from None


def _is_conversation(value: object) -> bool:
    """Whether it is a conversation, and no message of one."""
    if isinstance(value, list):
        return True
    return isinstance(value, dict) and any(key in value for key in (*_REQUEST, "mapping", "chat_messages", "body"))


def _id_of(value: Any) -> str | None:
    if not isinstance(value, dict):
        return None
    known = cast("JsonObject", value)
    given = next((known[key] for key in ("id", "conversation_id", "uuid") if known.get(key)), None)
    return given if isinstance(given, str) else None


def _read(where: str, read: Callable[[], Sequence[Message]]) -> tuple[Message, ...]:
    try:
        return tuple(read())
    except InvalidInputError as error:
        raise ImportFormatError(where, str(error)) from None
    except msgspec.ValidationError as error:
        raise ImportFormatError(where, f"{problem_of(error)}; expected {_EXPECTED}") from None
    except (KeyError, TypeError, AttributeError, ValueError):
        raise ImportFormatError(where, f"is in no known form; expected {_EXPECTED}") from None


def _of_conversation(value: Any) -> Sequence[Message]:
    if isinstance(value, list):
        return _of_messages(cast("list[Any]", value))
    if "mapping" in value:
        return list(_of_chatgpt(msgspec.convert(value, _ChatGpt)))
    if "chat_messages" in value:
        return list(_of_claude(msgspec.convert(value, _Claude)))
    if "body" in value:  # a line of OpenAI's batches
        return _of_conversation(value["body"])
    if "messages" in value and any(map(_is_of_langchain, value["messages"])):
        return _of_messages(value["messages"])
    return messages_of(value)


def _of_messages(given: Sequence[Any]) -> Sequence[Message]:
    return messages_of([_from_langchain(each) if _is_of_langchain(each) else each for each in given])


# -- LangChain --------------------------------------------------------------------------------------------------------


def _is_of_langchain(item: Any) -> bool:
    if not isinstance(item, dict) or "role" in item:
        return False
    known = cast("JsonObject", item)
    return known.get("type") in _LANGCHAIN or "lc" in known


def _from_langchain(item: Entry) -> JsonObject:
    """In the form of OpenAI."""
    data: Entry = item.get("kwargs") or item.get("data") or item
    kind = item["id"][-1] if "lc" in item else item["type"]
    found: JsonObject = {"role": _LANGCHAIN[kind], "content": data.get("content") or ""}
    calls = [_langchain_call(call) for call in data.get("tool_calls") or ()]
    if calls:
        found["tool_calls"] = calls
    for key in ("tool_call_id", "name"):
        if data.get(key):
            found[key] = data[key]
    return found


def _langchain_call(call: Entry) -> JsonObject:
    arguments = msgspec.json.encode(call.get("args") or {}).decode()
    return {"id": call["id"], "type": "function", "function": {"name": call["name"], "arguments": arguments}}


# -- exports ----------------------------------------------------------------------------------------------------------


def _of_chatgpt(conversation: _ChatGpt) -> Iterator[Message]:
    """The branch that was seen last. What ChatGPT hides, and what says nothing, is left out."""
    nodes, branch = conversation.mapping, list[_Node]()
    at = conversation.current_node or _last_leaf(nodes)
    while at in nodes and len(branch) < len(nodes):
        branch.append(nodes[at])
        at = nodes[at].parent
    for said in (node.message for node in reversed(branch) if node.message):
        text = "\n".join(part for part in said.content.parts or [said.content.text] if isinstance(part, str) and part)
        if text.strip() and not (said.metadata or {}).get("is_visually_hidden_from_conversation"):
            name = said.author.name if said.author.role == "tool" else None
            at_time = _microseconds(said.create_time)
            yield Message(role=said.author.role, content=text, name=name, created_at=at_time)


def _last_leaf(nodes: Mapping[str, _Node]) -> str | None:
    leaves = [name for name, node in nodes.items() if not node.children]
    return leaves[-1] if leaves else None


def _of_claude(conversation: _Claude) -> Iterator[Message]:
    for said in conversation.chat_messages:
        text = said.text or "\n".join(block.text or "" for block in said.content if block.type == "text")
        if text.strip():
            at = _microseconds(said.created_at.timestamp() if said.created_at else None)
            yield Message(role="user" if said.sender == "human" else "assistant", content=text, created_at=at)


def _microseconds(seconds: float | None) -> int | None:
    return None if seconds is None else round(seconds * 1_000_000)


__all__ = ["is_foreign", "read_foreign"]
