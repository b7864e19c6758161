"""Sessions with probes, and the forms in which they are replayed."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

from msgspec.structs import replace

from reactor_memory.evaluation.probes import Probe, find
from reactor_memory.evaluation.units import message_unit
from reactor_memory.models import Message, Value


class LabelledSession(Value, frozen=True, kw_only=True):
    """A session and the details to look for at its end. `name` is what the file calls it."""

    name: str
    messages: tuple[Message, ...]
    probes: tuple[Probe, ...] = ()


def without_tools(session: LabelledSession) -> LabelledSession:
    """The session as people saw it: no tool calls, no tool messages, and no message that was nothing but calls.

    Of the probes, those that one of the remaining messages answers, and those with evidence among them if their answer
    is in free words.
    """
    remaining = [
        position
        for position, message in enumerate(session.messages)
        if message.role != "tool" and (message.content or message.parts)
    ]
    messages = tuple(replace(session.messages[position], tool_calls=()) for position in remaining)
    units = [message_unit(message) for message in messages]
    moved = {before: position for position, before in enumerate(remaining)}
    probes = (_with_evidence(probe, moved) for probe in session.probes)
    kept = tuple(probe for probe in probes if find(probe, units) is not None or (probe.evidence and not probe.anchor))
    return replace(session, messages=messages, probes=kept)


def _with_evidence(probe: Probe, moved: Mapping[int, int]) -> Probe:
    return replace(probe, evidence=tuple(moved[position] for position in probe.evidence if position in moved))


VARIANTS: Mapping[str, Callable[[LabelledSession], LabelledSession]] = {
    "tools": lambda session: session,
    "text-only": without_tools,
}
"""What is done to a session before it is replayed, by the name of the variant."""


def split_turns(messages: Sequence[Message]) -> Iterator[tuple[Message, ...]]:
    """The turns of a session. What stands before the first user message is a turn of its own."""
    starts = [position for position, message in enumerate(messages) if message.role == "user" and position]
    for start, end in zip([0, *starts], [*starts, len(messages)], strict=True):
        if start < end:
            yield tuple(messages[start:end])
