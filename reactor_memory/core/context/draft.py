"""What a strategy proposes to show, before it is fitted into the budget.

A draft holds everything that may appear in a context; `reactor_memory.core.context.budget` decides what does.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, TypeAlias

from reactor_memory.core.context.blocks import FACTS, NARRATIVE, Frame
from reactor_memory.models import LONGEST_TURN_SEGMENTS, Message, Pin, Value
from reactor_memory.models.block_lines import BlockLine
from reactor_memory.models.ledger import Form

Freshness: TypeAlias = Literal["none", "fresh", "stale", "catching_up", "failed", "empty", "history"]
"""How the memory of a context relates to the log.

`none`: the strategy shows no memory. `fresh`: everything before the window is covered. `stale`: an older summary is
shown because a newer one was not ready in time. `catching_up`: many messages are not summarized yet. `failed`: there
is no summary because making one failed. `empty`: the summary says nothing. `history`: the caller gave the history.
"""


class ContextLimits(Value, frozen=True, kw_only=True):
    """How large a context may be and how it is shared out.

    `budget` and `overhead` are tokens; every message costs its tokens plus `overhead`. The newest
    `recent_message_count` messages, cut at a turn border and to `window_min_share` of what the protected messages
    leave, are the minimum of the window; memory gets at most `max_memory_share` of what that minimum leaves. The share
    is taken when the window moves; until then the blocks stay as they are as long as the minimum fits beside them.

    At or below `trigger_message_count` messages, and without a summary, the newest `take_last_count` messages are
    shown. Above it the window grows (`window_growth`) up to `trigger_message_count` messages, or until the budget or
    `max_window_tokens` is full. At most `segment_message_count` messages wait for their extraction before the summary
    counts as stale (0: none may).

    Facts and narrative always give way to the current turn. `on_overflow` says what happens when even that, the pins
    and the current turn cut to its least do not fit: `raise` a `BudgetExceededError`, or `drop_memory`: pins, which are
    otherwise never given up, leave too, the one pinned first before the next.
    """

    budget: int
    overhead: int = 4
    take_last_count: int = 20
    trigger_message_count: int = 20
    recent_message_count: int = 10
    segment_message_count: int = 10
    window_growth: Literal["messages", "tokens"] = "messages"
    max_window_tokens: int = 16_000
    window_min_share: float = 0.35
    max_memory_share: float = 0.97
    memory_role: Literal["system", "user"] = "system"
    on_overflow: Literal["raise", "drop_memory"] = "raise"

    @property
    def longest_turn(self) -> int:
        """Messages of the longest turn that stays whole."""
        return LONGEST_TURN_SEGMENTS * max(1, self.segment_message_count)


class Draft(Value, frozen=True, kw_only=True):
    """All that a context may show. Messages are stored ones, oldest first, with their `seq` and `token_count`.

    `pins` are added to the draft of any strategy. They are shown whether or not the window shows their messages too, so
    that they stay where they are when it moves. So are `notes_lines`, the long-term notes of the agent, which cost
    `notes_tokens` as a whole.
    `unread` are ranges of `seq` that neither the summary nor the window shows. `covered_seq` is how far the summary
    reaches. `fact_tokens` and `narrative_tokens` are what the whole blocks cost as messages, overhead included, if they
    were counted before. The lines were chosen among those of what was said before message `memory_before_seq`; a line
    of facts needed the rank `floor` (value, newest source), and `form` says how they are written. `notes` are remarks
    for the reader of the report; the model never sees them.

    `frames` say what the two blocks of memory are: facts and narrative, or what a strategy shows in their place, where
    the second gives way to the first.

    `recalled_lines` are facts and `recalled` whole turns that answer the query, the best turn first. A turn of the
    window may be among them: it comes back if the others take its place there. For what was recalled, memory gives up
    at most `recall_room` tokens, the least valuable lines first.
    """

    strategy: str
    session_id: str
    fact_lines: Sequence[BlockLine] = ()
    narrative: Sequence[BlockLine] = ()
    fact_tokens: int | None = None
    narrative_tokens: int | None = None
    notes_lines: Sequence[BlockLine] = ()
    notes_tokens: int = 0
    frames: tuple[Frame, Frame] = (FACTS, NARRATIVE)
    pins: tuple[Pin, ...] = ()
    window: tuple[Message, ...] = ()
    recalled_lines: tuple[BlockLine, ...] = ()
    recalled: tuple[Message, ...] = ()
    recall_room: int = 0
    unread: tuple[tuple[int, int], ...] = ()
    covered_seq: int = 0
    memory_before_seq: int = 0
    floor: tuple[float, int] = (0.0, 0)
    form: Form = "full"
    freshness: Freshness = "none"
    notes: tuple[str, ...] = ()

    @property
    def offers_memory(self) -> bool:
        """Whether there is anything but pins for which the window may have to make room."""
        return bool(self.fact_lines or self.narrative or self.notes_lines or self.offers_recall)

    @property
    def offers_recall(self) -> bool:
        return bool(self.recalled_lines or self.recalled)
