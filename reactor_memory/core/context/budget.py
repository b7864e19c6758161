"""Fitting a draft into a budget of tokens.

Protected are the current turn and what stands verbatim. Given up, in this order: what comes back and does not fit
beside the smallest window, the window above its minimum, the blocks by their rank and their lines by value, the
remaining window, and then parts of the current turn (`turn_clamp`). Nothing here reads a clock or does I/O, and a
stored message is not counted again. The work grows with what is kept, not with what is dropped.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

from msgspec.structs import replace

from reactor_memory.core import context
from reactor_memory.core.context.accounting import (
    BlockAccount,
    ChoiceAccount,
    Fate,
    FittedPart,
    VerbatimAccount,
    cut_part,
    turn_part,
)
from reactor_memory.core.context.blocks import Block, FittedBlock, Verbatim, fit_blocks, fitted_text
from reactor_memory.core.context.context import Context
from reactor_memory.core.context.current_turn import Count, CountText, CurrentTurn, FittedTurn, current_turn
from reactor_memory.core.context.draft import ContextLimits, Draft
from reactor_memory.core.context.newest_turns import FULL, KEPT_SHARE, Cut, kept_start, newest_turns, without_oldest
from reactor_memory.errors import BudgetExceededError
from reactor_memory.models import Message, turns

if TYPE_CHECKING:
    pass

STEADY_SHARE = 0.5
"""While a turn goes on, its window loses whole turns only, as long as those that stay take this share of the room."""


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

    Raises `BudgetExceededError` as `ContextLimits` describes.
    """
    cost = with_overhead(count, limits.overhead)
    if not (current or draft.blocks or draft.verbatim or draft.leading):
        window = _Window(draft, len(draft.window), limits, count, tokenizer, is_steady=False)
        part = cut_part("window", draft.window, 0, window.within(limits.budget), cost)
        return make_context(draft, limits, [part], system)
    current, window_end = _join_last_turn(draft.window, tuple(current))
    turn = current_turn(current, cost)
    head = Head(draft, window_end, limits, count, count_text, tokenizer)
    shown, fitted = head.beside(turn, is_steady=len(current) > 1)
    if current:
        shown.append(turn_part(turn, fitted, cost))
    return make_context(draft, limits, shown, system)


class Head(NamedTuple):
    """What stands before a current turn: a draft whose window ends before position `window_end`, and what counts it."""

    draft: Draft
    window_end: int
    limits: ContextLimits
    tokens_of: Count
    count_text: CountText
    tokenizer: str

    def beside(self, turn: CurrentTurn, *, is_steady: bool, reserve: int = 0) -> tuple[list[FittedPart], FittedTurn]:
        """The parts that stand before a turn, and the turn as it fits. So many tokens are left to the turn, also if it
        is smaller yet.
        """
        draft, limits, count, count_text = self.draft, self.limits, self.tokens_of, self.count_text
        cost = with_overhead(count, limits.overhead)
        verbatim = [message for part in draft.verbatim for message in part.messages]
        leading = _leading(draft, verbatim, turn, limits, cost, count_text, self.tokenizer) if draft.leading else None
        left = replace(limits, budget=limits.budget - leading.tokens) if leading else limits
        protected, fitted, room = protect(verbatim, turn, left, cost, count_text)
        room = max(0, min(room, left.budget - protected.tokens - reserve))
        shown = [leading] if leading else list[FittedPart]()
        last = draft.blocks_at("last") if draft.blocks else ()
        kept = _kept_beside(last, draft, self.window_end, room, limits, cost)
        window = _Window(draft, self.window_end, limits, count, self.tokenizer, is_steady=is_steady)
        cut: Cut | None = None
        if draft.blocks and (whole := _all_beside(window, room)) is not None:
            cut = whole
            shown += [fitted_block_part(block, limits) for block in draft.blocks]
        elif draft.blocks:
            least = window.newest(int((1 - limits.memory_share) * room), enough=limits.recent_message_count)
            before = draft.blocks_at("first", "memory")
            blocks = _fit_blocks(draft, before, room - least.tokens, room - kept, limits, count_text)
            room -= sum(block.tokens for block in blocks)
            shown += [_block(*each, limits) for each in zip(before, blocks, strict=True)]
        if draft.verbatim:
            shown += _verbatim_parts(draft.verbatim, protected, cost)
        if cut is None:
            cut = window.within(room)
        behind: Sequence[FittedPart] = ()
        if last:
            cut, behind = _bring_back(draft, window, cut, kept, room, limits, count_text)
        shown += (cut_part("window", draft.window, 0, cut, cost), *behind)
        return shown, fitted


class _Window(NamedTuple):
    """The messages of a draft before position `end`, to be fitted into a room. `is_steady`: the turn goes on, and a
    window that stays nearly as it was is worth more than one that is full.
    """

    draft: Draft
    end: int
    limits: ContextLimits
    tokens_of: Count
    tokenizer: str
    is_steady: bool

    def newest(self, room: int, *, enough: int = sys.maxsize) -> Cut:
        """The newest whole turns in `room` tokens, no more than make `enough` messages."""
        messages, excerpts = self.draft.window, self.draft.excerpts
        overhead, tokenizer = self.limits.overhead, self.tokenizer
        if excerpts:
            forms = {excerpt.seq: excerpt for excerpt in excerpts}
            return context.window_fill.held(
                messages, self.end, room, forms, self.tokens_of, overhead, tokenizer=tokenizer
            )
        return newest_turns(messages, 0, self.end, room, self.tokens_of, overhead, tokenizer=tokenizer, enough=enough)

    def within(self, room: int) -> Cut:
        """What of the messages is shown in `room` tokens, with a part of those that are too long if not all fit."""
        cut = self.newest(room)
        if not cut.start or room - cut.tokens < FULL or (self.is_steady and cut.tokens >= STEADY_SHARE * room):
            return cut
        messages, overhead = self.draft.window, self.limits.overhead
        return context.window_fill.filled(
            messages, 0, self.end, room, self.tokens_of, overhead, tokenizer=self.tokenizer
        )


def _all_beside(window: _Window, room: int) -> Cut | None:
    """The whole window, if it and all blocks fit into `room` tokens: then nothing has to be weighed. Nearly every load
    between two evictions is one.
    """
    draft, told = window.draft, 0
    if draft.memory_gives:
        return None
    for block in draft.blocks:
        if block.tokens is None or not block.lines or block.frame.place not in ("first", "memory"):
            return None
        told += block.tokens
    cut = window.newest(room - told)
    return cut if not cut.start and cut.tokens <= room - told else None


def with_overhead(count: Count, overhead: int) -> Count:
    return lambda message: count(message) + overhead


def _join_last_turn(window: Sequence[Message], current: Sequence[Message]) -> tuple[Sequence[Message], int]:
    """The current turn, and where the window ends: before the turn that `current` continues, if it does."""
    if not window or not current or current[0].role == "user":
        return current, len(window)
    start = turns.last_turn_start(window)
    return (*window[start:], *current), start


def protect(
    verbatim: Sequence[Message], turn: CurrentTurn, limits: ContextLimits, cost: Count, count_text: CountText
) -> tuple[Cut, FittedTurn, int]:
    """What stands verbatim and the current turn as they are shown, and the room that they leave to everything else."""
    protected = Cut(0, len(verbatim), sum(map(cost, verbatim)))
    room = limits.budget - protected.tokens
    if turn.tokens <= room:
        return protected, turn.whole(), room - turn.tokens
    clamp = context.turn_clamp.TurnClamp(turn, cost, count_text, overhead=limits.overhead)
    least = clamp.minimum()
    if least > room:
        protected = _give_up_verbatim(verbatim, protected.tokens, least, limits, cost)
        room = limits.budget - protected.tokens
    fitted = clamp.fit(room)
    # A turn that was cut has the rest of the room: memory beside it would say that the cut was not needed.
    return protected, fitted, 0 if fitted.clamped else room - fitted.tokens


def _leading(
    draft: Draft,
    verbatim: Sequence[Message],
    turn: CurrentTurn,
    limits: ContextLimits,
    cost: Count,
    count_text: CountText,
    tokenizer: str,
) -> FittedPart:
    """The system messages that the session begins with, cut if they leave too little to the current turn."""
    messages = draft.leading
    cut, room = Cut(0, len(messages), sum(map(cost, messages))), limits.budget - sum(map(cost, verbatim))
    if cut.tokens > room - turn.tokens:
        clamp = context.turn_clamp.TurnClamp(turn, cost, count_text, overhead=limits.overhead)
        room = max(0, room - min(turn.tokens, clamp.minimum()))
        if cut.tokens > room:
            cut = context.window_fill.filled(messages, 0, len(messages), room, cost, tokenizer=tokenizer)
    fates = [_fate_of(cut, index, cost(message)) for index, message in enumerate(messages)]
    shown = context.window_fill.shown_messages(messages, cut) if cut.excerpts or cut.start else messages
    return FittedPart("system", shown, cut.tokens, len(messages), ChoiceAccount(messages, fates))


def _fate_of(cut: Cut, index: int, tokens: int) -> Fate:
    if index < cut.start or index in cut.orphans:
        return Fate("dropped", "over_budget", tokens)
    if excerpt := cut.excerpts.get(index):
        return Fate("clamped", "too_long", tokens - excerpt.tokens)
    return Fate("kept", "protected", tokens)


def _give_up_verbatim(verbatim: Sequence[Message], tokens: int, least: int, limits: ContextLimits, cost: Count) -> Cut:
    if limits.on_overflow == "raise":
        raise BudgetExceededError(budget=limits.budget, minimum=least + tokens)
    if least > limits.budget:
        raise BudgetExceededError(budget=limits.budget, minimum=least)
    return without_oldest(verbatim, limits.budget - least, cost)


def _verbatim_parts(parts: Sequence[Verbatim], protected: Cut, cost: Count) -> Iterator[FittedPart]:
    """`protected` counts the messages of all parts."""
    begin = 0
    for part in parts:
        count = len(part.messages)
        start = min(max(protected.start - begin, 0), count)
        cut = Cut(start, count, sum(map(cost, part.messages[start:])))
        yield FittedPart(part.part, part.messages[start:], cut.tokens, count, VerbatimAccount(part, cut, cost))
        begin += count


def _fit_blocks(
    draft: Draft, blocks: Sequence[Block], left: int, beside: int, limits: ContextLimits, count_text: CountText
) -> list[FittedBlock]:
    """The blocks before the window in what the smallest window leaves, `left` tokens. For what comes back, those of the
    strategy make room in what its newest turns leave, `beside` tokens.
    """
    fitted = fit_blocks(blocks, left, overhead=limits.overhead, count_text=count_text)
    if not draft.memory_gives:
        return fitted
    first = [each for each, block in zip(fitted, blocks, strict=True) if block.frame.place == "first"]
    taken = sum(each.tokens for each in first)
    told = sum(each.tokens for each in fitted) - taken
    most = max(told - draft.memory_gives, beside - taken - _tokens_brought_back(draft, limits, count_text))
    if most >= told:
        return fitted
    return [*first, *fit_blocks(draft.blocks_at("memory"), most, overhead=limits.overhead, count_text=count_text)]


def _tokens_brought_back(draft: Draft, limits: ContextLimits, count_text: CountText) -> int:
    """What all that comes back takes."""
    blocks = fit_blocks(draft.blocks_at("last"), limits.budget, overhead=limits.overhead, count_text=count_text)
    return sum(block.tokens for block in blocks)


def fitted_block_part(block: Block, limits: ContextLimits) -> FittedPart:
    """The part of a block whose tokens are counted, and which fits."""
    return _block(block, FittedBlock(range(len(block.lines)), block.tokens or 0), limits)


def _block(block: Block, fitted: FittedBlock, limits: ContextLimits) -> FittedPart:
    shown: list[Message] = []
    if fitted.kept:
        role = block.frame.role or limits.memory_role
        tokens = fitted.tokens - limits.overhead
        shown.append(Message(role=role, content=fitted_text(block, fitted.kept), token_count=tokens))
    account = BlockAccount(block, fitted.kept)
    return FittedPart(block.frame.part, shown, fitted.tokens, len(block.lines), account)


def _bring_back(
    draft: Draft,
    window: _Window,
    cut: Cut,
    kept: int,
    room: int,
    limits: ContextLimits,
    count_text: CountText,
) -> tuple[Cut, Sequence[FittedPart]]:
    """The blocks behind the window, and the window, all of which but the newest turns (`kept` tokens) makes room."""
    behind = draft.blocks_at("last")
    fitted = fit_blocks(behind, room - kept, overhead=limits.overhead, count_text=count_text)
    taken = sum(block.tokens for block in fitted)
    if taken > room - cut.tokens:
        cut = window.within(room - taken)
    return cut, [_block(*each, limits) for each in zip(behind, fitted, strict=True)]


def _kept_beside(last: Sequence[Block], draft: Draft, end: int, room: int, limits: ContextLimits, cost: Count) -> int:
    """What the newest turns of the window cost as they are shown, which stay whatever comes back. Where they are longer
    than the room, and have to be cut, they leave a part of it.
    """
    if not last:
        return 0
    forms = {excerpt.seq: excerpt.tokens and excerpt.tokens + limits.overhead for excerpt in draft.excerpts}

    def shown_cost(message: Message) -> int:
        tokens = forms.get(message.seq or 0)
        return cost(message) if tokens is None else tokens

    kept = sum(map(shown_cost, draft.window[kept_start(draft.window, end, limits.budget, shown_cost) : end]))
    return kept if kept <= room else int(KEPT_SHARE * room)


def make_context(draft: Draft, limits: ContextLimits, shown: Iterable[FittedPart], system: str | None) -> Context:
    """The messages of all parts in their order, and what makes the report over them."""
    parts = [part for part in shown if part.offered]
    messages = tuple(parts[0].shown()) if len(parts) == 1 else tuple([each for part in parts for each in part.shown()])
    return Context(
        messages=list(messages),
        report=lambda: context.report_entries.report_of(draft, limits, parts, messages),
        system=system,
    )
