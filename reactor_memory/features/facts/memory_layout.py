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
from reactor_memory.features.facts.line_choice import (
    Choice,
    Rank,
    Room,
    choose,
    newest_lines,
    settled_tokens,
    share_out,
)
from reactor_memory.features.facts.line_values import still_said
from reactor_memory.features.facts.prose import render_narrative
from reactor_memory.features.facts.quoting.continued_block import chosen_block, grown_block
from reactor_memory.features.facts.quoting.ready_lines import is_quoted, offered_beside
from reactor_memory.features.facts.rendering import render_facts
from reactor_memory.features.facts.window_room import memory_room, tokens_free, window_beside
from reactor_memory.features.facts.working_state import told_from
from reactor_memory.models import Message
from reactor_memory.models.block_lines import BlockLine, Form, Layout
from reactor_memory.models.excerpts import Excerpt
from reactor_memory.models.ledger import Fact, Summary
from reactor_memory.models.turns import first_certain, parted, units

CROWDED = 2.5
"""From so many times the tokens that there is room for, lines give up the small words that link the others. The facts
of a truncated summary are the best of many more: there it is from once the room.
"""


WHOLE = 1_900
"""From this budget on, nothing that was said is shortened."""

STORY_SHARE = 0.05
LEAST_STORY = 100
"""The narrative may take this share of the budget, or so many tokens. It changes whenever the window moves, and stands
before the window: what it takes is no room for facts, and no text that a prompt cache can keep.
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
    most = room - frame
    crowd = most if summary.truncated else int(CROWDED * most)
    told = render_narrative(summary.narrative, count=request.count_text)
    still = still_said(told, shown)
    if ready is not None:
        quoted = offered_beside(ready, said)
    elif is_quoted(shown):
        quoted = render_facts(shown, count=request.count_text)
    else:
        quoted = None
    if quoted is not None:
        form, offered, floor, lines, story = _quoted(request, summary, quoted, told, most, anew=anew)
    else:
        form, offered, chosen, story = (_fill if anew else _follow)(request, shown, still, _LineRoom(most, crowd))
        floor, lines = chosen.floor, [offered[index] for index in chosen.kept]
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
        form=form,
        covered_seq=summary.covered_seq,
        epoch=summary.epoch,
    )


class _LineRoom(NamedTuple):
    """The tokens for lines of facts, and from which on they are shortened."""

    most: int
    crowd: int


class _Selection(NamedTuple):
    """The form of the facts, all of their lines, those that are shown, and the narrative that may stand below."""

    form: Form
    offered: Sequence[BlockLine]
    chosen: Choice
    story: Sequence[BlockLine]


class _Quoted(NamedTuple):
    """The form of quotations, all of their lines, the rank that new ones need, those that are shown, and the narrative
    that may stand below.
    """

    form: Form
    offered: Sequence[BlockLine]
    floor: Rank
    lines: Sequence[BlockLine]
    story: Sequence[BlockLine]


def _fill(request: PlanRequest, facts: Sequence[Fact], told: Sequence[BlockLine], room: _LineRoom) -> _Selection:
    """All the room is used: a short narrative, the facts by value, then more of the narrative."""
    story = newest_lines(told, int(STORY_SHARE * request.limits.budget))
    cost = _story_cost(story, request)
    form, offered = _roomy(facts, room.most, room.crowd, request)
    chosen = choose(offered, Room(room.most - cost, room.most - cost))
    left = room.most - _line_tokens([offered[index] for index in chosen.kept]) - cost + _line_tokens(story)
    return _Selection(form, offered, chosen, newest_lines(told, max(left, _line_tokens(story))))


def _follow(request: PlanRequest, facts: Sequence[Fact], told: Sequence[BlockLine], room: _LineRoom) -> _Selection:
    """The lines of the layout before stay as far as they can, and the window has room to grow."""
    before = request.rows.layout
    form, offered = _offered(facts, room.most, room.crowd, request, before.form if before else "full")
    shares = share_out(offered, budget=request.limits.budget, most=room.most)
    chosen = choose(
        offered,
        shares,
        before.floor if before is not None and before.form == form else None,
    )
    complete = len(chosen.kept) == len(offered)
    return _Selection(form, offered, chosen, _short_story(request, told) if complete else ())


def _quoted(
    request: PlanRequest,
    summary: Summary,
    offered: Sequence[BlockLine],
    told: Sequence[BlockLine],
    most: int,
    *,
    anew: bool,
) -> _Quoted:
    """Lines of quotations, those that are shown already for longer, beside the little that is told in prose."""
    story = _short_story(request, told)
    before = None if anew else request.rows.layout
    room = most - _story_cost(story, request)
    is_same = before is not None and before.epoch == summary.epoch
    block = grown_block(offered, room, before) if before is not None and is_same else chosen_block(offered, room)
    return _Quoted("full", offered, block.floor, block.lines, story)


def _short_story(request: PlanRequest, told: Sequence[BlockLine]) -> Sequence[BlockLine]:
    return newest_lines(told, max(LEAST_STORY, int(STORY_SHARE * request.limits.budget)))


def _story_cost(story: Sequence[BlockLine], request: PlanRequest) -> int:
    """About how many tokens the narrative takes, its header included; 0 if there is none."""
    if not story:
        return 0
    return request.count_text(block_text(NARRATIVE, ())) + request.limits.overhead + _line_tokens(story)


def _line_tokens(lines: Sequence[BlockLine]) -> int:
    return sum(line.tokens for line in lines)


def _roomy(facts: Sequence[Fact], most: int, crowd: int, request: PlanRequest) -> tuple[Form, tuple[BlockLine, ...]]:
    """The lines for a memory that may take all its room, in the longest form that will do."""
    lines = render_facts(facts, count=request.count_text)
    if settled_tokens(lines) > most:
        return "brief", render_facts(facts, count=request.count_text, form="brief")
    if request.limits.budget < WHOLE and _line_tokens(lines) > crowd:
        return "short", render_facts(facts, count=request.count_text, form="short")
    return "full", lines


def _offered(
    facts: Sequence[Fact], most: int, crowd: int, request: PlanRequest, form: Form
) -> tuple[Form, tuple[BlockLine, ...]]:
    """The lines for `facts` in the longest form that will do, but in no longer one than before, `form`: full if all
    lines take no more than `crowd` tokens and there is room for remarks, brief if what was done takes more than `most`.
    """
    lines = render_facts(facts, count=request.count_text, form=form)
    if form != "brief" and settled_tokens(lines) > most:
        return _offered(facts, most, crowd, request, "brief")
    if form == "full" and request.limits.budget < WHOLE and sum(line.tokens for line in lines) > crowd:
        return _offered(facts, most, crowd, request, "short")
    return form, lines


def _unit_start(messages: Sequence[Message], seq: int) -> int:
    """Where the unit of message `seq` begins, if that was read: a summary of the mode ``full`` ends at a count."""
    messages = messages[first_certain(messages) :]
    inside = parted([messages[unit.start : unit.stop] for unit in units(messages)])
    while seq in inside:
        seq -= 1
    return seq
