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
from reactor_memory.database.operations import Batch, Query, Steps, bounded
from reactor_memory.errors import StoreCorruptError
from reactor_memory.features.recall.indexed_ranges import indexed_ranges, outside
from reactor_memory.features.recall.ranking import begun_words, best_places, rarity, scored
from reactor_memory.models import BranchRange
from reactor_memory.models.index_requests import PIECES, IndexAnswer, IndexHit, IndexPart, Passage, RecallQuery
from reactor_memory.models.leases import Lease
from reactor_memory.models.requests import SUMMARIZE
from reactor_memory.text.analyzer import ANALYZER_VERSION, ANY_ENDING

PLACES_OF_A_WORD = 150
"""How many passages that hold a word are looked at: the newest. How many more there are is estimated from where these
stand. Farther back, a common word counts beside a rarer one.
"""

MAX_COMMON, MAX_RARE = 2, 16
"""How many common words, the rarest of them, are looked for farther back, and beside how many rarer ones."""

MAX_FARTHER = 64
"""Where no word is rarer, the common ones are looked for beside each other: that many times as far back as the newest
places of one of them reach, or what a search costs would grow with the conversation.
"""

WITH_NEIGHBOURS = 0.4
"""Of what share of the passages found those beside them are read, too."""

_NUMBER_BITS = 40
_PLACE_MASK = (1 << _NUMBER_BITS) - 1
_BEHIND_KEY, _AFTER_KEY = "\u00aa", "\u00ab"
"""What follows the number of a conversation before a term: no text keeps the sign. And the next one after it."""

Place: TypeAlias = int
"""The place of a passage in its conversation; above `_NUMBER_BITS`, of which conversation or part it is."""

_PLACES: msgspec.json.Decoder[list[int]] = msgspec.json.Decoder(list[int])


class _Part(NamedTuple):
    """A range of a conversation that the index holds. `shift` is what stored places lack above `_NUMBER_BITS`."""

    conversation_id: str
    number: int
    first: int
    last: int
    shift: int

    @property
    def owner(self) -> int | str:
        """By what the rows of its conversation tell that they are of it."""
        return self.number or self.conversation_id

    @property
    def bounds(self) -> tuple[int, int]:
        """The first and the last place, as they are stored."""
        base = self.number << _NUMBER_BITS
        return base + self.first * PIECES, base + (self.last + 1) * PIECES - 1


class _Wanted(NamedTuple):
    """What full text is asked for in a part: a word, or several, between two places as they are stored."""

    part: _Part
    asked: str
    first: int
    last: int


_Key: TypeAlias = tuple[int, str]
"""A part, by its position, and a word, by its name."""


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
        yield Query("merge_some_of_index", {})
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
        _part(part, held[part.conversation_id][2], until, at)
        for at, part in enumerate(outside(indexed, query.withheld))
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


@bounded
def search_few(query: RecallQuery) -> Steps[IndexAnswer]:
    """`search` for few words, which reads little."""
    return search(query)


def _ranges(branch: Sequence[BranchRange]) -> Steps[dict[str, tuple[int, int, int]]]:
    """What the index holds of each conversation of the branch, and the number of the conversation."""
    ids = [part.conversation_id for part in branch]
    values = {"group_id": group_of(ids[-1]), "conversations": to_json(ids), "version": ANALYZER_VERSION}
    return {row[0]: _checked(*row[1:4]) for row in (yield Query("recall_ranges", values))}


def _part(part: BranchRange, number: int, until: int, at: int) -> _Part:
    """On SQLite the number of a conversation stands in its places already."""
    shift = 0 if number else at << _NUMBER_BITS
    return _Part(part.conversation_id, number, part.start_seq, part.end_seq or until, shift)


def _looked_up(parts: Sequence[_Part], words: Sequence[tuple[str, ...]]) -> Steps[_Found]:
    """Where the words stand: of a common one the newest places, and beside the rarer ones the older ones, too."""
    terms = {word[0]: word for word in words}
    newest = yield from _read_places(
        "recall_places",
        {
            (at, name): _Wanted(part, _asked(part, word), *part.bounds)
            for at, part in enumerate(parts)
            for name, word in terms.items()
        },
    )
    older = yield from _older_places(parts, terms, newest)
    places: dict[str, list[Place]] = {}
    counts: dict[str, int] = {}
    for name in terms:
        counts[name] = sum(_estimated(newest[at, name], part) for at, part in enumerate(parts))
        keys = [(at, name) for at in range(len(parts))]
        if its_places := [place for key in keys for place in (*newest[key], *older.get(key, ()))]:
            places[name] = its_places
    return _Found(places, counts)


def _older_places(
    parts: Sequence[_Part], terms: Mapping[str, tuple[str, ...]], newest: Mapping[_Key, Sequence[Place]]
) -> Steps[dict[_Key, list[Place]]]:
    """Where words that were not looked at to their end stand beside rarer ones, farther back; beside each other if
    none is rarer.
    """
    beside_rare: dict[_Key, _Wanted] = {}
    beside_common: dict[_Key, _Wanted] = {}
    for at, part in enumerate(parts):
        found = {name: places for name in terms if (places := newest[at, name])}
        reach = {name: min(places) for name, places in found.items() if len(places) >= PLACES_OF_A_WORD}
        common = sorted(reach, key=lambda name: reach[name])[:MAX_COMMON]
        rare = [name for name in found if name not in reach][:MAX_RARE]
        among = [term for name in rare for term in terms[name]]
        for name in common:
            last = reach[name] - 1
            if rare:
                older = sorted(place for each in rare for place in found[each] if place <= last)[-PLACES_OF_A_WORD:]
                if older:
                    beside = [among] if older[0] < older[-1] else []  # at a single place the rare word is known to be
                    asked = _asked(part, terms[name], *beside)
                    beside_rare[at, name] = _Wanted(part, asked, older[0] - part.shift, older[-1] - part.shift)
            elif others := [other for other in common if other != name]:
                asked = _asked(part, terms[name], terms[others[0]])
                first = last - MAX_FARTHER * (max(found[name]) - last)
                beside_common[at, name] = _Wanted(
                    part, asked, max(part.bounds[0], first - part.shift), last - part.shift
                )
    beside = yield from _read_places("recall_places_among_few", beside_rare)
    return beside | (yield from _read_places("recall_places", beside_common))


def _read_places(statement: str, wanted: Mapping[_Key, _Wanted]) -> Steps[dict[_Key, list[Place]]]:
    found: dict[_Key, list[Place]] = {key: [] for key in wanted}
    if not wanted:
        return found
    keys, asked = list(wanted), list(wanted.values())
    values = {
        "terms": to_json([(each.asked, each.first, each.last, each.part.conversation_id) for each in asked]),
        "limit": PLACES_OF_A_WORD,
        "group_id": group_of(asked[0].part.conversation_id),
    }
    for number, places in (yield Query(statement, values)):
        if places is not None:
            shift = asked[int(number)].part.shift
            stored = _PLACES.decode(places)
            found[keys[int(number)]] = [place + shift for place in stored] if shift else stored
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


def _estimated(places: Sequence[Place], part: _Part) -> int:
    """How many passages of a part hold a word, of which these are the newest."""
    if len(places) < PLACES_OF_A_WORD:
        return len(places)
    looked_at = part.last - (min(places) & _PLACE_MASK) // PIECES + 1
    return max(len(places), round(len(places) * (part.last - part.first + 1) / max(1, looked_at)))


def _hits(
    parts: Sequence[_Part], best: Sequence[Place], places: Mapping[str, Sequence[Place]]
) -> Steps[list[IndexHit]]:
    """The passages at the best places, and those beside the best of them, each with the names of the words it holds."""
    holders = [_holder(parts, place) for place in best]
    values = {
        "group_id": group_of(parts[0].conversation_id),
        "places": to_json([place - part.shift for place, part in zip(best, holders, strict=True)]),
        "conversations": to_json([part.conversation_id for part in holders]),
        "near": int(WITH_NEIGHBOURS * len(best)) + 1,
    }
    rows = msgspec.convert([tuple(row) for row in (yield Query("recall_passages_at", values))], list[_Row])
    by_place: dict[Place, tuple[_Row, list[str]]] = {}
    for part in parts:
        owner, (first, last) = part.owner, part.bounds
        for row in rows:
            if first <= row[1] <= last and row[2] <= part.last and row[0] == owner:
                by_place[row[1] + part.shift] = row, []
    for name, its_places in places.items():
        for place in by_place.keys() & its_places:
            by_place[place][1].append(name)
    return [_hit(row, names) for row, names in by_place.values()]


def _holder(parts: Sequence[_Part], place: Place) -> _Part:
    """The part that holds a place."""
    if len(parts) == 1:
        return parts[0]
    return next(part for part in parts if part.bounds[0] <= place - part.shift <= part.bounds[1])


_Natural = Annotated[int, msgspec.Meta(ge=0)]
_Row: TypeAlias = tuple[int | str, int, _Natural, _Natural, _Natural, _Natural, _Natural, _Natural]


def _hit(row: _Row, names: Sequence[str]) -> IndexHit:
    _, place, end_seq, start, end, call_seq, tokens, length = row
    seq, piece = divmod(place & _PLACE_MASK, PIECES)
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


def state_detail(sessions: int, messages: int) -> tuple[str, str]:
    """What is indexed, for a report of the store's health."""
    return "recall index", f"{messages} messages, sessions: {sessions}"


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
