"""The current turn, as it is given and as it is shown."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from reactor_memory.models import Message
from reactor_memory.models.turns import OrphanReason, find_orphans, without_orphans

Count = Callable[[Message], int]
CountText = Callable[[str], int]


class FittedTurn(NamedTuple):
    """The messages of a turn that stay, by position, with their cost; `clamped` are the positions that were cut."""

    kept: dict[int, Message]
    costs: dict[int, int]
    clamped: frozenset[int] = frozenset()

    @property
    def tokens(self) -> int:
        return sum(self.costs.values())


class CurrentTurn(NamedTuple):
    """The current turn as `offered`, and its orphans by position; `messages` and their `costs` are without them."""

    offered: Sequence[Message]
    orphans: dict[int, OrphanReason]
    messages: Sequence[Message]
    costs: Sequence[int]

    @property
    def tokens(self) -> int:
        return sum(self.costs)

    def whole(self) -> FittedTurn:
        """All of its messages."""
        return FittedTurn(dict(enumerate(self.messages)), dict(enumerate(self.costs)))


_NO_TURN = CurrentTurn((), {}, (), ())


def current_turn(offered: Sequence[Message], cost: Count) -> CurrentTurn:
    if not offered:
        return _NO_TURN
    orphans = find_orphans(offered, open_tail=True)
    messages = without_orphans(offered, orphans)
    return CurrentTurn(offered, orphans, messages, list(map(cost, messages)))
