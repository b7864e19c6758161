"""What the window of a context needs, and what it leaves to memory. Pure."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial

from reactor_memory.core.context.newest_turns import total_cost
from reactor_memory.core.context.selection import window_start, windows
from reactor_memory.core.context.strategy import PlanRequest
from reactor_memory.models import Message, is_posted_summary


def minimum_start(request: PlanRequest) -> int:
    """The seq where the smallest window begins."""
    return start_of_window(request, int(request.limits.window_min_share * request.limits.budget))


def start_of_window(request: PlanRequest, max_tokens: float) -> int:
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
    return tuple(window.tokens for window in found) or (tokens_of(request.rows.messages, request),)


def _window_cost(request: PlanRequest, message: Message) -> int:
    return 0 if is_posted_summary(message) else request.count(message)


def smallest_window(request: PlanRequest) -> float:
    """The tokens that memory leaves to the window. A larger budget never gives memory less: it is what the messages
    of the smallest window would take, not what whole turns of them take in this budget.
    """
    return min(_window_sizes(request)[-1], request.limits.window_min_share * request.limits.budget)


def least_window(request: PlanRequest) -> float:
    """The same where memory is short of room: no more than whole turns take. What a further turn would need is memory's
    until that turn fits as well. A larger budget never gives memory less: where a turn more comes into the share, the
    window has it only when there is room for it beside the memory of before.
    """
    budget, share = request.limits.budget, request.limits.window_min_share
    sizes = _window_sizes(request)
    least = share * budget
    for tokens, further in zip(sizes, [*sizes[1:], math.inf], strict=True):
        if tokens <= share * budget:  # so the share is not 0
            least = min(least, tokens + max(0.0, tokens_free(request, budget) - tokens_free(request, further / share)))
    return max(least, min(smallest_window(request), _unsaid(request)))


def _unsaid(request: PlanRequest) -> int:
    """What the messages take that the summary does not cover yet."""
    covered = request.rows.summary.covered_seq if request.rows.summary else 0
    return tokens_of(messages_from(request.rows.messages, covered + 1), request)


def tokens_of(messages: Sequence[Message], request: PlanRequest) -> int:
    return total_cost(messages, request.count, request.limits.overhead, request.tokenizer)


def tokens_free(request: PlanRequest, budget: float) -> float:
    """What the message to come leaves of a budget; a large one must not move the window for good."""
    return budget - min(request.current_tokens, budget / 10)


def messages_from(messages: Sequence[Message], seq: int) -> Sequence[Message]:
    return [message for message in messages if (message.seq or 0) >= seq]
