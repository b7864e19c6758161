"""What a context shows of all that was offered for it, and what became of the rest, as data."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Literal, NamedTuple, TypeAlias

from reactor_memory.core import context
from reactor_memory.core.context.blocks import Block, Part, Verbatim
from reactor_memory.core.context.current_turn import Count, CurrentTurn, FittedTurn
from reactor_memory.core.context.newest_turns import Cut
from reactor_memory.models import Message
from reactor_memory.models.turns import without_orphans

if TYPE_CHECKING:
    from reactor_memory.core.context.report import Compaction, Reason

Outcome: TypeAlias = Literal["kept", "dropped", "clamped"]


class Fate(NamedTuple):
    """What became of one message or line, and the tokens to report for it."""

    outcome: Outcome
    reason: Reason
    tokens: int


class CutAccount(NamedTuple):
    """Of messages, `cut` is shown; `offered` are those between its ends. `gone` was cut off in front of them, from
    position `begin` on.
    """

    begin: int
    gone: Sequence[Message]
    offered: Sequence[Message]
    cut: Cut
    cost: Count


class VerbatimAccount(NamedTuple):
    """What stands as it is, cut only at its front."""

    verbatim: Verbatim
    cut: Cut
    cost: Count


class BlockAccount(NamedTuple):
    """A block keeps the lines at the positions `kept`."""

    block: Block
    kept: Sequence[int]


class TurnAccount(NamedTuple):
    """`fitted` is shown of the current turn. It counts without the orphans."""

    turn: CurrentTurn
    fitted: FittedTurn
    cost: Count


class RunAccount(NamedTuple):
    """A turn of which some was replaced: the messages as they were `offered`, and what became of each."""

    offered: Sequence[Message]
    fates: Callable[[], Sequence[Fate]]
    compaction: Callable[[], Compaction | None]


class ChoiceAccount(NamedTuple):
    """Messages, oldest first, that were chosen one by one."""

    offered: Sequence[Message]
    fates: Sequence[Fate]


Account: TypeAlias = CutAccount | VerbatimAccount | BlockAccount | TurnAccount | RunAccount | ChoiceAccount


class FittedPart(NamedTuple):
    """A part of the context: what it shows of so many messages or lines that were offered, and what became of each.

    `inside` are parts that stand behind the first of its messages.
    """

    name: Part
    messages: Sequence[Message]
    tokens: int
    offered: int
    account: Account
    inside: Sequence[FittedPart] = ()

    def shown(self) -> Sequence[Message]:
        """All messages in their order."""
        return self.messages if not self.inside else [message for _, message in self.placed()]

    def placed(self) -> list[tuple[Part, Message]]:
        """All messages in their order, with the name of their part."""
        own = [(self.name, message) for message in self.messages]
        inside = [each for part in self.inside for each in part.placed()]
        return [*own[:1], *inside, *own[1:]]


def cut_part(name: Part, messages: Sequence[Message], begin: int, cut: Cut, cost: Count) -> FittedPart:
    """A part that shows `cut` of the messages from `begin` on.

    Nothing looks at `messages` later: the list may be the caller's, who goes on with it.
    """
    offered = messages[cut.start : cut.end]
    if cut.excerpts:
        shown = context.window_fill.shown_messages(messages, cut)
    else:
        shown = without_orphans(offered, cut.orphans, cut.start)
    account = CutAccount(begin, messages[begin : cut.start], offered, cut, cost)
    return FittedPart(name, shown, cut.tokens, cut.end - begin, account)


def turn_part(turn: CurrentTurn, fitted: FittedTurn, cost: Count) -> FittedPart:
    """The current turn; what is kept of it stands last."""
    shown = list(fitted.kept.values())
    return FittedPart("current", shown, fitted.tokens, len(turn.offered), TurnAccount(turn, fitted, cost))
