"""The order in which lines are worth telling: what says most that was not said yet, for its tokens. Pure.

Greedy, and so nested: what a small budget tells is the beginning of what a large one tells. A line is worth less the
more of its terms stand in lines before it, and the more lines of its message were told.
"""

from __future__ import annotations

import heapq
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import chain
from operator import mul
from typing import NamedTuple

AGAIN = 0.4
"""A term that was told is worth so much the next time,"""

LEAST_AGAIN = 0.1
"""and never less than this."""

MOST_STEPS = 64
"""After so many times it is worth no less, however slowly its worth shrinks."""

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
    telling = _Telling(candidates)
    values = [0.0] * len(candidates)
    heap = [(-telling.value(place), place) for place in range(len(candidates))]
    heapq.heapify(heap)
    most = math.inf
    while heap:
        known, place = heap[0]
        value = telling.value(place)
        if value < -known * 0.999:
            heapq.heapreplace(heap, (-value, place))
            continue
        heapq.heappop(heap)
        values[place] = most = min(most, value)
        telling.tell(place)
    return values


class _Telling:
    """What was told so far. Terms are numbers here, and what each is worth once more stands in a list for each `again`:
    each line is valued some five times.
    """

    def __init__(self, candidates: Sequence[Candidate]) -> None:
        rare = _rareness(candidates)
        number = {term: place for place, term in enumerate(rare)}
        self._candidates = candidates
        self._terms = [[number[term] for term in each.terms] for each in candidates]
        self._worths = [[worth * rare[term] for term, worth in each.terms.items()] for each in candidates]
        self._times = [0] * len(rare)
        self._left = {each.again: [1.0] * len(rare) for each in candidates}
        self._steps = [(left, _steps_down(again)) for again, left in self._left.items()]
        self._picked: Counter[int] = Counter()

    def value(self, place: int) -> float:
        each = self._candidates[place]
        said = sum(map(mul, self._worths[place], map(self._left[each.again].__getitem__, self._terms[place])))
        return each.weight * BREADTH ** self._picked[each.source] * said**each.power / (each.tokens + LINE_COST)

    def tell(self, place: int) -> None:
        self._picked[self._candidates[place].source] += 1
        for term in self._terms[place]:
            times = self._times[term] = self._times[term] + 1
            for left, steps in self._steps:
                if times < len(steps):
                    left[term] = steps[times]


def _steps_down(again: float) -> Sequence[float]:
    """What a term is worth that was told not at all, once, twice, until it is worth no less the next time."""
    steps = [1.0]
    while steps[-1] > LEAST_AGAIN and len(steps) <= MOST_STEPS:
        steps.append(max(LEAST_AGAIN, again ** len(steps)))
    return steps


def _rareness(candidates: Sequence[Candidate]) -> Mapping[str, float]:
    """How rare each term is among the lines, from 0 to 1."""
    count = Counter(chain.from_iterable(each.terms for each in candidates))
    most = math.log(1 + len(candidates))
    by_times = {times: math.log(1 + len(candidates) / times) / most for times in set(count.values())}
    return {term: by_times[times] for term, times in count.items()}
