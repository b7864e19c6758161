"""The strategy ``hierarchical``: facts and narrative of what left the window. Pure functions of what was read."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from functools import partial
from typing import NamedTuple

from reactor_memory.core.context.blocks import Block, block_text, fit_blocks
from reactor_memory.core.context.draft import Draft, Freshness
from reactor_memory.core.context.newest_turns import total_cost
from reactor_memory.core.context.selection import window_start, windows
from reactor_memory.core.context.strategy import Missing, Plan, PlanRequest, take_last
from reactor_memory.features.facts.frames import FACTS, NARRATIVE
from reactor_memory.features.facts.line_choice import Choice, Room, choose, newest_lines, settled_tokens, share_out
from reactor_memory.features.facts.line_values import still_said
from reactor_memory.features.facts.prose import render_narrative
from reactor_memory.features.facts.rendering import render_facts
from reactor_memory.models import Message, Session, is_posted_summary
from reactor_memory.models.block_lines import BlockLine, Layout
from reactor_memory.models.ledger import Fact, Form, Summary, SummaryHead
from reactor_memory.models.turns import first_certain, units

CROWDED = 2.5
"""From so many times the tokens that there is room for, lines give up the small words that link the others. The facts
of a truncated summary are the best of many more: there it is from once the room.
"""


WHOLE = 1_900
"""From this budget on nothing that was said loses a word."""

STORY_SHARE = 0.05
LEAST_STORY = 100
"""The narrative may take this share of the budget, or so many tokens. It changes whenever the window moves, and stands
before the window: what it takes is no room for facts, and no text that a prompt cache can keep.
"""


SOON_SHARE = 0.05
"""What a memory that is made anew leaves free for the next turns: else they would move the window at once."""


LEFT_OUT = "lines of memory were left out when the window last moved"


class Hierarchical:
    """Facts and narrative of what left the window, and a window that grows and then gives up its oldest turns at once.

    Between two evictions the memory blocks and the start of the window stay the same, so the beginning of the context
    stays the same bytes. At or below `trigger_message_count` messages it is take-last.
    """

    reads_summaries = True

    def __call__(self, request: PlanRequest) -> Plan:
        session = request.rows.session
        if session is None or (_is_short(request, session) and not _is_told(request)):
            return take_last(request, "none")
        layout = request.rows.layout or _everything(request)
        if _still_holds(request, layout):
            return Plan(draft=_draft(request, layout, "fresh"))
        return self._evict(request)

    def _evict(self, request: PlanRequest) -> Plan:
        summary = request.rows.summary or Summary()
        nothing = Draft(strategy="hierarchical", session_id=request.session_id)
        waits = request.limits.segment_message_count
        start = _minimum_start(request)
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
        layout = self._layout(request, summary, start, anew=request.rows.layout is None)
        if request.rows.layout is None and not _still_holds(request, layout):
            layout = self._layout(request, summary, start, anew=False)  # else the next load would move the window
        keep = None if summary.stale_ranges else layout
        return Plan(draft=_draft(request, layout, "fresh"), layout=keep)

    def _make_do(self, request: PlanRequest, summary: Summary) -> Plan:
        """The summary did not get ready: the older one stays, with what fits of everything after it."""
        freshness = _freshness(request.outcome or "", has_summary=summary.covered_seq > 0 or not summary.is_empty)
        if freshness == "failed":
            return take_last(request, freshness)
        layout = self._layout(request, summary, summary.covered_seq + 1, anew=False)
        return Plan(draft=_draft(request, layout, freshness))

    def _layout(self, request: PlanRequest, summary: Summary, start: int, *, anew: bool) -> Layout:
        """The blocks for a window that begins at `start`: what the window does not say itself. `anew`: there is no
        prefix to keep, and they take all the room.

        Where what was done does not fit, the window begins later, and memory has what the window cannot use.
        """
        start = _unit_start(request.rows.messages, start)
        room = _memory_room(request, _smallest_window(request), anew=anew)
        layout, is_whole = self._laid_out(request, summary, _Split(start, room, room), anew=anew)
        least = _least_window(request)
        if is_whole or least >= _smallest_window(request):
            return layout
        later = max(start, min(_window_start(request, least), summary.covered_seq + 1))
        split = _Split(_unit_start(request.rows.messages, later), _memory_room(request, least, anew=anew), room)
        return self._laid_out(request, summary, split, anew=anew)[0]

    def _laid_out(self, request: PlanRequest, summary: Summary, split: _Split, *, anew: bool) -> tuple[Layout, bool]:
        """The layout, and whether it tells all that was done."""
        limits = request.limits
        said = {message.seq for message in request.rows.messages if (message.seq or 0) >= split.start}
        shown = [fact for fact in summary.facts() if fact.source_seq not in said or fact.amended]
        frame = request.count_text(block_text(FACTS, ())) + limits.overhead
        most = split.room - frame
        crowd = most if summary.truncated else int(CROWDED * most)
        told = render_narrative(summary.narrative, count=request.count_text)
        still = still_said(told, shown)
        room = _LineRoom(most, split.with_detail - frame, crowd)
        form, offered, chosen, story = (_fill if anew else _follow)(request, shown, still, room)
        lines = [offered[index] for index in chosen.kept]
        facts, narrative = fit_blocks(
            (Block(frame=FACTS, lines=lines), Block(frame=NARRATIVE, lines=story)),
            split.room,
            overhead=limits.overhead,
            count_text=request.count_text,
        )
        layout = Layout(
            seq=request.rows.session.last_seq if request.rows.session else 0,
            window_start_seq=split.start,
            fact_lines=tuple(lines[index] for index in facts.kept),
            narrative=tuple(story[index] for index in narrative.kept),
            fact_tokens=facts.tokens,
            narrative_tokens=narrative.tokens,
            left_out=len(offered) + len(told) - len(facts.kept) - len(narrative.kept),
            floor=chosen.floor,
            form=form,
            covered_seq=summary.covered_seq,
            epoch=summary.epoch,
        )
        return layout, settled_tokens(offered) == settled_tokens(layout.fact_lines)


class _Split(NamedTuple):
    """Where the window begins, and the tokens for memory, and for memory with detail in it: detail has none of what
    the window cannot use, for it would have to go again in a larger budget.
    """

    start: int
    room: int
    with_detail: int


class _LineRoom(NamedTuple):
    """The tokens for lines of facts, for lines with detail among them, and from which on they are shortened."""

    most: int
    with_detail: int
    crowd: int


class _Selection(NamedTuple):
    """How the facts are written, all of their lines, those that are shown, and the narrative that may stand below."""

    form: Form
    offered: Sequence[BlockLine]
    chosen: Choice
    story: Sequence[BlockLine]


def _fill(request: PlanRequest, facts: Sequence[Fact], told: Sequence[BlockLine], room: _LineRoom) -> _Selection:
    """All the room is used: a short narrative, the facts by value, then more of the narrative."""
    story = newest_lines(told, int(STORY_SHARE * request.limits.budget))
    cost = _story_cost(story, request)
    form, offered = _roomy(facts, room.most, room.crowd, request)
    chosen = choose(offered, Room(room.most - cost, room.with_detail - cost))
    left = room.with_detail - _line_tokens([offered[index] for index in chosen.kept]) - cost + _line_tokens(story)
    return _Selection(form, offered, chosen, newest_lines(told, max(left, _line_tokens(story))))


def _follow(request: PlanRequest, facts: Sequence[Fact], told: Sequence[BlockLine], room: _LineRoom) -> _Selection:
    """What stood there before stays as far as it can, and the window has room to grow."""
    before = request.rows.layout
    form, offered = _offered(facts, room.most, room.crowd, request, before.form if before else "full")
    shares = share_out(offered, budget=request.limits.budget, most=room.most)
    chosen = choose(
        offered,
        shares._replace(with_detail=min(shares.with_detail, room.with_detail)),
        before.floor if before is not None and before.form == form else None,
    )
    complete = len(chosen.kept) == len(offered)
    return _Selection(form, offered, chosen, _short_story(request, told) if complete else ())


def _short_story(request: PlanRequest, told: Sequence[BlockLine]) -> Sequence[BlockLine]:
    return newest_lines(told, max(LEAST_STORY, int(STORY_SHARE * request.limits.budget)))


def _story_cost(story: Sequence[BlockLine], request: PlanRequest) -> int:
    """About what the narrative takes, its header included; nothing if there is none."""
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


def _freshness(outcome: str, *, has_summary: bool) -> Freshness:
    if outcome == "catching_up":
        return "catching_up"
    if outcome in ("covered", "idle"):
        return "fresh"
    return "stale" if has_summary else "failed"


def _unit_start(messages: Sequence[Message], seq: int) -> int:
    """Where the unit of message `seq` begins, if that was read: a summary of the mode ``full`` ends at a count."""
    messages = messages[first_certain(messages) :]
    for unit in units(messages):
        if (messages[unit[0]].seq or 0) < seq <= (messages[unit[-1]].seq or 0):
            return messages[unit[0]].seq or seq
    return seq


def _is_short(request: PlanRequest, session: Session) -> bool:
    return session.last_seq <= request.limits.trigger_message_count


def _is_told(request: PlanRequest) -> bool:
    """Whether the session begins with messages that are out of view, and memory speaks for them."""
    summary, messages = request.rows.summary, request.rows.messages
    return summary is not None and summary.covered_seq > 0 and (not messages or (messages[0].seq or 1) > 1)


def _minimum_start(request: PlanRequest) -> int:
    """The seq where the smallest window begins."""
    return _window_start(request, int(request.limits.window_min_share * request.limits.budget))


def _window_start(request: PlanRequest, max_tokens: float) -> int:
    """The seq where the smallest window in so many tokens begins."""
    messages = request.rows.messages
    if not messages:  # all are out of view
        return request.rows.session.last_seq + 1 if request.rows.session else 1
    start = window_start(
        messages,
        message_count=request.limits.recent_message_count,
        max_tokens=int(max_tokens),
        longest_turn=request.limits.longest_turn,
        count=partial(_window_cost, request),
    )
    return messages[start].seq or 1


def _window_sizes(request: PlanRequest) -> Sequence[int]:
    """What the windows take that may be the smallest one: of one turn, of two, and so on."""
    found = windows(
        request.rows.messages,
        message_count=request.limits.recent_message_count,
        longest_turn=request.limits.longest_turn,
        count=partial(_window_cost, request),
    )
    return tuple(window.tokens for window in found) or (_tokens_of(request.rows.messages, request),)


def _window_cost(request: PlanRequest, message: Message) -> int:
    return 0 if is_posted_summary(message) else request.count(message)


def _smallest_window(request: PlanRequest) -> float:
    """The tokens that memory leaves to the window. A larger budget never gives memory less: it is what the messages
    of the smallest window would take, not what whole turns of them take in this budget.
    """
    return min(_window_sizes(request)[-1], request.limits.window_min_share * request.limits.budget)


def _least_window(request: PlanRequest) -> float:
    """The same where memory is short of room: no more than whole turns take. What a further turn would need is memory's
    until that turn fits as well. A larger budget never gives memory less: where a turn more comes into the share, the
    window has it only when there is room for it beside the memory of before.
    """
    budget, share = request.limits.budget, request.limits.window_min_share
    sizes = _window_sizes(request)
    least = share * budget
    for tokens, further in zip(sizes, [*sizes[1:], math.inf], strict=True):
        if tokens <= share * budget:  # so the share is not 0
            least = min(least, tokens + max(0.0, _free(request, budget) - _free(request, further / share)))
    return max(least, min(_smallest_window(request), _unsaid(request)))


def _unsaid(request: PlanRequest) -> int:
    """What the messages take that the summary does not cover yet."""
    covered = request.rows.summary.covered_seq if request.rows.summary else 0
    return _tokens_of(_from(request.rows.messages, covered + 1), request)


def _everything(request: PlanRequest) -> Layout:
    """How a session begins: nothing has left the window yet."""
    return Layout(seq=0, window_start_seq=1, epoch=request.rows.summary.epoch if request.rows.summary else 0)


def _still_holds(request: PlanRequest, layout: Layout) -> bool:
    """The window of the layout may grow on: nothing has to leave it yet, and nothing in it went out of view."""
    summary, messages = request.rows.summary or SummaryHead(), request.rows.messages
    if layout.epoch != summary.epoch or not messages or (messages[0].seq or 0) > layout.window_start_seq:
        return False
    window = _from(messages, layout.window_start_seq)
    room = _free(request, request.limits.budget) - layout.fact_tokens - layout.narrative_tokens
    tokens = _tokens_of(window, request)
    if request.limits.window_growth == "messages":
        return len(window) <= request.limits.trigger_message_count and tokens <= room
    return tokens <= min(room, request.limits.max_window_tokens)


def _tokens_of(messages: Sequence[Message], request: PlanRequest) -> int:
    return total_cost(messages, request.count, request.limits.overhead, request.tokenizer)


def _free(request: PlanRequest, budget: float) -> float:
    """What the message to come leaves of a budget; a large one must not move the window for good."""
    return budget - min(request.current_tokens, budget / 10)


def _memory_room(request: PlanRequest, window: float, *, anew: bool) -> int:
    """Tokens for the memory blocks beside a window of so many; shares are rounded once."""
    share = request.limits.max_memory_share - anew * SOON_SHARE
    return int(share * (_free(request, request.limits.budget) - window))


def _draft(request: PlanRequest, layout: Layout, freshness: Freshness) -> Draft:
    read, start = request.rows.messages, layout.window_start_seq
    summary = request.rows.summary or SummaryHead()
    certain = (read[first_certain(read)].seq or 1) if read else start
    is_cut = certain > start and read[0].seq != start
    window = _from(read, certain if is_cut else start)
    first = (window[0].seq or 1) if window else start
    hole = ((start, first - 1),) if is_cut else ()
    stale = tuple((begin, min(end, first - 1)) for begin, end in summary.stale_ranges if begin < first)
    return Draft(
        strategy="hierarchical",
        session_id=request.session_id,
        blocks=tuple(_blocks(layout)),
        window=tuple(window),
        unread=stale + hole,
        covered_seq=layout.covered_seq,
        memory_before_seq=start,
        floor=layout.floor,
        form=layout.form,
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


def _from(messages: Sequence[Message], seq: int) -> Sequence[Message]:
    return [message for message in messages if (message.seq or 0) >= seq]
