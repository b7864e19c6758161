"""Requests to recall indexes, and their answers."""

from __future__ import annotations

from reactor_memory.models import BranchRange, Value

PIECES = 4096
"""More than the passages that one message has: `Passage.place` counts them."""


class Passage(Value, frozen=True, kw_only=True):
    """A piece of a conversation that is found and comes back by itself.

    Characters `start` to `end` of what can be found of message `seq`, its `piece`-th piece; or, if `end_seq` is another
    message, all of the messages from `seq` to `end_seq`, which are short talk. It is the result of a call of message
    `call_seq`, or holds calls if that is the message itself (0: neither). `terms` are those of its text and of its
    head, each once; `tokens` about what its text takes.
    """

    seq: int
    piece: int = 0
    start: int
    end_seq: int
    end: int
    call_seq: int = 0
    tokens: int
    terms: tuple[str, ...] = ()

    @property
    def place(self) -> int:
        """Where it stands among the passages of its conversation."""
        return self.seq * PIECES + self.piece


class IndexPart(Value, frozen=True, kw_only=True):
    """The passages of the messages `start_seq`..`end_seq` of `conversation_id`."""

    conversation_id: str
    start_seq: int
    end_seq: int
    passages: tuple[Passage, ...]


class RecallQuery(Value, frozen=True, kw_only=True):
    """What is looked for in one branch: the `words` of `text` (`reactor_memory.text.analyzer.query_words`).

    Each is the terms that it may stand under, any of which finds it; the first is its name. Of a word in `begun` (by
    its name) that no passage holds, it is what its terms may be or begin with (with `*` behind it).
    Passages of the messages `withheld` do not come back: an index that passes over them finds more of the others.
    """

    session_id: str
    branch: tuple[BranchRange, ...]
    text: str
    words: tuple[tuple[str, ...], ...]
    begun: dict[str, tuple[str, ...]] = {}
    limit: int = 100
    withheld: tuple[tuple[int, int], ...] = ()


class IndexHit(Value, frozen=True, kw_only=True):
    """A passage that answers, or one beside it. The `terms` of its passage are the names of the words of the query that
    it holds; `length` counts all its terms.

    `similarity` is for indexes that know more than words; it is added to the score, where a rare term counts about 8.
    """

    passage: Passage
    length: int = 0
    similarity: float = 0.0
    score: float = 0.0


class IndexAnswer(Value, frozen=True, kw_only=True):
    """The answer of an index. `frequencies`: about how many passages hold each word of the query, by its name; `total`
    counts messages.

    What lies behind `indexed_until` was not searched. `is_damaged`: what is there cannot be read, and is made again.
    """

    found: tuple[IndexHit, ...] = ()
    frequencies: dict[str, int] = {}
    total: int = 0
    indexed_until: int = 0
    is_damaged: bool = False
