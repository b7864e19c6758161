"""Fitting a plain list of messages, such as a history that the caller keeps, into a budget of tokens."""

from __future__ import annotations

from collections.abc import Sequence

from reactor_memory.core import context
from reactor_memory.core.context.accounting import cut_part, turn_part
from reactor_memory.core.context.budget import make_context, protect, with_overhead
from reactor_memory.core.context.context import Context
from reactor_memory.core.context.current_turn import Count, CountText, current_turn
from reactor_memory.core.context.draft import ContextLimits, Draft
from reactor_memory.core.context.newest_turns import FULL, newest_turns, without_oldest
from reactor_memory.models import Message, is_posted_summary, turns


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
    limits = ContextLimits(budget=budget, overhead=overhead)
    cost = with_overhead(count, overhead)
    start = next((i for i, message in enumerate(messages) if not _is_leading(message)), len(messages))
    end = _current_start(messages, start)
    turn = current_turn(messages[end:], cost)
    _, fitted, room = protect((), turn, limits, cost, count_text)
    leading = without_oldest(messages[:start], room, cost)
    left = room - leading.tokens
    window = newest_turns(messages, start, end, left, count, overhead, tokenizer=tokenizer)
    if window.start > start and left - window.tokens >= FULL:
        window = context.window_fill.filled(messages, start, end, left, count, overhead, tokenizer=tokenizer)
    shown = [
        cut_part("system", messages, 0, leading, cost),
        cut_part("window", messages, start, window, cost),
        turn_part(turn, fitted, cost),
    ]
    draft = Draft(strategy="history", session_id=session_id, freshness="history")
    return make_context(draft, limits, shown, system)


def _is_leading(message: Message) -> bool:
    return message.role in ("system", "summary") and not is_posted_summary(message)


def _current_start(messages: Sequence[Message], start: int) -> int:
    """Where the current turn of a plain list begins, not before `start`."""
    last = turns.last_turn_start(messages, start)
    if last == len(messages) or messages[last].role == "user":
        return last
    return last + turns.units(messages[last:])[-1].start
