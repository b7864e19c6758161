"""The operations of search over all conversations that have an owner.

A search reads which conversations the user may read, then asks words and vectors for the best of these alone, in one
transaction: what it finds, counts and leaves out depends on nothing else.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from operator import itemgetter
from typing import Any, NamedTuple

from msgspec.structs import asdict

from reactor_memory.core.log.branches import group_of
from reactor_memory.core.log.rows import branch_from, key_of, message_from, to_json
from reactor_memory.core.log.user_rows import name_user
from reactor_memory.core.log.walks import of_all_groups, of_groups
from reactor_memory.database.operations import Batch, Query, Row, Steps
from reactor_memory.errors import InvalidInputError, StoreCorruptError
from reactor_memory.features.recall.operations import term_key
from reactor_memory.features.recall.ranking import K1, B, rarity
from reactor_memory.features.recall.vectors import NearQuery, nearest, packed
from reactor_memory.features.search.models import (
    DEEPEST,
    IndexedRange,
    Meaning,
    MessageHit,
    Place,
    SearchAnswer,
    SearchBacklog,
    SearchProgress,
    SearchQuery,
    WordEntry,
    by_score,
    fused,
)
from reactor_memory.models import BranchRange
from reactor_memory.models.leases import Lease
from reactor_memory.models.requests import EMBED_SEARCH, EVER, INDEX_SEARCH, Ahead
from reactor_memory.text.analyzer import ANALYZER_VERSION, ANY_ENDING, QueryWord, beginnings, present

WEIGHT_UNIT = 1_000
"""Weights are whole numbers, so that no engine adds them up in its own way."""

LAST_SEQ = 2**31 - 1
"""Of a message in a conversation: half of a row id."""


_SCOPE = re.compile(r"[0-9a-f]{8}")


class Visible(NamedTuple):
    """A conversation, or the part of one, that a search looks at."""

    number: int
    start_seq: int
    end_seq: int
    conversation_id: str
    scope: str
    group_id: str


# Searching


def search_messages(query: SearchQuery) -> Steps[SearchAnswer]:
    """Only what the user may read is looked at, and counted. Raises `InvalidInputError` if `before` names no message
    that the user can see.
    """
    yield from name_user(query.user_id)
    rows = yield Query("visible_conversations", {"user_id": query.user_id})
    allowed = _of_agents(rows, query.agent_names)
    visible = visible_parts(allowed, query.conversation_ids)
    bounds = yield from _bounds(query, visible, allowed)
    rankings: list[Sequence[Place]] = []
    found: tuple[str, ...] = ()
    if query.words:
        total = sum(row[6] or 0 for row in allowed)
        by_words, found = yield from _by_words(query.words, visible, total, bounds)
        rankings.append(by_words)
    if query.vector is not None:
        rankings.append((yield from _by_meaning(query, visible, bounds)))
    ranked = fused(rankings)
    page = ranked[query.seen : query.seen + query.limit]
    hits = yield from _read(page, visible_in(allowed, query.conversation_ids))
    return SearchAnswer(hits=hits, terms=found, is_more=len(ranked) > query.seen + query.limit)


def _of_agents(rows: Iterable[Row], agent_names: Sequence[str] | None) -> list[Row]:
    """The conversations whose group belongs to one of these agents; all if None. A fork has the agent of its root."""
    found = list(rows)
    if agent_names is None:
        return found
    groups = {row[0] for row in found if row[1] == row[0] and row[2] in agent_names}
    return [row for row in found if row[0] in groups]


def visible_parts(rows: Sequence[Row], conversation_ids: Sequence[str] | None) -> list[Visible]:
    """What to search: all conversations of `rows`, or the branches of those named, each stored message once."""
    if conversation_ids is None:
        return [_part(row, LAST_SEQ) for row in rows if row[5] is not None]
    ends: dict[str, int] = {}
    for row in rows:
        if row[1] in conversation_ids:
            for part in _branch(row):
                end = LAST_SEQ if part.end_seq is None else part.end_seq
                ends[part.conversation_id] = max(end, ends.get(part.conversation_id, 0))
    return [_part(row, ends[row[1]]) for row in rows if row[1] in ends and row[5] is not None]


def _part(row: Row, end_seq: int) -> Visible:
    _check_scope(row[5])
    return Visible(row[4], 0, end_seq, row[1], row[5], row[0])


def _check_scope(scope: object) -> None:
    """Raises `StoreCorruptError` for one that is none: it stands in what full text is asked."""
    if scope is not None and not (isinstance(scope, str) and _SCOPE.fullmatch(scope)):
        raise StoreCorruptError("store: the search index is damaged; it is made again from the log")


def _branch(row: Row) -> tuple[BranchRange, ...]:
    return branch_from(row[1], row[3])


def visible_in(rows: Sequence[Row], conversation_ids: Sequence[str] | None) -> Callable[[Place], str]:
    """In which conversation a stored message is shown: of those asked for the first whose branch holds it."""
    if conversation_ids is None:
        return lambda place: place[0]
    branches = {row[1]: _branch(row) for row in rows if row[1] in conversation_ids}
    asked = [each for each in conversation_ids if each in branches]

    def show(place: Place) -> str:
        return next((each for each in asked if _holds(branches[each], place)), place[0])

    return show


def _holds(branch: Sequence[BranchRange], place: Place) -> bool:
    conversation_id, seq = place
    return any(
        part.conversation_id == conversation_id and (part.end_seq is None or seq <= part.end_seq) for part in branch
    )


def _bounds(query: SearchQuery, visible: Sequence[Visible], allowed: Sequence[Row]) -> Steps[dict[str, Any]]:
    shared = everything_of(visible, DEEPEST)
    shared |= {"is_whole": int(query.conversation_ids is None), "as_of": query.as_of}
    if query.before is None:
        return shared
    everywhere = to_json([_part(row, LAST_SEQ) for row in allowed]) or "[]"
    values = {"visible": everywhere, "group_ids": sorted({row[0] for row in allowed}), "message_id": query.before}
    rows = yield Query("place_of_message", values)
    if not rows:
        raise InvalidInputError("before", "is the id of no message that can be found")
    conversation_id, seq, sent_at = rows[0]
    return shared | {"before_conversation": conversation_id, "before_seq": seq, "before_at": sent_at}


def everything_of(visible: Sequence[Visible], limit: int) -> dict[str, Any]:
    """What the statements of a search have in common, of one that looks at all that is visible."""
    return {
        "visible": to_json(visible) or "[]",
        "group_ids": sorted({part.group_id for part in visible}),
        "as_of": None,
        "before_at": None,
        "before_conversation": None,
        "before_seq": None,
        "limit": limit,
    }


def _by_words(
    words: Sequence[QueryWord], visible: Sequence[Visible], total: int, bounds: dict[str, Any]
) -> Steps[tuple[list[Place], tuple[str, ...]]]:
    """The best places, and the terms that found them: of a word that nothing holds those that begin as it does."""
    scopes = sorted({part.scope for part in visible})
    counts = yield from _frequencies([term for word in words for term in word.terms], scopes, bounds)
    begun = [beginnings(word) for word in words if not any(map(counts.get, word.terms))]
    tried = yield from _frequencies([term for each in begun for term in each], scopes, bounds)
    counts |= {term: tried[term] for each in begun for term in each if term in tried and term not in counts}
    wanted = [term for term in present(words, counts) if term in counts]
    wanted += [term for each in begun for term in [next(filter(tried.get, each), "")] if term]
    wanted = list(dict.fromkeys(wanted))
    rarities = {number: rarity(counts[term], total) for number, term in enumerate(wanted)}
    weights = {number: round(WEIGHT_UNIT * value) for number, value in rarities.items()}
    if not weights:
        return [], ()
    rows = yield Query("search_words", bounds | _terms(wanted, scopes, weights))
    return by_score(_scores(_best(rows, weights, bounds["limit"]), rarities)), tuple(wanted)


def _best(rows: Sequence[Row], weights: dict[int, int], limit: int) -> Sequence[Row]:
    """Of the best of each shard those that weigh most, as the statement takes them."""
    if len(rows) <= limit:
        return rows
    weight = {id(row): sum(weights[int(number)] for number in str(row[3]).split(",")) for row in rows}
    return sorted(rows, key=lambda row: (-weight[id(row)], -row[1], row[0]))[:limit]


def _frequencies(wanted: Sequence[str], scopes: Sequence[str], bounds: dict[str, Any]) -> Steps[dict[str, int]]:
    """How many messages hold each of the terms, of those that any holds."""
    wanted = list(dict.fromkeys(wanted))
    if not wanted:
        return {}
    rows = yield Query("search_frequencies", bounds | _terms(wanted, scopes, dict.fromkeys(range(len(wanted)), 0)))
    counts: dict[str, int] = {}
    for number, count in rows:  # of each shard that was asked
        counts[wanted[int(number)]] = counts.get(wanted[int(number)], 0) + count
    return counts


def _terms(wanted: Sequence[str], scopes: Sequence[str], weights: dict[int, int]) -> dict[str, Any]:
    """The terms by their numbers in `weights`, behind each scope."""
    behind = [(scope + wanted[number], number, weight, scope) for scope in scopes for number, weight in weights.items()]
    return {"terms": to_json(behind) or "[]", "any_term": " | ".join(_query_term(term) for term, *_ in behind)}


def _query_term(term: str) -> str:
    """As PostgreSQL is asked for it."""
    beginning = term.removesuffix(ANY_ENDING)
    return f"'{term}'" if term == beginning else f"'{beginning}':*"


def _scores(rows: Sequence[Row], rarities: dict[int, float]) -> dict[Place, float]:
    """As `context.ranking.scored`, of messages of several conversations."""
    usual = sum(row[2] for row in rows) / len(rows) if rows else 1.0
    return {
        (conversation_id, seq): sum(rarities[int(number)] for number in str(numbers).split(","))
        * ((K1 + 1) / (1 + K1 * (1 - B + B * length / (usual or 1.0))))
        for conversation_id, seq, length, numbers in rows
    }


def _by_meaning(query: SearchQuery, visible: Sequence[Visible], bounds: dict[str, Any]) -> Steps[list[Place]]:
    return by_score((yield from nearest_places(query, bounds)))


def nearest_places(query: SearchQuery | NearQuery, bounds: dict[str, Any]) -> Steps[dict[Place, float]]:
    """How alike the nearest messages are, as many as the limit of `bounds`."""
    values = bounds | {
        "model": query.model,
        "vector": query.vector,
        "min_similarity": query.min_similarity,
    }
    rows = yield Query("compares_vectors", {})
    if rows[0][0]:
        found = yield Query("nearest_embeddings", values)
        best = sorted(found, key=lambda row: (-row[2], -row[1], row[0]))[: bounds["limit"]]
        return {(row[0], row[1]): row[2] for row in best}
    # Newest first, as the other statement has it: of equals these are the nearest.
    stored = sorted((yield Query("visible_embeddings", values)), key=itemgetter(1), reverse=True)
    vectors = [row[2] for row in stored]
    scores = nearest(query.vector or (), vectors, at_least=query.min_similarity, limit=bounds["limit"])
    return {(stored[place][0], stored[place][1]): similarity for place, similarity in scores}


def _read(page: Sequence[tuple[Place, float]], show: Callable[[Place], str]) -> Steps[tuple[MessageHit, ...]]:
    places = [(group_of(conversation_id), conversation_id, seq) for (conversation_id, seq), _ in page]
    values = {"places": to_json(places) or "[]", "group_ids": sorted({place[0] for place in places})}
    rows = yield Query("found_messages", values)
    messages = {(row[0], row[1]): message_from(row[1:]) for row in rows}
    return tuple(
        MessageHit(conversation_id=show(place), message=messages[place], score=score)
        for place, score in page
        if place in messages
    )


# Indexing


def search_progress(conversation_id: str) -> Steps[SearchProgress | None]:
    rows = yield Query("search_progress", key_of(conversation_id))
    if not rows:
        return None
    indexed_seq, embedded_seq, model, parked, analyzer, _ = rows[0]
    return SearchProgress(
        indexed_seq=indexed_seq, embedded_seq=embedded_seq, model=model, parked=parked, analyzer=analyzer
    )


def behind_in_words(*, after: str, now: int, limit: int, ahead: Ahead = EVER) -> Steps[tuple[str, ...]]:
    """Conversations behind `after` (in the order of their ids) with work of the kind `INDEX_SEARCH` to do now. What is
    leased or put off until further `ahead` is there, too: a wrong clock did that.
    """
    wanted = {"kind": INDEX_SEARCH, "analyzer": ANALYZER_VERSION, "model": None}
    return (yield from _behind(wanted, after, now, limit, ahead))


def behind_in_meanings(*, model: str, after: str, now: int, limit: int, ahead: Ahead = EVER) -> Steps[tuple[str, ...]]:
    """As `behind_in_words`, of the kind `EMBED_SEARCH`."""
    wanted = {"kind": EMBED_SEARCH, "analyzer": None, "model": model}
    return (yield from _behind(wanted, after, now, limit, ahead))


def _behind(wanted: dict[str, Any], after: str, now: int, limit: int, ahead: Ahead) -> Steps[tuple[str, ...]]:
    rows = yield Query("behind_in_search", key_of(after) | asdict(ahead) | wanted | {"now": now, "limit": limit})
    return tuple(row[0] for row in rows)


def index_words(lease: Lease, part: IndexedRange) -> Steps[bool]:
    """Store the words of a range. False, and nothing is stored, if the lease is not the newest one of a living
    conversation, or the range does not follow what is indexed. What went out of view meanwhile is left out. Words of
    another version of the analyzer are replaced.
    """
    if not (yield from _may_write(lease, part)):
        return False
    key = key_of(part.conversation_id)
    progress = {"after": part.after, "first": part.first, "end_seq": part.end_seq, "parked": part.parked}
    if not (yield Query("advance_indexed", key | progress | {"analyzer": ANALYZER_VERSION})):
        return False
    if part.after == part.first:
        yield Query("delete_search_entries", key | {"start_seq": 0, "end_seq": LAST_SEQ})
    in_view = yield from _in_view(part)
    [(*_, scope)] = yield Query("search_progress", key)
    values = [_word_values(entry, scope) for entry in part.words if entry.seq in in_view]
    yield Batch("insert_search_entry", [key | each | {"now": part.read_at} for each in values])
    return True


def _word_values(entry: WordEntry, scope: str) -> dict[str, Any]:
    return {
        "seq": entry.seq,
        "length": len(entry.terms),
        "sent_at": entry.sent_at,
        "terms": " ".join(scope + term for term in entry.terms),
    }


def index_meanings(lease: Lease, part: IndexedRange, *, model: str) -> Steps[bool]:
    """As `index_words`. Vectors of another model are replaced. What reaches the end of the conversation brings its
    `vectorized_at` to `read_at`.
    """
    if not (yield from _may_write(lease, part)):
        return False
    key = key_of(part.conversation_id)
    advance = {"after": part.after, "first": part.first, "end_seq": part.end_seq, "model": model}
    if not (yield Query("advance_embedded", key | advance | {"parked": part.parked})):
        return False
    if part.after == part.first:
        yield Query("delete_embeddings", key | {"start_seq": 0, "end_seq": LAST_SEQ})
    in_view = yield from _in_view(part)
    values = [_vector_values(meaning) for meaning in part.meanings if meaning.seq in in_view]
    yield Batch("insert_embedding", [key | each | {"model": model, "now": part.read_at} for each in values])
    yield Query("mark_vectorized", key | {"end_seq": part.end_seq, "read_at": part.read_at})
    return True


def _vector_values(meaning: Meaning) -> dict[str, Any]:
    """Each engine takes the form that it keeps."""
    return {
        "seq": meaning.seq,
        "sent_at": meaning.sent_at,
        "vector": packed(meaning.vector),
        "numbers": meaning.vector,
    }


def _may_write(lease: Lease, part: IndexedRange) -> Steps[bool]:
    """Whether this writer has the newest lease of a living conversation, which nobody changes until we are done."""
    key = key_of(part.conversation_id)
    alive = yield Query("hold_session", key)
    if not alive or alive[0][0] is not None:
        return False
    newest = yield Query("lock_work", key | {"kind": lease.kind})
    if not newest or newest[0][0] != lease.fence:
        return False
    values = {"scope": term_key(part.owner_id), "after": part.first, "analyzer": ANALYZER_VERSION}
    yield Query("begin_search_progress", key | values)
    return True


def _in_view(part: IndexedRange) -> Steps[frozenset[int]]:
    """The messages of the range that are there still: one may have been erased since it was read."""
    rows = yield Query("seqs_in_view", key_of(part.conversation_id) | {"after": part.after, "end_seq": part.end_seq})
    return frozenset(row[0] for row in rows)


def search_backlog(*, model: str | None = None) -> Steps[SearchBacklog]:
    words, meanings, parked = (yield Query("search_backlog", {"model": model, "analyzer": ANALYZER_VERSION}))[0]
    return SearchBacklog(words=words, meanings=meanings if model is not None else 0, parked=parked)


def state_detail(backlog: SearchBacklog) -> tuple[str, str]:
    """What waits, for a report of the store's health."""
    return "search index", f"{backlog.words} messages wait, {backlog.parked} were given up"


# Forgetting


def forget_range(conversation_id: str, start_seq: int, end_seq: int) -> Steps[None]:
    values = key_of(conversation_id) | {"start_seq": start_seq, "end_seq": end_seq}
    yield Query("delete_search_entries", values)
    yield Query("delete_embeddings", values)


def index_again(conversation_id: str, start_seq: int) -> Steps[None]:
    """Messages from `start_seq` on can be found again: the index has to hold them once more."""
    yield from forget_range(conversation_id, start_seq, LAST_SEQ)
    yield Query("rewind_search", key_of(conversation_id) | {"end_seq": start_seq - 1})


def forget(conversation_ids: Iterable[str]) -> Steps[None]:
    for conversation_id in conversation_ids:
        yield from forget_range(conversation_id, 0, LAST_SEQ)
        yield Query("delete_search_progress", key_of(conversation_id))


def drop_damaged_entries(user_id: str, *, vector_bytes: int | None) -> Steps[bool]:
    """Take away what search holds of conversations that the user may read where some of it cannot be read; it is
    indexed again. Whether there was such a one.
    """
    yield from name_user(user_id)
    ids = [row[1] for row in (yield Query("visible_conversations", {"user_id": user_id}))]
    return (yield from drop_damaged(ids, vector_bytes=vector_bytes))


def drop_damaged(conversation_ids: Sequence[str], *, vector_bytes: int | None) -> Steps[bool]:
    """As `drop_damaged_entries`, of these conversations."""
    damaged = yield from damaged_entries(conversation_ids, vector_bytes=vector_bytes)
    yield from forget(damaged)
    return bool(damaged)


def damaged_entries(conversation_ids: Sequence[str] | None, *, vector_bytes: int | None) -> Steps[tuple[str, ...]]:
    """Of these conversations, or of all, those of which search holds something that cannot be read. `vector_bytes`: how
    long a vector is, if that is known; else all of a conversation and a model are as long.
    """
    values = {"vector_bytes": vector_bytes}
    if conversation_ids is None:
        return tuple([row[0] for row in (yield from of_all_groups("damaged_entries", values))])
    rows = yield from of_groups("damaged_entries", values, {group_of(each) for each in conversation_ids})
    return tuple([row[0] for row in rows if row[0] in conversation_ids])
