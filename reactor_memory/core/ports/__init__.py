"""Every plug point, with its semantics.

The suites in `reactor_memory.testing` check an implementation against what is promised here. Constructors do no I/O;
what has `open` and `close` is opened by `open_container` and closed in reverse order.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

from reactor_memory.models import BranchRange, Message, Session
from reactor_memory.models.block_lines import Layout
from reactor_memory.models.index_requests import IndexAnswer, IndexPart, RecallQuery
from reactor_memory.models.leases import Lease, WorkState
from reactor_memory.models.ledger import (
    NOTHING_KNOWN,
    Condensed,
    Extraction,
    Fact,
    Known,
    Ledger,
    SealedSegment,
    Segment,
    Summary,
    SummaryHead,
)
from reactor_memory.models.requests import (
    EVER,
    Ahead,
    Appended,
    AppendRequest,
    BackgroundRows,
    ContextQuery,
    ContextRows,
    ErasedBranch,
    StoreHealth,
    Withdrawn,
    WorkReport,
)
from reactor_memory.models.session_pages import SessionPage


class Clock(Protocol):
    """Now, in microseconds since the epoch, UTC."""

    def __call__(self) -> int: ...


class Redactor(Protocol):
    """Removes from a text what must be neither summarised nor indexed.

    The answer depends on the text alone, and it may be asked in any thread. When it raises, nothing is summarised or
    indexed.
    """

    def __call__(self, text: str) -> str: ...


class TokenCounter(Protocol):
    """Counts the tokens of a text. `name` is stored beside every count, so it must name the encoding."""

    @property
    def name(self) -> str: ...

    def count(self, text: str) -> int:
        """Tokens of `text`, the same for the same text. Never raises on any text, never reaches for the network."""
        ...


class Condenser(Protocol):
    """Condenses a run of messages: writes the texts of tiers and of the chat memory.

    `prompt` says what matters. Messages of the role ``summary`` are earlier texts that the new one replaces.
    About `max_tokens` tokens of the answer are kept. Raises `SummarizationError` and nothing else; never retries by
    itself.
    """

    async def condense(self, messages: Sequence[Message], *, prompt: str, max_tokens: int) -> Condensed: ...


class Summarizer(Protocol):
    """Extracts facts and a narrative from a run of messages.

    `name` and `prompt_version` are stored with every segment. A summarizer that asks a model calls a thing that is
    among the names of `known` by that name. `source_seq` of every fact must be the seq of one of `messages`. Raises
    `SummarizationError` and nothing else; never retries by itself.
    """

    @property
    def name(self) -> str: ...

    @property
    def prompt_version(self) -> str: ...

    @property
    def condenser(self) -> Condenser | None:
        """Who condenses runs of messages, often the summarizer itself; None: the condensed texts are made of what it
        extracts.
        """
        ...

    async def summarize(self, messages: Sequence[Message], *, known: Known = NOTHING_KNOWN) -> Extraction: ...

    async def aclose(self) -> None:
        """Close connections. Called once, even if `summarize` was never called."""
        ...


class Embedder(Protocol):
    """Turns texts into vectors whose cosine says how alike they are. `name` is stored with every vector: another name
    means that all vectors are made anew.
    """

    @property
    def name(self) -> str: ...

    @property
    def dimensions(self) -> int: ...

    async def embed(self, texts: Sequence[str], *, is_query: bool = False) -> Sequence[Sequence[float]]:
        """One vector of length 1 for each text (of length 0 for a text without meaning). Raises `EmbeddingError` and
        nothing else; never retries by itself.
        """
        ...

    async def aclose(self) -> None: ...


class Elsewhere(Protocol):
    """Removes what is kept of sessions outside the log."""

    async def of_sessions(self, session_ids: Sequence[str]) -> tuple[str, ...]:
        """The log has removed these sessions. Where something is left of them, by name."""
        ...


LedgerFold = Callable[[Ledger], Summary]
"""The pure fold of a ledger into a summary (its `version` and times are set by the store)."""


class MessageStore(Protocol):
    """The log: append-only, gap-free `seq` 1..n per session, owned, idempotent. `SqlMessageStore` is the one in a
    database; a plug-in may supply another, together with a `SummaryStore`. What needs more than the two (pins,
    erasure, notes, sharing, search) needs a database.

    Every call checks the owner: a session with an owner answers that `user_id` only (`SessionOwnershipError`), one
    without answers everybody. A deleted session raises `SessionDeletedError` everywhere. A session id is the id of
    its group (a root) or ``<group>~<random>`` (a fork). Faults of the database become `StoreError`s. A cancelled
    call leaves no transaction open; a cancelled append may or may not have happened.
    """

    async def open(self) -> None:
        """Connect and check the schema. Raises `SchemaError` or `StoreUnavailableError`."""
        ...

    async def close(self) -> None:
        """Finish what was begun, then disconnect. Safe to call twice and without `open`."""
        ...

    async def append(self, request: AppendRequest) -> Appended:
        """Store the batch durably, whole or not at all; the first batch creates the session and fixes its owner.

        A known `idempotency_key` with the same fingerprint always returns the first answer; with another one
        raises `IdempotencyConflictError`. An unknown fork id raises `SessionNotFoundError`.
        """
        ...

    async def get_session(self, session_id: str, user_id: str | None) -> Session | None:
        """The session, or None if there is none under this id."""
        ...

    async def read(
        self,
        session_id: str,
        user_id: str | None,
        *,
        after: int = 0,
        until: int | None = None,
        last: int | None = None,
        limit: int | None = None,
    ) -> tuple[Message, ...]:
        """Messages with `after` < seq <= `until`, oldest first: the newest `last` of them, or the first `limit`.

        Along the branch of a fork; withdrawn messages are left out. An unknown session has no messages.
        """
        ...

    async def read_context(self, query: ContextQuery) -> ContextRows:
        """Everything that one load needs, in one round trip."""
        ...

    async def read_ranges(
        self, session_id: str, user_id: str | None, ranges: Sequence[tuple[int, int]]
    ) -> tuple[Message, ...]:
        """The messages of several ranges of seq, ends included, as `read` gives them: each once, oldest first."""
        ...

    async def read_background(self, session_id: str, *, after: int = 0, limit: int = 1000) -> BackgroundRows:
        """The first `limit` messages after `after`, without an owner check: for background work only.

        Raises `SessionNotFoundError` and `SessionDeletedError`.
        """
        ...

    async def list_sessions(self, user_id: str | None, *, limit: int = 50, cursor: str | None = None) -> SessionPage:
        """The sessions owned by `user_id` (None: the sessions without an owner), newest activity first.

        Pages neither skip nor repeat a session that does not change meanwhile. A broken cursor raises
        `InvalidInputError`.
        """
        ...

    async def fork(self, session_id: str, user_id: str | None, *, at_seq: int, fork_id: str, now: int) -> Session:
        """Create the branch `fork_id` that shares 1..`at_seq`-1 and continues with `at_seq`. Copies no message, but
        the pins of the session on messages that are shared; from then on each branch has its own.

        `at_seq` from 1 to last_seq + 1, else `InvalidInputError`. The owner is the owner of the group.
        """
        ...

    async def withdraw(
        self, session_id: str, user_id: str | None, *, seq: int | None, now: int, refold: LedgerFold
    ) -> Withdrawn:
        """Take the newest visible message out of view. Its seq is not used again.

        `seq`, if given, must be that message; the message must be the branch's own (else `InvalidInputError`).
        In a database, what was derived from it goes in the same transaction; elsewhere `KeptElsewhere.messages_gone`
        follows.
        """
        ...

    async def delete(self, session_id: str, user_id: str | None, *, now: int, purge: bool) -> tuple[str, ...]:
        """Delete a root with its whole group, or a fork with the forks below it; the ids that went.

        With `purge` all content goes at once, else it is only marked and `purge_deleted` removes it. Tombstones
        stay. Deleting a deleted session again returns (), an unknown one raises `SessionNotFoundError`.
        """
        ...

    async def purge_deleted(self, *, before: int, limit: int = 100) -> int:
        """Remove the content of up to `limit` sessions that were marked as deleted before `before`; how many."""
        ...

    async def check(self) -> StoreHealth:
        """Look for damage and known faults; reads only."""
        ...


class SummaryStore(Protocol):
    """Segments, facts, summaries, layouts and the state of background work. All of it can be made again.

    `branch` is where the messages of the session are stored (`Session.branch`).
    """

    async def open(self) -> None: ...

    async def close(self) -> None: ...

    async def get_summary(self, session_id: str) -> Summary | None: ...

    async def get_summary_head(self, session_id: str) -> SummaryHead | None:
        """The head of the summary: costs the same however many facts there are."""
        ...

    async def get_layout(self, session_id: str, *, budget: int, settings_fingerprint: str) -> Layout | None: ...

    async def put_layout(self, session_id: str, layout: Layout, *, budget: int, settings_fingerprint: str) -> None:
        """Keep the layout with the higher `seq`, of the same `seq` the one that covers more, since what was laid out
        while the summary was behind must not stay, and then the one whose window starts later. Nothing happens if the
        session is deleted or unknown, or if the `epoch` of the layout is not the one of the stored summary (0 without
        one).
        """
        ...

    async def read_ledger(self, session_id: str, branch: Sequence[BranchRange]) -> Ledger:
        """All segments and facts of the branch, the corrections of the session, and the posted summary that rules.

        Where a database holds the log, too: without what cleared messages say.

        Of an ancestor only the segments that end inside its range, up to the first segment that is the next
        branch's own: what is returned covers 1..covered without gap or overlap.
        """
        ...

    async def read_facts_about(
        self, session_id: str, branch: Sequence[BranchRange], anchors: Sequence[str]
    ) -> tuple[Fact, ...]:
        """The verified facts of `read_ledger` with one of these anchors, as people corrected them. The cost
        grows with their number, not with the ledger.
        """
        ...

    async def record_segment(
        self,
        lease: Lease,
        segment: Segment,
        facts: Sequence[Fact],
        summary: Summary,
        *,
        earlier: Sequence[SealedSegment] = (),
    ) -> bool:
        """Store a segment, its facts and the new summary in one transaction, and with them the segments `earlier`,
        which end before it.

        A stale or outdated segment, or one that waits, is replaced by one with the same borders. False, and nothing
        stored, if the fence of the lease is not the newest, the session is deleted, or the summary would go back
        (`covered_seq` lower than stored, or `version` not the stored one + 1).
        """
        ...

    async def put_summary(self, lease: Lease, summary: Summary) -> bool:
        """Store a summary without a segment (a fork's first fold, `full` mode). Refused like `record_segment`."""
        ...

    async def invalidate(self, branches: Sequence[ErasedBranch], *, now: int, refold: LedgerFold) -> None:
        """Messages of these branches went out of view, or were destroyed: delete the facts and the narrative of the
        segments that hold them, the items of the working state that rest on them (`working_state.is_touched`), and what
        identified their content (`Segment.source_hash`), mark them stale, refold the summaries that covered them
        (`covered_seq` stays, what of it no segment covers is stale, `version` and `epoch` go up by one), drop the
        layouts of these branches, and make the background work due. When every segment that
        holds them is stale already, none of this changes anything. Always take the leases of these branches away (the
        fence goes up), so that a worker that read the messages cannot store what it found.
        """
        ...

    async def forget(self, session_ids: Sequence[str]) -> None:
        """Delete everything derived from these conversations. A later `record_segment` for them is refused."""
        ...

    async def claim(
        self, session_id: str, kind: str, *, now: int, lease_microseconds: int, wait_microseconds: int | None = None
    ) -> Lease | None:
        """Take the lease if it is free or expired, with the next fence; None if another holds it. The work is due from
        then on, until `release` says otherwise, so that the work of a process that died is found.

        `now` is the caller's clock; a store whose database has a clock uses that one for leases. A lease that ends
        later than `lease_microseconds` from now was taken by a clock that was wrong, and has expired.

        With `wait_microseconds`, work that is parked or put off is left alone: None. Put off is what is due later than
        now, but not later than so long from now, where only a wrong clock could have put it. Without, it is claimed:
        who claims a conversation by name wants it done.
        """
        ...

    async def renew(self, lease: Lease, *, now: int, lease_microseconds: int) -> bool:
        """Prolong the lease; False if it was lost."""
        ...

    async def release(
        self,
        lease: Lease,
        *,
        due_at: int | None,
        attempts: int = 0,
        parked: bool = False,
        error: str | None = None,
    ) -> None:
        """Give the lease back and say when the work is due again (None: not until the next append). A lease that
        was lost is left alone. Work that an append made due meanwhile stays due.
        """
        ...

    async def due(
        self, kinds: Sequence[str], *, now: int, limit: int = 100, ahead: Ahead = EVER
    ) -> Mapping[str, tuple[str, ...]]:
        """For each of these kinds the conversations whose work is due and not leased, at most `limit` of each, longest
        waiting first, parked ones left out. What ends further `ahead` of now is over.
        """
        ...

    async def work_state(self, session_id: str, kind: str) -> WorkState | None: ...


class RecordStore(Protocol):
    """Records under names, of a store that is no SQL database: the library keeps a whole log in them, and what is made
    of it (feature `record_store`). A plug-in supplies one under the scheme of ``store.url``.

    Names are ASCII, in the order of their bytes; records are bytes. What was written is read by everybody from then on.
    An error that is none of `reactor_memory.errors` is told as a `StoreUnavailableError`.
    """

    async def open(self) -> None: ...

    async def close(self) -> None:
        """Called once after `open`."""
        ...

    async def read(self, names: Sequence[str]) -> Mapping[str, bytes]:
        """The records of these names, but for those that there are not."""
        ...

    async def names(self, prefix: str, *, after: str, limit: int) -> Sequence[str]:
        """The first `limit` names that begin with `prefix` and stand behind `after` (``""``: all), in order."""
        ...

    async def write(self, records: Mapping[str, bytes | None], *, expected: Mapping[str, bytes | None]) -> bool:
        """Write all of these records, durably, or none; None takes a record away. False, and nothing written, unless
        each record of `expected` is the one that is there now (None: there is none).
        """
        ...


class RecallIndex(Protocol):
    """Finds older messages and fact lines by what they say, within one branch.

    The background work fills it, segment by segment; what is not in it yet is searched without it. Nothing is promised
    about which entries answer beyond this: one that holds a term of the query is found, among the `limit` best by
    `scored` of the feature recall. Entries of other conversations than those of the branch, or behind the
    point where a fork left its ancestor, never answer. Nothing here checks an owner: who asks has read the session.

    A store that is the index, too, takes entries away in the transaction that takes the messages away.
    """

    async def open(self) -> None: ...

    async def close(self) -> None: ...

    async def indexed_until(self, conversation_id: str) -> int:
        """The end of the newest part of this conversation; 0 without one."""
        ...

    async def extend(self, lease: Lease, part: IndexPart) -> bool:
        """Add the part that follows the newest one of the conversation; the first one may begin anywhere.

        False, and nothing added, if it does not follow, the fence of the lease is not the newest, or the session is
        deleted.
        """
        ...

    async def search(self, query: RecallQuery) -> IndexAnswer:
        """The best entries for the terms, best first. Costs the entries that hold a term, not those of the session."""
        ...

    async def truncate(self, session_ids: Sequence[str], *, seq: int) -> None:
        """Message `seq` went out of view: forget every part of these conversations that holds it or follows."""
        ...

    async def forget(self, session_ids: Sequence[str]) -> None:
        """Forget these conversations."""
        ...


class KeptElsewhere(Protocol):
    """What is kept about messages outside the database of the log, whose transactions take nothing of it away.

    Both calls may be repeated: what is gone already is passed over. Faults are `StoreError`s.
    """

    name: str
    """What is kept there, for who is told that it could not be taken away yet."""

    async def messages_gone(self, branches: Sequence[ErasedBranch], message_ids: Sequence[str]) -> None:
        """Forget what was made of these messages, which each of the branches showed at its own positions."""
        ...

    async def forget(self, session_ids: Sequence[str]) -> None:
        """Forget everything of these conversations."""
        ...


class ContextSource(Protocol):
    """Where a load reads: a store that holds log and summaries, or two stores joined."""

    async def read_context(self, query: ContextQuery) -> ContextRows: ...


class BackgroundWork(Protocol):
    """Does the work behind saves. None of these calls raises for a fault of a summarizer."""

    async def open(self) -> None: ...

    async def close(self) -> None:
        """Finish or cancel what runs, within the grace time."""
        ...

    def messages_saved(self, session_id: str, last_seq: int) -> None:
        """A session has grown. Returns at once."""
        ...

    def request(self, session_id: str) -> None:
        """Look whether there is work for the session, parked or not. Returns at once."""
        ...

    async def work_on(self, session_id: str, *, timeout_seconds: float) -> WorkReport:
        """Do the work of the session now, parked or not: in the task of the caller where background work is left to
        other processes. What another process does is waited for. Raises `StoreError`.
        """
        ...

    async def ensure(self, session_id: str, until_seq: int, *, timeout_seconds: float) -> str:
        """Wait until the summary covers `until_seq`. How it ended: ``covered``, ``timeout``, ``failed``,
        ``open`` (the breaker of the provider is open: not waited at all), ``idle`` (nothing more can be done).
        """
        ...

    async def run_once(self) -> int:
        """Find what is to be done now and do it; for how many conversations and kinds some was done."""
        ...

    async def drain(self) -> None:
        """Wait until no background work of this process is left."""
        ...

    async def cancel(self, session_ids: Sequence[str]) -> None:
        """Stop work on sessions that were deleted."""
        ...
