"""Which entries of an index answer a query best. Pure, so that every index ranks alike.

The score is BM25 over whether a term occurs at all, not how often: entries are a message or a line (Robertson and
Zaragoza, "The Probabilistic Relevance Framework: BM25 and Beyond", 2009, with the usual k1 and b).
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence

from msgspec.structs import replace

from reactor_memory.models.index_requests import IndexAnswer, IndexEntry, IndexHit
from reactor_memory.text.analyzer import terms

K1, B = 1.2, 0.75


class Postings:
    """An index in memory: which entries hold a term, in the order in which they were added."""

    def __init__(self) -> None:
        self.entries: list[tuple[IndexEntry, int]] = []
        self._with_term: defaultdict[str, list[int]] = defaultdict(list)

    def add(self, entries: Iterable[IndexEntry]) -> None:
        for entry in entries:
            held = set(terms(entry.text))
            for term in held:
                self._with_term[term].append(len(self.entries))
            self.entries.append((entry, len(held)))

    def before(self, seq: int) -> Postings:
        """The postings of the entries before `seq`."""
        kept = Postings()
        kept.add(entry for entry, _ in self.entries if entry.seq < seq)
        return kept

    def find(self, wanted: Sequence[str], *, first: int = 1, last: int) -> tuple[list[IndexHit], dict[str, int]]:
        """The entries from `first` to `last` that hold one of the terms, and how many hold each, wherever they are."""
        hits: defaultdict[int, list[str]] = defaultdict(list)
        for term in wanted:
            for position in self._with_term.get(term, ()):
                if first <= self.entries[position][0].seq <= last:
                    hits[position].append(term)
        frequencies = {term: len(self._with_term.get(term, ())) for term in wanted}
        return [_found(*self.entries[position], its_terms) for position, its_terms in hits.items()], frequencies


def _found(entry: IndexEntry, length: int, its_terms: Sequence[str]) -> IndexHit:
    return IndexHit(seq=entry.seq, anchor=entry.anchor, turn=entry.turn, terms=tuple(its_terms), length=length)


def scored(findings: IndexAnswer) -> IndexAnswer:
    """The findings with their scores, best first; of equals the newer one, a message before a line."""
    rarities = {term: rarity(count, findings.total) for term, count in findings.frequencies.items()}
    lengths = [found.length for found in findings.found]
    usual = sum(lengths) / len(lengths) if sum(lengths) else 1.0
    ranked = [replace(found, score=_score(found, rarities, usual)) for found in findings.found]
    return replace(findings, found=tuple(sorted(ranked, key=_rank)))


def joined(indexed: IndexAnswer, direct: IndexAnswer) -> IndexAnswer:
    """Two findings over different entries as one."""
    terms_of_both = indexed.frequencies.keys() | direct.frequencies.keys()
    return IndexAnswer(
        found=(*indexed.found, *direct.found),
        frequencies={t: indexed.frequencies.get(t, 0) + direct.frequencies.get(t, 0) for t in sorted(terms_of_both)},
        total=indexed.total + direct.total,
        indexed_until=indexed.indexed_until,
    )


def rarity(count: int, total: int) -> float:
    """How much it says that an entry holds a term which `count` of `total` entries hold."""
    return math.log(1 + (max(total, count) - count + 0.5) / (count + 0.5))


def _score(found: IndexHit, rarities: Mapping[str, float], usual: float) -> float:
    norm = K1 * (1 - B + B * found.length / usual)
    return found.similarity + sum(rarities[term] for term in found.terms) * (K1 + 1) / (1 + norm)


def _rank(found: IndexHit) -> tuple[float, int, str]:
    return -found.score, -found.seq, found.anchor
