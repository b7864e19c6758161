"""What a context keeps of a conversation, next to another context of the same size. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from reactor_memory.core.context.context import Context
from reactor_memory.evaluation.probes import Probe, find
from reactor_memory.evaluation.units import context_units, request_units
from reactor_memory.models import Message, Value


class Detail(Value, frozen=True, kw_only=True):
    """A probe and where it was found. `shown_as` is the unit of our context that holds it, None: it is lost."""

    probe: Probe
    shown_as: str | None
    in_take_last: bool

    @property
    def is_rescued(self) -> bool:
        return self.shown_as is not None and not self.in_take_last


class Pace(Value, frozen=True, kw_only=True):
    """How long it took, in microseconds, and how much background work it was."""

    saving: int
    catching_up: int
    loading: int
    segments: int
    facts: int


class Demonstration(Value, frozen=True, kw_only=True):
    """A session, its context, and take-last's context under the same budget.

    `refuted` are details called rescued that take-last shows after all: there must be none.
    """

    session_id: str
    messages: tuple[Message, ...]
    tokens: int
    pace: Pace
    ours: Context
    take_last: Context
    details: tuple[Detail, ...]
    refuted: tuple[Probe, ...]

    @property
    def rescued(self) -> tuple[Detail, ...]:
        return tuple(detail for detail in self.details if detail.is_rescued)


def demonstrate(
    messages: tuple[Message, ...], probes: Sequence[Probe], pace: Pace, *, ours: Context, take_last: Context
) -> Demonstration:
    """Look for every probe in both contexts. `messages` are the stored ones, with their token counts."""
    details = tuple(_details(probes, ours, take_last))
    return Demonstration(
        session_id=ours.report.session_id,
        messages=messages,
        pace=pace,
        tokens=sum((message.token_count or 0) + ours.report.overhead for message in messages),
        ours=ours,
        take_last=take_last,
        details=details,
        refuted=refuted([detail.probe for detail in details if detail.is_rescued], take_last),
    )


def refuted(rescued: Iterable[Probe], take_last: Context) -> tuple[Probe, ...]:
    """The probes that are in take-last's context after all, looked for in the request that a provider would get."""
    units = request_units(take_last.to_openai())
    return tuple(probe for probe in rescued if find(probe, units) is not None)


def _details(probes: Iterable[Probe], ours: Context, take_last: Context) -> Iterable[Detail]:
    our_units, other_units = context_units(ours), context_units(take_last)
    for probe in probes:
        position = find(probe, our_units)
        yield Detail(
            probe=probe,
            shown_as=None if position is None else our_units[position],
            in_take_last=find(probe, other_units) is not None,
        )
