"""A conversation in the export of ChatGPT: a tree of messages, of which the branch to `current_node` was seen last."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, cast

import msgspec

from reactor_memory.imports.conversation import Conversation, microseconds_in
from reactor_memory.models import JsonObject, Message, Role
from reactor_memory.text.bounded_json import decoded


class _Author(msgspec.Struct):
    role: Role
    name: str | None = None


class _Content(msgspec.Struct):
    parts: list[Any] | None = None
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


class _Exported(msgspec.Struct):
    mapping: dict[str, _Node]
    current_node: str | None = None
    id: str | None = None
    conversation_id: str | None = None
    title: str | None = None


_EXPORTED = msgspec.json.Decoder(_Exported)


def conversation(text: bytes, max_bytes: int) -> Conversation:
    """The branch that was seen last. What ChatGPT hides, and what says nothing, is left out."""
    given = decoded(text, _EXPORTED, max_bytes)
    return Conversation(tuple(_messages(given)), given.id or given.conversation_id, given.title)


def _messages(given: _Exported) -> Iterator[Message]:
    for said in (node.message for node in _branch(given) if node.message):
        parts = said.content.parts or [said.content.text]
        text = "\n".join(filter(None, map(_text_of, parts)))
        if text.strip() and not (said.metadata or {}).get("is_visually_hidden_from_conversation"):
            name = said.author.name if said.author.role == "tool" else None
            at = None if said.create_time is None else microseconds_in("create_time", said.create_time)
            yield Message(role=said.author.role, content=text, name=name, created_at=at)


def _text_of(part: Any) -> str | None:
    """What somebody spoke is written beside the sound."""
    if isinstance(part, dict):
        spoken = cast("JsonObject", part)
        part = spoken.get("text") if spoken.get("content_type") == "audio_transcription" else None
    return part if isinstance(part, str) else None


def _branch(given: _Exported) -> list[_Node]:
    nodes, branch = given.mapping, list[_Node]()
    at = given.current_node or _last_leaf(nodes)
    while at in nodes and len(branch) < len(nodes):
        branch.append(nodes[at])
        at = nodes[at].parent
    return branch[::-1]


def _last_leaf(nodes: Mapping[str, _Node]) -> str | None:
    leaves = [name for name, node in nodes.items() if not node.children]
    return leaves[-1] if leaves else None
