"""Immutable values that flow through the library.

They are built from rows that the library wrote itself, on the hottest path, so they do not validate; what comes
from outside is checked at the door (`reactor_memory.core.validation`). Times are microseconds since the epoch, UTC.
Positions (`seq`) count from 1.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from operator import attrgetter
from typing import Any, Literal, TypeAlias, cast

import msgspec

from reactor_memory.models import frames

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

    @property
    def arguments_text(self) -> str:
        """The JSON text of the arguments, as the model wrote it, malformed or not."""
        return self.arguments if isinstance(self.arguments, str) else msgspec.json.encode(self.arguments).decode()


Form: TypeAlias = Literal["chat", "openai", "openai_responses", "anthropic", "gemini", "ollama"]
"""Whose form a message was given in: ``chat`` reads the same to OpenAI and Anthropic."""

BlockKind: TypeAlias = Literal["text", "thinking", "tool_call", "tool_result", "picture", "file", "audio", "other"]


class Given(Value, frozen=True, kw_only=True):
    """A message as the provider gave it: its form, and what the message does not hold itself (`models.frames`). Without
    a frame it was a role and a text.
    """

    form: Form
    frame: Any = None


AS_TEXT = Given(form="chat")


class ContentBlock(Value, frozen=True, kw_only=True):
    """A piece of a message in its place. `text` of a text, `call` of a call; `part` of everything else, as it came."""

    kind: BlockKind
    text: str = ""
    part: JsonObject = {}
    call: ToolCall | None = None


class Message(Value, frozen=True, kw_only=True, eq=False):
    """One entry of the log: its `blocks` in order, of which `content` is the text, `tool_calls` the calls and `parts`
    everything else.

    `parts` are opaque content parts (images, files, reasoning with signatures), kept whole or dropped whole.
    `created_at` is the time of the event in microseconds UTC; a save fills it when it is None. It orders nothing. Of an
    imported message nobody may know it: then it stays None, and memory gives no dates to what the message says.
    `seq`, `message_id`, `token_count` and `tokenizer` are set by the store and ignored when saving. `given` is what
    the provider gave, where these fields alone would not give it back. Messages are equal that say the same, whoever
    gave them.
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
    given: Given | None = None

    def __eq__(self, other: object) -> bool:
        return _said(self) == _said(other) if isinstance(other, Message) else NotImplemented

    def __ne__(self, other: object) -> bool:  # that of a struct compares every field
        return not self == other

    __hash__ = None  # pyright: ignore[reportAssignmentType]

    @property
    def blocks(self) -> tuple[ContentBlock, ...]:
        """The message in its order: as the provider gave it, else reasoning, text, other parts, calls."""
        return tuple(_blocks(self))

    @property
    def outcome(self) -> Literal["ok", "failed"] | None:
        """What the protocol says of a result or of a server's tool: its own flags, never its words. None: nothing."""
        if isinstance(failed := self.metadata.get("is_error"), bool):
            return "failed" if failed else "ok"
        said = [outcome for part in self.parts if (outcome := outcome_of(part)) is not None]
        if self.given is not None and self.role == "tool" and (flag := outcome_of(self.given.frame)) is not None:
            said.append(flag)
        return None if not said else "failed" if "failed" in said else "ok"

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


_said = attrgetter(*(name for name in Message.__struct_fields__ if name != "given"))
_FAILED_STATES = frozenset(("error", "failed", "failure", "incomplete", "timeout", "cancelled", "outcome_failed",
                            "outcome_deadline_exceeded"))  # fmt: skip
_OK_STATES = frozenset(("success", "completed", "ok", "outcome_ok"))
_EXIT_CODES = ("exit_code", "exitCode", "return_code", "returncode")
_ERRORS = ("is_error", "isError")


def outcome_of(value: Any, depth: int = 4) -> Literal["ok", "failed"] | None:
    """What the flags in a value of JSON say: error flags, states, exit codes, on its first levels; the worst counts."""
    if isinstance(value, list):
        values = cast("list[Any]", value)
    elif isinstance(value, dict):
        found = cast("dict[str, Any]", value)
        if (own := _flag(found)) is not None:
            return own
        values = [*found.values()]
    else:
        return None
    said = {outcome_of(each, depth - 1) for each in values} if depth else {None}
    return "failed" if "failed" in said else "ok" if "ok" in said else None


def _flag(found: JsonObject) -> Literal["ok", "failed"] | None:
    for key in _ERRORS:
        if isinstance(found.get(key), bool):
            return "failed" if found[key] else "ok"
    for key in _EXIT_CODES:
        if isinstance(code := found.get(key), int) and not isinstance(code, bool):
            return "failed" if code else "ok"
    if str(found.get("type", "")).endswith("_tool_result_error") or found.get("error_code"):
        return "failed"
    for key in ("status", "outcome"):
        state = str(found.get(key)).lower()
        if state in _FAILED_STATES or state in _OK_STATES:
            return "failed" if state in _FAILED_STATES else "ok"
    return None


def _blocks(message: Message) -> Iterator[ContentBlock]:
    given = message.given
    if given is None or not is_as_given(message):
        reasoning = [part for part in message.parts if is_reasoning(part)]
        yield from map(_part_block, reasoning)
        if message.content:
            yield ContentBlock(kind="tool_result" if message.role == "tool" else "text", text=message.content)
        yield from (_part_block(part) for part in message.parts if not is_reasoning(part))
        yield from (ContentBlock(kind="tool_call", call=call) for call in message.tool_calls)
        return
    if given.frame is None:
        if message.content:
            yield ContentBlock(kind="text", text=message.content)
        return
    shown = set[int]()
    for kind, value in frames.references(given.frame):
        if kind == frames.TEXT:
            text = message.content[value[0] : value[1]]
            yield ContentBlock(kind="tool_result" if message.role == "tool" else "text", text=text)
        elif kind == frames.ARGUMENTS:
            yield ContentBlock(kind="tool_call", call=message.tool_calls[int(value)])
        elif (number := value if isinstance(value, int) else value[0]) not in shown:
            shown.add(number)
            yield _part_block(message.parts[number])


def is_as_given(message: Message) -> bool:
    """Whether the message still is what the provider gave: not one that was shortened or changed since."""
    given = message.given
    if given is None:
        return False
    if given.frame is None:
        return not message.parts and not message.tool_calls
    return frames.fits(given.frame, message.content, len(message.parts), len(message.tool_calls))


_KINDS: dict[str, BlockKind] = {
    "text": "text", "input_text": "text", "output_text": "text", "refusal": "text",
    "image": "picture", "image_url": "picture", "input_image": "picture",
    "audio": "audio", "input_audio": "audio", "file": "file", "input_file": "file", "document": "file",
}  # fmt: skip


def _part_block(part: JsonObject) -> ContentBlock:
    if is_reasoning(part):
        return ContentBlock(kind="thinking", part=part)
    kind = _KINDS.get(str(part.get("type")), "other")
    media = part.get("inline_data") or part.get("inlineData") or part.get("file_data") or part.get("fileData")
    if isinstance(media, dict):
        found = cast("JsonObject", media)
        major = str(found.get("mime_type") or found.get("mimeType")).partition("/")[0]
        kind = "picture" if major == "image" else "audio" if major == "audio" else "file"
    return ContentBlock(kind=kind, part=part)


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


class NotShown(Value, frozen=True, kw_only=True):
    """Pieces of the message `seq` (None: it is not stored) that a provider is not shown: a mark stands for them, or
    nothing, as for reasoning, signatures and citations.
    """

    seq: int | None
    kind: BlockKind | Literal["signature", "citations"]
    count: int


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
