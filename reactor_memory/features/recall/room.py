"""How much of a context recall may take, from what, and with which passages. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from reactor_memory.core.context.context import Context
from reactor_memory.core.context.newest_turns import kept_start
from reactor_memory.features.recall.choice import FRAME_TOKENS, fitting, tokens_of
from reactor_memory.features.recall.passages import pieces
from reactor_memory.models import Message
from reactor_memory.models.block_lines import BlockLine
from reactor_memory.models.index_requests import IndexHit

DEFAULT_CLIFF = 0.2
"""As `CLIFF`, for a message that may ask for nothing older: what comes back for it has to be better."""

LEAST_SHARE = 0.15
"""What a message that asks may take from the window: a share of the budget. Beyond it, only what nothing stands in is
taken: each turn that leaves the window early costs a cached prefix (docs/decisions.md).
"""

HAD_SHARE = 0.5
"""What stood in the context without the question, and leaves it, comes back before all but the best if it answers so
much as well: a question shows no less than none.
"""

PASSAGE_TOKENS, PASSAGE_SHARE = 250, 0.4
"""It may take room for a whole passage, with its head and the frame, in any case; of a small budget at most a share."""


class Room(NamedTuple):
    """`most`: tokens that recall may take. `free`: of these what nothing stands in. `memory`: what memory gives up."""

    most: int
    free: int
    memory: int


def room_of(
    *,
    budget: int,
    free: int,
    memory: int,
    spare: int,
    newest: int,
    others: int,
    share: float,
    is_explicit: bool,
    may_take: bool = True,
) -> Room:
    """What recall may take of a budget in tokens. Of the `memory`, `spare` tokens may go; the `newest` turns stay, and
    so do the `others`: what neither is memory nor stands in the window. Without `may_take`, only what is free.
    """
    passage = min(PASSAGE_TOKENS, int(PASSAGE_SHARE * budget))
    gives, least = spare, max(passage, int(LEAST_SHARE * budget)) if may_take else 0
    beside_newest = budget - others - memory - newest
    if not is_explicit:
        # memory stands where prompt caches begin: it gives way only where nothing else can
        gives = min(spare, max(0, least - beside_newest)) if beside_newest < passage else 0
    elif not may_take:
        gives = 0
    most = max(0, min(int(share * (budget - others - memory + gives)), beside_newest + gives))
    takes_all = is_explicit and may_take
    return Room(most=most if takes_all else min(most, max(free, least)), free=free + gives, memory=gives)


def room_beside(room: Room, lines: Iterable[BlockLine]) -> Room:
    """What such lines in the same block leave of the room."""
    taken = sum(line.tokens for line in lines)
    return room._replace(most=max(0, room.most - taken), free=max(0, room.free - taken))


def window_of(context: Context) -> list[Message]:
    return [message for message, part in zip(context.messages, context.report.parts, strict=True) if part == "window"]


def shown_whole(context: Context) -> frozenset[int]:
    """The messages of the log that `context` shows as they are."""
    shown = {message.seq for message in context.messages if message.seq is not None}
    for entry in context.report.clamped:
        shown.difference_update(range(entry.first, entry.last + 1))
    return frozenset(shown)


def is_shown(hit: IndexHit, shown: frozenset[int]) -> bool:
    seq, last = hit.passage.seq, hit.passage.end_seq
    return seq in shown and (seq == last or shown.issuperset(range(seq + 1, last + 1)))


def chosen_hits(
    found: Sequence[IndexHit],
    shown: frozenset[int],
    context: Context,
    room: Room,
    *,
    cliff: float,
    count: Callable[[Message], int],
    had: frozenset[int],
    had_share: float,
) -> list[IndexHit]:
    """The passages that come back. Of the messages that the context `had` without a question, those that leave it for
    them compete for the same room, and come first if they score `had_share` of the best.
    """
    chosen = fitting(had_first(found, shown, had, had_share), room.most, cliff=cliff)
    excess = tokens_of(chosen) - room.free
    if excess <= 0:
        return chosen
    staying = shown - leaving(window_of(context), excess, context.report.budget, count)
    return fitting(had_first(found, staying, had, had_share), room.most, cliff=cliff)


def had_first(found: Sequence[IndexHit], shown: frozenset[int], had: frozenset[int], share: float) -> list[IndexHit]:
    """The hits that are not `shown`: the best, then those that the context had and that score such a share of it."""
    hidden = [hit for hit in found if not is_shown(hit, shown)]
    best, others = hidden[:1], hidden[1:]
    least = share * best[0].score if best else 0.0
    return [*best, *sorted(others, key=lambda hit: hit.score < least or not is_shown(hit, had))]


def filled(
    chosen: Sequence[IndexHit], found: Sequence[IndexHit], left: Sequence[Message], shown: frozenset[int], room: Room
) -> list[IndexHit]:
    """The `chosen` passages, and what else fits into the room that they leave free: what answers less well, then the
    newest of the messages that `left` the window in this load. Nothing gives way for it.
    """
    free = room.free - room.memory - tokens_of(chosen) + (FRAME_TOKENS if chosen else 0)
    if free <= FRAME_TOKENS:
        return [*chosen]
    known = {hit.passage.place for hit in found}
    others = [
        IndexHit(passage=each.passage) for each in reversed(list(pieces(left))) if each.passage.place not in known
    ]
    taken = {hit.passage.place for hit in chosen}
    waiting = [hit for hit in (*found, *others) if hit.passage.place not in taken and not is_shown(hit, shown)]
    return [*chosen, *fitting(waiting, free, cliff=0.0)]


def leaving(window: Sequence[Message], excess: int, budget: int, count: Callable[[Message], int]) -> frozenset[int]:
    """The oldest turns of the window that make room for `excess` tokens; never the newest ones."""
    newest = kept_start(window, len(window), budget, count)
    end = 0
    while end < newest and (excess > 0 or window[end].role != "user"):
        excess -= count(window[end])
        end += 1
    return frozenset(message.seq or 0 for message in window[:end])
