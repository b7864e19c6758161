"""Which passages answer a query best. Pure, so that every index ranks alike.

The score is BM25 over whether a term occurs at all, not how often: passages are short (Robertson and Zaragoza, "The
Probabilistic Relevance Framework: BM25 and Beyond", 2009, with the usual k1). A passage counts a share of the better
one beside it: an answer stands beside its question.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import pairwise
from operator import attrgetter

from msgspec.structs import replace

from reactor_memory.models.index_requests import IndexAnswer, IndexHit, Passage, RecallQuery
from reactor_memory.text.analyzer import ANY_ENDING

K1, B = 1.2, 0.3
"""B is less than usual, for no passage is long: what repeats a question in few words does not stand before what answers
it in more (docs/decisions.md).
"""

TALK_SHARE, STEP_SHARE = 0.8, 0.5
"""What a passage counts of the better one beside it: between words that people said, and where a call or a result is
one of the two, for a step tells more of itself. Chosen on talk and on agent work (docs/decisions.md).
"""

SHORT_CALL_CHARACTERS, CALL_SHARE = 160, 0.5
"""A call of so many characters stands before what it gave, which comes back first; the call counts for that share."""


def found_among(passages: Iterable[Passage], query: RecallQuery) -> IndexAnswer:
    """What of these passages answers, and what stands beside it; the answer of an index that holds them alone."""
    held = [(passage, frozenset(passage.terms)) for passage in passages]
    words = query.words
    if query.begun:
        missing = [word[0] for word in words if not any(terms.intersection(word) for _, terms in held)]
        words = begun_words(words, query.begun, missing)
    having = [words_of(terms, words) for _, terms in held]
    frequencies = {word[0]: 0 for word in query.words}
    for name in (name for its_words in having for name in its_words):
        frequencies[name] += 1
    near = {at + step for at, its_words in enumerate(having) if its_words for step in (-1, 0, 1)}
    found = tuple(
        IndexHit(passage=replace(passage, terms=having[at]), length=len(passage.terms))
        for at, (passage, _) in enumerate(held)
        if at in near
    )
    until = max((passage.end_seq for passage, _ in held), default=0)
    messages = until - held[0][0].seq + 1 if held else 0
    return IndexAnswer(found=found, frequencies=frequencies, total=messages, indexed_until=until)


def begun_words(
    words: Sequence[tuple[str, ...]], begun: Mapping[str, tuple[str, ...]], missing: Collection[str]
) -> tuple[tuple[str, ...], ...]:
    """The words, of those that are `missing` what they may begin."""
    return tuple((word[0], *begun.get(word[0], ())) if word[0] in missing else word for word in words)


def words_of(terms: Collection[str], words: Iterable[tuple[str, ...]]) -> tuple[str, ...]:
    """The names of the words that stand among the terms."""
    return tuple(word[0] for word in words if any(_is_among(term, terms) for term in word))


def _is_among(term: str, terms: Collection[str]) -> bool:
    if term.endswith(ANY_ENDING):
        return any(each.startswith(term[:-1]) for each in terms)
    return term in terms


def scored(findings: IndexAnswer) -> IndexAnswer:
    """The findings with their scores, best first; of equals the newer one."""
    weights = rarities(findings)
    lengths = [hit.length for hit in findings.found]
    usual = sum(lengths) / len(lengths) if sum(lengths) else 1.0
    ordered = sorted(findings.found, key=_place)
    told = {terms: (K1 + 1) * matched(terms, weights) for terms in {hit.passage.terms for hit in ordered}}
    own = [hit.similarity + told[hit.passage.terms] / (1 + K1 * (1 - B + B * hit.length / usual)) for hit in ordered]
    shared = [*own]
    for at, (earlier, later) in enumerate(pairwise(ordered)):
        if _touch(earlier.passage, later.passage):
            share = STEP_SHARE if earlier.passage.call_seq or later.passage.call_seq else TALK_SHARE
            shared[at] = max(shared[at], own[at] + share * own[at + 1])
            shared[at + 1] = own[at + 1] + share * own[at]
    ranked = [_with_score(hit, score) for hit, score in zip(ordered, shared, strict=True) if score > 0]
    ranked = _results_for_calls(ranked)
    ranked.reverse()
    ranked.sort(key=_score, reverse=True)
    return replace(findings, found=tuple(ranked))


def _place(hit: IndexHit) -> int:
    return hit.passage.place


_score = attrgetter("score")


def _with_score(hit: IndexHit, score: float) -> IndexHit:
    return IndexHit(passage=hit.passage, length=hit.length, similarity=hit.similarity, score=score)


def _results_for_calls(hits: list[IndexHit]) -> list[IndexHit]:
    """The hits, with what a short call gave in the place of the call, if it holds the same words."""
    steps = [at for at, hit in enumerate(hits) if hit.passage.call_seq]
    calls = {hits[at].passage.seq: at for at in steps if _is_short_call(hits[at].passage)}
    if not calls:
        return hits
    ranked, best = [*hits], dict[int, int]()
    for at in steps:
        hit = hits[at]
        seq = hit.passage.call_seq
        if seq != hit.passage.seq and seq in calls and {*hits[calls[seq]].passage.terms} <= {*hit.passage.terms}:
            best[seq] = max(best.get(seq, at), at, key=lambda each: hits[each].score)
    for seq, at in best.items():
        call = hits[calls[seq]]
        ranked[at] = _with_score(hits[at], max(hits[at].score, call.score))
        ranked[calls[seq]] = _with_score(call, CALL_SHARE * call.score)
    return ranked


def _is_short_call(passage: Passage) -> bool:
    return passage.call_seq == passage.seq and not passage.piece and passage.end <= SHORT_CALL_CHARACTERS


def _touch(earlier: Passage, later: Passage) -> bool:
    """Whether nothing lies between the two, as far as their places tell."""
    if earlier.seq == later.seq:
        return later.piece == earlier.piece + 1
    return later.piece == 0 and later.seq == earlier.end_seq + 1


def joined(indexed: IndexAnswer, direct: IndexAnswer) -> IndexAnswer:
    """Two findings over different passages as one."""
    names = indexed.frequencies.keys() | direct.frequencies.keys()
    return IndexAnswer(
        found=(*indexed.found, *direct.found),
        frequencies={t: indexed.frequencies.get(t, 0) + direct.frequencies.get(t, 0) for t in sorted(names)},
        total=indexed.total + direct.total,
        indexed_until=indexed.indexed_until,
        is_damaged=indexed.is_damaged,
    )


def rarity(count: int, total: int) -> float:
    """How much it says that a passage holds a term which `count` of `total` passages hold."""
    return math.log(1 + (max(total, count) - count + 0.5) / (count + 0.5))


def rarities(findings: IndexAnswer) -> dict[str, float]:
    """What each word of the query weighs."""
    return {term: rarity(count, findings.total) for term, count in findings.frequencies.items()}


def matched(terms: Iterable[str], weights: Mapping[str, float]) -> float:
    """What the terms weigh together."""
    return sum(weights.get(term, 0.0) for term in terms)


def best_places(places: Mapping[str, Sequence[int]], weights: Mapping[str, float], limit: int) -> list[int]:
    """The places whose words weigh most together; of equals the later ones."""
    totals: dict[int, float] = {}
    for name, its_places in places.items():
        weight = weights[name]
        for place in its_places:
            totals[place] = totals.get(place, 0.0) + weight
    return sorted(sorted(totals, reverse=True), key=totals.__getitem__, reverse=True)[:limit]
