"""The operations on the recall index (`RecallIndex`).

A term is stored behind the key of its conversation. So the full text of both engines, which knows one dictionary for
the whole table, finds the entries of one conversation without meeting those of the others.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from hashlib import blake2b
from typing import Any

import msgspec

from reactor_memory.core.log.archived_ranges import read_archived
from reactor_memory.core.log.branches import group_of
from reactor_memory.core.log.rows import key_of, to_json
from reactor_memory.database.operations import Batch, Query, Row, Steps
from reactor_memory.features.recall.indexed_ranges import indexed_ranges, outside
from reactor_memory.features.recall.ranking import rarity, scored
from reactor_memory.models import BranchRange
from reactor_memory.models.index_requests import IndexAnswer, IndexEntry, IndexHit, IndexPart, RecallQuery
from reactor_memory.models.leases import Lease
from reactor_memory.text.analyzer import terms

CANDIDATES = 300
"""How many entries of a range are read: those whose terms weigh most. The best of them are the answer."""

WEIGHT_UNIT = 1_000
"""Weights are whole numbers, so that no engine adds them up in its own way."""

MAX_TERMS = 5_000
"""The different terms of one entry."""

_KEY_LENGTH = 8


def term_key(conversation_id: str) -> str:
    """What the terms of a conversation begin with. Two conversations may share it: rows are compared by id as well."""
    return blake2b(conversation_id.encode(), digest_size=_KEY_LENGTH // 2).hexdigest()


def indexed_until(conversation_id: str) -> Steps[int]:
    indexed = yield from _range(conversation_id)
    return indexed[1] if indexed else 0


def _range(conversation_id: str) -> Steps[tuple[int, int] | None]:
    rows = yield Query("recall_range", key_of(conversation_id))
    return (rows[0][0], rows[0][1]) if rows else None


def extend(lease: Lease, part: IndexPart) -> Steps[bool]:
    rows = yield Query("hold_session", key_of(lease.session_id))
    if not rows or rows[0][0] is not None:
        return False
    newest = yield Query("lock_work", key_of(lease.session_id) | {"kind": lease.kind})
    if not newest or newest[0][0] != lease.fence:
        return False
    indexed = yield from _range(part.conversation_id)
    if indexed and indexed[1] != part.start_seq - 1:
        return False
    yield Batch("insert_recall_entry", [_entry_values(part.conversation_id, entry) for entry in part.entries])
    start = indexed[0] if indexed else part.start_seq
    yield Query("store_recall_range", key_of(part.conversation_id) | {"start_seq": start, "end_seq": part.end_seq})
    return True


def _entry_values(conversation_id: str, entry: IndexEntry) -> dict[str, Any]:
    key = term_key(conversation_id)
    held = list(dict.fromkeys(terms(entry.text)))[:MAX_TERMS]
    return {
        **key_of(conversation_id),
        "seq": entry.seq,
        "anchor": entry.anchor,
        "turn_start": entry.turn[0],
        "turn_end": entry.turn[1],
        "length": len(held),
        "terms": " ".join([key, *(key + term for term in held)]),
    }


def search(query: RecallQuery) -> Steps[IndexAnswer]:
    held = yield from _ranges(query.branch)
    indexed = indexed_ranges(query.branch, held)
    if not indexed:
        return IndexAnswer(frequencies=dict.fromkeys(query.terms, 0))
    parts = outside(indexed, (yield from read_archived(query.branch)).cleared)
    frequencies = dict.fromkeys(query.terms, 0)
    if parts:
        once = tuple({part.conversation_id: part for part in parts}.values())
        for number, count in (yield Query("recall_frequencies", _search_values(once, frequencies))):
            frequencies[query.terms[number]] = count
    until = indexed[-1].end_seq or 0
    weights = {term: round(WEIGHT_UNIT * rarity(count, until)) for term, count in frequencies.items() if count}
    found: list[IndexHit] = []
    if weights:
        whole = [part for part in parts if (part.start_seq, part.end_seq) == held[part.conversation_id]]
        rest = [part for part in parts if part not in whole]
        found += yield from _best("recall_search", whole, weights)
        found += yield from _best("recall_search_within", rest, weights)
    answer = IndexAnswer(found=tuple(found), frequencies=frequencies, total=until, indexed_until=until)
    best = scored(answer)
    return msgspec.structs.replace(best, found=best.found[: query.limit])


def _ranges(branch: Sequence[BranchRange]) -> Steps[dict[str, tuple[int, int]]]:
    """What the index holds of each conversation of the branch."""
    ids = [part.conversation_id for part in branch]
    values = {"group_id": group_of(ids[-1]), "conversations": to_json(ids)}
    return {row[0]: (row[1], row[2]) for row in (yield Query("recall_ranges", values))}


def _best(query: str, parts: Sequence[BranchRange], weights: Mapping[str, int]) -> Steps[list[IndexHit]]:
    if not parts:
        return []
    rows = yield Query(query, _search_values(parts, weights) | {"limit": CANDIDATES})
    return [_found(row, tuple(weights)) for row in rows]


def _search_values(parts: Sequence[BranchRange], weights: Mapping[str, int]) -> dict[str, Any]:
    keys = [term_key(part.conversation_id) for part in parts]
    wanted = [(" OR ".join([key + term for key in keys]), weight, term) for term, weight in weights.items()]
    needed = [(part.conversation_id, part.start_seq, part.end_seq, key) for part, key in zip(parts, keys, strict=True)]
    return {
        "group_id": group_of(parts[0].conversation_id),
        "terms": to_json(wanted) or "[]",
        "any_term": " | ".join(f"'{key}{term}'" for key in keys for term in weights),
        "parts": to_json(needed),
    }


def _found(row: Row, wanted: Sequence[str]) -> IndexHit:
    seq, anchor, turn_start, turn_end, length, numbers = row
    held = sorted({wanted[int(number)] for number in str(numbers).split(",")})
    return IndexHit(seq=seq, anchor=anchor, turn=(turn_start, turn_end), terms=tuple(held), length=length)


def state_detail(row: Row) -> tuple[str, str]:
    """The answer of the query `recall_state` for a report of the store's health."""
    return "recall index", f"{row[1]} messages, sessions: {row[0]}"


def truncate(session_ids: Iterable[str], *, seq: int) -> Steps[None]:
    for session_id in session_ids:
        indexed = yield from _range(session_id)
        if indexed is None or indexed[1] < seq:
            continue
        segments = yield Query("segments", key_of(session_id))
        start = min((row[1] for row in segments if row[1] <= seq <= row[2]), default=seq)
        yield Query("delete_recall_entries", key_of(session_id) | {"key": term_key(session_id), "start_seq": start})
        yield Query("delete_recall_range", key_of(session_id))
        if indexed[0] < start:
            values = {"start_seq": indexed[0], "end_seq": start - 1}
            yield Query("store_recall_range", key_of(session_id) | values)


def forget(session_ids: Iterable[str]) -> Steps[None]:
    for session_id in session_ids:
        key = key_of(session_id)
        yield Query("delete_recall_entries", key | {"key": term_key(session_id), "start_seq": 0})
        yield Query("delete_recall_range", key)
