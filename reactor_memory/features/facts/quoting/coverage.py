"""The order in which lines are worth telling: what says most that was not said yet, for its tokens. Pure.

Greedy, and so nested: what a small budget tells is the beginning of what a large one tells. A line is worth less the
more of its terms stand in lines before it, and the more lines of its message were told.
"""

from __future__ import annotations

import heapq
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import NamedTuple

AGAIN = 0.4
"""A term that was told is worth so much the next time,"""

LEAST_AGAIN = 0.1
"""and never less than this."""

BREADTH = 0.85
"""Each further line of a message is worth so much of the one before."""

LINE_COST = 5
"""Tokens that a line costs beside its words."""


class Candidate(NamedTuple):
    """A line that may be told. `power` below 1: the more it says, the less each further term adds."""

    tokens: int
    weight: float
    terms: Mapping[str, float]
    source: int
    power: float = 0.7
    again: float = AGAIN


def told_values(candidates: Sequence[Candidate]) -> list[float]:
    """For each candidate its value at the time when it is told: the best first, each worth no more than the one
    before.
    """
    rare = _rareness(candidates)
    told: Counter[str] = Counter()
    picked: Counter[int] = Counter()
    values = [0.0] * len(candidates)
    heap = [(-_value(each, rare, told, picked), place) for place, each in enumerate(candidates)]
    heapq.heapify(heap)
    most = math.inf
    while heap:
        known, place = heap[0]
        each = candidates[place]
        value = _value(each, rare, told, picked)
        if value < -known * 0.999:
            heapq.heapreplace(heap, (-value, place))
            continue
        heapq.heappop(heap)
        values[place] = most = min(most, value)
        told.update(each.terms.keys())
        picked[each.source] += 1
    return values


def _rareness(candidates: Sequence[Candidate]) -> Mapping[str, float]:
    """How rare each term is among the lines, from 0 to 1."""
    count = Counter(term for each in candidates for term in each.terms)
    most = math.log(1 + len(candidates))
    return {term: math.log(1 + len(candidates) / times) / most for term, times in count.items()} if most else {}


def _value(each: Candidate, rare: Mapping[str, float], told: Counter[str], picked: Counter[int]) -> float:
    said = 0.0
    for term, worth in each.terms.items():
        times = told[term]
        said += worth * rare.get(term, 1.0) * (max(LEAST_AGAIN, each.again**times) if times else 1.0)
    return each.weight * BREADTH ** picked[each.source] * said**each.power / (each.tokens + LINE_COST)
