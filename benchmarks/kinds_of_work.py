"""What a question finds, by kind of session, beside plain BM25 with the newest messages; what it costs caches.

usage: python -m benchmarks.kinds_of_work FILE ... [--budgets 1000 2000 4000] [--every 2] [--only REGEX] [--reuse]

A kind is the name of a session without the number at its end, or its file. Found: one line of memory, one passage or
one message of the context holds the value beside what it is of. `whole` is the whole session as the context, `bm25`
pieces of 1,200 characters by the same terms as ours in three quarters of the budget, then the newest messages that fit,
`off` no question, `message` the question as the message to come: the default. Then the kinds of which `query` finds
fewer than `bm25` or `off`.

`--reuse`: how much of a context was the beginning of the one before, turn by turn, with the default recall and without,
and which share of the turns brought something back.
"""

from __future__ import annotations

import argparse
import asyncio
import math
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from reactor_memory import Memory, Settings, open_memory
from reactor_memory.core.context.context import Context
from reactor_memory.evaluation.metrics import TextCount, shared_prefix
from reactor_memory.evaluation.probes import Probe, find
from reactor_memory.evaluation.session_files import reader
from reactor_memory.evaluation.sessions import split_turns
from reactor_memory.evaluation.transcripts import Line
from reactor_memory.evaluation.units import context_units, message_unit, message_units
from reactor_memory.models import Message
from reactor_memory.text.analyzer import terms

USER = "kinds"
PIECE_CHARACTERS = 1_200
BM25_SHARE = 0.75
K1, B = 1.2, 0.75
SETTINGS = Settings(store={"url": "memory://", "timeout_seconds": 120})
ROWS: Mapping[str, Callable[[str], dict[str, Any]]] = {
    "off": lambda question: {"query": ""},
    "query": lambda question: {"query": question},
    "message": lambda question: {"message": question},
}
"""In this order: a message may move the window for good, and the first two are compared on the same one."""


class Piece(NamedTuple):
    """A part of a message: where it stands, its text, how often it has each term, and what it costs in tokens."""

    at: int
    text: str
    counts: Counter[str]
    tokens: int


class Bm25:
    """Plain BM25 (Robertson and Zaragoza, 2009) over the pieces of a session."""

    def __init__(self, messages: Sequence[Message], count: TextCount, overhead: int) -> None:
        self._read = message_units(messages)
        self._costs = [count.of(message) + overhead for message in messages]
        self._pieces = list(_pieces(messages, count))
        self._usual = sum(piece.counts.total() for piece in self._pieces) / max(1, len(self._pieces))
        self._held = Counter(term for piece in self._pieces for term in piece.counts)

    def units(self, question: str, budget: int) -> list[str]:
        """The best pieces in three quarters of the budget, and the newest messages in the rest."""
        asked = [term for term in dict.fromkeys(terms(question)) if term in self._held]
        scores = [self._score(piece, asked) for piece in self._pieces]
        best = sorted(range(len(scores)), key=lambda at: (-scores[at], -at))
        found, left = list[str](), int(BM25_SHARE * budget)
        for at in best:
            if not scores[at]:
                break
            if self._pieces[at].tokens <= left:
                left -= self._pieces[at].tokens
                found.append(self._pieces[at].text)
        room = budget - int(BM25_SHARE * budget) + left
        for text, cost in zip(reversed(self._read), reversed(self._costs), strict=True):
            if cost > room:
                break
            room -= cost
            found.append(text)
        return found

    def _score(self, piece: Piece, asked: Sequence[str]) -> float:
        norm = K1 * (1 - B + B * piece.counts.total() / self._usual)
        total = len(self._pieces)
        return sum(
            math.log(1 + (total - self._held[term] + 0.5) / (self._held[term] + 0.5))
            * piece.counts[term]
            * (K1 + 1)
            / (piece.counts[term] + norm)
            for term in asked
            if term in piece.counts
        )


def _pieces(messages: Sequence[Message], count: TextCount) -> Iterator[Piece]:
    for at, message in enumerate(messages):
        text = message_unit(message)
        for start in range(0, len(text), PIECE_CHARACTERS):
            part = text[start : start + PIECE_CHARACTERS]
            yield Piece(at, part, Counter(terms(part)), count.of_text(part) + 4)


class Found(NamedTuple):
    """How many probes of a kind were found, of how many, by row and budget."""

    counts: defaultdict[tuple[str, str, int], int]
    asked: Counter[str]


def kind_of(line: Line) -> str:
    return re.sub(r"[-_:]?\d+(\.json)?$", "", line.session_id) or Path(line.where.rpartition(":")[0]).name.split(".")[0]


async def filled(memory: Memory, line: Line) -> None:
    for turn in split_turns(line.messages):
        await memory.save_history(line.session_id, list(turn), user_id=USER)
    await memory.drain()


async def look(line: Line, probes: Sequence[Probe], budgets: Sequence[int], found: Found) -> None:
    """Look for the probes in a context for each, and in what BM25 has for it."""
    kind = kind_of(line)
    found.asked[kind] += len(probes)
    async with open_memory(SETTINGS) as memory:
        await filled(memory, line)
        count = TextCount(memory.container.message_counter())
        whole, plain = message_units(line.messages), Bm25(line.messages, count, 4)
        for budget in budgets:
            for probe in probes:
                found.counts[kind, "whole", budget] += find(probe, whole) is not None
                found.counts[kind, "bm25", budget] += find(probe, plain.units(probe.question, budget)) is not None
            for row, asked in ROWS.items():
                for probe in probes:
                    given = asked(probe.question)
                    context = await memory.load_history(line.session_id, user_id=USER, budget=budget, **given)
                    found.counts[kind, row, budget] += find(probe, context_units(context)) is not None


def table(found: Found, budgets: Sequence[int]) -> Iterator[str]:
    """A line for each kind and row, the mean of the kinds last."""
    kinds = sorted(found.asked)
    for row in ("whole", "bm25", *ROWS):
        for kind in kinds:
            shares = [found.counts[kind, row, budget] / found.asked[kind] for budget in budgets]
            yield _row(row, kind, shares, str(found.asked[kind]))
        means = [sum(found.counts[k, row, b] / found.asked[k] for k in kinds) / max(1, len(kinds)) for b in budgets]
        together = [sum(found.counts[k, row, b] for k in kinds) / max(1, found.asked.total()) for b in budgets]
        yield _row(row, "mean of the kinds", means, str(found.asked.total()))
        yield _row(row, "of all", together, str(found.asked.total()))
    for other in ("bm25", "off"):
        for kind in kinds:
            fewer = [found.counts[kind, other, b] - found.counts[kind, "query", b] for b in budgets]
            if max(fewer) > 0:
                yield f"query finds fewer than {other}: {kind} {' '.join(str(max(0, each)) for each in fewer)}"


def _row(row: str, kind: str, shares: Sequence[float], note: str) -> str:
    return f"{row:8} {kind:28} {' '.join(f'{share:.3f}' for share in shares)}  {note}"


class Turns(NamedTuple):
    """The shares of the contexts that were the beginning of the one before, and which brought something back."""

    shares: list[float]
    fired: list[bool]


async def replayed(line: Line, budget: int, query: str | None) -> Turns:
    """A context before each turn that begins with a user's message."""
    turns = Turns([], [])
    async with open_memory(SETTINGS) as memory:
        count = TextCount(memory.container.message_counter())
        before: Context | None = None
        for turn in split_turns(line.messages):
            if turn[0].role == "user":
                context = await memory.load_history(
                    line.session_id, user_id=USER, budget=budget, query=query, message=turn[0]
                )
                if before is not None:
                    turns.shares.append(_shared(before, context, count))
                    turns.fired.append("recalled" in context.report.parts)
                before = context
            await memory.save_history(line.session_id, list(turn), user_id=USER)
            await memory.drain()
    return turns


def _shared(before: Context, now: Context, count: TextCount) -> float:
    overhead = now.report.overhead

    def cost(message: Message) -> int:
        return count.of(message) + overhead

    shared = shared_prefix(before.messages, now.messages, cost=cost, count_text=count.of_text)
    return shared / max(1, sum(map(cost, now.messages)))


async def reuse(lines: Sequence[Line], budgets: Sequence[int]) -> None:
    sums: defaultdict[tuple[str, int, str], list[float]] = defaultdict(list)
    for line in lines:
        for budget in budgets:
            for name, query in (("off", ""), ("message", None)):
                turns = await replayed(line, budget, query)
                sums[kind_of(line), budget, name] += turns.shares
                if query is None:
                    sums[kind_of(line), budget, "fired"] += map(float, turns.fired)
    print(f"{'kind':28} budget   off  message  lower  fired")
    for kind, budget in dict.fromkeys((kind, budget) for kind, budget, _ in sums):
        off, message, fired = (_mean(sums[kind, budget, name]) for name in ("off", "message", "fired"))
        print(f"{kind:28} {budget:6} {off:.3f} {message:.3f}   {off - message:+.3f}  {fired:.2f}", flush=True)


def _mean(values: Sequence[float]) -> float:
    return sum(values) / max(1, len(values))


async def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="+", type=Path)
    parser.add_argument("--budgets", nargs="+", type=int, default=[1000, 2000, 4000])
    parser.add_argument("--every", type=int, default=1)
    parser.add_argument("--only", default="")
    parser.add_argument("--sessions", type=int, default=1_000)
    parser.add_argument("--reuse", action="store_true")
    given = parser.parse_args()
    read = reader("auto")
    every = [line for file in given.files for line in read(file) if re.search(given.only, line.session_id)]
    lines = every[: given.sessions]
    if given.reuse:
        await reuse(lines, given.budgets)
        return
    found = Found(defaultdict(int), Counter())
    for line in lines:
        await look(line, line.probes()[:: given.every], given.budgets, found)
    print("\n".join(table(found, given.budgets)))


if __name__ == "__main__":
    asyncio.run(main())
