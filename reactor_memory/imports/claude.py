"""A conversation in the export of Claude."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import Literal

import msgspec

from reactor_memory.imports.conversation import Conversation
from reactor_memory.models import Message
from reactor_memory.text.bounded_json import decoded
from reactor_memory.text.moments import microseconds_of


class _Block(msgspec.Struct):
    type: str = ""
    text: str | None = None


class _Said(msgspec.Struct):
    sender: Literal["human", "assistant"]
    text: str = ""
    content: list[_Block] = []
    created_at: datetime | None = None


class _Exported(msgspec.Struct):
    chat_messages: list[_Said]
    uuid: str | None = None
    name: str | None = None


_EXPORTED = msgspec.json.Decoder(_Exported)


def conversation(text: bytes, max_bytes: int) -> Conversation:
    """What was said, as text."""
    given = decoded(text, _EXPORTED, max_bytes)
    return Conversation(tuple(_messages(given.chat_messages)), given.uuid, given.name)


def _messages(given: list[_Said]) -> Iterator[Message]:
    for said in given:
        text = said.text or "\n".join(block.text or "" for block in said.content if block.type == "text")
        if text.strip():
            at = microseconds_of(said.created_at) if said.created_at else None
            yield Message(role="user" if said.sender == "human" else "assistant", content=text, created_at=at)
