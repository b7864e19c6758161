"""What loads read of the sessions that were used last, kept in memory and proven by one row at each load.

The row is that of the session with the number of changes of its group, which triggers count: while it is the same, so
is everything that a load reads, whichever process writes and by whatever statement. An append of this process is put to
what is kept, with the row as it then is: if another one came between, the row that is read differs.
"""

from __future__ import annotations

import sys
from collections import OrderedDict
from collections.abc import Hashable, Mapping, Sequence
from threading import Lock
from time import monotonic
from typing import Any, NamedTuple, Protocol, TypeAlias

from msgspec.structs import replace

from reactor_memory.core import log
from reactor_memory.core.log.branches import FORK_SEPARATOR, group_of
from reactor_memory.core.log.rows import key_of, message_values
from reactor_memory.database.database import Database
from reactor_memory.database.operations import Query, Row, Rows, Steps, bounded, single
from reactor_memory.models.requests import Appended, AppendRequest, ContextQuery, ContextRows

Proof: TypeAlias = Row
"""A row of the statement `proof`."""

LAST_SEQ, UPDATED_AT = 3, 6
KEPT_SECONDS = 300.0
"""What nobody used for so long leaves memory: another process may have erased it."""

MOST_CONTEXTS = 4
"""Of a session, made with other arguments each."""

_ROW_BYTES = 600
"""About what a row takes in memory beside its text, or a session beside its rows."""

_NEWEST = "messages_newest_first_with_batches"
_COLUMNS = (
    *("seq", "message_id", "role", "visibility", "author_id", "content", "parts", "tool_calls", "tool_call_id", "name"),
    *("metadata", "token_count", "tokenizer", "created_at", "batch_key", "batch_size"),
)
"""Of the rows of `_NEWEST`."""

_TEXTS = [_COLUMNS.index(name) for name in ("content", "parts", "tool_calls", "metadata")]
"""Those that may be long."""

_PLAIN = {str, int, type(None)}
"""Types that a database gives back as they are."""


class Newest(NamedTuple):
    """The answer to `_NEWEST` for `values`, newest first. `is_whole`: there are no more from `start_seq` on. `size`:
    about how many bytes of memory it takes.
    """

    values: Mapping[str, Any]
    rows: Rows
    is_whole: bool
    size: int = 0

    def answer(self, values: Mapping[str, Any]) -> Rows | None:
        """What the statement would give for other values; None if that is not known."""
        kept, start, limit = self.values, values["start_seq"], values["limit"]
        if any(kept[name] != values[name] for name in ("conversation_id", "end_seq", "hidden_until")):
            return None
        rows = self.rows if start <= kept["start_seq"] else [row for row in self.rows if row[0] >= start]
        if len(rows) >= limit:
            return rows[:limit]
        is_known = len(rows) < len(self.rows) or (self.is_whole and start >= kept["start_seq"])
        return rows if is_known else None

    def with_batch(self, batch: Rows) -> Newest:
        """With what was appended, newest first."""
        limit = self.values["limit"]
        rows = [*batch, *self.rows]
        size = self.size + _size_of(batch) - _size_of(rows[limit:])
        return Newest(self.values, rows[:limit], self.is_whole and len(rows) < limit, size)


class Proven(NamedTuple):
    """That what was read is as this row proves, and was read after something went so many times."""

    proof: Proof
    losses: int


class Made(Protocol):
    """What was made of rows, and about how many bytes of memory it takes."""

    @property
    def size(self) -> int: ...


class _Head:
    __slots__ = ("asked", "made", "newest", "proof", "size")

    def __init__(self, proof: Proof) -> None:
        self.proof = proof
        self.newest: Newest | None = None
        self.asked: set[Hashable] = set()
        self.made: OrderedDict[Hashable, Made] = OrderedDict()
        self.size = _ROW_BYTES


class HotHeads:
    """Heads of sessions, by their groups, in at most about `most_bytes` of memory: the group that was used last stays.

    `database` tells which groups lost something to a write of this process: they leave at once. Thread-safe.
    """

    def __init__(self, database: Database, most_bytes: int) -> None:
        self._database = database
        self._most_bytes = most_bytes
        self._lock = Lock()
        self._groups: OrderedDict[str, tuple[float, dict[str, _Head]]] = OrderedDict()
        self._size = 0
        self._losses = 0
        database.on_loss = self.forget

    @property
    def size(self) -> int:
        return self._size

    async def proof(self, session_id: str) -> Proof | None:
        """Of whoever owns it, deleted or not: what was made for somebody under an equal proof, a load made for him."""
        return await self._database.read(_prove, session_id)

    async def again(self, session_id: str, key: Hashable) -> Any:
        """What `keep` kept under this key, if the session is still as its proof says; asked only if there is some."""
        _, heads = self._groups.get(session_id.partition(FORK_SEPARATOR)[0], (0.0, None))
        if heads is None or (head := heads.get(session_id)) is None or key not in head.made:
            return None
        proof = await self.proof(session_id)
        if proof is None:
            return None
        with self._lock:
            known = self._head(session_id, proof)
            return None if known is None else known.made.get(key)

    def is_repeated(self, session_id: str, key: Hashable, proven: Proven) -> bool:
        """Whether this was asked before, under the same proof: what is made for one load only is not worth keeping."""
        with self._lock:
            head = self._own_head(session_id, proven)
            if head is None or key in head.asked or len(head.asked) > MOST_CONTEXTS:
                return head is not None
            head.asked.add(key)
            return False

    def keep(self, session_id: str, key: Hashable, proven: Proven, made: Made) -> None:
        """Keep what was made of rows with this proof, unless something went meanwhile."""
        with self._lock:
            if (head := self._own_head(session_id, proven)) is None:
                return
            self._resize(head, made.size - (head.made[key].size if key in head.made else 0))
            head.made[key] = made
            if len(head.made) > MOST_CONTEXTS:
                self._resize(head, -head.made.popitem(last=False)[1].size)
            self._fit()

    async def read_context(self, query: ContextQuery) -> ContextRows:
        losses = self._losses
        rows, proof, newest = await self._database.read(_read_context, query, self)
        if proof is None:
            return rows
        proven = Proven(proof, losses)
        if newest is not None:
            self._keep_newest(query.session_id, proven, newest)
        return replace(rows, proof=proven)

    def newest(self, session_id: str, proof: Proof, values: Mapping[str, Any]) -> Rows | None:
        with self._lock:
            head = self._head(session_id, proof)
            return None if head is None or head.newest is None else head.newest.answer(values)

    def _keep_newest(self, session_id: str, proven: Proven, newest: Newest) -> None:
        with self._lock:
            if (head := self._own_head(session_id, proven)) is not None:
                self._put(head, newest)

    def appended(self, request: AppendRequest, appended: Appended) -> None:
        """Called when a batch is stored."""
        session_id = request.session_id
        with self._lock:
            _, heads = self._groups.get(group_of(session_id), (0.0, {}))
            head = heads.get(session_id)
            if head is None or appended.replayed or head.proof[LAST_SEQ] >= appended.last_seq:
                return
            newest = _with_batch(head, request, appended)
            self._drop(session_id)
            if newest is not None:
                proof = [*head.proof]
                proof[LAST_SEQ], proof[UPDATED_AT] = appended.last_seq, max(proof[UPDATED_AT], request.now)
                self._put(self._new_head(session_id, tuple(proof)), newest)

    def forget(self, group_ids: Sequence[str] | None) -> None:
        """Something of these groups (None: of any) went or changed."""
        with self._lock:
            self._losses += 1
            for group_id in [*self._groups] if group_ids is None else group_ids:
                self._drop_group(group_id)

    # With the lock

    def _head(self, session_id: str, proof: Proof) -> _Head | None:
        """What is kept of a session as this row proves it; anything else of it goes."""
        group_id = group_of(session_id)
        _, heads = self._groups.get(group_id, (0.0, None))
        if heads is None or (head := heads.get(session_id)) is None:
            return None
        if head.proof != proof:
            self._drop(session_id)
            return None
        self._groups[group_id] = monotonic(), heads
        self._groups.move_to_end(group_id)
        return head

    def _own_head(self, session_id: str, proven: Proven) -> _Head | None:
        proof, losses = proven
        if losses != self._losses or proof[-1] is None:
            return None
        return self._head(session_id, proof) or self._new_head(session_id, proof)

    def _new_head(self, session_id: str, proof: Proof) -> _Head:
        group_id = group_of(session_id)
        _, heads = self._groups.pop(group_id, (0.0, {}))
        head = heads[session_id] = _Head(proof)
        self._groups[group_id] = monotonic(), heads
        self._size += head.size
        return head

    def _put(self, head: _Head, newest: Newest) -> None:
        self._resize(head, newest.size - (head.newest.size if head.newest else 0))
        head.newest = newest
        self._fit()

    def _resize(self, head: _Head, more: int) -> None:
        head.size += more
        self._size += more

    def _fit(self) -> None:
        oldest = monotonic() - KEPT_SECONDS
        while self._groups:
            group_id = next(iter(self._groups))
            if self._size <= self._most_bytes and self._groups[group_id][0] >= oldest:
                return
            self._drop_group(group_id)

    def _drop(self, session_id: str) -> None:
        group_id = group_of(session_id)
        _, heads = self._groups[group_id]
        self._size -= heads.pop(session_id).size
        if not heads:
            del self._groups[group_id]

    def _drop_group(self, group_id: str) -> None:
        _, heads = self._groups.pop(group_id, (0.0, {}))
        self._size -= sum(head.size for head in heads.values())


@single
def _prove(session_id: str) -> Steps[Proof | None]:
    rows = yield Query("proof", key_of(session_id))
    return rows[0] if rows else None


@bounded
def _read_context(query: ContextQuery, heads: HotHeads) -> Steps[tuple[ContextRows, Proof | None, Newest | None]]:
    """As `operations.read_context`, where `heads` answer for the newest messages if they can; what proves it, and what
    they could not answer.
    """
    steps, proof, newest = log.operations.read_context(query), None, None
    try:
        step = next(steps)
        while True:
            values = step.values if isinstance(step, Query) and step.name == _NEWEST else None
            rows = heads.newest(query.session_id, proof, values) if values is not None and proof is not None else None
            if rows is None:
                rows = yield step
                if values is not None:
                    newest = Newest(values, rows, len(rows) < values["limit"], _size_of(rows))
            if isinstance(step, Query) and step.name == "session_head" and rows:
                proof = (*rows[0][: log.operations.SESSION_COLUMNS], rows[0][-1])
            step = steps.send(rows)
    except StopIteration as done:
        return done.value, proof, newest


def _with_batch(head: _Head, request: AppendRequest, appended: Appended) -> Newest | None:
    """None where it is not certain what a load would read."""
    newest, proof = head.newest, head.proof
    if newest is None or newest.values["conversation_id"] != request.session_id or type(proof[UPDATED_AT]) is not int:
        return None
    if proof[LAST_SEQ] != appended.first_seq - 1:
        return None
    stored = [message_values(message) for message in request.messages]
    values = log.operations.placed_rows(request, stored, appended.first_seq)
    batch = [tuple([each[column] for column in _COLUMNS]) for each in values]
    if not all({type(column) for column in row} <= _PLAIN for row in batch):
        return None
    return newest.with_batch(batch[::-1])


def _size_of(rows: Rows) -> int:
    return sum([_ROW_BYTES + sum([sys.getsizeof(row[column]) for column in _TEXTS]) for row in rows])
