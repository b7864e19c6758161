"""The report of how a context was chosen: what it says, and what it answers."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Literal, TypeAlias

import msgspec

from reactor_memory.core.context.blocks import Frame, Part
from reactor_memory.core.context.draft import Freshness
from reactor_memory.models import Message, NotShown, Value

Reason: TypeAlias = Literal[
    "protected",  # kept: the current turn, and what stands verbatim
    "fits",  # kept: there was room
    "over_budget",  # dropped: no room left
    "low_value",  # dropped: a line of memory worth less than those that were kept
    "orphan_result",  # dropped: a tool result whose call is not there
    "open_call",  # dropped: a tool call whose result is not there
    "open_reasoning",  # dropped: reasoning, with what came with it, of which a call or an answer is not there
    "posted_summary",  # dropped: an agent's summary, which is told as memory
    "cleared",  # clamped: an old result of a long turn, or the arguments of its call, is shown as a stub
    "folded",  # dropped: an exchange of a long turn, of which a line of its log tells
    "too_long",  # clamped: its text was cut; dropped: not even a part of it would say enough in its share of the window
]

MessageReason: TypeAlias = (
    Reason
    | Literal[
        "remembered",  # not shown as it was said; lines made from it are
        "summarized",  # left the window; memory covers it, and none of the lines shown was made from it
        "superseded",  # a system message that left the window; a newer one of its name stands in its place
        "unread",  # neither in the window nor in memory
        "withdrawn",  # taken back
        "unknown",  # the report does not speak of it: withdrawn, or not in the session
    ]
)


class ReportEntry(Value, frozen=True, kw_only=True):
    """A run of messages or lines that shared one fate.

    `first`..`last` are their `seq`, or their position in what was offered (from 0) when `by` is ``position``: lines
    and messages that are not stored. `tokens`, overhead included, are those in the context for what was kept, those
    left out for what was dropped or clamped; None: nobody counted them.
    """

    part: Part
    first: int
    last: int
    count: int
    reason: Reason
    tokens: int | None = None
    by: Literal["seq", "position"] = "seq"


class LineFate(Value, frozen=True, kw_only=True):
    """What became of a line of a block, or of what stands verbatim and is no message of the log.

    `position` counts what was offered for the part, from 0; `number` the lines that the part shows, from 1 (None: it
    is not shown). `sources` are the messages that the line was made from, if they are known.
    """

    part: Part
    position: int
    kept: bool
    reason: Reason
    number: int | None = None
    sources: tuple[int, ...] = ()


class MessageFate(Value, frozen=True, kw_only=True):
    """What became of one message.

    `outcome` is ``kept`` (it is shown as it was said, in `parts`), ``clamped`` (the same with its text cut),
    ``remembered`` (only lines made from it are shown) or ``dropped``. `lines` are all lines that were made from it,
    those that are not shown included.
    """

    seq: int
    outcome: Literal["kept", "clamped", "remembered", "dropped"]
    reason: MessageReason
    parts: tuple[Part, ...] = ()
    lines: tuple[LineFate, ...] = ()


class Compaction(Value, frozen=True, kw_only=True):
    """What was done so that a long turn fits: `batches` times, the last of them before message `since` of the turn,
    counted from 1 (the prefix of the context broke there). `cleared` results are shown as stubs, `cut` ones with their
    beginning and end, `folded` messages are told by `lines` of a log. All of it saves `saved_tokens` in each context.
    """

    batches: int
    since: int
    cleared: int
    cut: int
    folded: int
    lines: int
    saved_tokens: int


class ContextReport(Value, frozen=True, kw_only=True):
    """What was kept, dropped and clamped, and why.

    Each of the `offered` messages (blocks: lines) of a part is in exactly one entry. `tokens` are per part and
    include `overhead` for each message; `parts` names the part of each message, `frames` says what the blocks are.
    `unread` are ranges of `seq` that the context shows neither in the window nor in memory. `superseded` are system
    messages in whose place a newer one of their name stands. `window_start_seq` is None
    without a window of stored messages.
    `cache_breakpoints` are counts of leading messages that stay the same from turn to turn: the memory, then the
    memory and the window. `verbatim` has the SHA-256 of the text of each message of the parts that stand verbatim, in
    their order: the text stands in the context byte for byte, or `dropped` names it. `remarks` are in words. `digest`
    is SHA-256 over what the model sees of the messages. `seqs` is the position in the log of each message of the
    context; `sources` has, for each line that was offered for a block and for each message that stands verbatim, the
    messages that it was made from. `compaction` tells what was done to a turn that outgrew its room.
    `not_shown` names, by provider, what only another provider takes of the messages:
    reasoning, signatures, citations, media.
    """

    session_id: str
    strategy: str
    budget: int
    overhead: int
    total_tokens: int
    tokens: dict[Part, int]
    parts: tuple[Part, ...]
    offered: dict[Part, int]
    kept: tuple[ReportEntry, ...]
    dropped: tuple[ReportEntry, ...] = ()
    clamped: tuple[ReportEntry, ...] = ()
    freshness: Freshness = "none"
    covered_seq: int = 0
    window_start_seq: int | None = None
    unread: tuple[tuple[int, int], ...] = ()
    superseded: tuple[int, ...] = ()
    cache_breakpoints: tuple[int, ...] = ()
    remarks: tuple[str, ...] = ()
    frames: tuple[Frame, ...] = ()
    verbatim: dict[Part, tuple[str, ...]] = {}
    digest: str = ""
    seqs: tuple[int | None, ...] = ()
    sources: dict[Part, tuple[tuple[int, ...], ...]] = {}
    compaction: Compaction | None = None
    not_shown: dict[str, tuple[NotShown, ...]] = {}

    @property
    def blocks(self) -> frozenset[Part]:
        """The parts that are blocks of lines."""
        return frozenset([frame.part for frame in self.frames])

    def why(self, seq: int) -> MessageFate:
        """What became of message `seq`, and the lines of memory that were made from it. Reads nothing."""
        return self.why_each([seq])[0]

    def why_each(self, seqs: Iterable[int]) -> tuple[MessageFate, ...]:
        """`why` for several messages."""
        lines = self.lines()
        return tuple(self._fate(seq, tuple(line for line in lines if seq in line.sources)) for seq in seqs)

    def _fate(self, seq: int, lines: tuple[LineFate, ...]) -> MessageFate:
        parts: list[Part] = [part for part, shown in zip(self.parts, self.seqs, strict=True) if shown == seq]
        if parts:
            clamped = _reason(self.clamped, seq, parts)
            reason = clamped or _reason(self.kept, seq, parts) or "fits"
            outcome = "clamped" if clamped else "kept"
            return MessageFate(seq=seq, outcome=outcome, reason=reason, parts=tuple(parts), lines=lines)
        if any(line.kept for line in lines):
            return MessageFate(seq=seq, outcome="remembered", reason="remembered", lines=lines)
        return MessageFate(seq=seq, outcome="dropped", reason=self._absence(seq), lines=lines)

    def lines(self) -> tuple[LineFate, ...]:
        """Each line of a block that was offered, part by part, and what stands verbatim without being a message."""
        return tuple(line for part in self.sources for line in self._lines_of(part))

    def _lines_of(self, part: Part) -> Iterator[LineFate]:
        number = 0
        for position, (sources, (kept, entry)) in enumerate(zip(self.sources[part], self._entries(part), strict=True)):
            number += kept
            if entry.by == "position":
                yield LineFate(
                    part=part,
                    position=position,
                    kept=kept,
                    reason=entry.reason,
                    number=number if kept else None,
                    sources=sources,
                )

    def _entries(self, part: Part) -> Iterator[tuple[bool, ReportEntry]]:
        """For each line or message of a part, whether it is kept, and its entry.

        Of what stands verbatim, what was dropped comes first.
        """
        entries = [(False, entry) for entry in self.dropped if entry.part == part]
        entries += [(True, entry) for entry in self.kept if entry.part == part]
        if part not in self.verbatim:
            entries = [each for each in sorted(entries, key=lambda each: each[1].first) for _ in range(each[1].count)]
        return iter(entries)

    def _of_messages(self) -> tuple[Part, ...]:
        """The other parts of messages of the log, in their order: what stands verbatim, then what came back."""
        others = (part for part in self.offered if part not in self.blocks and part not in self.verbatim)
        return (*self.verbatim, *others)

    def _absence(self, seq: int) -> MessageReason:
        """Why the context neither shows a message nor a line made from it."""
        reason = _reason(self.dropped, seq, ("window", "current", *self._of_messages()))
        if reason:
            return reason
        if seq in self.superseded:
            return "superseded"
        if any(first <= seq <= last for first, last in self.unread):
            return "unread"
        return "summarized" if 1 <= seq <= self.covered_seq else "unknown"


def _reason(entries: Sequence[ReportEntry], seq: int, parts: Sequence[Part]) -> Reason | None:
    """The reason of the entry that names a message in the first of these parts."""
    for part in parts:
        for entry in entries:
            if entry.part == part and entry.by == "seq" and entry.first <= seq <= entry.last:
                return entry.reason
    return None


def digest(messages: Sequence[Message]) -> str:
    """SHA-256 over role, content, parts, calls, call id and name of each message, as MessagePack; as JSON if a number
    has more than 64 bits.
    """
    seen: list[tuple[Any, ...]] = [
        (message.role, message.content, message.parts, message.tool_calls, message.tool_call_id, message.name)
        for message in messages
    ]
    try:
        data = _TO_MESSAGE_PACK.encode(seen)  # in a third of the time of JSON, which has to look for what to escape
    except OverflowError:
        data = _TO_JSON.encode(seen)
    return hashlib.sha256(data).hexdigest()


_TO_MESSAGE_PACK = msgspec.msgpack.Encoder(order="deterministic")
_TO_JSON = msgspec.json.Encoder(order="deterministic")
