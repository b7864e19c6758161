"""How memory is laid out when the window moves: which facts stand in it, how they are written, how much is told."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from msgspec.structs import replace

from reactor_memory.core import context
from reactor_memory.core.context.blocks import Block, block_text, fit_blocks
from reactor_memory.core.context.newest_turns import Cut
from reactor_memory.core.context.strategy import PlanRequest
from reactor_memory.features.facts.frames import FACTS, NARRATIVE
from reactor_memory.features.facts.line_choice import Rank, newest_lines
from reactor_memory.features.facts.prose import render_narrative
from reactor_memory.features.facts.quoting.continued_block import chosen_block, grown_block
from reactor_memory.features.facts.quoting.ready_lines import offered_beside
from reactor_memory.features.facts.rendering import render_facts
from reactor_memory.features.facts.window_room import memory_room, tokens_free, window_beside
from reactor_memory.features.facts.working_state import told_from
from reactor_memory.models import Message
from reactor_memory.models.block_lines import BlockLine, Layout
from reactor_memory.models.excerpts import Excerpt
from reactor_memory.models.ledger import Summary
from reactor_memory.models.turns import first_certain, parted, units

STORY_SHARE = 0.05
SMALL_SHARE, LEAST_STORY = 0.1, 100
"""The narrative may take this share of the budget, or of a small one the other, up to so many tokens. It changes
whenever the window moves, and stands before the window: what it takes is no room for facts, and no text that a prompt
cache can keep.
"""


_PASSES, _PASSES_ANEW = 2, 4
"""What the window shows whole is no part of memory, and the window has what memory leaves. In the last of so many
rounds memory follows the window, so that nothing is in neither of them. What it leaves then is free: where there is no
prefix to keep, more rounds leave less.
"""


def layout_for(request: PlanRequest, summary: Summary, start: int, *, anew: bool) -> Layout:
    """The blocks for a window from message `start` on: what the window does not say itself, and the window that they
    leave room for. `anew`: there is no prefix to keep, and they take all the room.
    """
    start = _unit_start(request.rows.messages, start)
    said = {message.seq or 0 for message in request.rows.messages if (message.seq or 0) >= start}
    layout = _laid_out(request, summary, said, anew=anew)
    window = window_beside(request, layout, start, anew=anew)
    passes = _PASSES_ANEW if anew else _PASSES
    for number in range(1, passes + 1):
        shown = _said_by(request, window)
        if shown == said:
            break
        said = shown
        layout = _laid_out(request, summary, said, anew=anew)
        if number < passes:
            window = window_beside(request, layout, start, anew=anew)
    while anew and layout.memory_tokens + window.tokens > tokens_free(request):
        # each shows what the other leaves to it, in turns: memory keeps what it tells, and the window gives way
        window = window_beside(request, layout, start, anew=anew)
        said &= _said_by(request, window)
        layout = _laid_out(request, summary, said, anew=anew)
    return _with_window(request, layout, window, start)


def _said_by(request: PlanRequest, window: Cut) -> set[int]:
    """The messages that a window shows whole."""
    return {
        message.seq or 0
        for index, message in enumerate(request.rows.messages[window.start : window.end], window.start)
        if index not in window.excerpts and window.orphans.get(index) != "too_long"
    }


def _with_window(request: PlanRequest, layout: Layout, window: Cut, start: int) -> Layout:
    """The layout with the window. What it was to begin with and has no room for counts as left out for its length."""
    messages = request.rows.messages
    first = (messages[window.start].seq or 1) if window.start < len(messages) else start
    begins = min(first, start)
    missing = [Excerpt(each.seq or 0) for each in messages[: window.start] if (each.seq or 0) >= begins]
    excerpts = (*missing, *context.window_fill.excerpts_of(messages, window)) if _is_cut(window) or missing else ()
    return replace(layout, window_start_seq=begins, excerpts=tuple(excerpts))


def _is_cut(window: Cut) -> bool:
    return bool(window.excerpts) or "too_long" in window.orphans.values()


def _laid_out(request: PlanRequest, summary: Summary, said: set[int], *, anew: bool) -> Layout:
    limits = request.limits
    ready = summary.lines()
    shown = [fact for fact in summary.facts() if told_from(fact) not in said or fact.amended] if ready is None else ()
    frame = request.count_text(block_text(FACTS, ())) + limits.overhead
    room = memory_room(request)
    told = render_narrative(summary.narrative, count=request.count_text)
    offered = render_facts(shown, count=request.count_text) if ready is None else offered_beside(ready, said)
    lines, floor, story = _chosen(request, summary, offered, told, room - frame, anew=anew)
    facts, narrative = fit_blocks(
        (Block(frame=FACTS, lines=lines), Block(frame=NARRATIVE, lines=story)),
        room,
        overhead=limits.overhead,
        count_text=request.count_text,
    )
    return Layout(
        seq=request.rows.session.last_seq if request.rows.session else 0,
        window_start_seq=0,
        fact_lines=tuple(lines[index] for index in facts.kept),
        narrative=tuple(story[index] for index in narrative.kept),
        fact_tokens=facts.tokens,
        narrative_tokens=narrative.tokens,
        left_out=len(offered) + len(told) - len(facts.kept) - len(narrative.kept),
        floor=floor,
        covered_seq=summary.covered_seq,
        epoch=summary.epoch,
    )


class _Chosen(NamedTuple):
    """The lines that are shown, the rank that new ones need, and the narrative that stands below."""

    lines: Sequence[BlockLine]
    floor: Rank
    story: Sequence[BlockLine]


def _chosen(
    request: PlanRequest,
    summary: Summary,
    offered: Sequence[BlockLine],
    told: Sequence[BlockLine],
    most: int,
    *,
    anew: bool,
) -> _Chosen:
    """The best lines, those that are shown already for longer, beside the little that is told in prose. Where there is
    no prefix to keep and all lines stand, what they leave is room for more of the prose.
    """
    story = _short_story(request, told)
    room = most - _story_cost(story, request)
    before = None if anew else request.rows.layout
    is_same = before is not None and before.epoch == summary.epoch
    block = grown_block(offered, room, before) if before is not None and is_same else chosen_block(offered, room)
    if anew and len(block.lines) == len(offered):
        story = newest_lines(told, room - _line_tokens(block.lines) + _line_tokens(story))
    return _Chosen(block.lines, block.floor, story)


def _short_story(request: PlanRequest, told: Sequence[BlockLine]) -> Sequence[BlockLine]:
    budget = request.limits.budget
    return newest_lines(told, int(max(STORY_SHARE * budget, min(LEAST_STORY, SMALL_SHARE * budget))))


def _story_cost(story: Sequence[BlockLine], request: PlanRequest) -> int:
    """About how many tokens the narrative takes, its header included; 0 if there is none."""
    if not story:
        return 0
    return request.count_text(block_text(NARRATIVE, ())) + request.limits.overhead + _line_tokens(story)


def _line_tokens(lines: Sequence[BlockLine]) -> int:
    return sum(line.tokens for line in lines)


def _unit_start(messages: Sequence[Message], seq: int) -> int:
    """Where the unit of message `seq` begins, if that was read: a summary of the mode ``full`` ends at a count."""
    messages = messages[first_certain(messages) :]
    inside = parted([messages[unit.start : unit.stop] for unit in units(messages)])
    while seq in inside:
        seq -= 1
    return seq
