"""The operations on the recall index (`RecallIndex`).

A passage has a place: its message and its piece. Each of its terms is kept behind the key of its conversation, so full
text reads the passages of one conversation, newest first, and stops where it has enough. On SQLite the row id of the
terms is the number of the conversation before that place, and full text keeps no copy of them. Only so many passages
are read of each term, so what a search costs does not grow with the conversation.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from hashlib import blake2b
from typing import Annotated, Any, NamedTuple, TypeAlias

import msgspec

from reactor_memory.core.log.branches import group_of
from reactor_memory.core.log.rows import key_of, to_json
from reactor_memory.database.operations import Batch, Query, Row, Steps
from reactor_memory.errors import StoreCorruptError
from reactor_memory.features.recall.indexed_ranges import indexed_ranges, outside
from reactor_memory.features.recall.ranking import begun_words, best_places, rarity, scored
from reactor_memory.models import BranchRange
from reactor_memory.models.index_requests import PIECES, IndexAnswer, IndexHit, IndexPart, Passage, RecallQuery
from reactor_memory.models.leases import Lease
from reactor_memory.models.requests import SUMMARIZE
from reactor_memory.text.analyzer import ANALYZER_VERSION, ANY_ENDING

PLACES_OF_A_TERM = 150
"""How many passages that hold a term are looked at: the newest. How many more there are is estimated from where these
stand. Farther back, a common term counts beside a rarer one.
"""

MAX_COMMON, MAX_RARE = 2, 16
"""How many common terms, the rarest of them, are looked for farther back, and beside how many rarer ones."""

WITH_NEIGHBOURS = 0.4
"""Of what share of the passages found those beside them are read, too."""

_NUMBER_BITS = 40
_BEHIND_KEY, _AFTER_KEY = "\u00aa", "\u00ab"
"""What follows the number of a conversation before a term: no text keeps the sign. And the next one after it."""

Place: TypeAlias = int
"""The place of a passage in its conversation; above `_NUMBER_BITS`, which of the parts that are searched holds it."""

_PLACES: msgspec.json.Decoder[list[int]] = msgspec.json.Decoder(list[int])


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


class _Wanted(NamedTuple):
    """What full text is asked for: a term of a part, or several, between two places as they are stored."""

    at: int
    asked: str
    first: int
    last: int


class _Found(NamedTuple):
    """Where each word stands, by its name, as far as it was looked at; and about how many passages hold it."""

    places: dict[str, list[Place]]
    counts: dict[str, int]


def term_key(conversation_id: str) -> str:
    """What the terms of a conversation begin with. Two conversations may share it: rows are compared by id as well."""
    return blake2b(conversation_id.encode(), digest_size=4).hexdigest()


def _key(conversation_id: str, number: int) -> str:
    return f"{number:x}{_BEHIND_KEY}" if number else term_key(conversation_id)


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
    key_of_terms = _key(part.conversation_id, number)
    values = [key | _values(passage, number << _NUMBER_BITS, key_of_terms) for passage in part.passages]
    yield Batch("insert_recall_passage", values)
    if number:
        yield Batch("index_recall_passage", values)
    return True


def _values(passage: Passage, base: int, key: str) -> dict[str, Any]:
    return {
        "place": base + passage.place,
        "end_seq": passage.end_seq,
        "start_at": passage.start,
        "end_at": passage.end,
        "call_seq": passage.call_seq,
        "tokens": passage.tokens,
        "length": len(passage.terms),
        "terms": " ".join([key + term for term in passage.terms]),
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
        for part in outside(indexed, query.withheld)
    ]
    places, counts = yield from _looked_up(parts, query.words)
    missing = [name for name in query.begun if name not in places]
    if missing:
        begun = begun_words(query.words, query.begun, missing)
        more = yield from _looked_up(parts, [word for word in begun if word[0] in missing])
        places, counts = places | more.places, counts | more.counts
    frequencies |= counts
    weights = {name: rarity(counts[name], until) for name in places}
    best = best_places(places, weights, query.limit)
    hits = (yield from _hits(parts, best, places)) if best else []
    answer = scored(IndexAnswer(found=tuple(hits), frequencies=frequencies, total=until, indexed_until=until))
    return msgspec.structs.replace(answer, found=answer.found[: query.limit])


def _ranges(branch: Sequence[BranchRange]) -> Steps[dict[str, tuple[int, int, int]]]:
    """What the index holds of each conversation of the branch, and the number of the conversation."""
    ids = [part.conversation_id for part in branch]
    values = {"group_id": group_of(ids[-1]), "conversations": to_json(ids), "version": ANALYZER_VERSION}
    return {row[0]: _checked(*row[1:4]) for row in (yield Query("recall_ranges", values))}


def _looked_up(parts: Sequence[_Part], words: Sequence[tuple[str, ...]]) -> Steps[_Found]:
    """Where the words stand: of a common one the newest places, and beside the rarer ones the older ones, too."""
    terms = list(dict.fromkeys(term for word in words for term in word))
    wanted = [_Wanted(at, _asked(part, [term]), *part.bounds) for at, part in enumerate(parts) for term in terms]
    found = yield from _read_places(parts, wanted)
    newest = {(each.at, term): places for each, term, places in zip(wanted, terms * len(parts), found, strict=True)}
    older = yield from _beside_rare(parts, newest)
    places: dict[str, list[Place]] = {}
    counts: dict[str, int] = {}
    for word in words:
        its_places: list[Place] = []
        for at, part in enumerate(parts):
            here = _merged([newest[at, term] for term in word])
            counts[word[0]] = counts.get(word[0], 0) + _estimated(here, at, part)
            its_places += _merged([here, *(older.get((at, term), ()) for term in word)])
        if its_places:
            places[word[0]] = its_places
    return _Found(places, counts)


def _beside_rare(
    parts: Sequence[_Part], newest: Mapping[tuple[int, str], Sequence[Place]]
) -> Steps[dict[tuple[int, str], Sequence[Place]]]:
    """Where terms that were not looked at to their end stand beside rarer ones, farther back; beside each
    other if none is rarer.
    """
    wanted: dict[tuple[int, str], _Wanted] = {}
    for at, part in enumerate(parts):
        found = {term: places for (its, term), places in newest.items() if its == at and places}
        reach = {term: min(places) for term, places in found.items() if len(places) >= PLACES_OF_A_TERM}
        common = sorted(reach, key=lambda term: reach[term])[:MAX_COMMON]
        rare = [term for term in found if term not in reach]
        for term in common:
            if beside := (rare or [other for other in common if other != term])[:MAX_RARE]:
                last = part.base + reach[term] - (at << _NUMBER_BITS) - 1
                wanted[at, term] = _Wanted(at, _asked(part, [term], beside), part.bounds[0], last)
    found_beside = yield from _read_places(parts, tuple(wanted.values()))
    return dict(zip(wanted, found_beside, strict=True))


def _read_places(parts: Sequence[_Part], wanted: Sequence[_Wanted]) -> Steps[list[list[Place]]]:
    """The newest places of each."""
    found: list[list[Place]] = [[] for _ in wanted]
    if not wanted:
        return found
    asked = [(each.asked, each.first, each.last, parts[each.at].conversation_id) for each in wanted]
    values = {
        "terms": to_json(asked),
        "limit": PLACES_OF_A_TERM,
        "group_id": group_of(parts[0].conversation_id),
    }
    for number, places in (yield Query("recall_places", values)):
        if places is not None:
            at = wanted[int(number)].at
            less = parts[at].base - (at << _NUMBER_BITS)
            found[int(number)] = [place - less for place in _PLACES.decode(places)]
    return found


def _asked(part: _Part, *needed: Sequence[str]) -> str:
    """As the engine is asked for passages that hold one term of each of `needed`."""
    key = _key(part.conversation_id, part.number)
    by_sqlite = bool(part.number)
    either, both = (" OR ", " AND ") if by_sqlite else (" | ", " & ")
    return both.join(f"({either.join(_quoted(key, term, by_sqlite=by_sqlite) for term in terms)})" for terms in needed)


def _quoted(key: str, term: str, *, by_sqlite: bool) -> str:
    whole = term.removesuffix(ANY_ENDING)
    is_begun = whole != term
    return f'"{key}{whole}"{" *" * is_begun}' if by_sqlite else f"'{key}{whole}'{':*' * is_begun}"


def _merged(lists: Sequence[Sequence[Place]]) -> Sequence[Place]:
    held = [each for each in lists if each]
    return held[0] if len(held) == 1 else list(dict.fromkeys(place for each in held for place in each))


def _estimated(places: Sequence[Place], at: int, part: _Part) -> int:
    """How many passages of a part hold a word, of which these are the newest."""
    if len(places) < PLACES_OF_A_TERM:
        return len(places)
    looked_at = part.last - (min(places) - (at << _NUMBER_BITS)) // PIECES + 1
    return max(len(places), round(len(places) * (part.last - part.first + 1) / max(1, looked_at)))


def _hits(
    parts: Sequence[_Part], best: Sequence[Place], places: Mapping[str, Sequence[Place]]
) -> Steps[list[IndexHit]]:
    """The passages at the best places, and those beside the best of them, each with the names of the words it holds."""
    wanted = [
        (at := place >> _NUMBER_BITS, place - (at << _NUMBER_BITS) + parts[at].base, parts[at].conversation_id)
        for place in best
    ]
    near = [(*each, *parts[each[0]].bounds) for each in wanted[: int(WITH_NEIGHBOURS * len(wanted)) + 1]]
    values = {"group_id": group_of(parts[0].conversation_id), "places": to_json(wanted), "near": to_json(near)}
    rows = yield Query("recall_passages_at", values)
    by_place: dict[Place, _Row] = {}
    for row in msgspec.convert([tuple(row) for row in rows], list[_Row]):
        at = row[0]
        by_place[(at << _NUMBER_BITS) + row[1] - parts[at].base] = row
    names: dict[Place, list[str]] = {place: [] for place in by_place}
    for name, its_places in places.items():
        for place in its_places:
            if place in names:
                names[place].append(name)
    found = [(place, row, parts[place >> _NUMBER_BITS]) for place, row in by_place.items()]
    return [_hit(row, part, names[place]) for place, row, part in found if row[2] <= part.last]


_Natural = Annotated[int, msgspec.Meta(ge=0)]
_Row: TypeAlias = tuple[_Natural, int, _Natural, _Natural, _Natural, _Natural, _Natural, _Natural]


def _hit(row: _Row, part: _Part, names: Sequence[str]) -> IndexHit:
    _, place, end_seq, start, end, call_seq, tokens, length = row
    seq, piece = divmod(place - part.base, PIECES)
    passage = Passage(
        seq=seq,
        piece=piece,
        start=start,
        end_seq=end_seq,
        end=end,
        call_seq=call_seq,
        tokens=tokens,
        terms=tuple(names),
    )
    return IndexHit(passage=passage, length=length)


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
        numbers = [number for _, _, number in (yield Query("recall_range_of_any_version", key))]
        yield Query("delete_recall_range", key)
        if not all(map(_is_number, numbers)):
            numbers = [number for (number,) in (yield Query("recall_numbers_of_nothing", {}))]
        for number in numbers:
            yield from _delete(session_id, number, 0)
        yield Query("make_due", key | {"kind": SUMMARIZE, "now": 0})


def _is_number(number: object) -> bool:
    return type(number) is int and 0 <= number < 1 << _NUMBER_BITS // 2


def _delete(conversation_id: str, number: int, start: int) -> Steps[None]:
    base = number << _NUMBER_BITS
    places = {"first": base + start * PIECES, "last": base + (1 << _NUMBER_BITS) - 1}
    terms = {"first_term": f"{number:x}{_BEHIND_KEY}", "last_term": f"{number:x}{_AFTER_KEY}"}
    yield Query("unindex_recall_passages", places | terms)
    yield Query("delete_recall_passages", key_of(conversation_id) | places)
