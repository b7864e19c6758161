"""What the window of a context needs, and what memory and window leave to each other. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial

from reactor_memory.core import context
from reactor_memory.core.context.draft import share_at
from reactor_memory.core.context.newest_turns import Cut, newest_turns, total_cost
from reactor_memory.core.context.selection import window_start
from reactor_memory.core.context.strategy import PlanRequest
from reactor_memory.models import Message, is_posted_summary
from reactor_memory.models.block_lines import Layout
from reactor_memory.models.excerpts import Excerpt
from reactor_memory.models.turns import first_certain

UNSAID_SHARE = 0.35
"""Messages that no summary covers yet may have this share of the budget, whatever memory may take."""

LONGEST_LINE = 256
"""Tokens. Where memory leaves more, what it does not tell waits for no room."""

BATCH_SHARE = 0.4
MOST_OF_WINDOW = 0.6
"""When the window moves, so much of the budget, and no more than so much of the room of the window, is left free for
the next turns. The less there is, the sooner it moves again, and with it goes what a prompt cache holds.
"""


def minimum_start(request: PlanRequest) -> int:
    """The seq where the smallest window begins."""
    messages, limits = request.rows.messages, request.limits
    if not messages:  # all are out of view
        return request.rows.session.last_seq + 1 if request.rows.session else 1
    start = window_start(
        messages,
        message_count=limits.recent_message_count,
        max_tokens=int((1 - limits.memory_share) * limits.budget),
        longest_turn=limits.longest_turn,
        count=partial(_window_cost, request),
    )
    return messages[start].seq or 1


def _window_cost(request: PlanRequest, message: Message) -> int:
    return 0 if is_posted_summary(message) else request.count(message)


def memory_room(request: PlanRequest) -> int:
    """The tokens that memory may take: its share, and what the window may not use, less what no summary covers yet. In
    a larger budget neither this nor what it leaves is smaller.
    """
    free, limits = tokens_free(request), request.limits
    most = max(int(share_at(limits.memory_curve, free) * free), free - limits.max_window_tokens)
    return min(most, free - min(_unsaid(request), int(UNSAID_SHARE * free)))


def _unsaid(request: PlanRequest) -> int:
    """What the messages take that the summary does not cover yet."""
    covered = request.rows.summary.covered_seq if request.rows.summary else 0
    return tokens_of(messages_from(request.rows.messages, covered + 1), request)


def window_beside(request: PlanRequest, layout: Layout, start: int, *, anew: bool) -> Cut:
    """The window beside the memory of a layout, from message `start` on or longer. `anew`: there is no prefix to keep,
    and it takes all the room.

    What memory has too few tokens for to tell another line makes excerpts longer, but brings no message more: in a
    larger budget that line may be told.
    """
    limits, messages = request.limits, request.rows.messages
    spare = _spare(request, layout) if anew else 0
    room = min(tokens_free(request) - layout.memory_tokens - spare, limits.max_window_tokens)
    wanted = next((index for index, each in enumerate(messages) if (each.seq or 0) >= start), len(messages))
    first = wanted if limits.window_growth == "messages" else min(wanted, first_certain(messages))
    if not anew:
        room -= int(min(BATCH_SHARE * limits.budget, MOST_OF_WINDOW * room))
    counted, overhead = partial(_without_overhead, request), limits.overhead
    whole = newest_turns(messages, first, len(messages), room, counted, overhead, tokenizer=request.tokenizer)
    if whole.start == first or (whole.start <= wanted and not anew):
        return whole
    return context.window_fill.filled(
        messages,
        first,
        len(messages),
        room,
        counted,
        overhead,
        tokenizer=request.tokenizer,
        spare=spare,
    )


def _spare(request: PlanRequest, layout: Layout) -> int:
    """What is left of the room of memory because the next line does not fit, also if it is a long one, or the first
    one with the header of memory.
    """
    spare = memory_room(request) - layout.memory_tokens if layout.left_out else 0
    return spare if 0 < spare <= LONGEST_LINE else 0


def _without_overhead(request: PlanRequest, message: Message) -> int:
    return request.count(message) - request.limits.overhead


def tokens_of(messages: Sequence[Message], request: PlanRequest, excerpts: Mapping[int, Excerpt] | None = None) -> int:
    """What messages take, those with an excerpt of their seq as it shows them."""
    overhead, cut = request.limits.overhead, excerpts or {}
    whole = [message for message in messages if message.seq not in cut] if cut else messages
    taken = sum(excerpt.tokens + overhead for excerpt in cut.values() if excerpt.tokens)
    return total_cost(whole, request.count, overhead, request.tokenizer) + taken


def tokens_free(request: PlanRequest) -> int:
    """What the message to come leaves of the budget; a large one must not move the window for good."""
    budget = request.limits.budget
    return budget - min(request.current_tokens, budget // 10)


def messages_from(messages: Sequence[Message], seq: int) -> Sequence[Message]:
    return [message for message in messages if (message.seq or 0) >= seq]
