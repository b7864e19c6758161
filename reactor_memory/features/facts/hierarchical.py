"""The strategy ``hierarchical``: facts and narrative of what left the window. Pure functions of what was read."""

from __future__ import annotations

import math
from collections.abc import Iterator

from reactor_memory.core.context.blocks import Block
from reactor_memory.core.context.draft import Draft, Freshness
from reactor_memory.core.context.selection import first_seq_of
from reactor_memory.core.context.strategy import Missing, Plan, PlanRequest, take_last
from reactor_memory.features import facts
from reactor_memory.features.facts.frames import FACTS, NARRATIVE
from reactor_memory.features.facts.window_room import messages_from, minimum_start, tokens_free, tokens_of
from reactor_memory.models import LARGEST, Session
from reactor_memory.models.block_lines import Layout
from reactor_memory.models.ledger import Summary, SummaryHead
from reactor_memory.models.turns import first_certain, uncalled_first

LEFT_OUT = "lines of memory were left out when the window last moved"


class Hierarchical:
    """Facts and narrative of what left the window, and a window that grows and then gives up its oldest turns at once.

    Between two evictions the memory blocks and the start of the window stay the same, so the beginning of the context
    stays the same bytes. At or below `trigger_message_count` messages it is take-last.
    """

    reads_summaries = True

    def __call__(self, request: PlanRequest) -> Plan:
        session = request.rows.session
        if session is None or (_is_short(request, session) and not _begins_in_memory(request)):
            return take_last(request, "none")
        layout = request.rows.layout or _everything(request)
        if _still_holds(request, layout):
            return Plan(draft=_draft(request, layout, "fresh"))
        return self._evict(request)

    def _evict(self, request: PlanRequest) -> Plan:
        summary = request.rows.summary or Summary()
        nothing = Draft(strategy="hierarchical", session_id=request.session_id)
        waits = request.limits.segment_message_count
        start = minimum_start(request)
        if not waits and request.rows.session:  # no summary will ever reach into the newest messages
            start = min(start, request.rows.session.last_seq - request.limits.recent_message_count + 1)
        gap = start - 1 - summary.covered_seq
        if gap > waits and request.outcome is None:
            segments = math.ceil((gap - waits) / max(1, waits))
            return Plan(draft=nothing, missing=Missing(until_seq=start - 1 - waits, segments=segments))
        if not isinstance(summary, Summary):
            return Plan(draft=nothing, wants_summary=True)
        if gap > waits:
            return self._make_do(request, summary)
        if summary.is_empty and summary.covered_seq:
            return take_last(request, "empty")
        start = min(start, summary.covered_seq + 1)
        layout = facts.memory_layout.layout_for(request, summary, start, anew=request.rows.layout is None)
        if request.rows.layout is None and not _still_holds(request, layout):
            # else the next load would move the window
            layout = facts.memory_layout.layout_for(request, summary, start, anew=False)
        keep = None if summary.stale_ranges else layout
        return Plan(draft=_draft(request, layout, "fresh"), layout=keep)

    def _make_do(self, request: PlanRequest, summary: Summary) -> Plan:
        """The summary was not ready in time: the older one is used, and after it as many messages as fit."""
        freshness = _freshness(request.outcome or "", has_summary=summary.covered_seq > 0 or not summary.is_empty)
        if freshness == "failed":
            return take_last(request, freshness)
        layout = facts.memory_layout.layout_for(request, summary, summary.covered_seq + 1, anew=True)
        return Plan(draft=_draft(request, layout, freshness))


def _freshness(outcome: str, *, has_summary: bool) -> Freshness:
    if outcome == "catching_up":
        return "catching_up"
    if outcome in ("covered", "idle"):
        return "fresh"
    return "stale" if has_summary else "failed"


def _is_short(request: PlanRequest, session: Session) -> bool:
    return session.last_seq <= request.limits.trigger_message_count


def _begins_in_memory(request: PlanRequest) -> bool:
    """Whether the first messages of the session are out of view and covered by the summary."""
    summary, messages = request.rows.summary, request.rows.messages
    return summary is not None and summary.covered_seq > 0 and first_seq_of(messages, 2) > 1


def _everything(request: PlanRequest) -> Layout:
    """The layout of a session whose window has dropped nothing yet."""
    return Layout(seq=0, window_start_seq=1, epoch=request.rows.summary.epoch if request.rows.summary else 0)


def _still_holds(request: PlanRequest, layout: Layout) -> bool:
    """Whether the window of the layout may grow on: nothing has to leave it yet, and nothing in it went out of view."""
    summary, messages = request.rows.summary or SummaryHead(), request.rows.messages
    if layout.epoch != summary.epoch or first_seq_of(messages, LARGEST) > layout.window_start_seq:
        return False
    window = messages_from(messages, layout.window_start_seq)
    room = tokens_free(request) - layout.memory_tokens
    tokens = tokens_of(window, request, {excerpt.seq: excerpt for excerpt in layout.excerpts})
    if request.limits.window_growth == "messages":
        return len(window) <= request.limits.trigger_message_count and tokens <= room
    return tokens <= min(room, request.limits.max_window_tokens)


def _draft(request: PlanRequest, layout: Layout, freshness: Freshness) -> Draft:
    read, start = request.rows.messages, layout.window_start_seq
    summary = request.rows.summary or SummaryHead()
    certain = (read[first_certain(read)].seq or 1) if read else start
    is_cut = certain > start and first_seq_of(read, start) != start
    window = messages_from(read, certain if is_cut else start)
    if request.rows.steps:
        window = uncalled_first(read, window)
    first = first_seq_of(window, start)
    hole = ((start, first - 1),) if is_cut else ()
    stale = tuple((begin, min(end, first - 1)) for begin, end in summary.stale_ranges if begin < first)
    return Draft(
        strategy="hierarchical",
        session_id=request.session_id,
        blocks=tuple(_blocks(layout)),
        window=tuple(window),
        excerpts=layout.excerpts,
        unread=stale + hole,
        covered_seq=layout.covered_seq,
        memory_before_seq=start,
        floor=layout.floor,
        freshness=freshness,
        remarks=tuple(_remarks(layout, summary)),
    )


def _blocks(layout: Layout) -> Iterator[Block]:
    if layout.fact_lines:
        yield Block(frame=FACTS, lines=layout.fact_lines, tokens=layout.fact_tokens)
    if layout.narrative:
        yield Block(frame=NARRATIVE, lines=layout.narrative, tokens=layout.narrative_tokens)


def _remarks(layout: Layout, summary: SummaryHead) -> Iterator[str]:
    if layout.left_out:
        yield f"{layout.left_out} {LEFT_OUT}: too low in rank, or no room"
    if summary.truncated:
        yield "the ledger holds more facts than the summary: summary.max_fact_tokens"
