"""The operations on the recall index (`RecallIndex`).

A passage has a place: its message and its piece. On SQLite the row id of its terms is the number of its conversation
before its place, so that full text reads the passages of one range of one conversation, newest first, and stops where
it has enough. PostgreSQL keeps the terms behind the key of their conversation: it knows one dictionary for the table.
Only so many passages are read of each term, so what a search costs does not grow with the conversation.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from hashlib import blake2b
from typing import Annotated, Any, NamedTuple, TypeAlias

import msgspec

from reactor_memory.core.log.archived_ranges import read_archived
from reactor_memory.core.log.branches import group_of
from reactor_memory.core.log.rows import key_of, to_json
from reactor_memory.database.operations import Batch, Query, Row, Steps
from reactor_memory.errors import StoreCorruptError
from reactor_memory.features.recall.indexed_ranges import indexed_ranges, outside
from reactor_memory.features.recall.ranking import begun_words, best_places, rarity, scored, words_of
from reactor_memory.models import BranchRange
from reactor_memory.models.index_requests import PIECES, IndexAnswer, IndexHit, IndexPart, Passage, RecallQuery
from reactor_memory.models.leases import Lease
from reactor_memory.models.requests import SUMMARIZE
from reactor_memory.text.analyzer import ANALYZER_VERSION, ANY_ENDING

PLACES_OF_A_TERM = 400
"""How many passages that hold a term are looked at: the newest. How many more there are is estimated from where these
stand.
"""

CANDIDATES = 150
"""How many passages of a range are read: those whose terms weigh most."""

WITH_NEIGHBOURS = 40
"""Of how many of them the passages beside them are read, too."""

_KEY_LENGTH = 8
_NUMBER_BITS = 40

Place: TypeAlias = tuple[int, int]
"""Which of the parts that are searched, and the place of a passage in its conversation."""


class _Part(NamedTuple):
    """A range of a conversation that the index holds."""

    conversation_id: str
    number: int
    first: int
    last: int

    @property
    def base(self) -> int:
        """What is added to the places of its passages where they are stored."""
        return self.number << _NUMBER_BITS

    @property
    def bounds(self) -> tuple[int, int]:
        """The first and the last place, as they are stored."""
        return self.base + self.first * PIECES, self.base + (self.last + 1) * PIECES - 1


def term_key(conversation_id: str) -> str:
    """What the terms of a conversation begin with. Two conversations may share it: rows are compared by id as well."""
    return blake2b(conversation_id.encode(), digest_size=_KEY_LENGTH // 2).hexdigest()


def indexed_until(conversation_id: str) -> Steps[int]:
    indexed = yield from _range(conversation_id)
    return indexed[1] if indexed else 0


def _range(conversation_id: str) -> Steps[tuple[int, int, int] | None]:
    """First and last message of what is indexed by the analyzer of today, and the number of the conversation."""
    rows = yield Query("recall_range", key_of(conversation_id) | {"version": ANALYZER_VERSION})
    return _checked(*rows[0]) if rows else None


def _checked(first: object, last: object, number: object) -> tuple[int, int, int]:
    """Raises `StoreCorruptError` for a range that this library never wrote."""
    if type(first) is int and type(last) is int and type(number) is int and 0 < first <= last + 1 and number >= 0:
        return first, last, number
    raise StoreCorruptError("store: the recall index of a session is damaged; it is made again from the log")


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
    if not indexed:  # what an older analyzer left
        yield from forget([part.conversation_id])
    key = key_of(part.conversation_id)
    start = indexed[0] if indexed else part.start_seq
    span = {"start_seq": start, "end_seq": part.end_seq, "version": ANALYZER_VERSION}
    [(number,)] = yield Query("store_recall_range", key | span)
    base = number << _NUMBER_BITS
    behind = "" if number else term_key(part.conversation_id)
    yield Batch("insert_recall_passage", [key | _values(passage, base, behind) for passage in part.passages])
    if part.passages:
        bounds = {"first": base + part.passages[0].place, "last": base + part.passages[-1].place}
        yield Query("index_recall_passages", bounds)
    return True


def _values(passage: Passage, base: int, behind: str) -> dict[str, Any]:
    held = [behind + term for term in passage.terms]
    return {
        "place": base + passage.place,
        "end_seq": passage.end_seq,
        "start_at": passage.start,
        "end_at": passage.end,
        "call_seq": passage.call_seq,
        "tokens": passage.tokens,
        "terms": " ".join([behind, *held] if behind else held),
    }


def search(query: RecallQuery) -> Steps[IndexAnswer]:
    held = yield from _ranges(query.branch)
    indexed = indexed_ranges(query.branch, {each: (first, last) for each, (first, last, _) in held.items()})
    frequencies = {word[0]: 0 for word in query.words}
    if not indexed:
        return IndexAnswer(frequencies=frequencies)
    until = indexed[-1].end_seq or 0
    parts = [
        _Part(part.conversation_id, held[part.conversation_id][2], part.start_seq, part.end_seq or until)
        for part in outside(indexed, (yield from read_archived(query.branch)).cleared)
    ]
    words, places = query.words, (yield from _places(parts, query.words))
    missing = [name for name in query.begun if name not in places]
    if missing:
        words = begun_words(words, query.begun, missing)
        places |= yield from _places(parts, [word for word in words if word[0] in missing])
    for name, found in places.items():
        frequencies[name] = _estimated(found, parts)
    weights = {name: rarity(count, until) for name, count in frequencies.items() if count}
    best = best_places(places, weights, max(CANDIDATES, query.limit))
    hits = (yield from _hits(parts, best, words)) if best else []
    answer = scored(IndexAnswer(found=tuple(hits), frequencies=frequencies, total=until, indexed_until=until))
    return msgspec.structs.replace(answer, found=answer.found[: query.limit])


def _ranges(branch: Sequence[BranchRange]) -> Steps[dict[str, tuple[int, int, int]]]:
    """What the index holds of each conversation of the branch, and the number of the conversation."""
    ids = [part.conversation_id for part in branch]
    values = {"group_id": group_of(ids[-1]), "conversations": to_json(ids), "version": ANALYZER_VERSION}
    return {row[0]: _checked(*row[1:4]) for row in (yield Query("recall_ranges", values))}


def _places(parts: Sequence[_Part], words: Sequence[tuple[str, ...]]) -> Steps[dict[str, list[Place]]]:
    """Where each of the words stands, newest first in each part, as far as it is looked at."""
    terms = list(dict.fromkeys(term for word in words for term in word))
    asked: list[tuple[int, str, _Part]] = [(at, term, part) for at, part in enumerate(parts) for term in terms]
    wanted = [(_asked(term, part), *part.bounds, part.conversation_id) for _, term, part in asked]
    values = {"terms": to_json(wanted) or "[]", "limit": PLACES_OF_A_TERM}
    if parts:
        values["group_id"] = group_of(parts[0].conversation_id)
    held: dict[str, list[Place]] = {}
    rows = (yield Query("recall_places", values)) if asked else ()
    for number, places in rows:
        at, term, part = asked[int(number)]
        if places is not None:
            held.setdefault(term, []).extend((at, place - part.base) for place in json.loads(places))
    return {word[0]: found for word in words if (found := _of_word(word, held))}


def _asked(term: str, part: _Part) -> str:
    """A term as the engine is asked for it."""
    whole = term.removesuffix(ANY_ENDING)
    is_begun = whole != term
    if part.number:
        return f'"{whole}"{" *" * is_begun}'
    return f"'{term_key(part.conversation_id)}{whole}'{':*' * is_begun}"


def _of_word(word: tuple[str, ...], held: Mapping[str, list[Place]]) -> list[Place]:
    found = [held[term] for term in word if held.get(term)]
    return found[0] if len(found) == 1 else list(dict.fromkeys(place for each in found for place in each))


def _estimated(places: Sequence[Place], parts: Sequence[_Part]) -> int:
    """How many passages hold a word, of which these are the newest of each part."""
    count = 0
    for at, part in enumerate(parts):
        here = [place for which, place in places if which == at]
        count += len(here)
        if len(here) >= PLACES_OF_A_TERM:
            looked_at = part.last - min(here) // PIECES + 1
            count += max(0, round(len(here) * (part.last - part.first + 1) / max(1, looked_at)) - len(here))
    return count


def _hits(parts: Sequence[_Part], best: Sequence[Place], words: Sequence[tuple[str, ...]]) -> Steps[list[IndexHit]]:
    """The passages at these places, and those beside the best of them."""
    wanted = [(at, parts[at].base + place, parts[at].conversation_id) for at, place in best]
    near = [(*each, *parts[each[0]].bounds) for each in wanted[:WITH_NEIGHBOURS]]
    values = {"group_id": group_of(parts[0].conversation_id), "places": to_json(wanted), "near": to_json(near)}
    rows = yield Query("recall_passages_at", values)
    hits: list[IndexHit] = []
    for row in rows:
        part = parts[int(row[0])]
        hit = _hit(row, part, words)
        if hit.passage.end_seq <= part.last:
            hits.append(hit)
    return hits


_Natural = Annotated[int, msgspec.Meta(ge=0)]
_HIT = tuple[Any, int, _Natural, _Natural, _Natural, _Natural, _Natural, str]


def _hit(row: Row, part: _Part, words: Sequence[tuple[str, ...]]) -> IndexHit:
    _, place, end_seq, start, end, call_seq, tokens, terms = msgspec.convert(tuple(row), _HIT)
    behind = 0 if part.number else _KEY_LENGTH
    held = frozenset([term[behind:] for term in terms.split(" ")])
    seq, piece = divmod(place - part.base, PIECES)
    passage = Passage(
        seq=seq,
        piece=piece,
        start=start,
        end_seq=end_seq,
        end=end,
        call_seq=call_seq,
        tokens=tokens,
        terms=words_of(held, words),
    )
    return IndexHit(passage=passage, length=len(held))


def state_detail(row: Row) -> tuple[str, str]:
    """The answer of the query `recall_state` for a report of the store's health."""
    return "recall index", f"{row[1]} messages, sessions: {row[0]}"


def truncate(session_ids: Iterable[str], *, seq: int) -> Steps[None]:
    """Take away what begins with the turn of message `seq`."""
    for session_id in session_ids:
        key = key_of(session_id)
        rows = yield Query("recall_range_of_any_version", key)
        if not rows or rows[0][1] < seq:
            continue
        first, _, number = rows[0]
        turns = yield Query("turn_start", key | {"seq": seq})
        start = max(first, min(seq, turns[0][0] or first))
        yield from _delete(session_id, number, start)
        yield Query("shorten_recall_range" if start > first else "delete_recall_range", key | {"end_seq": start - 1})


def forget(session_ids: Iterable[str]) -> Steps[None]:
    for session_id in session_ids:
        key = key_of(session_id)
        for _, _, number in (yield Query("recall_range_of_any_version", key)):
            yield from _delete(session_id, number, 0)
        yield Query("delete_recall_range", key)


def make_again(session_ids: Iterable[str]) -> Steps[None]:
    """Take away what cannot be read of the index of these sessions; background work is to index them."""
    for session_id in session_ids:
        key = key_of(session_id)
        for _, _, number in (yield Query("recall_range_of_any_version", key)):
            if type(number) is int and 0 <= number < 1 << _NUMBER_BITS // 2:
                yield from _delete(session_id, number, 0)
        yield Query("delete_recall_range", key)
        yield Query("make_due", key | {"kind": SUMMARIZE, "now": 0})


def _delete(conversation_id: str, number: int, start: int) -> Steps[None]:
    base = number << _NUMBER_BITS
    values = key_of(conversation_id) | {"first": base + start * PIECES, "last": base + (1 << _NUMBER_BITS) - 1}
    yield Query("unindex_recall_passages", values)
    yield Query("delete_recall_passages", values)
