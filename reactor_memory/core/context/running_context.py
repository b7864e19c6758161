"""The contexts of a turn while it goes on: what stands before the turn moves seldom, and the turn fits its room."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable, Sequence
from contextlib import suppress
from typing import Any, Protocol, TypeAlias

from reactor_memory.core.context.accounting import Fate, FittedPart, RunAccount
from reactor_memory.core.context.blocks import Block
from reactor_memory.core.context.budget import Head, fitted_block_part, make_context, with_overhead
from reactor_memory.core.context.context import Context
from reactor_memory.core.context.current_turn import CurrentTurn, FittedTurn
from reactor_memory.core.context.draft import ContextLimits, Draft
from reactor_memory.core.context.message_counter import MessageCounter
from reactor_memory.core.context.report import Compaction
from reactor_memory.core.context.running_turn import Batch, RunningTurn, State, Step
from reactor_memory.models import Message
from reactor_memory.models.memory_tools import READING_TOOL
from reactor_memory.models.turns import find_orphans

HEAD_SHARE = 0.2
"""Of the budget, this is left to memory and the newest turns before a turn that fills the rest, if there are any."""

LEAST_SHARE = 0.25
"""A turn has at least this share of the budget, whatever always stands before it."""

SLACK_SHARE = 0.2
"""A growing turn displaces what stands before it in steps of this share of the budget."""

MOST_TURNS = 16
"""So many turns are remembered for loads to come."""


class LoadedTurn(Protocol):
    """What was loaded for a turn. `told` keeps what makes its contexts."""

    @property
    def draft(self) -> Draft: ...
    @property
    def limits(self) -> ContextLimits: ...
    @property
    def counter(self) -> MessageCounter: ...
    @property
    def system(self) -> str | None: ...
    @property
    def tools(self) -> tuple[Any, ...]: ...
    @property
    def next_seq(self) -> int: ...
    @property
    def seqs(self) -> Sequence[int]: ...
    @property
    def told(self) -> list[RunningContext]: ...


def of_turn(loaded: LoadedTurn, told_turns: ToldTurns) -> RunningContext:
    """What makes the contexts of a turn that goes on. A load that tells it again goes on where the last one was."""
    if not loaded.told or loaded.told[-1].draft is not loaded.draft:
        loaded.told[:] = [
            RunningContext(
                loaded.draft,
                loaded.limits,
                loaded.counter,
                system=loaded.system,
                next_seq=loaded.next_seq,
                seqs=loaded.seqs,
                reading_tool=reading_tool_of(loaded.tools),
                told_turns=told_turns,
                key=(loaded.draft.session_id,),
            )
        ]
    return loaded.told[-1]


class RunningContext:
    """A turn that begins with a user message, and a draft of what stands before it. `next_seq` is the place in the log
    of its first message, `seqs` are those of what is stored of it. Each message is counted once. `told_turns` keeps
    turns beyond this object, by `key`.
    """

    def __init__(
        self,
        draft: Draft,
        limits: ContextLimits,
        counter: MessageCounter,
        *,
        system: str | None,
        next_seq: int = 1,
        seqs: Sequence[int] = (),
        reading_tool: str | None = READING_TOOL,
        told_turns: ToldTurns | None = None,
        key: tuple[Hashable, ...] = (),
    ) -> None:
        self.draft = draft
        self._limits = limits
        self._system = system
        self._next_seq = next_seq
        self._seqs = seqs
        self._cost = with_overhead(counter.counted, limits.overhead)
        self._head = Head(draft, len(draft.window), limits, counter.of, counter.of_text, counter.name)
        self._room = self._room_beside_head()
        self._reading_tool = reading_tool
        self._key = (*key, reading_tool)
        self._told_turns = told_turns if told_turns is not None else OrderedDict[Hashable, ToldTurn]()
        self._told = ToldTurn((), self._new_turn())
        self._heads: dict[int, tuple[list[FittedPart], int]] = {}
        self._opening: CurrentTurn | None = None

    def _new_turn(self) -> RunningTurn:
        return RunningTurn(self._room, self._cost, reading_tool=self._reading_tool)

    def _room_beside_head(self) -> int:
        draft, budget = self.draft, self._limits.budget
        always = [*draft.leading, *(message for part in draft.verbatim for message in part.messages)]
        left = budget - sum(self._head.tokens_of(message) + self._limits.overhead for message in always)
        before = int(HEAD_SHARE * budget) if self._next_seq > 1 else 0
        return max(1, left - before, int(LEAST_SHARE * budget))

    def of(self, current: Sequence[Message]) -> Context:
        """The context with the turn so far. What was told before is told again, in the same order.

        Raises `BudgetExceededError` as `ContextLimits` describes.
        """
        key = (*self._key, self._room, self._next_seq)
        told = self._told_turns.pop(key, None)  # nobody else goes on with it meanwhile
        if told is None or not told.is_in(current, whole=told is not self._told):
            told = ToldTurn((), self._new_turn())
        self._told = told
        told.go_on(current, self._seqs, self._next_seq)
        context = self._context(told.turn)
        self._told_turns[key] = told
        while len(self._told_turns) > MOST_TURNS:
            with suppress(KeyError):  # another thread did
                self._told_turns.popitem(last=False)
        return context

    def _context(self, run: RunningTurn) -> Context:
        turn, block = _current(run.live, run.sound), run.block()
        shown, left = self._head_beside(run)
        if turn.tokens + _tokens_of(block) <= left:
            fitted = turn.whole()
        else:  # calls that are still open, or one exchange that is larger than the room
            block = None
            shown, fitted = self._head.beside(turn, is_steady=True, reserve=self._room)
        part = _part(run, turn, fitted, fitted_block_part(block, self._limits) if block else None)
        return make_context(self.draft, self._limits, (*shown, part), self._system)

    def _head_beside(self, run: RunningTurn) -> tuple[list[FittedPart], int]:
        """What stands before the turn, and the tokens that it leaves: what was loaded as long as the turn fits beside
        it, then less in few steps, by the most that the turn ever took.
        """
        opening = _current(run.live[:1])
        shown, left = self._head_with(opening, 0)
        if run.peak <= left:
            return shown, left
        slack = max(1, int(SLACK_SHARE * self._limits.budget))
        return self._head_with(opening, min(self._room, slack * (run.peak // slack + 1)))

    def _head_with(self, opening: CurrentTurn, reserve: int) -> tuple[list[FittedPart], int]:
        if opening.messages != (self._opening.messages if self._opening else None):
            self._opening, self._heads = opening, {}
        if reserve not in self._heads:
            shown, fitted = self._head.beside(opening, is_steady=reserve > 0, reserve=reserve)
            left = self._limits.budget - sum(part.tokens for part in shown)
            self._heads[reserve] = shown, left if not fitted.clamped else 0
        return self._heads[reserve]


class ToldTurn:
    """Messages of a turn, told one by one."""

    def __init__(self, messages: Sequence[Message], turn: RunningTurn) -> None:
        self.messages = list(messages)
        self.turn = turn

    def is_in(self, current: Sequence[Message], *, whole: bool) -> bool:
        """Whether all that was told is there, as its ends tell; by all of it if it is `whole`."""
        told = len(self.messages)
        if not told or told > len(current):
            return False
        places = range(told) if whole else (0, told - 1)
        return all(self.messages[each] is current[each] or self.messages[each] == current[each] for each in places)

    def go_on(self, current: Sequence[Message], seqs: Sequence[int], next_seq: int) -> None:
        """Tell what is new. `seqs` are those of the messages that are stored; the others follow `next_seq`."""
        for place, message in enumerate(current[len(self.messages) :], len(self.messages)):
            self.messages.append(message)
            self.turn.add(message, seqs[place] if place < len(seqs) else next_seq + place)


ToldTurns: TypeAlias = OrderedDict[Hashable, ToldTurn]
"""The turns that were told last, by session and room, for who loads the context of a turn again at each step."""


def _part(run: RunningTurn, turn: CurrentTurn, fitted: FittedTurn, log: FittedPart | None) -> FittedPart:
    """The current turn with its log. The run goes on, the part does not."""
    steps = run.steps[:]
    live = [step.place for step in run.live]
    forms: list[tuple[State, int]] = [(step.state, step.cost) for step in steps]
    batches, lines, tokens = run.batches[:], log.offered if log else 0, log.tokens if log else 0
    account = RunAccount(
        [step.message for step in steps],
        lambda: _fates(steps, forms, live, turn, fitted),
        lambda: _compaction(steps, forms, batches, lines, tokens),
    )
    shown = list(fitted.kept.values())
    return FittedPart("current", shown, fitted.tokens, len(steps), account, (log,) if log else ())


def _current(live: Sequence[Step], sound: int = 0) -> CurrentTurn:
    """The turn as it is shown, of which the first `sound` messages have no orphans."""
    shown = [step.shown for step in live]
    orphans = find_orphans(shown, sound, open_tail=True)
    staying = [step for place, step in enumerate(live) if place not in orphans] if orphans else live
    return CurrentTurn(shown, orphans, [step.shown for step in staying], [step.cost for step in staying])


def _fates(
    steps: Sequence[Step],
    forms: Sequence[tuple[State, int]],
    live: Sequence[int],
    turn: CurrentTurn,
    fitted: FittedTurn,
) -> list[Fate]:
    """What became of each message of the turn; `live` are the places of those that are not folded."""
    fates = [Fate("dropped", "folded", step.whole_cost) for step in steps]
    shown = iter(range(len(turn.messages)))
    for position, place in enumerate(live):
        state, cost = forms[place]
        whole = steps[place].whole_cost
        if position in turn.orphans:
            fates[place] = Fate("dropped", turn.orphans[position], whole)
            continue
        index = next(shown)
        if index not in fitted.kept:
            fates[place] = Fate("dropped", "over_budget", whole)
        elif index in fitted.clamped or state == "cut":
            fates[place] = Fate("clamped", "too_long", whole - fitted.costs[index])
        elif state == "stub":
            fates[place] = Fate("clamped", "cleared", whole - cost)
        else:
            fates[place] = Fate("kept", "protected", cost)
    return fates


def _compaction(
    steps: Sequence[Step], forms: Sequence[tuple[State, int]], batches: Sequence[Batch], lines: int, log_tokens: int
) -> Compaction | None:
    states = [state for state, _ in forms]
    if not batches and "cut" not in states:
        return None
    return Compaction(
        batches=len(batches),
        since=batches[-1].after + 1 if batches else 0,
        cleared=states.count("stub"),
        cut=states.count("cut"),
        folded=states.count("folded"),
        lines=lines,
        saved_tokens=sum(step.whole_cost for step in steps) - sum(cost for _, cost in forms) - log_tokens,
    )


def reading_tool_of(tools: Sequence[Any]) -> str | None:
    """The name of the tool that reads a message again; None if the model has tools, and not this one."""
    return READING_TOOL if not tools or READING_TOOL in str(tools) else None


def _tokens_of(block: Block | None) -> int:
    if block is None:
        return 0
    return block.tokens if block.tokens is not None else sum(line.tokens for line in block.lines)
