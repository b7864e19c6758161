"""Replay long turns of agents and measure what the model would see at each step, beside simpler ways to keep a budget.

`python -m benchmarks.long_turns agents.jsonl.gz --budgets 8000 16000 32000` takes session files as `reactor-memory
eval` does. It replays each turn of at least `--least-calls` calls; with `--stretches 20 40 80` each run of turns that
together have so many calls as one turn, what the user said later at its place in it; with `--whole` each session.
"""

from __future__ import annotations

import argparse
import asyncio
import inspect
import re
import time
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import msgspec

from reactor_memory import Message, open_memory
from reactor_memory.core.context.message_counter import MessageCounter
from reactor_memory.evaluation.session_files import reader
from reactor_memory.models.turns import units
from reactor_memory.settings.settings import Settings
from reactor_memory.tokens.tiktoken_counter import TiktokenCounter

OVERHEAD = 4
CACHED_PRICE = 0.1
NEWEST_RESULTS = 10
ANTHROPIC_KEEP = 3

_WORD = re.compile(r"[A-Za-z0-9_][\w./\\:@#-]*\w")
_NAME = re.compile(r"\w[_/\\@]\w|[a-z][A-Z]|\w\.\w|\d")
_HANDLE = re.compile(r"memory_read\((\d+)\)|^#(\d+) ", re.MULTILINE)


class Counted:
    """Tokens of messages, each counted once."""

    def __init__(self) -> None:
        self._counter = MessageCounter(TiktokenCounter())
        self._known: dict[int, tuple[Message, int]] = {}

    def of(self, message: Message) -> int:
        known = self._known.get(id(message))
        if known is None:
            self._known[id(message)] = known = (message, self._counter.counted(message) + OVERHEAD)
        return known[1]

    def sum(self, messages: Sequence[Message]) -> int:
        return sum(map(self.of, messages))


@dataclass
class Measures:
    """Of all steps of all turns with one policy and one budget."""

    reuse: list[float] = field(default_factory=list)
    cost: float = 0.0
    needed: int = 0
    visible: int = 0
    readable: int = 0
    visible_by_step: list[float] = field(default_factory=list)
    seconds: list[list[float]] = field(default_factory=lambda: [[], [], [], []])
    over: int = 0
    steps: int = 0

    def row(self) -> str:
        mean = sum(self.visible_by_step) / max(1, len(self.visible_by_step))
        quarters = "/".join(f"{1000 * sum(each) / max(1, len(each)):.2f}" for each in self.seconds)
        return (
            f"{sum(self.reuse) / max(1, len(self.reuse)):.3f} | {self.cost / 1e6:.3f} "
            f"| {self.visible / max(1, self.needed):.3f} / {mean:.3f} | {self.readable / max(1, self.needed):.3f} "
            f"| {quarters} | {self.over}"
        )


def values_of(text: str) -> set[str]:
    """Identifiers, paths and numbers."""
    words = (word.strip(".:-/") for word in _WORD.findall(text))
    return {word for word in words if len(word) >= 3 and _NAME.search(word)}


def said_in(message: Message) -> str:
    arguments = [msgspec.json.encode(call.arguments).decode() for call in message.tool_calls]
    return "\n".join([message.content, *arguments])


def needed_values(turn: Sequence[Message]) -> dict[int, dict[str, int]]:
    """For the place of each message of the model, the values in it that were first seen in a result, and where."""
    results: dict[str, int] = {}
    others: set[str] = set()
    needed: dict[int, dict[str, int]] = {}
    for place, message in enumerate(turn):
        values = values_of(said_in(message))
        if message.role == "tool":
            results |= {value: place for value in values if value not in others and value not in results}
            continue
        if message.role == "assistant" and (found := {value: results[value] for value in values if value in results}):
            needed[place] = found
        others |= {value for value in values if value not in results}
    return needed


Steps = AsyncIterator[tuple[int, Sequence[Message], float]]
"""Where the model is asked, what it sees, and the processor time that it took to get there."""


async def product(turn: Sequence[Message], budget: int, counted: Counted) -> Steps:
    """`memory.turn` of this package, in a new session."""
    settings = Settings(store={"url": "memory://"}, summary={"enabled": False})
    async with open_memory(settings) as memory, memory.turn("s", turn[0], budget=budget) as running:
        seconds = 0.0
        for place, message in enumerate(turn[1:], 1):
            started = time.process_time()
            if message.role == "assistant":
                shown = running.messages()
                yield place, shown, seconds + time.process_time() - started
                seconds, started = 0.0, time.process_time()
            added = running.add(message)
            if inspect.isawaitable(added):
                await added
            seconds += time.process_time() - started
        running.answer("done")


Policy = Callable[[Sequence[Message], int, Counted], Sequence[Message]]


def take_last(turn: Sequence[Message], budget: int, counted: Counted) -> Sequence[Message]:
    """The user's message and the newest whole exchanges."""
    room, start = budget - counted.of(turn[0]), len(turn)
    for run in reversed(units(turn)):
        cost = counted.sum(turn[run.start : run.stop])
        if run.start == 0 or cost > room:
            break
        room -= cost
        start = run.start
    return [turn[0], *turn[start:]]


class Cleared:
    """Results in place of which a mark stands, each made once."""

    def __init__(self) -> None:
        self._known: dict[int, tuple[Message, Message]] = {}

    def of(self, message: Message) -> Message:
        if id(message) not in self._known:
            self._known[id(message)] = (message, msgspec.structs.replace(message, content="[cleared]"))
        return self._known[id(message)][1]


def rolling_mask() -> Policy:
    """The newest ten results stay, whatever the budget; then the oldest exchanges leave."""
    cleared = Cleared()

    def shown(turn: Sequence[Message], budget: int, counted: Counted) -> Sequence[Message]:
        results = [place for place, message in enumerate(turn) if message.role == "tool"]
        old = set(results[:-NEWEST_RESULTS])
        return take_last(
            [cleared.of(each) if place in old else each for place, each in enumerate(turn)], budget, counted
        )

    return shown


def context_editing() -> Policy:
    """Anthropic's `clear_tool_uses_20250919` as documented, triggered by the budget: all results but those of the
    newest three tool uses are cleared, and stay so. It does not promise to fit.
    """
    cleared = Cleared()
    gone: set[int] = set()

    def shown(turn: Sequence[Message], budget: int, counted: Counted) -> Sequence[Message]:
        messages = [cleared.of(each) if id(each) in gone else each for each in turn]
        if counted.sum(messages) > budget:
            results = [message for message in turn if message.role == "tool"]
            gone.update(map(id, results[:-ANTHROPIC_KEEP]))
            messages = [cleared.of(each) if id(each) in gone else each for each in turn]
        return messages

    return shown


def equal_cuts(turn: Sequence[Message], budget: int, counted: Counted) -> Sequence[Message]:
    """All results are cut to one level, found anew at each step; then the oldest exchanges leave."""
    if counted.sum(turn) <= budget:
        return turn
    low, high = 0, budget
    while low < high:
        middle = (low + high + 1) // 2
        tokens = sum(min(counted.of(each), middle) if each.role == "tool" else counted.of(each) for each in turn)
        low, high = (middle, high) if tokens <= budget else (low, middle - 1)
    return take_last([_cut(each, low, counted) if each.role == "tool" else each for each in turn], budget, counted)


def _cut(message: Message, tokens: int, counted: Counted) -> Message:
    whole = counted.of(message)
    if whole <= tokens:
        return message
    return msgspec.structs.replace(message, content=message.content[: int(len(message.content) * 0.9 * tokens / whole)])


def pure(policy: Policy) -> Callable[[Sequence[Message], int, Counted], Steps]:
    async def steps(turn: Sequence[Message], budget: int, counted: Counted) -> Steps:
        for place, message in enumerate(turn):
            if place and message.role == "assistant":
                started = time.process_time()
                shown = policy(turn[:place], budget, counted)
                yield place, shown, time.process_time() - started

    return steps


POLICIES: dict[str, Callable[[], Callable[[Sequence[Message], int, Counted], Steps]]] = {
    "this package": lambda: product,
    "take-last by pairs": lambda: pure(take_last),
    "newest ten results": lambda: pure(rolling_mask()),
    "context editing": lambda: pure(context_editing()),
    "equal cuts": lambda: pure(equal_cuts),
}


async def measure(turn: Sequence[Message], policy: str, budget: int, measures: Measures) -> None:
    counted, needed = Counted(), needed_values(turn)
    steps = sum(message.role == "assistant" for message in turn[1:])
    before: Sequence[Message] = ()
    number = 0
    async for place, shown, seconds in POLICIES[policy]()(turn, budget, counted):
        total, same = counted.sum(shown), counted.sum(shown[: _shared(before, shown)])
        if number:
            measures.reuse.append(same / total)
        measures.cost += total - same + CACHED_PRICE * same
        measures.over += total > budget
        measures.seconds[min(3, 4 * number // max(1, steps))].append(seconds)
        if place in needed:
            _see(needed[place], shown, turn, measures)
        before, number = shown, number + 1
    measures.steps += number


def _shared(before: Sequence[Message], shown: Sequence[Message]) -> int:
    pairs = enumerate(zip(before, shown, strict=False))
    return next(
        (place for place, (one, other) in pairs if one is not other and one != other), min(len(before), len(shown))
    )


def _see(needed: dict[str, int], shown: Sequence[Message], turn: Sequence[Message], measures: Measures) -> None:
    text = "\n".join(map(said_in, shown))
    handles = {int(first or second) for first, second in _HANDLE.findall(text)}
    visible = [value for value in needed if value in text]
    readable = sum(value not in text and bool(_ways_to(place, turn) & handles) for value, place in needed.items())
    measures.needed += len(needed)
    measures.visible += len(visible)
    measures.readable += len(visible) + readable
    measures.visible_by_step.append(len(visible) / len(needed))


def _ways_to(place: int, turn: Sequence[Message]) -> set[int]:
    """The handles of a result: its own, and that of the call that it follows."""
    call = place
    while call and turn[call].role == "tool":
        call -= 1
    return {place + 1, call + 1}


def turns_of(messages: Sequence[Message]) -> list[Sequence[Message]]:
    starts = [place for place, message in enumerate(messages) if message.role == "user"]
    return [messages[start:end] for start, end in zip(starts, [*starts[1:], len(messages)], strict=True)]


def calls_of(turn: Sequence[Message]) -> int:
    return sum(len(message.tool_calls) for message in turn)


def stretches(messages: Sequence[Message], calls: int) -> Iterator[Sequence[Message]]:
    """Runs of consecutive turns that together have at least so many calls, each as one turn."""
    stretch: list[Message] = []
    for turn in turns_of(messages):
        stretch += [message for message in turn if message.role != "system"]
        if calls_of(stretch) >= calls:
            yield stretch
            stretch = []


def whole_session(messages: Sequence[Message]) -> Sequence[Message]:
    start = next(place for place, message in enumerate(messages) if message.role == "user")
    return [message for message in messages[start:] if message.role != "system"]


async def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("files", nargs="+", type=Path)
    parser.add_argument("--budgets", nargs="+", type=int, default=[8_000, 16_000, 32_000])
    parser.add_argument("--least-calls", type=int, default=7)
    parser.add_argument("--stretches", nargs="+", type=int, default=[], help="turns joined up to so many calls")
    parser.add_argument("--whole", action="store_true", help="each session as one turn")
    parser.add_argument("--longer", action="store_true", help="only turns that are longer than the budget")
    parser.add_argument("--policies", nargs="+", choices=POLICIES, default=list(POLICIES))
    options = parser.parse_args(arguments)
    sessions = [line.messages for path in options.files for line in reader("auto")(path)]
    if options.whole:
        turns = list(map(whole_session, sessions))
    elif options.stretches:
        turns = [each for calls in options.stretches for messages in sessions for each in stretches(messages, calls)]
    else:
        turns = [each for session in sessions for each in turns_of(session) if calls_of(each) >= options.least_calls]
    print(f"{len(turns)} turns of {min(map(len, turns))} to {max(map(len, turns))} messages")
    print("| policy | budget | reuse | cost, M | visible: values / steps | or one reading | CPU ms by quarter | over |")
    print("|---|--:|--:|--:|--:|--:|--:|--:|")
    for budget in options.budgets:
        for policy in options.policies:
            measures = Measures()
            for turn in turns:
                if options.longer and Counted().sum(turn) <= budget:
                    continue
                await measure(turn, policy, budget, measures)
            print(f"| {policy} | {budget:,} | {measures.row()} |", flush=True)


if __name__ == "__main__":
    asyncio.run(main())
