"""What a strategy proposes, before it is fitted into the budget.

A draft holds everything that may appear in a context; `reactor_memory.core.context.budget` decides what does.
"""

from __future__ import annotations

import math
from typing import Literal, TypeAlias

from msgspec.structs import replace

from reactor_memory.core.context.blocks import PLACES, Block, Part, Place, Verbatim
from reactor_memory.models import LONGEST_TURN_SEGMENTS, Message, Value
from reactor_memory.models.excerpts import Excerpt

Freshness: TypeAlias = Literal["none", "fresh", "stale", "catching_up", "failed", "empty", "history"]
"""How the memory of a context relates to the log.

`none`: the strategy shows no memory. `fresh`: everything before the window is covered. `stale`: an older summary is
shown because a newer one was not ready in time. `catching_up`: many messages are not summarized yet. `failed`: there
is no summary because making one failed. `empty`: the summary says nothing. `history`: the caller gave the history.
"""


Curve: TypeAlias = tuple[tuple[int, float], ...]
"""Budgets in tokens, ascending, and the share of each; between them it runs evenly over the logarithm of the budget."""

MEMORY_CURVE: Curve = ((600, 0.7), (1_000, 0.8), (1_500, 0.65), (2_000, 0.6), (4_000, 0.45))
"""Measured without a question: see `docs/decisions.md`."""


def share_at(curve: Curve, budget: int) -> float:
    """The share of a budget: that of the nearest point outside the curve."""
    after = next((index for index, (tokens, _) in enumerate(curve) if tokens >= budget), len(curve))
    if not 0 < after < len(curve):
        return curve[min(after, len(curve) - 1)][1]
    (low, first), (high, last) = curve[after - 1], curve[after]
    return first + (last - first) * math.log(budget / low) / math.log(high / low)


class ContextLimits(Value, frozen=True, kw_only=True):
    """How large a context may be and how it is shared out.

    `budget` and `overhead` are tokens; every message costs its tokens plus `overhead`. Memory gets at most
    `memory_share` of the budget, the value of `memory_curve` there. The newest `recent_message_count` messages, cut at
    a turn border and to the rest of what the protected messages leave, are the minimum of the window. The share is
    taken when the window moves; until then the blocks stay as they are as long as the minimum fits beside them.

    At or below `trigger_message_count` messages, and without a summary, the newest `take_last_count` messages are
    shown. Above it the window grows (`window_growth`) up to `trigger_message_count` messages, or until the budget or
    `max_window_tokens` is full. At most `segment_message_count` messages wait for their extraction before the summary
    counts as stale (0: none may).

    Blocks always give way to the current turn. `on_overflow` says what happens when even that, what stands verbatim
    and the current turn cut to its least do not fit: `raise` a `BudgetExceededError`, or `drop_memory`: what stands
    verbatim, which is otherwise never given up, leaves too, the first message before the next.
    """

    budget: int
    overhead: int = 4
    take_last_count: int = 20
    trigger_message_count: int = 20
    recent_message_count: int = 10
    segment_message_count: int = 10
    window_growth: Literal["messages", "tokens"] = "messages"
    max_window_tokens: int = 16_000
    memory_curve: Curve = MEMORY_CURVE
    memory_role: Literal["system", "user"] = "system"
    on_overflow: Literal["raise", "drop_memory"] = "raise"

    @property
    def memory_share(self) -> float:
        return share_at(self.memory_curve, self.budget)

    @property
    def longest_turn(self) -> int:
        """Messages of the longest turn that stays whole."""
        return LONGEST_TURN_SEGMENTS * max(1, self.segment_message_count)


class Draft(Value, frozen=True, kw_only=True):
    """All that a context may show. Messages are stored ones, oldest first, with their `seq` and `token_count`.

    `leading` are the system messages that the session begins with; the window has none of them. They stand first, and
    are cut only if they do not fit beside the least of the current turn. `blocks` stand in the order of their places.
    `verbatim` is shown whether or not the window shows the same messages,
    so that it stays where it is when the window moves. `excerpts` say how messages that are too long for the window
    were shown before: as long as all fits so, they are shown so again. For the blocks behind the
    window, memory gives up at most `memory_gives` tokens, the least valuable lines first; about `window_gives` tokens
    have to leave the window for them.

    `unread` are ranges of `seq` that neither the summary nor the window shows. `covered_seq` is how far the summary
    reaches. The lines of memory were chosen among those of what was said before message `memory_before_seq`; a line
    needed the rank `floor` (value, newest source), and `form` says how they are written. `remarks` are for the reader
    of the report; the model never sees them.
    """

    strategy: str
    session_id: str
    leading: tuple[Message, ...] = ()
    blocks: tuple[Block, ...] = ()
    verbatim: tuple[Verbatim, ...] = ()
    window: tuple[Message, ...] = ()
    excerpts: tuple[Excerpt, ...] = ()
    memory_gives: int = 0
    window_gives: int = 0
    unread: tuple[tuple[int, int], ...] = ()
    superseded: tuple[int, ...] = ()
    covered_seq: int = 0
    memory_before_seq: int = 0
    floor: tuple[float, int] = (0.0, 0)
    freshness: Freshness = "none"
    remarks: tuple[str, ...] = ()

    def block(self, part: Part) -> Block | None:
        """The block of a part, if there is one."""
        return next((block for block in self.blocks if block.frame.part == part), None)

    def blocks_at(self, *places: Place) -> tuple[Block, ...]:
        """The blocks that stand at these places."""
        return tuple([block for block in self.blocks if block.frame.place in places])


def with_block(draft: Draft, block: Block) -> Draft:
    """The draft with a block at its place, in place of the one of the same part."""
    others = [other for other in draft.blocks if other.frame.part != block.frame.part]
    ordered = sorted([*others, block], key=lambda each: PLACES.index(each.frame.place))
    return replace(draft, blocks=tuple(ordered))
