"""What the tools take and answer: typed, so that clients get schemas. Pure translation from values of the library."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Literal

from pydantic import BaseModel

from reactor_memory.core.context.context import Context
from reactor_memory.core.context.given_messages import messages_of
from reactor_memory.errors import InvalidInputError
from reactor_memory.features.facts.prose import render_narrative
from reactor_memory.models import Message, ToolCall, is_instruction
from reactor_memory.models.ledger import Fact, RangeSummary


class Call(BaseModel):
    """A call of a tool by the model. `arguments` are an object, or the model's own JSON text; `metadata` is what its
    provider wants back with the call.
    """

    id: str
    name: str
    arguments: dict[str, Any] | str = {}
    metadata: dict[str, Any] = {}


class NewMessage(BaseModel):
    """A message to keep. One of role `tool` names the call that it answers. `parts` are images, files or reasoning.

    None can be an instruction (`is_instruction`): a client is a model, and what it was talked into must not come back
    as an order.
    """

    role: Literal["user", "assistant", "tool"]
    content: str = ""
    parts: list[dict[str, Any]] = []
    tool_calls: list[Call] = []
    tool_call_id: str | None = None
    name: str | None = None


class ShownMessage(BaseModel):
    """A message of a context. `part` says why it is there, `seq` where it stands in the conversation."""

    part: str
    role: str
    content: str
    seq: int | None = None
    name: str | None = None
    parts: list[dict[str, Any]] = []
    tool_calls: list[Call] = []
    tool_call_id: str | None = None


class ShownContext(BaseModel):
    """What a model should see next, in this order, of at most `budget` tokens. `freshness` is that of its memory."""

    messages: list[ShownMessage]
    tokens: int
    budget: int
    freshness: str


class Added(BaseModel):
    """Where the messages stand now. `replayed`: they had been added before under the same idempotency key."""

    first_seq: int
    last_seq: int
    replayed: bool


class Hit(BaseModel):
    """A passage of the messages `seq` to `end_seq`."""

    seq: int
    end_seq: int
    text: str
    score: float


class Hits(BaseModel):
    hits: list[Hit]


class KnownFact(BaseModel):
    """`key` of the thing `anchor` is `value`, as message `seq` states. `failed`: it was tried, without success."""

    anchor: str
    key: str
    value: str
    category: str
    said_by: str
    seq: int
    verified: bool
    failed: bool


class KnownFacts(BaseModel):
    """The newest facts, oldest first; `total` counts all of them."""

    facts: list[KnownFact]
    total: int


class ShownSummary(BaseModel):
    """What memory has of the messages up to `covered_seq`; nothing yet if that is 0."""

    covered_seq: int
    narrative: str
    facts: int
    truncated: bool


class Resolved(BaseModel):
    """The session to go on with; keep its id, unless `source` is `unverified`: then it could not be looked up."""

    session_id: str
    source: str


class Answer(BaseModel):
    result: str


def to_message(given: NewMessage) -> Message:
    return Message(
        role=given.role,
        content=given.content,
        parts=tuple(given.parts),
        tool_calls=tuple(ToolCall(**call.model_dump()) for call in given.tool_calls),
        tool_call_id=given.tool_call_id,
        name=given.name,
    )


def given_messages(given: Sequence[Any]) -> list[Message]:
    """Messages as a provider takes and gives them. Raises `InvalidInputError` for what a client may not say."""
    messages = messages_of(given, field="given")
    for position, message in enumerate(messages):
        if message.role not in ("user", "assistant", "tool") or is_instruction(message):
            raise InvalidInputError(f"given[{position}]", "must be of role user, assistant or tool, and for users")
        if message.author_id is not None:
            raise InvalidInputError(f"given[{position}].author_id", "is set by the server; leave it out")
    return [*messages]


def context_result(context: Context) -> ShownContext:
    report = context.report
    return ShownContext(
        messages=[message_result(message, part) for message, part in zip(context.messages, report.parts, strict=True)],
        tokens=report.total_tokens,
        budget=report.budget,
        freshness=report.freshness,
    )


def message_result(message: Message, part: str) -> ShownMessage:
    return ShownMessage(
        part=part,
        role=message.role,
        content=message.content,
        seq=message.seq,
        name=message.name,
        parts=list(message.parts),
        tool_calls=[
            Call(id=call.id, name=call.name, arguments=call.arguments, metadata=call.metadata)
            for call in message.tool_calls
        ],
        tool_call_id=message.tool_call_id,
    )


def tiers_result(live: Sequence[RangeSummary], *, count: Callable[[str], int]) -> ShownSummary:
    """The texts of tiers as contexts show them: line by line without what could pass for structure."""
    lines = [line.text for summary in live for line in render_narrative(summary.text, count=count)]
    covered = max((summary.end_seq for summary in live), default=0)
    return ShownSummary(covered_seq=covered, narrative="\n".join(lines), facts=0, truncated=False)


def known_fact(fact: Fact) -> KnownFact:
    return KnownFact(
        anchor=fact.anchor,
        key=fact.key,
        value=fact.value,
        category=fact.category,
        said_by=fact.said_by,
        seq=fact.source_seq,
        verified=fact.verified,
        failed=fact.failed,
    )
