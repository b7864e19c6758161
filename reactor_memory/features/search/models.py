"""Search over many conversations: by words, by meaning, and both."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TypeAlias

from msgspec.structs import replace

from reactor_memory.models import Message, SearchType, Value
from reactor_memory.text.analyzer import ANALYZER_VERSION, QueryWord

DEEPEST = 500
"""How many of the best by words, and how many of the best by meaning, a search can reach, however far it is paged."""

RANK_CONSTANT = 60
"""Keeps the first ranks from deciding alone (Cormack, Clarke and Buettcher, "Reciprocal Rank Fusion outperforms
Condorcet and individual Rank Learning Methods", SIGIR 2009).
"""

Place: TypeAlias = tuple[str, int]
"""Where a message is stored: conversation and seq."""


class SearchCursor(Value, frozen=True, kw_only=True):
    """How far a search was read: `seen` hits, of what was indexed until `as_of` (microseconds UTC)."""

    as_of: int
    seen: int


class MessageSearch(Value, frozen=True, kw_only=True):
    """What a user looks for in the conversations that they own or are a member of.

    With `conversation_ids` in these alone; those that the user may not read are passed over. With `agent_names` in
    conversations of these agents alone. `before` is the id of a message: hits are older than it.
    """

    text: str
    user_id: str
    conversation_ids: tuple[str, ...] | None = None
    agent_names: tuple[str, ...] | None = None
    before: str | None = None
    search_type: SearchType = "auto"
    after: SearchCursor | None = None
    limit: int = 20

    def continued(self, after: SearchCursor | None) -> MessageSearch:
        """The same search from there on."""
        return replace(self, after=after)


class MessageHit(Value, frozen=True, kw_only=True):
    """A message that answers. `conversation_id` is a conversation in which the user can see it; `highlight` a part of
    its text. `score` compares hits of one answer, and says nothing across answers.
    """

    conversation_id: str
    message: Message
    score: float
    highlight: str = ""


class MessageHits(Value, frozen=True, kw_only=True):
    """A page of hits, best first; `next` is None on the last one. `is_damaged`: some of the index could not be read; it
    is missing here until background work has made it again.
    """

    hits: tuple[MessageHit, ...] = ()
    next: SearchCursor | None = None
    is_damaged: bool = False


# What a store keeps


class SearchQuery(Value, frozen=True, kw_only=True):
    """A `MessageSearch` as a store answers it: by `words`, by `vector` (of `model`, no less alike than
    `min_similarity`), or by both.
    """

    user_id: str
    conversation_ids: tuple[str, ...] | None = None
    agent_names: tuple[str, ...] | None = None
    before: str | None = None
    words: tuple[QueryWord, ...] = ()
    vector: tuple[float, ...] | None = None
    model: str = ""
    min_similarity: float = 0.0
    as_of: int | None = None
    seen: int = 0
    limit: int = 20


class SearchAnswer(Value, frozen=True, kw_only=True):
    """Hits without highlights, and whether there are more behind them. `terms`: those that found them."""

    hits: tuple[MessageHit, ...] = ()
    terms: tuple[str, ...] = ()
    is_more: bool = False


class SearchProgress(Value, frozen=True, kw_only=True):
    """Until which message a conversation is indexed, by version `analyzer` of the analyzer, and until which one by
    `model`. `parked` were given up.
    """

    indexed_seq: int
    embedded_seq: int
    model: str | None
    parked: int = 0
    analyzer: int = ANALYZER_VERSION


class WordEntry(Value, frozen=True, kw_only=True):
    """The different terms of a message. `sent_at` is the time of the message."""

    seq: int
    terms: tuple[str, ...]
    sent_at: int


class Meaning(Value, frozen=True, kw_only=True):
    """The vector of a message."""

    seq: int
    vector: tuple[float, ...]
    sent_at: int


class IndexedRange(Value, frozen=True, kw_only=True):
    """What indexing the messages `after` < seq <= `end_seq` of a conversation gave.

    `first` is the position before the first message of the conversation itself. `words` or `meanings` are of the
    messages that users may find; `parked` of the others could not be read. `read_at`: when the messages were read.
    """

    conversation_id: str
    owner_id: str
    first: int
    after: int
    end_seq: int
    words: tuple[WordEntry, ...] = ()
    meanings: tuple[Meaning, ...] = ()
    parked: int = 0
    read_at: int


class SearchBacklog(Value, frozen=True, kw_only=True):
    """How many messages wait for their words, and for their meaning, to be indexed; how many were given up."""

    words: int = 0
    meanings: int = 0
    parked: int = 0


# Pure


def is_findable(message: Message) -> bool:
    """Whether users may find a message: what they see, and summaries. Never what agents keep for themselves."""
    return message.visibility == "user" or message.role == "summary"


def fused(rankings: Iterable[Sequence[Place]]) -> list[tuple[Place, float]]:
    """Several rankings as one, by reciprocal rank: best first, of equals the later position of the first conversation
    by id.
    """
    scores: dict[Place, float] = {}
    for ranking in rankings:
        for rank, place in enumerate(ranking, start=1):
            scores[place] = scores.get(place, 0.0) + 1 / (RANK_CONSTANT + rank)
    return sorted(scores.items(), key=_order)


def _order(scored: tuple[Place, float]) -> tuple[float, str, int]:
    (conversation_id, seq), score = scored
    return -score, conversation_id, -seq


def by_score(scores: Mapping[Place, float]) -> list[Place]:
    """Places, best score first, equals in the order of `fused`."""
    return [place for place, _ in sorted(scores.items(), key=_order)]
