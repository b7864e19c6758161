"""Which lines of memory are shown in how many tokens, and when that changes. Pure.

The higher a line ranks, the longer it stays: by its value, and of equal value the newer line. Lines of at least
`SETTLED` record what was done or ruled and may take all the room. Everything else is detail. Where actions are on
record, detail gets a share of the budget, for a memory that leaves the window no room to grow moves it at every turn,
and with it goes what a prompt cache holds. Where little is on record, the talk is all there is, and may take all.

Between two cuts lines are only added. A cut frees more than it must, so that the next one is far away.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple, TypeAlias

from reactor_memory.models.block_lines import BlockLine
from reactor_memory.models.ledger import RULED, SETTLED

Rank: TypeAlias = tuple[float, int]
"""The value of a line and the newest message that it was made from."""

LOWEST: Rank = (0.0, 0)

RECORDED_SHARE = 0.08
"""From this share of all lines on, in tokens, what was done counts as being on record."""
DETAIL_SHARE = 0.6
SLACK = 0.05
RECORDED_SLACK = 0.3


class Room(NamedTuple):
    """Tokens for all lines, for all lines if detail is among them, and how much detail a cut frees; the value that a
    line must have.
    """

    lines: int
    with_detail: int
    slack: int = 0
    least_value: float = 0.0


class Choice(NamedTuple):
    """The positions of the lines that are shown: those that rank at least as high as `floor`."""

    kept: Sequence[int]
    floor: Rank = LOWEST


ROOMY = 2_000
REMARK = 1.3
"""With less detail than `ROOMY` tokens, lines below this value are not worth a cut: they would soon have to go."""


def rank(line: BlockLine) -> Rank:
    return line.value, line.source_seqs[-1] if line.source_seqs else 0


def share_out(lines: Sequence[BlockLine], *, budget: int, most: int) -> Room:
    """The room of `lines` in a context of `budget` tokens that has `most` for its memory. A larger budget gives each
    kind of line as much or more.
    """
    recorded = _recorded(lines)
    with_detail = most - recorded * max(0.0, most - DETAIL_SHARE * budget)
    slack = (SLACK + recorded * (RECORDED_SLACK - SLACK)) * budget
    least_value = REMARK if recorded == 1 and with_detail < ROOMY else 0.0
    return Room(most, int(with_detail), int(slack), least_value)


def newest_lines(lines: Sequence[BlockLine], most: int) -> Sequence[BlockLine]:
    """The last lines that take no more than `most` tokens together."""
    start = len(lines)
    while start and lines[start - 1].tokens <= most:
        start -= 1
        most -= lines[start].tokens
    return lines[start:]


def settled_tokens(lines: Iterable[BlockLine]) -> int:
    """The tokens of the lines that record what was done."""
    return sum(line.tokens for line in lines if line.value >= SETTLED)


def choose(lines: Sequence[BlockLine], room: Room, before: Rank | None = None) -> Choice:
    """The lines to show. `before` is the floor of the choice before: it stays while its lines fit, unless it leaves
    out a settled line for which there is room by now, or much detail.
    """
    best = _highest(lines, room)
    if before is not None:
        same = Choice(_from(lines, before), before)
        if _fits(lines, same.kept, room) and not _is_missed(lines, best, same, room):
            return same
    if len(best.kept) == len(lines):
        return best
    return _highest(lines, room._replace(with_detail=room.with_detail - room.slack))


def best_within(lines: Sequence[BlockLine], most: int) -> Choice:
    """The lines of highest rank that take no more than `most` tokens, where all are of one kind. Nested: what fewer
    tokens show, more tokens show, too.
    """
    return _highest(lines, Room(most, most))


def _recorded(lines: Sequence[BlockLine]) -> float:
    """How much of what was done is recorded: 0 nothing, 1 as in a session where tools do everything."""
    done = sum(line.tokens for line in lines if SETTLED < line.value < RULED)
    return min(1.0, done / (RECORDED_SHARE * (sum(line.tokens for line in lines) or 1)))


def _highest(lines: Sequence[BlockLine], room: Room) -> Choice:
    used, floor = 0, (room.least_value, 0)
    for line in sorted(lines, key=rank, reverse=True):
        used += line.tokens
        if used > (room.lines if line.value >= SETTLED else room.with_detail):
            value, seq = rank(line)
            floor = max(floor, (value, seq + 1))
            break
    return Choice(_from(lines, floor), floor)


def _from(lines: Sequence[BlockLine], floor: Rank) -> Sequence[int]:
    return [index for index, line in enumerate(lines) if rank(line) >= floor]


def _fits(lines: Sequence[BlockLine], kept: Sequence[int], room: Room) -> bool:
    has_detail = any(lines[index].value < SETTLED for index in kept)
    return _tokens(lines, kept) <= (room.with_detail if has_detail else room.lines)


def _is_missed(lines: Sequence[BlockLine], best: Choice, same: Choice, room: Room) -> bool:
    """Whether the lines that `best` has and `same` has not are worth changing the block."""
    more = set(best.kept).difference(same.kept)
    return any(lines[index].value >= SETTLED for index in more) or _tokens(lines, more) > 2 * room.slack


def _tokens(lines: Sequence[BlockLine], kept: Iterable[int]) -> int:
    return sum(lines[index].tokens for index in kept)
