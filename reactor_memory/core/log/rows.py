"""Rows of the tables to values and back. The order of columns is the one of `queries.sql`.

JSON columns are NULL when empty, so the usual row is small. A row that cannot be read raises what msgspec raises;
the stores turn it into `StoreCorruptError`.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypeAlias

import msgspec

from reactor_memory.core.log.branches import group_of, root_branch
from reactor_memory.database.driver_errors import DAMAGE
from reactor_memory.database.operations import Row, Rows, T
from reactor_memory.errors import StoreCorruptError
from reactor_memory.models import (
    AS_TEXT,
    BranchRange,
    Given,
    JsonObject,
    Message,
    Pin,
    Role,
    Session,
    ToolCall,
    Value,
    Visibility,
)

_BRANCH = msgspec.json.Decoder(tuple[BranchRange, ...])
_READER = json.JSONDecoder()


class _WithGiven(Value, frozen=True, kw_only=True):
    """The column of parts where the message was given in another order, or with more, than its fields tell."""

    parts: tuple[JsonObject, ...] = ()
    given: Given


_PARTS = msgspec.json.Decoder(tuple[JsonObject, ...] | _WithGiven)
_TEXT_WAS_GIVEN = ""
"""The column of a message that a provider gave as a role and a text: it takes no more than an empty one."""

_TOOL_CALLS = msgspec.json.Decoder(tuple[ToolCall, ...])
_OBJECT = msgspec.json.Decoder(JsonObject)
_encode = msgspec.json.encode


def to_json(value: Sequence[Any] | Mapping[str, Any]) -> str | None:
    return _encode(value).decode() if value else None


def key_of(session_id: str) -> dict[str, Any]:
    """The two columns that every key begins with."""
    return {"group_id": group_of(session_id), "conversation_id": session_id}


def session_from(row: Row) -> Session:
    session_id, group_id, owner_id, last_seq, path, created, updated, title, forked_from, forked_at, deleted = row
    is_number = type(last_seq) is type(created) is type(updated) is int
    is_text = type(session_id) is type(group_id) is str
    if not (is_number and is_text) or last_seq < 0 or not (forked_at is None or type(forked_at) is int):
        raise StoreCorruptError(f"store: session {session_id!r} is damaged; restore a backup")
    return Session(
        session_id=session_id,
        group_id=group_id,
        owner_id=owner_id,
        last_seq=last_seq,
        branch=branch_from(session_id, path),
        created_at=created,
        updated_at=updated,
        title=title,
        forked_from_id=forked_from,
        forked_at_seq=forked_at,
        deleted_at=deleted,
    )


def branch_from(session_id: str, path: str | None) -> tuple[BranchRange, ...]:
    """The branch that a session's stored path tells; the one of a root, if it has none."""
    return _BRANCH.decode(path) if path else root_branch(session_id)


def first_range(session_id: str, path: str | None) -> BranchRange:
    """The first part of the same branch."""
    return BranchRange(**_READER.raw_decode(path, 1)[0]) if path else root_branch(session_id)[0]


_Others: TypeAlias = tuple[tuple[JsonObject, ...], Given | None]
_TEXT_ALONE: tuple[_Others, _Others] = ((), AS_TEXT), ((), None)
"""Of a message without parts, by whether its column is NULL."""


def _others_and_given(column: str) -> _Others:
    found = _PARTS.decode(column)
    return (found.parts, found.given) if isinstance(found, _WithGiven) else (found, None)


def messages_from(rows: Iterable[Row]) -> list[Message]:
    """For a turn, which reads many: one loop, without a call for a usual row, that checks no more than that the texts
    are texts. What stands behind the columns of a message is passed over.
    """
    return [
        Message(
            role=role,
            content=content if type(content) is str else _refused(),
            parts=(others := _others_and_given(parts) if parts else _TEXT_ALONE[parts is None])[0],
            tool_calls=_TOOL_CALLS.decode(tool_calls) if tool_calls else (),
            tool_call_id=tool_call_id,
            name=name,
            metadata=_OBJECT.decode(metadata) if metadata else {},
            visibility=visibility,
            author_id=author_id,
            created_at=created_at,
            seq=seq,
            message_id=message_id,
            token_count=token_count,
            tokenizer=tokenizer,
            given=others[1],
        )
        for (
            seq,
            message_id,
            role,
            visibility,
            author_id,
            content,
            parts,
            tool_calls,
            tool_call_id,
            name,
            metadata,
            token_count,
            tokenizer,
            created_at,
            *_,
        ) in rows
    ]


class _Checked(msgspec.Struct, array_like=True):
    """The columns of a message. msgspec keeps how to check a struct, and finds out anew how to check a tuple."""

    seq: int
    message_id: str | None
    role: Role
    visibility: Visibility
    author_id: str | None
    content: str
    parts: str | None
    tool_calls: str | None
    tool_call_id: str | None
    name: str | None
    metadata: str | None
    token_count: int | None
    tokenizer: str | None
    created_at: int | None


def _refused() -> str:
    raise StoreCorruptError("store: the text of a message is damaged; restore a backup, or erase the message")


def message_from(row: Row) -> Message:
    """Raises what msgspec raises for a column that holds what this library never writes there."""
    msgspec.convert(tuple(row), _Checked)
    return messages_from([row])[0]


def checked_messages_from(rows: Rows) -> list[Message]:
    """As `messages_from`, after a look at every column: for who waits for no turn."""
    return list(map(message_from, rows))


def object_from(column: str | None) -> JsonObject:
    return _OBJECT.decode(column) if column else {}


def message_values(message: Message) -> dict[str, Any]:
    """The columns of a message that do not depend on where it is stored."""
    return {
        "message_id": message.message_id,
        "role": message.role,
        "visibility": message.visibility,
        "author_id": message.author_id,
        "content": message.content,
        "parts": _parts_of(message) if message.parts or message.given is not None else None,
        "tool_calls": to_json(message.tool_calls) if message.tool_calls else None,
        "tool_call_id": message.tool_call_id,
        "name": message.name,
        "metadata": to_json(message.metadata) if message.metadata else None,
        "token_count": message.token_count,
        "tokenizer": message.tokenizer,
        "created_at": message.created_at,
    }


def _parts_of(message: Message) -> str | None:
    if message.given is None:
        return to_json(message.parts)
    if message.given == AS_TEXT:
        return to_json(message.parts) or _TEXT_WAS_GIVEN
    return _encode({"parts": message.parts, "given": message.given}).decode()


MESSAGE_COLUMNS = 14
"""Of a row that holds a message, and behind it what a store keeps beside that."""

_CONTENT = ("content", "parts", "tool_calls", "metadata")


def stored_bytes(values: Iterable[Mapping[str, Any]]) -> int:
    """How many bytes of UTF-8 the content of these messages takes, of which `message_values` made the columns."""
    taken = 0
    for row in values:
        for column in _CONTENT:
            if text := row[column]:
                taken += len(text) if text.isascii() else len(text.encode())
    return taken


def whole(rows: Iterable[Row], read: Callable[[Row], T]) -> tuple[list[T], bool]:
    """Those of the rows that can be read, and whether all can: what is drawn from messages is drawn again."""
    found: list[T] = []
    is_whole = True
    for row in rows:
        try:
            found.append(read(row))
        except DAMAGE:
            is_whole = False
    return found, is_whole


class _Pinned(Value, frozen=True, kw_only=True):
    fact: tuple[str, str] | None = None
    sha256: str = ""


_PINNED = msgspec.json.Decoder(_Pinned)


def pin_from(row: Row) -> Pin:
    """Raises nothing: what a damaged pin shows is not what was pinned, and its reader finds out."""
    ordinal, seq, role, text, details, token_count, tokenizer, created_at = row
    try:
        pinned = _PINNED.decode(details)
    except DAMAGE:
        pinned = _Pinned()
    return Pin(
        ordinal=ordinal,
        seq=seq,
        fact=pinned.fact,
        role=role,
        text=text,
        sha256=pinned.sha256,
        token_count=token_count,
        tokenizer=tokenizer,
        created_at=created_at,
    )
