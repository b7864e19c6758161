"""Immutable values that flow through the library.

They are built from rows that the library wrote itself, on the hottest path, so they do not validate; what comes
from outside is checked at the door (`reactor_memory.core.validation`). Times are microseconds since the epoch, UTC.
Positions (`seq`) count from 1.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Literal, TypeAlias, cast, overload

import msgspec

LARGEST = 2**63 - 1
"""No position, time or number that is stored is larger."""

Role: TypeAlias = Literal["user", "assistant", "system", "tool", "agent", "summary"]
Visibility: TypeAlias = Literal["user", "agent", "system"]
Category: TypeAlias = Literal["ENTITY", "DECISION", "CONDITION", "STATE", "NUMERIC", "GENERAL"]
Act: TypeAlias = Literal["statement", "decision", "correction"]


Form: TypeAlias = Literal["full", "short", "brief"]
"""How shortly facts are told (`reactor_memory.features.facts.rendering.render_facts`)."""

JsonObject: TypeAlias = dict[str, Any]


LONGEST_TURN_SEGMENTS = 4
"""A turn longer than this many segments is sealed, and evicted, between its pairs of call and results."""


class Value(msgspec.Struct, frozen=True, kw_only=True):
    """Base of all values: immutable, compared by content, built with keywords."""


class ToolCall(Value, frozen=True, kw_only=True):
    """One call of a tool by the model.

    `arguments` is kept as given: a mapping, or the provider's own JSON text (which may be malformed).
    `metadata` holds what a provider wants back with the call, such as a thought signature.
    """

    id: str
    name: str
    arguments: JsonObject | str = {}
    metadata: JsonObject = {}


class Message(Value, frozen=True, kw_only=True):
    """One entry of the log.

    `parts` are opaque content parts (images, files, reasoning with signatures), kept whole or dropped whole.
    `created_at` is the time of the event in microseconds UTC; a store fills it when it is None. It orders nothing.
    `seq`, `message_id`, `token_count` and `tokenizer` are set by the store and ignored when saving.
    """

    role: Role
    content: str = ""
    parts: tuple[JsonObject, ...] = ()
    tool_calls: tuple[ToolCall, ...] = ()
    tool_call_id: str | None = None
    name: str | None = None
    metadata: JsonObject = {}
    visibility: Visibility = "user"
    author_id: str | None = None
    created_at: int | None = None
    seq: int | None = None
    message_id: str | None = None
    token_count: int | None = None
    tokenizer: str | None = None

    @classmethod
    def user(cls, content: str, **fields: Any) -> Message:
        return cls(role="user", content=content, **fields)

    @classmethod
    def assistant(cls, content: str = "", *, tool_calls: Iterable[ToolCall] = (), **fields: Any) -> Message:
        return cls(role="assistant", content=content, tool_calls=tuple(tool_calls), **fields)

    @classmethod
    def system(cls, content: str, **fields: Any) -> Message:
        return cls(role="system", content=content, **fields)

    @classmethod
    def tool(cls, content: str, *, tool_call_id: str, **fields: Any) -> Message:
        """The result of the tool call `tool_call_id`."""
        return cls(role="tool", content=content, tool_call_id=tool_call_id, **fields)


def is_uncalled(message: Message) -> bool:
    """Whether the message is the result of a tool that names no call: no provider knows such a message."""
    return message.role == "tool" and message.tool_call_id is None


def as_said(message: Message) -> Message:
    """A message as providers get it: a result that names no call as text of the user that says so."""
    if not is_uncalled(message):
        return message
    head = f"[result of the tool {message.name}]" if message.name else "[result of a tool]"
    return Message.user(f"{head}\n{message.content}", parts=message.parts)


def is_posted_summary(message: Message) -> bool:
    """Whether the message is a summary that an agent keeps for itself: no original, and nothing that a window shows."""
    return message.role == "summary" and message.visibility == "agent"


def is_instruction(message: Message) -> bool:
    """Whether the message steers a model as its system does, or unseen by users: whoever talks with a model, and the
    model itself, must not write such messages unasked.
    """
    return message.role == "system" or message.visibility != "user"


def is_kept_by_author(message: Message) -> bool:
    """Whether an agent keeps the message for itself: no other agent is shown it, and no memory is made of it. One with
    the visibility ``system`` is for all agents, and so is a posted summary.
    """
    return message.visibility == "agent" and message.author_id is not None and message.role != "summary"


def is_reasoning(part: JsonObject) -> bool:
    return part.get("type") in ("thinking", "redacted_thinking", "reasoning") or bool(part.get("thought"))


def is_models(message: Message) -> bool:
    """Whether a model said it."""
    return message.role in ("assistant", "agent")


def holds_reasoning(message: Message) -> bool:
    return bool(message.parts) and is_models(message) and any(map(is_reasoning, message.parts))


def is_bare_reasoning(message: Message) -> bool:
    """Whether the message holds reasoning and nothing else: what it led to is in the messages behind it."""
    has_more = message.content or message.tool_calls or not all(map(is_reasoning, message.parts))
    return holds_reasoning(message) and not has_more


def reasoned_runs(messages: Sequence[Message], positions: Iterable[int], end: int) -> Iterator[range]:
    """What a model gave with its reasoning, wherever one of `positions` (ascending) holds some: that message, and
    what the model says directly behind it before `end`, up to its next reasoning.

    A provider takes such a run whole or not at all: reasoning only before what it led to, and that only behind its
    reasoning. A framework may keep each piece as a message of its own.
    """
    stop = 0
    for first in positions:
        if first >= stop and holds_reasoning(messages[first]):
            stop = first + 1
            while stop < end and _goes_on(messages[stop - 1], messages[stop]):
                stop += 1
            yield range(first, stop)


def _goes_on(before: Message, message: Message) -> bool:
    """Whether the message belongs to the run of the one before. What was taken back in between is missing for good."""
    if not is_models(message) or (holds_reasoning(message) and not is_bare_reasoning(before)):
        return False
    return before.seq is None or message.seq is None or message.seq == before.seq + 1


class BranchRange(Value, frozen=True, kw_only=True):
    """The messages `start_seq`..`end_seq` of a branch are stored under `conversation_id`.

    `end_seq` is None in the last range of a branch: its own messages, which may still grow.
    """

    conversation_id: str
    start_seq: int
    end_seq: int | None = None


class Session(Value, frozen=True, kw_only=True):
    """A conversation as it stands: who owns it, how long it is, where its messages are stored.

    `branch` covers 1..`last_seq` without gaps, oldest range first. `forked_at_seq` is the first message that a fork
    does not share with `forked_from_id`.
    """

    session_id: str
    group_id: str
    owner_id: str | None
    last_seq: int
    branch: tuple[BranchRange, ...]
    created_at: int
    updated_at: int
    title: str | None = None
    forked_from_id: str | None = None
    forked_at_seq: int | None = None
    deleted_at: int | None = None


class SessionPreview(Value, frozen=True, kw_only=True):
    """A row of the list of sessions. `owner_id` is None for a session that is open to everybody, `forked_from_id` for
    one that is no fork. `preview` is the beginning of the first message of the user that users see, on one line.
    """

    session_id: str
    owner_id: str | None
    title: str | None
    preview: str
    last_seq: int
    created_at: int
    updated_at: int
    forked_from_id: str | None = None


class SessionPage(Value, frozen=True, kw_only=True):
    """One page of sessions, newest activity first. `next_cursor` is None on the last page."""

    sessions: tuple[SessionPreview, ...]
    next_cursor: str | None = None


RULED = 3.6
"""The worth of what a user ruled for good: losing it does more harm than losing anything that was done."""

RULED_SALIENCE = 100

SETTLED = 3.0
"""The worth of what was done, or told to be kept: what is worth as much may take all the room of a memory."""

NOTED_SALIENCE = 99


class Fact(Value, frozen=True, kw_only=True):
    """Something that a message states.

    `anchor` is the thing it is about ("reserve_restaurant #2", "user"); identity is anchor + key. `span` is where the
    value stands, in characters of `evidence_text(message)` (feature facts) of the message as the
    redactor leaves it. `said_by` is the role of the source message. `failed` marks an attempt that did not succeed: it
    is a fact that it was tried. `amended` says that a person fixed it: no message states the value, and everything else
    is as it was in the fact that it replaces.

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
    def worth(self) -> float:
        """How much would be lost without it: what the user ruled, what was done, what was settled, what was
        only said.
        """
        if self.salience == RULED_SALIENCE:
            return RULED
        if self.salience == NOTED_SALIENCE:
            return SETTLED
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


class KnownNames(Value, frozen=True, kw_only=True):
    """What a thing is called, and what its known properties are called."""

    anchor: str
    keys: tuple[str, ...] = ()


class Known(Value, frozen=True, kw_only=True):
    """What a summarizer is told beside the messages.

    `facts`: all that hold so far, in ``full`` mode, where the answer replaces them. `names`: a bounded choice of the
    names that facts have so far, so that the same thing is called the same again; nothing of what they say.
    """

    facts: tuple[Fact, ...] = ()
    names: tuple[KnownNames, ...] = ()


NOTHING_KNOWN = Known()


SearchType: TypeAlias = Literal["auto", "keyword", "semantic"]
ResponseState: TypeAlias = Literal["running", "completed", "failed", "stopped", "superseded", "expired"]


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
    until then.
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


class Summary(SummaryHead, frozen=True, kw_only=True):
    """The current fold of the segments of a branch.

    `facts_json` is the working set of facts as JSON; `facts()` decodes it, which a load does only at evictions.
    `spare_json` are the facts that come next, from which the fold goes on; no context shows them.
    """

    facts_json: str = "[]"
    spare_json: str = "[]"

    @property
    def head(self) -> SummaryHead:
        return SummaryHead(**{name: getattr(self, name) for name in SummaryHead.__struct_fields__})

    def facts(self) -> tuple[Fact, ...]:
        return _FACTS.decode(self.facts_json)

    def spare(self) -> tuple[Fact, ...]:
        return _FACTS.decode(self.spare_json)

    @property
    def is_empty(self) -> bool:
        """No facts and a blank narrative: it says nothing that a context could show."""
        return self.facts_json == "[]" and not self.narrative.strip()


_FACTS = msgspec.json.Decoder(tuple[Fact, ...])


def facts_to_json(facts: tuple[Fact, ...]) -> str:
    """The inverse of `Summary.facts`."""
    return msgspec.json.encode(facts).decode()


class BlockLine(Value, frozen=True, kw_only=True):
    """One line of a memory block. `tokens` is about what the line adds to its block.

    Lines of lower `value` are given up first; of equal value, the earlier one. `source_seqs` are the messages that
    the line was made from.
    """

    text: str
    tokens: int
    value: float = 0.0
    source_seqs: tuple[int, ...] = ()


class BlockLines(Sequence[BlockLine]):
    """The lines of a block as a store keeps them; equal to any sequence of the same lines.

    `text` is what a context shows of all of them, one a line. The rest of each line is JSON (`line_details`), decoded
    when somebody looks at a line: most loads show a whole block and look at none.
    """

    __slots__ = ("_details", "_length", "_lines", "text")

    def __init__(self, text: str, details: bytes, length: int) -> None:
        self.text = text
        self._details = details
        self._length = length
        self._lines: tuple[BlockLine, ...] | None = None

    def __len__(self) -> int:
        return self._length

    @overload
    def __getitem__(self, index: int) -> BlockLine: ...

    @overload
    def __getitem__(self, index: slice) -> Sequence[BlockLine]: ...

    def __getitem__(self, index: int | slice) -> BlockLine | Sequence[BlockLine]:
        if self._lines is None:
            texts = self.text.split("\n") if self._length else ()
            self._lines = tuple(
                [
                    BlockLine(text=text, tokens=tokens, value=value, source_seqs=source_seqs)
                    for text, (tokens, value, source_seqs) in zip(texts, _DETAILS.decode(self._details), strict=True)
                ]
            )
        return self._lines[index]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and self[:] == tuple(cast("Sequence[object]", other))

    __hash__ = None  # pyright: ignore[reportAssignmentType]


_DETAILS = msgspec.json.Decoder(tuple[tuple[int, float, tuple[int, ...]], ...])


def lines_text(lines: Sequence[str]) -> str:
    """All lines, one a line."""
    body = "\n".join(lines)
    if len(body.splitlines()) == len(lines):
        return body
    # a line that breaks could pass for another line, or close the block
    return "\n".join([" ".join(line.splitlines()) for line in lines])


def line_details(lines: Sequence[BlockLine]) -> list[tuple[int, float, tuple[int, ...]]]:
    """What `BlockLines` keeps of lines beside their text."""
    return [(line.tokens, line.value, line.source_seqs) for line in lines]


class Layout(Value, frozen=True, kw_only=True):
    """Where the window of a context starts and which lines its memory blocks hold.

    It stays the same between evictions, so that everything left of the window is the same bytes turn after turn.
    `fact_tokens` and `narrative_tokens` are what the two blocks cost as messages, overhead included; `left_out` counts
    the lines for which there was no room, `floor` is the rank (value, seq) that a line of facts needs,
    `form` how shortly facts are told.
    `seq` is the length of the session when it was made, `epoch` the one of the summary that it was made from: with
    another epoch the layout shows something that went out of view since, and must not be used.
    """

    seq: int
    window_start_seq: int
    fact_lines: Sequence[BlockLine] = ()
    narrative: Sequence[BlockLine] = ()
    fact_tokens: int = 0
    narrative_tokens: int = 0
    left_out: int = 0
    floor: tuple[float, int] = (0.0, 0)
    form: Form = "full"
    covered_seq: int = 0
    epoch: int = 0


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


PostedShown: TypeAlias = Literal["auto", "always"]
"""When a context says what an agent posted: where it shows less than that covers, or always."""


class ArchivedRanges(Value, frozen=True, kw_only=True):
    """The runs of messages of a branch that callers archived, oldest first: `kept` with their facts shown, `cleared`
    without.
    """

    kept: tuple[tuple[int, int], ...] = ()
    cleared: tuple[tuple[int, int], ...] = ()

    @property
    def until_seq(self) -> int:
        """The last message that is archived; 0 without one."""
        return max((end for _, end in (*self.kept, *self.cleared)), default=0)


class Ledger(Value, frozen=True, kw_only=True):
    """All segments and facts of a branch, oldest first, inherited ones included, and what people said of its facts, in
    the order in which they did: `facts` are as the messages state them (`amendment_fold` of the feature facts).

    `posted` is the posted summary that rules: of those whose messages the branch shows the one that reaches furthest,
    of equals the newest.
    """

    segments: tuple[Segment, ...] = ()
    facts: tuple[Fact, ...] = ()
    corrections: tuple[FactCorrection, ...] = ()
    posted: PostedSummary | None = None

    @property
    def covered_seq(self) -> int:
        """The last message that a segment holds, stale ones included; 0 without segments."""
        return self.segments[-1].end_seq if self.segments else 0


class Pin(Value, frozen=True, kw_only=True):
    """A message or a fact that the caller pinned: every context of the session shows `text`, byte for byte.

    `seq` is the pinned message, or the source of the fact; `fact` is the fact's anchor and key. `role` is the one of
    the message; a fact is shown in the role of memory. `sha256` was taken of `text` (UTF-8, hexadecimal) when it was
    pinned. `ordinal` is its place among the pins of the session, from 1; a store sets it.
    """

    seq: int
    fact: tuple[str, str] | None = None
    role: Role = "system"
    text: str
    sha256: str
    token_count: int
    tokenizer: str
    created_at: int
    ordinal: int = 0

    @property
    def target(self) -> PinTarget:
        """What is pinned: the seq of a message, or the anchor and key of a fact."""
        return self.seq if self.fact is None else self.fact


PinTarget: TypeAlias = int | tuple[str, str]


class SearchHit(Value, frozen=True, kw_only=True):
    """Something that a search found: message `seq`, or with an `anchor` the facts that were recorded about it.

    `score` says how much better it answers than other hits of the same search.
    """

    seq: int
    text: str
    score: float
    anchor: str = ""


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


class IdleGroup(Value, frozen=True, kw_only=True):
    """A session with its forks that nobody uses: how many they are, how many messages, and the last activity."""

    session_id: str
    session_count: int
    message_count: int
    updated_at: int


class Archived(Value, frozen=True, kw_only=True):
    """What was archived now: how many messages, and the summary that was posted in their place."""

    message_count: int
    summary: Message | None = None


class Lease(Value, frozen=True, kw_only=True):
    """The right to do the background work of one conversation until `lease_until`.

    `fence` grows with every lease; a write under an older fence is refused. `attempts` counts failures in a row.
    """

    session_id: str
    kind: str
    fence: int
    lease_until: int
    attempts: int = 0


class WorkState(Value, frozen=True, kw_only=True):
    """Where the background work of a conversation stands. `due_at` None and `parked` True: given up until asked."""

    session_id: str
    kind: str
    due_at: int | None
    lease_until: int
    fence: int
    attempts: int
    parked: bool = False
    last_error: str | None = None
