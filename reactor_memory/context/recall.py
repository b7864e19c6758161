"""Which older turns answer a query: BM25 over turns, verbatim. Pure.

Robertson and Zaragoza, "The Probabilistic Relevance Framework: BM25 and Beyond" (2009), with the usual k1 and b.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Sequence

from reactor_memory.context.selection import Count
from reactor_memory.models import Message, Value

K1, B = 1.2, 0.75

RELEVANT_SHARE = 0.3
"""Turns that match less than this share of the best one share only common words with the query."""

_WORD = re.compile(r"\w+")


class _Turn(Value, frozen=True, kw_only=True):
    messages: tuple[Message, ...]
    hits: dict[str, int]
    length: int


class TurnRanking:
    """Takes the older messages of a session page by page, then gives the best turns of them."""

    def __init__(self, query: str) -> None:
        self._terms = frozenset(words(query))
        self._turns: list[_Turn] = []
        self._open: list[Message] = []
        self._count = 0
        self._length = 0
        self._with_term: Counter[str] = Counter()

    def add(self, messages: Iterable[Message]) -> None:
        """The next messages, oldest first. Turns may go across pages."""
        for message in messages:
            if message.role == "user" and self._open:
                self._close_turn()
            self._open.append(message)

    def best(self, max_tokens: int, *, count: Count) -> tuple[Message, ...]:
        """The messages of the turns that match best and fit together into `max_tokens`, oldest first."""
        if self._open:
            self._close_turn()
        scored = [(self._score(turn), turn.messages[0].seq or 0, turn) for turn in self._turns]
        least = RELEVANT_SHARE * max((score for score, _, _ in scored), default=0.0)
        chosen: list[_Turn] = []
        for score, _, turn in sorted(scored, key=lambda each: each[:2], reverse=True):
            tokens = sum(map(count, turn.messages))
            if score >= least and tokens <= max_tokens:
                max_tokens -= tokens
                chosen.append(turn)
        chosen.sort(key=lambda turn: turn.messages[0].seq or 0)
        return tuple(message for turn in chosen for message in turn.messages)

    def _close_turn(self) -> None:
        found = [word for message in self._open for word in words(searchable(message))]
        hits = Counter(word for word in found if word in self._terms)
        self._count += 1
        self._length += len(found)
        self._with_term.update(hits.keys())
        if hits:
            self._turns.append(_Turn(messages=tuple(self._open), hits=dict(hits), length=len(found)))
        self._open = []

    def _score(self, turn: _Turn) -> float:
        norm = K1 * (1 - B + B * turn.length / (self._length / self._count))
        return sum(self._rarity(term) * hits * (K1 + 1) / (hits + norm) for term, hits in turn.hits.items())

    def _rarity(self, term: str) -> float:
        seen = self._with_term[term]
        return math.log(1 + (self._count - seen + 0.5) / (seen + 0.5))


def words(text: str) -> Sequence[str]:
    return _WORD.findall(text.casefold())


def searchable(message: Message) -> str:
    """The text of a message with its tool calls."""
    calls = " ".join(f"{call.name} {call.arguments}" for call in message.tool_calls)
    return f"{message.content} {calls}" if calls else message.content
