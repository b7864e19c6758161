"""Requests to stores, and their answers."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from reactor_memory.models import LARGEST, Message, Pin, Session, Value

if TYPE_CHECKING:
    from collections.abc import Mapping

    from reactor_memory.models.block_lines import Layout
    from reactor_memory.models.ledger import RangeSummary, SummaryHead


MOST_BEFORE_A_TURN = 500
"""So many messages are read at most before a turn that is stored already."""


class AppendRequest(Value, frozen=True, kw_only=True):
    """Messages to append as one batch. The messages are checked, counted and have a `message_id`.

    `fingerprint` identifies the content of the batch; it is stored when `idempotency_key` is given. `work_every`:
    when the append carries the session past a multiple of this many messages, the row of its background work
    becomes due in the same transaction (None: never). `last_budget`: what the last load of the session asked for, to be
    kept with it (0: no budget; None: what is kept stays).
    """

    session_id: str
    user_id: str | None
    messages: tuple[Message, ...]
    now: int
    idempotency_key: str | None = None
    fingerprint: str = ""
    work_every: int | None = None
    agent_name: str | None = None
    last_budget: int | None = None


class Appended(Value, frozen=True, kw_only=True):
    """The answer to an append: the positions of the batch. `replayed`: the same batch had been stored before."""

    first_seq: int
    last_seq: int
    replayed: bool = False


class ContextQuery(Value, frozen=True, kw_only=True):
    """What a load needs to read.

    At or below `trigger_message_count` (None: at any length, and summary and layout may be left out) the newest
    `last_count` messages, with `before_count` more where none of them is of the user, or one may belong to a turn that
    began before them (a store may read these always). Above it the newest messages, newest first, until `max_messages`
    are read or their stored tokens + `overhead` each pass `max_tokens`; the message that passes it is included. Of a
    long message no more than `max_message_tokens` count, since a context need not show more of it. `budget` and
    `settings_fingerprint` name the layout.

    Without `facts` the head of the summary is enough: the rest is large, and read at evictions only. Messages before
    the window of the layout may be left out then (but for one, if what the window starts with went out of view), and
    there may be more than `max_tokens` allow.

    With `before_seq`, the newest `most_before` messages of those before it take their place, if a store can do that:
    who asks leaves no others in.
    """

    session_id: str
    user_id: str | None
    last_count: int
    before_count: int = 0
    trigger_message_count: int | None = None
    max_messages: int = 0
    max_tokens: int = 0
    max_message_tokens: int = LARGEST
    overhead: int = 4
    budget: int = 0
    settings_fingerprint: str = ""
    facts: bool = False
    before_seq: int | None = None

    @property
    def most_before(self) -> int:
        """How many messages are read before `before_seq`."""
        return max(self.last_count + self.before_count, min(self.max_messages, MOST_BEFORE_A_TURN))


class ContextRows(Value, frozen=True, kw_only=True):
    """The answer: messages oldest first (withdrawn ones left out), pins in their order. The
    summary is a `Summary` if facts were asked for, else its head.

    `leading` are the system messages that the session begins with, from message 1 on, `standing` the newest later one
    of each name: every context shows them. `superseded`: where earlier ones of the same names stand.
    `ranges` are the live summaries of ranges, where the strategy reads them. `damaged` names what could not be read and
    is made again. `steps` tells of messages where the turn begins whose steps they are, if turns may have run at once.
    An unknown session is None, with none of them. `proof`, of a store that keeps what loads read, is given back to
    it with what is made of this answer.
    """

    session: Session | None = None
    pins: tuple[Pin, ...] = ()
    summary: SummaryHead | None = None
    layout: Layout | None = None
    messages: tuple[Message, ...] = ()
    leading: tuple[Message, ...] = ()
    standing: tuple[Message, ...] = ()
    superseded: tuple[int, ...] = ()
    ranges: tuple[RangeSummary, ...] = ()
    damaged: tuple[str, ...] = ()
    steps: Mapping[int, int] = {}
    proof: Any = None


class BackgroundRows(Value, frozen=True, kw_only=True):
    """What background work reads of a session: messages in the order of the log, archived ones too. `steps` tells of
    messages that turns stored while they ran where their turn begins; not where one message is asked for.
    """

    session: Session
    messages: tuple[Message, ...] = ()
    steps: Mapping[int, int] = {}


def step_key(first_seq: int, last_seq: int) -> str:
    """The key of a step of the turn that begins with message `first_seq`, stored behind message `last_seq`."""
    return f"turn {first_seq} after {last_seq}"


_STEP_KEY = re.compile(r"turn (\d{1,18}) after \d{1,18}")


STEP_KEYS = "turn % after %"
"""The keys of steps, as a pattern of SQL."""


def turn_of_step(key: str) -> int | None:
    """Where the turn begins of which this is the key of a step."""
    found = _STEP_KEY.fullmatch(key)
    return int(found[1]) if found else None


class Withdrawn(Value, frozen=True, kw_only=True):
    """The message that was taken back, and every branch that showed it."""

    message: Message
    conversation_id: str
    branches: tuple[Session, ...] = ()

    def gone(self) -> tuple[ErasedBranch, ...]:
        """The message in each of the branches."""
        seq = self.message.seq or 0
        return tuple(ErasedBranch(session=branch, ranges=((seq, seq),)) for branch in self.branches)


class ErasedBranch(Value, frozen=True, kw_only=True):
    """A branch that showed erased messages: those of the `ranges` of seq, ends included, in the order of the log.
    `is_emptied`: it shows no message any more.
    """

    session: Session
    ranges: tuple[tuple[int, int], ...]
    is_emptied: bool = False


class DeletedSessions(Value, frozen=True, kw_only=True):
    """Which sessions were deleted now. `is_scrubbed`: what was to go at once has left the files of the database, and
    where else it was kept. If not, nobody is shown it, `left` names where it is, and background work goes on until it
    is gone.
    """

    session_ids: tuple[str, ...]
    is_scrubbed: bool = True
    left: tuple[str, ...] = ()


class StoreHealth(Value, frozen=True, kw_only=True):
    """What `doctor` prints of a store: `(label, text)` pairs, and problems in plain words."""

    details: tuple[tuple[str, str], ...] = ()
    problems: tuple[str, ...] = ()


SUMMARIZE = "summarize"
"""The kind of background work that an append makes due."""

ERASE = "erase"
"""The kind of the work that is left after messages were erased from the log."""

FORGET = "forget"
"""The kind of the work that is left after a session was removed from the log: removing what is kept of it elsewhere."""

ERASE_USER = "erase_user"
"""The kind of the erasure of a user's groups, each under its root."""

SCRUB = "scrub"
"""The kind of the work that is left in the files of the database after something was destroyed: of no conversation."""

INDEX_SEARCH = "index"
"""The kind of background work that makes new messages searchable by their words."""

EMBED_SEARCH = "embed"
"""The kind of background work that makes them searchable by their meaning."""


class Ahead(Value, frozen=True, kw_only=True):
    """How far ahead of now a lease and a pause can end. What seems to end more than twice as far ahead was
    written by a wrong clock. Twice, since who waits for a lock has looked at the clock before who holds it.
    """

    lease_microseconds: int
    wait_microseconds: int


EVER = Ahead(lease_microseconds=2**60, wait_microseconds=2**60)


RELEASE_SECONDS = 2.0
"""How long giving a lease back may take while everything else is cancelled; after that the lease runs out by itself."""


class LeaseLostError(Exception):
    """Another process has the lease, or the conversation is gone. The work is left to it."""


class WorkReport(Value, frozen=True, kw_only=True):
    """The result of work on request: the `steps` that were done, and why it `failed`, if it did."""

    steps: int = 0
    failed: str | None = None
