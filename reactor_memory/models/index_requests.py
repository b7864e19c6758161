"""Requests to recall indexes, and their answers."""

from __future__ import annotations

from reactor_memory.models import BranchRange, Value


class IndexEntry(Value, frozen=True, kw_only=True):
    """Something to be found by its words: message `seq`, or what a segment states about the thing `anchor`.

    `turn` is what comes back of a message: the first and the last of its turn, or of the part of it that a segment
    holds. `seq` of a line is its newest source.
    """

    seq: int
    turn: tuple[int, int]
    text: str
    anchor: str = ""


class IndexPart(Value, frozen=True, kw_only=True):
    """The entries of the segment `start_seq`..`end_seq` that belongs to `conversation_id`."""

    conversation_id: str
    start_seq: int
    end_seq: int
    entries: tuple[IndexEntry, ...]


class RecallQuery(Value, frozen=True, kw_only=True):
    """What is looked for in one branch. `terms` are those of `text` (`reactor_memory.text.analyzer`)."""

    session_id: str
    branch: tuple[BranchRange, ...]
    text: str
    terms: tuple[str, ...]
    limit: int = 100


class IndexHit(Value, frozen=True, kw_only=True):
    """An entry that answers. `terms` are those of the query that it holds, `length` counts its different terms.

    `similarity` is for indexes that know more than words; it is added to the score, where a rare term counts about 8.
    """

    seq: int
    turn: tuple[int, int]
    anchor: str = ""
    terms: tuple[str, ...] = ()
    length: int = 0
    similarity: float = 0.0
    score: float = 0.0


class IndexAnswer(Value, frozen=True, kw_only=True):
    """The answer of an index. `frequencies`: how many entries hold each term of the query; `total` counts messages.

    What lies behind `indexed_until` was not searched.
    """

    found: tuple[IndexHit, ...] = ()
    frequencies: dict[str, int] = {}
    total: int = 0
    indexed_until: int = 0
