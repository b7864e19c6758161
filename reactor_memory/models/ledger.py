"""What is made of messages: facts, segments, summaries.

Immutable values, as those of `reactor_memory.models`.
"""

from __future__ import annotations

import zlib
from functools import cached_property
from operator import attrgetter
from typing import Literal, TypeAlias

import msgspec

from reactor_memory.errors import StoreCorruptError
from reactor_memory.models import Role, Value
from reactor_memory.models.block_lines import ReadyLine, ReadyLines

Category: TypeAlias = Literal["ENTITY", "DECISION", "CONDITION", "STATE", "NUMERIC", "GENERAL"]
Act: TypeAlias = Literal["statement", "decision", "correction", "interrupted"]

FAILED_MARK, INTERRUPTED_MARK = " (failed)", " (interrupted, outcome unknown)"

SETTLED = 3.0
"""The worth of what was done or decided."""

KEPT_SALIENCE = 96
"""Of a quotation that a model chose to keep."""


class Fact(Value, frozen=True, kw_only=True):
    """Something that a message states.

    `anchor` is the thing it is about ("reserve_restaurant #2", "user"); identity is anchor + key. `span` is where the
    value stands, in characters of `evidence_text(message)` (feature facts) of the message as the
    redactor leaves it. `said_by` is the role of the source message. `failed` marks an attempt that did not succeed: it
    is a fact that it was tried. If its act is ``interrupted``, the turn broke off before a result came. `amended`
    says that a person fixed it: no message states the value, and everything else is as it was in the fact that it
    replaces.

    `salience` is set, 1 to 100, where the value is a quotation, words of a message as they stand there: how much they
    matter. A context may show them without the words that a short form can do without.
    """

    anchor: str
    key: str
    value: str
    category: Category = "GENERAL"
    source_seq: int
    span: tuple[int, int] = (0, 0)
    said_by: Role = "user"
    act: Act = "statement"
    failed: bool = False
    verified: bool = False
    salience: int = 0
    amended: bool = False

    @property
    def mark(self) -> str:
        """What stands behind the name of what was tried, if it is not known to have been done."""
        if not self.failed:
            return ""
        return INTERRUPTED_MARK if self.act == "interrupted" else FAILED_MARK

    @property
    def worth(self) -> float:
        """How much would be lost without it: what the user ruled, what was done, what was settled, what was
        only said.
        """
        if self.salience:
            return 1.0 + 1.9 * self.salience / 100
        if self.act == "decision":
            return SETTLED
        if self.act == "correction" or self.category in ("DECISION", "CONDITION"):
            return 2.5
        if self.said_by == "tool":
            return 0.5
        return 1.5 if self.category == "STATE" else 1.0


class Usage(Value, frozen=True, kw_only=True):
    """Tokens that a summarizer read and wrote."""

    tokens_read: int = 0
    tokens_written: int = 0

    @property
    def total(self) -> int:
        return self.tokens_read + self.tokens_written


class Condensed(Value, frozen=True, kw_only=True):
    """A shorter text, and what it cost."""

    text: str
    usage: Usage = Usage()


class KnownNames(Value, frozen=True, kw_only=True):
    """What a thing is called, and what its known properties are called."""

    anchor: str
    keys: tuple[str, ...] = ()


class Known(Value, frozen=True, kw_only=True):
    """What a summarizer is told beside the messages.

    `facts`: all that hold so far, in ``full`` mode, where the answer replaces them. `names`: a bounded choice of the
    names that facts have so far, so that the same thing is called the same again; nothing of what they say. `state`:
    the facts of the working state that hold.
    """

    facts: tuple[Fact, ...] = ()
    names: tuple[KnownNames, ...] = ()
    state: tuple[Fact, ...] = ()

    def words(self) -> str:
        """All that it names."""
        return " ".join(
            (*(each.anchor for each in self.names), *(f"{each.anchor} {each.value}" for each in self.facts))
        )


NOTHING_KNOWN = Known()


class Extraction(Value, frozen=True, kw_only=True):
    """What a summarizer found in a run of messages. `headline` is the narrative in at most one short line."""

    facts: tuple[Fact, ...] = ()
    narrative: str = ""
    headline: str = ""
    usage: Usage = Usage()


class Spending(Value, frozen=True, kw_only=True):
    """Tokens that summarizers read and wrote: for one session in all, and for all sessions on one day."""

    session: int = 0
    day: int = 0


class Segment(Value, frozen=True, kw_only=True):
    """A sealed run of messages, extracted once.

    `conversation_id` owns it; a fork shows the segments of its ancestors that end before the fork. `source_hash`
    identifies the messages that were read. `stale` says that a message in it was taken out of view since: its facts
    and narrative are gone until it is extracted again. `outdated` says that it is to be extracted anew, and serves
    until then; `waits` says that the offline reader read it, and that a model reads it with others in one question.
    """

    conversation_id: str
    start_seq: int
    end_seq: int
    source_hash: str
    summarizer: str
    prompt_version: str
    narrative: str = ""
    headline: str = ""
    usage: Usage = Usage()
    created_at: int = 0
    stale: bool = False
    outdated: bool = False
    waits: bool = False


class SealedSegment(Value, frozen=True, kw_only=True):
    """A segment and the facts that were found in it."""

    segment: Segment
    facts: tuple[Fact, ...] = ()


class SummaryHead(Value, frozen=True, kw_only=True):
    """A summary without its facts: all of it that most loads and all watchers need.

    `truncated` says that the working set of facts leaves out facts that the ledger has. `stale_ranges` name messages
    whose segment waits for a new extraction. `version` counts the writes, `epoch` the times that a covered message went
    out of view.
    """

    narrative: str = ""
    covered_seq: int = 0
    version: int = 0
    epoch: int = 0
    truncated: bool = False
    stale_ranges: tuple[tuple[int, int], ...] = ()
    created_at: int = 0
    updated_at: int = 0


class Summary(SummaryHead, frozen=True, kw_only=True, dict=True):
    """The current fold of the segments of a branch.

    `facts_json` is the working set of facts as JSON; `facts()` decodes it, which a load does only at evictions.
    `spare_json` are the facts that come next, from which the fold goes on; no context shows them. `lines_json` are the
    lines of the facts where they were written in the background, else empty.
    """

    facts_json: str = "[]"
    spare_json: str = "[]"
    lines_json: str = ""

    @property
    def head(self) -> SummaryHead:
        return SummaryHead(**{name: getattr(self, name) for name in SummaryHead.__struct_fields__})

    def facts(self) -> tuple[Fact, ...]:
        """Raises `StoreCorruptError`, as `spare` does. Decoded once."""
        return self._facts

    @cached_property
    def _facts(self) -> tuple[Fact, ...]:
        return _facts_of(self.facts_json)

    def spare(self) -> tuple[Fact, ...]:
        return _facts_of(self.spare_json)

    def lines(self) -> tuple[ReadyLine, ...] | None:
        """The lines of all facts; None if they have to be made from the facts. What is damaged counts as missing."""
        try:
            ready = _LINES.decode(self.lines_json) if self.lines_json else None
        except (msgspec.MsgspecError, TypeError, ValueError):
            return None
        return ready.lines if ready is not None and ready.made_from == checksum_of(self.facts_json) else None

    @property
    def is_empty(self) -> bool:
        """No facts and a blank narrative: it says nothing that a context could show."""
        return self.facts_json == "[]" and not self.narrative.strip()


def checksum_of(facts_json: str) -> int:
    """By which lines are known to be those of the facts."""
    return zlib.crc32(facts_json.encode())


_FactRow: TypeAlias = tuple[str, str, str, Category, int, tuple[int, int], Role, Act, bool, bool, int, bool]
"""The fields of a `Fact`, in their order: stored without their names, they take half the room."""

_row_of = attrgetter(*Fact.__struct_fields__)
_FACTS = msgspec.json.Decoder(tuple[_FactRow, ...])
_LINES = msgspec.json.Decoder(ReadyLines)


def _facts_of(stored: str) -> tuple[Fact, ...]:
    try:
        return tuple([_fact_from(row) for row in _FACTS.decode(stored)])
    except (msgspec.MsgspecError, TypeError, ValueError):
        raise StoreCorruptError("store: the facts of a summary are damaged; they are made again from the log") from None


def _fact_from(row: _FactRow) -> Fact:
    anchor, key, value, category, source_seq, span, said_by, act, failed, verified, salience, amended = row
    return Fact(
        anchor=anchor,
        key=key,
        value=value,
        category=category,
        source_seq=source_seq,
        span=span,
        said_by=said_by,
        act=act,
        failed=failed,
        verified=verified,
        salience=salience,
        amended=amended,
    )


def facts_to_json(facts: tuple[Fact, ...]) -> str:
    """The inverse of `Summary.facts`."""
    return msgspec.json.encode([_row_of(fact) for fact in facts]).decode()


class FactCorrection(Value, frozen=True, kw_only=True):
    """What a person says of the fact (anchor, key); without a `value` it is retracted.

    `seq` is the length of the session when it was said: facts from later messages come after it. `source_seq` is the
    message that stated the fact then: the correction goes when that is erased. A store sets `ordinal`.
    """

    anchor: str
    key: str
    value: str | None
    seq: int
    source_seq: int
    author_id: str | None = None
    created_at: int = 0
    ordinal: int = 0


TITLE_KEY = "reactor_memory.title"
"""In the metadata of a posted summary: the title that the session got with it. It goes with the message."""


class PostedSummary(Value, frozen=True, kw_only=True):
    """Message `seq`, in which an agent tells what the messages 1..`until_seq` say."""

    seq: int
    until_seq: int
    text: str = ""


PostedMode: TypeAlias = Literal["auto", "always"]
"""When a context says what an agent posted: where it shows less than that covers, or always."""


class Ledger(Value, frozen=True, kw_only=True):
    """All segments and facts of a branch, oldest first, inherited ones included, and what people said of its facts, in
    the order in which they did: `facts` are as the messages state them (`amendment_fold` of the feature facts).

    `posted` is the posted summary that rules: of those whose messages the branch shows the one that reaches furthest,
    of equals the newest. `is_damaged`: some facts could not be read, and are left out until their segments are
    read again.
    """

    segments: tuple[Segment, ...] = ()
    facts: tuple[Fact, ...] = ()
    corrections: tuple[FactCorrection, ...] = ()
    posted: PostedSummary | None = None
    is_damaged: bool = False

    @property
    def covered_seq(self) -> int:
        """The last message that a segment holds, stale ones included; 0 without segments."""
        return self.segments[-1].end_seq if self.segments else 0


Retention: TypeAlias = Literal["keep", "archive", "delete"]
"""What becomes of messages for which a text stands: they stay, go out of view until they are restored, or their content
is destroyed.
"""


class RangeSummary(Value, frozen=True, kw_only=True):
    """A text that stands for the messages `start_seq`..`end_seq` of a session.

    `kind` says who made it: ``summary`` (the chat memory service), ``condensed`` or ``compressed`` (tiers).
    `message_ids` are the messages that it took in itself; those behind the summaries that it replaced are named by
    these. `message_count` counts both, so it is the number of original messages. `started_at` and `ended_at` are the
    times of the first and the last of them. `replaced_by` is the summary that took its place.
    """

    summary_id: str
    kind: str
    start_seq: int
    end_seq: int
    message_count: int
    text: str
    token_count: int
    tokenizer: str
    started_at: int
    ended_at: int
    created_at: int
    message_ids: tuple[str, ...] = ()
    retention: Retention = "keep"
    replaced_by: str | None = None
