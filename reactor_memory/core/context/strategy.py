"""How a history becomes a draft: what a strategy is asked and answers, and the simplest one. Pure.

A strategy may answer that it wants the whole summary, of which a load reads the head unasked, or that something is
missing in it; then the load waits for the background work. Either way it reads again and asks once more,
and a strategy must accept what it is given then.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from reactor_memory.core.context.draft import ContextLimits, Draft, Freshness
from reactor_memory.core.context.selection import Count, first_seq_of, newest
from reactor_memory.models import Value
from reactor_memory.models.block_lines import Layout
from reactor_memory.models.requests import ContextRows


class PlanRequest(Value, frozen=True, kw_only=True):
    """What a strategy decides on. `count` gives the tokens of a message with overhead, `count_text` those of a text,
    `tokenizer` names what counts them. `current_tokens` is the size of the message to come.

    `outcome` is None on the first try; after waiting it says how that ended (`BackgroundWork.ensure`, or
    ``catching_up`` when nobody waited because too much is missing).
    """

    session_id: str
    rows: ContextRows
    limits: ContextLimits
    count: Count
    count_text: Callable[[str], int]
    tokenizer: str = ""
    current_tokens: int = 0
    outcome: str | None = None


class Missing(Value, frozen=True, kw_only=True):
    """The summary should reach `until_seq`; about `segments` segments are not extracted yet."""

    until_seq: int
    segments: int


class Plan(Value, frozen=True, kw_only=True):
    """A draft, and the layout to keep when it is a new one.

    With `missing` or `wants_summary` the draft does not count. `wants_summary`: the whole summary is needed, or
    messages before the window of `request.rows.layout`, and `request.rows.summary` is no `Summary` yet, only its head.
    `wants_older`: no memory tells what lies before the messages that were read, so that the budget decides how many are
    shown. It may be answered once more after that; then nothing more is read.
    """

    draft: Draft
    layout: Layout | None = None
    missing: Missing | None = None
    wants_summary: bool = False
    wants_older: bool = False

    @property
    def moves(self) -> bool:
        """Whether the window moves, as far as what was read tells."""
        return self.layout is not None or self.missing is not None or self.wants_summary or self.wants_older


class Strategy(Protocol):
    """`reads_summaries` says whether a load has to read them at all."""

    @property
    def reads_summaries(self) -> bool: ...

    def __call__(self, request: PlanRequest) -> Plan: ...


class TakeLast:
    """The newest messages and nothing else: with an explicit budget as many as fit, else `take_last_count`."""

    reads_summaries = False

    def __call__(self, request: PlanRequest) -> Plan:
        by_count = request.limits.window_growth == "messages"
        return take_last(request, "none", most=request.limits.take_last_count if by_count else None)


def take_last(request: PlanRequest, freshness: Freshness, *, most: int | None = None) -> Plan:
    """The newest messages, no more than `most`, else all that were read; what lies before them is unread."""
    messages = request.rows.messages
    window = tuple(newest(messages, len(messages) if most is None else most))
    first = first_seq_of(window, 1)
    unread = ((1, first - 1),) if first > 1 else ()
    draft = Draft(
        strategy="take_last", session_id=request.session_id, window=window, unread=unread, freshness=freshness
    )
    wants_older = freshness == "empty" and bool(unread) and request.limits.window_growth == "messages"
    return Plan(draft=draft, wants_older=wants_older)
