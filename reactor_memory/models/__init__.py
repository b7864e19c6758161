"""Immutable values that flow through the library.

They are built from rows that the library wrote itself, on the hottest path, so they do not validate; what comes
from outside is checked at the door (`reactor_memory.core.validation`). Times are microseconds since the epoch, UTC.
Positions (`seq`) count from 1.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Literal, TypeAlias

import msgspec

LARGEST = 2**63 - 1
"""No position, time or number that is stored is larger."""

Role: TypeAlias = Literal["user", "assistant", "system", "tool", "agent", "summary"]
Visibility: TypeAlias = Literal["user", "agent", "system"]


JsonObject: TypeAlias = dict[str, Any]


LONGEST_TURN_SEGMENTS = 4
"""A turn longer than this many segments is sealed, and evicted, between its pairs of call and results."""


class Value(msgspec.Struct, frozen=True, kw_only=True, repr_omit_defaults=True):
    """Base of all values: immutable, compared by content, built with keywords, shown without what is as usual."""


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
    `created_at` is the time of the event in microseconds UTC; a save fills it when it is None. It orders nothing. Of an
    imported message nobody may know it: then it stays None, and memory gives no dates to what the message says.
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


SearchType: TypeAlias = Literal["auto", "keyword", "semantic"]
ResponseState: TypeAlias = Literal["running", "completed", "failed", "stopped", "superseded", "expired"]


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
    """A passage that a search found, in the messages `seq` to `end_seq`. `text` begins with where it stands.

    `score` says how much better it answers than other hits of the same search.
    """

    seq: int
    end_seq: int
    text: str
    score: float
