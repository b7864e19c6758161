"""Fitting a draft, or a plain list of messages, into a budget of tokens.

Protected are pins and the current turn. Given up, in this order: recalled messages that do not fit beside the smallest
window, the window above its minimum, the narrative, notes from their end, facts by value, the remaining window, and
then parts of the current turn (`current_turn`). Nothing here reads a clock or does I/O, and a stored
message is not counted again. The work grows with what is kept, not with what is dropped.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import NamedTuple

from reactor_memory.core.context import turns
from reactor_memory.core.context.accounting import (
    Fate,
    Heading,
    ShownPart,
    block_part,
    cut_part,
    make_context,
    message_part,
    pin_part,
    turn_part,
)
from reactor_memory.core.context.blocks import (
    NOTES_HEADER,
    RECALLED_HEADER,
    Block,
    BlockRole,
    FittedBlock,
    Frame,
    fit_block,
    fit_memory,
    shown_text,
)
from reactor_memory.core.context.current_turn import Count, CountText, FittedTurn, TurnClamp
from reactor_memory.core.context.draft import BlockLine, ContextLimits, Draft
from reactor_memory.core.context.newest_turns import Cut, kept_start, newest_turns, without_oldest
from reactor_memory.core.context.pinned import check_pins, pinned_message
from reactor_memory.core.context.report import Context, Part, Reason
from reactor_memory.errors import BudgetExceededError
from reactor_memory.models import Message, is_posted_summary


def assemble(
    draft: Draft,
    current: Sequence[Message],
    limits: ContextLimits,
    *,
    count: Count,
    count_text: CountText,
    tokenizer: str = "",
    system: str | None = None,
) -> Context:
    """The context that `limits` allow of `draft`, with the current turn last.

    `current` is the message to come and, inside a tool loop, this turn's traffic so far; when it does not begin with
    a user message, it continues the last turn of the window. `count` gives the tokens of a message without overhead,
    and is not asked for messages of the window that `tokenizer` counted before; `count_text` gives those of a text.
    `system` is carried along, not counted.

    Raises `BudgetExceededError` as `ContextLimits` describes, and `StoreCorruptError` if a pin that is shown is not,
    byte for byte, what was pinned.
    """
    cost = _cost(count, limits.overhead)
    current, window_end = _join_last_turn(draft.window, tuple(current))
    turn = _current_turn(current, limits.overhead, count, count_text)
    pinned = [pinned_message(pin, limits.memory_role) for pin in draft.pins] if draft.pins else ()
    pins, fitted, room = _protect(pinned, turn.clamp, limits, cost)
    shown: list[ShownPart] = []
    kept = _kept_beside_recall(draft, window_end, limits, cost)
    if draft.offers_memory:
        most, enough = int(limits.window_min_share * room), limits.recent_message_count
        least = newest_turns(
            draft.window, 0, window_end, most, count, limits.overhead, tokenizer=tokenizer, enough=enough
        )
        notes, facts, narrative = _fit_blocks(draft, least, kept, room, limits, count_text)
        room -= notes.tokens + facts.tokens + narrative.tokens
        if draft.notes_lines:
            shown.append(_block("notes", NOTES_HEADER, limits.memory_role, draft.notes_lines, notes, limits))
        shown.append(_framed(draft.frames[0], draft.fact_lines, facts, limits))
        shown.append(_framed(draft.frames[1], draft.narrative, narrative, limits))
    if pinned:
        shown.append(pin_part(draft.pins, pinned, pins, cost))
    window = newest_turns(draft.window, 0, window_end, room, count, limits.overhead, tokenizer=tokenizer)
    recalled: Sequence[ShownPart] = ()
    if draft.offers_recall:
        window, recalled = _recall(draft, window, kept, room, limits, cost, count_text)
    shown += (cut_part("window", draft.window, 0, window, cost), *recalled)
    if current:
        shown.append(turn_part(turn.offered, turn.orphans, turn.clamp, fitted, cost))
    context = make_context(_heading(draft, limits), shown, system=system)
    if pinned:
        check_pins(draft.pins[pins.start :], context.part("pins"))
    return context


def trim(
    messages: Sequence[Message],
    budget: int,
    *,
    count: Count,
    count_text: CountText,
    overhead: int = 4,
    tokenizer: str = "",
    session_id: str = "",
    system: str | None = None,
) -> Context:
    """The part of a caller's own `messages` that fits into `budget`. Trimming the result again changes nothing.

    Leading system messages play the part of memory: they leave, first to last, only when they would not fit without
    the window either. The current turn begins at the last user message; without one it is the newest pair or message.
    `system` is carried along, not counted.

    Raises `BudgetExceededError` when the least of the current turn does not fit.
    """
    cost = _cost(count, overhead)
    start = next((i for i, message in enumerate(messages) if not _is_leading(message)), len(messages))
    end = _current_start(messages, start)
    turn = _current_turn(messages[end:], overhead, count, count_text)
    _, fitted, room = _protect((), turn.clamp, ContextLimits(budget=budget, overhead=overhead), cost)
    leading = without_oldest(messages[:start], room, cost)
    window = newest_turns(messages, start, end, room - leading.tokens, count, overhead, tokenizer=tokenizer)
    shown = [
        cut_part("system", messages, 0, leading, cost),
        cut_part("window", messages, start, window, cost),
        turn_part(turn.offered, turn.orphans, turn.clamp, fitted, cost),
    ]
    heading = Heading(session_id=session_id, strategy="history", budget=budget, overhead=overhead, freshness="history")
    return make_context(heading, shown, system=system)


def _is_leading(message: Message) -> bool:
    return message.role in ("system", "summary") and not is_posted_summary(message)


def _cost(count: Count, overhead: int) -> Count:
    return lambda message: count(message) + overhead


class _CurrentTurn(NamedTuple):
    """The current turn as offered, its orphans by position, and what it can shrink to without them."""

    offered: Sequence[Message]
    orphans: dict[int, turns.OrphanReason]
    clamp: TurnClamp


def _current_turn(messages: Sequence[Message], overhead: int, count: Count, count_text: CountText) -> _CurrentTurn:
    if not messages:
        return _NO_TURN
    orphans = turns.find_orphans(messages, open_tail=True)
    rest = [message for index, message in enumerate(messages) if index not in orphans] if orphans else messages
    return _CurrentTurn(messages, orphans, TurnClamp(rest, overhead=overhead, count=count, count_text=count_text))


_NO_TURN = _CurrentTurn((), {}, TurnClamp((), overhead=0, count=lambda _: 0, count_text=len))


def _join_last_turn(window: Sequence[Message], current: Sequence[Message]) -> tuple[Sequence[Message], int]:
    """The current turn, and where the window ends: before the turn that `current` continues, if it does."""
    if not window or not current or current[0].role == "user":
        return current, len(window)
    start = turns.last_turn_start(window)
    return (*window[start:], *current), start


def _current_start(messages: Sequence[Message], start: int) -> int:
    """Where the current turn of a plain list begins, not before `start`."""
    last = turns.last_turn_start(messages, start)
    if last == len(messages) or messages[last].role == "user":
        return last
    return last + turns.units(messages[last:])[-1].start


def _protect(
    pins: Sequence[Message], turn: TurnClamp, limits: ContextLimits, cost: Count
) -> tuple[Cut, FittedTurn, int]:
    """The pins and the current turn as they are shown, and the room that they leave to everything else."""
    pinned = Cut(0, len(pins), sum(map(cost, pins)))
    room = limits.budget - pinned.tokens
    if turn.tokens <= room:
        return pinned, turn.whole(), room - turn.tokens
    least = turn.minimum()
    if least > room:
        pinned = _give_up_pins(pins, pinned.tokens, least, limits, cost)
        room = limits.budget - pinned.tokens
    fitted = turn.fit(room)
    # A turn that was cut has the rest of the room: memory beside it would say that the cut was not needed.
    return pinned, fitted, 0 if fitted.clamped else room - fitted.tokens


def _give_up_pins(pins: Sequence[Message], tokens: int, least: int, limits: ContextLimits, cost: Count) -> Cut:
    if limits.on_overflow == "raise":
        raise BudgetExceededError(budget=limits.budget, minimum=least + tokens)
    if least > limits.budget:
        raise BudgetExceededError(budget=limits.budget, minimum=least)
    return without_oldest(pins, limits.budget - least, cost)


def _fit_memory(
    draft: Draft, least: Cut, kept: int, room: int, limits: ContextLimits, count_text: CountText
) -> tuple[FittedBlock, FittedBlock]:
    """Facts and narrative beside the smallest window, and beside what was recalled with the `kept` tokens of it.

    The strategy kept them to their share when the window last moved. Where they still fit they stay as they are, for
    the blocks change only when the window moves; where they do not, they come down to their share.
    """
    facts = Block(draft.frames[0].header, draft.fact_lines, draft.fact_tokens)
    narrative = Block(draft.frames[1].header, draft.narrative, draft.narrative_tokens)
    left = room - least.tokens
    fit = partial(fit_memory, facts, narrative, overhead=limits.overhead, count_text=count_text)
    most = left
    if draft.recall_room:
        most = min(left, room - kept - min(draft.recall_room, _recalled_tokens(draft, limits, count_text)))
    fitted = fit(most)
    if len(fitted[0].kept) == len(facts.lines) and len(fitted[1].kept) == len(narrative.lines):
        return fitted
    return fit(min(most, int(limits.max_memory_share * left)))


def _fit_blocks(
    draft: Draft, least: Cut, kept: int, room: int, limits: ContextLimits, count_text: CountText
) -> tuple[FittedBlock, FittedBlock, FittedBlock]:
    """Notes, facts and narrative: the narrative goes first, then the notes, and no fact while one of these is shown."""
    if not draft.notes_lines:
        return FittedBlock(), *_fit_memory(draft, least, kept, room, limits, count_text)
    notes = _fit_notes(draft, int(limits.max_memory_share * (room - least.tokens)), limits, count_text)
    facts, narrative = _fit_memory(draft, least, kept, room - notes.tokens, limits, count_text)
    if len(facts.kept) < len(draft.fact_lines):
        return FittedBlock(), _fit_memory(draft, least, kept, room, limits, count_text)[0], FittedBlock()
    return notes, facts, narrative if len(notes.kept) == len(draft.notes_lines) else FittedBlock()


def _fit_notes(draft: Draft, room: int, limits: ContextLimits, count_text: CountText) -> FittedBlock:
    """The notes in what all the facts would leave of `room`."""
    facts = draft.fact_tokens
    if facts is None:
        facts = fit_block(Block(draft.frames[0].header, draft.fact_lines), room, limits.overhead, count_text).tokens
    return fit_block(
        Block(NOTES_HEADER, draft.notes_lines, draft.notes_tokens), room - facts, limits.overhead, count_text
    )


def _recalled_tokens(draft: Draft, limits: ContextLimits, count_text: CountText) -> int:
    """About what all that was recalled takes."""
    lines = fit_block(Block(RECALLED_HEADER, draft.recalled_lines), limits.budget, limits.overhead, count_text)
    return lines.tokens + sum((message.token_count or 0) + limits.overhead for message in draft.recalled)


def _framed(frame: Frame, lines: Sequence[BlockLine], fitted: FittedBlock, limits: ContextLimits) -> ShownPart:
    return _block(frame.part, frame.header, frame.role or limits.memory_role, lines, fitted, limits)


def _block(
    part: Part, header: str, role: BlockRole, lines: Sequence[BlockLine], fitted: FittedBlock, limits: ContextLimits
) -> ShownPart:
    if not lines:
        return ShownPart(part)
    message = None
    if fitted.kept:
        text = shown_text(header, lines, fitted.kept)
        message = Message(role=role, content=text, token_count=fitted.tokens - limits.overhead)
    return block_part(part, message, lines, fitted)


def _recall(
    draft: Draft, window: Cut, kept: int, room: int, limits: ContextLimits, cost: Count, count_text: CountText
) -> tuple[Cut, Sequence[ShownPart]]:
    """What was recalled, and the window beside it: all but the newest turns, of `kept` tokens, makes room."""
    left = room - kept
    lines = fit_block(Block(RECALLED_HEADER, draft.recalled_lines), left, limits.overhead, count_text)
    left -= lines.tokens
    recalled = _best_turns(_unseen(draft, window), left, cost)
    if lines.tokens + sum(map(cost, recalled)) > room - window.tokens:
        taken = lines.tokens + min(left, sum(map(cost, draft.recalled)))
        window = newest_turns(draft.window, 0, window.end, room - taken, cost)
        recalled = _best_turns(_unseen(draft, window), left, cost)
    shown = _block("recalled_facts", RECALLED_HEADER, limits.memory_role, draft.recalled_lines, lines, limits)
    return window, (_recalled_part(draft, window, recalled, cost), shown)


def _kept_beside_recall(draft: Draft, end: int, limits: ContextLimits, cost: Count) -> int:
    """What the newest turns of the window cost, which stay whatever comes back."""
    if not draft.offers_recall:
        return 0
    return sum(map(cost, draft.window[kept_start(draft.window, end, limits.budget, cost) : end]))


def _unseen(draft: Draft, window: Cut) -> Sequence[Message]:
    """What was recalled, less what `window` shows."""
    shown = {message.seq for message in draft.window[window.start :]}
    return [message for message in draft.recalled if message.seq not in shown]


def _best_turns(recalled: Sequence[Message], room: int, cost: Count) -> Sequence[Message]:
    """The first of the turns that fit together, without their orphans. A part of a turn answers nothing."""
    kept: list[Message] = []
    for turn in turns.runs_of_turns(recalled):
        orphans = turns.find_orphans(turn)
        shown = [message for index, message in enumerate(turn) if index not in orphans]
        tokens = sum(map(cost, shown))
        if tokens <= room:
            room -= tokens
            kept += shown
    return sorted(kept, key=lambda message: message.seq or 0)


def _recalled_part(draft: Draft, window: Cut, kept: Sequence[Message], cost: Count) -> ShownPart:
    offered = sorted(draft.recalled, key=lambda message: message.seq or 0)
    orphans = turns.find_orphans(offered)
    unseen, chosen = {message.seq for message in _unseen(draft, window)}, {message.seq for message in kept}

    def fate(index: int, message: Message) -> Fate:
        if message.seq in chosen:
            return Fate("kept", "fits", cost(message))
        left_out: Reason = orphans.get(index, "over_budget") if message.seq in unseen else "already_shown"
        return Fate("dropped", left_out, cost(message))

    return message_part("recalled", offered, kept, [fate(*each) for each in enumerate(offered)])


def _heading(draft: Draft, limits: ContextLimits) -> Heading:
    return Heading(
        session_id=draft.session_id,
        strategy=draft.strategy,
        budget=limits.budget,
        overhead=limits.overhead,
        freshness=draft.freshness,
        covered_seq=draft.covered_seq,
        unread=draft.unread,
        notes=draft.notes,
        pins=tuple([pin.sha256 for pin in draft.pins]),
    )
