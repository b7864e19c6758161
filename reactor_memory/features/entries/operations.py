"""The operations on entries: put, replace, list, undo, remove. None asks whether a session exists, or whose it is.

Each generator is a part of a transaction. Entries of a user name the user first.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Sequence
from typing import Any, TypeAlias

import msgspec

from reactor_memory.core.log.rows import key_of, object_from, to_json, whole
from reactor_memory.core.log.user_rows import name_user
from reactor_memory.database.operations import Batch, Query, Row, Rows, Steps
from reactor_memory.features.entries.models import DERIVED, Entry, Kind
from reactor_memory.models import LARGEST, Message

Scope: TypeAlias = dict[str, Any]
"""Whose an entry is: three columns of its row."""

_FIELDS = Entry.__struct_fields__


def of_session(session_id: str) -> Scope:
    return {**key_of(session_id), "user_id": ""}


def of_user(user_id: str) -> Scope:
    return {"group_id": user_id, "conversation_id": "", "user_id": user_id}


def entry_from(row: Row) -> Entry:
    """Raises what msgspec raises for a row that holds what this library never writes there."""
    *columns, details = row
    return msgspec.convert(dict(zip(_FIELDS, (*columns, object_from(details)), strict=True)), Entry)


def entry_values(scope: Scope, entry: Entry) -> dict[str, Any]:
    return {**scope, **msgspec.structs.asdict(entry), "details": to_json(entry.details)}


# Reading


def rows_of(scope: Scope, kind: Kind) -> Steps[Rows]:
    """Those of a kind in their places, as they are stored: a damaged one is for its feature to judge."""
    return (yield Query("entries", {**scope, "kind": kind}))


def read_all(scope: Scope) -> Steps[tuple[Entry, ...]]:
    """All that there is of a session, or of a user: every version of it, without what is damaged and derived."""
    yield from _named(scope)
    rows = yield Query("all_entries", scope)
    kept = [row for row in rows if row[0] not in DERIVED or whole([row], entry_from)[1]]
    return tuple(sorted(map(entry_from, kept), key=_key))


def _key(entry: Entry) -> tuple[str, str, int]:
    return entry.kind, entry.name, entry.version


def versions(scope: Scope, kind: Kind, name: str, *, until: int = LARGEST, limit: int = 1) -> Steps[tuple[Entry, ...]]:
    """The newest versions up to `until`, newest first."""
    yield from _named(scope)
    values = {**scope, "kind": kind, "name": name, "version": until, "limit": limit}
    return tuple(map(entry_from, (yield Query("versions_of_entry", values))))


# Changing


def put(scope: Scope, *entries: Entry) -> Steps[None]:
    """Store entries, each in the place of the one of its kind, name and version."""
    yield Batch("put_entry", [entry_values(scope, each) for each in entries])


def put_next(scope: Scope, entry: Entry) -> Steps[bool]:
    """Store the next version. False, and nothing stored, if `entry.version` is not the one after the newest."""
    newest = yield from versions(scope, entry.kind, entry.name)
    if entry.version != (newest[0].version if newest else 0) + 1:
        return False
    return bool((yield Query("put_new_entry", entry_values(scope, entry))))


def import_all(scope: Scope, entries: Iterable[Entry]) -> Steps[None]:
    """Store what is not there yet; nothing is replaced."""
    yield from _named(scope)
    for each in entries:
        yield Query("put_new_entry", entry_values(scope, each))


def replace(scope: Scope, new: Entry, replaced: Sequence[str]) -> Steps[None]:
    """Store an entry that takes the place of others of its kind; they stay, so that it can be undone."""
    yield Query("insert_entry", entry_values(scope, new))
    values = {**scope, "kind": new.kind, "replaced_by": new.name}
    yield Batch("replace_entry", [values | {"name": each} for each in replaced])


def undo(scope: Scope, entry: Entry) -> Steps[None]:
    """Remove an entry: what it replaced is there again, and what it archived is in view."""
    yield from undo_row(scope, (entry.kind, entry.name, entry.start_seq, entry.end_seq, entry.state))


def undo_row(scope: Scope, row: Row) -> Steps[None]:
    """`undo` of an entry that need not be readable: its kind, its name, of which messages it was made, its state."""
    kind, name, start_seq, end_seq, state = row
    yield from remove(scope, kind, name)
    if state is not None:
        yield Query("revive_entries", {**scope, "kind": kind, "name": name})
        yield Query("unarchive_messages", {**scope, "summary_id": name, "start_seq": start_seq, "end_seq": end_seq})
        yield Query("show_from", {**scope, "seq": start_seq})


def remove(scope: Scope, kind: Kind, *names: str) -> Steps[None]:
    yield Batch("delete_entry", [{**scope, "kind": kind, "name": each} for each in names])


def remove_about(scope: Scope, facts: Container[tuple[str, str]]) -> Steps[None]:
    """Remove what quotes one of these facts, by anchor and key."""
    found, _ = whole((yield Query("all_entries", scope)), entry_from)
    for entry in found:
        fact = entry.details.get("fact")
        if fact and (fact[0], fact[1]) in facts:
            yield from remove(scope, entry.kind, entry.name)


def _named(scope: Scope) -> Steps[None]:
    if scope["user_id"]:
        yield from name_user(scope["user_id"])


def recount(tokenizer: str, count: Callable[[Message], int], *, limit: int) -> Steps[bool]:
    """Recount some entries that another tokenizer counted; whether there may be more."""
    rows = yield Query("entries_of_other_tokenizers", {"tokenizer": tokenizer, "limit": limit})
    counted = [{**key_of(row[1]), "kind": row[2], "name": row[3], "version": row[4]} for row in rows]
    counts = [{"token_count": count(Message.system(row[-1])), "tokenizer": tokenizer} for row in rows]
    yield Batch("store_entry_count", [key | new for key, new in zip(counted, counts, strict=True)])
    return len(rows) == limit
