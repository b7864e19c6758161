"""What of an older conversation comes back for a question: cheap fact lines first, then whole turns. Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple

from reactor_memory.context.entries import searchable
from reactor_memory.context.gate import Name, fold_text, holds
from reactor_memory.context.rendering import render_facts
from reactor_memory.context.selection import Count
from reactor_memory.context.turns import runs_of_turns
from reactor_memory.models import BlockLine, Fact, Message, Value
from reactor_memory.protocols import Findings
from reactor_memory.terms import FUNCTION_WORDS, terms

MAX_QUERY_TERMS = 32
MAX_TURNS = 24
"""How many turns are read to choose from."""

MAX_TURN_MESSAGES = 40
"""A longer turn is not brought back: it would not fit."""

NAME_BONUS = 3.0
"""What holds a whole name of the question counts so many times as much."""

RELEVANT_SHARE = 0.3
"""What scores less than this share of the best answer, shown or not, shares only common words with the question."""

LINE_SHARE = 0.7
"""The most that lines take of the room: turns say more, but a line costs a tenth of one."""

SIZE_WEIGHT = 0.3
"""A turn's score is divided by its tokens to this power: a long turn must be worth more."""

NOTHING = 2**63 - 1
"""Where the window of a context without one begins."""

LAST_WORDS = 3
"""How many lines of memory, and how many messages of the window, are told again after what came back."""

LAST_SHARE = 0.7
"""The most that they take of the room."""

MAX_SAID_CHARACTERS = 256
"""How much of such a message is told."""

MAX_QUERY_CHARACTERS = 4_000
FRAME_TOKENS = 25
"""About what the frame of a memory block takes."""


class Wanted(NamedTuple):
    """What has to be read: turns by their first and last message, best first, and the anchors of fact lines."""

    turns: tuple[tuple[int, int], ...]
    anchors: tuple[str, ...]


class Shown(Value, frozen=True, kw_only=True):
    """What the context shows without recall: lines of its blocks, and its window.

    The messages from `first_safe` on would stay in the window even if recall took all its room.
    """

    lines: frozenset[str]
    window: tuple[Message, ...]
    first_safe: int

    @property
    def start(self) -> int:
        return (self.window[0].seq or 1) if self.window else NOTHING


class Recalled(Value, frozen=True, kw_only=True):
    """Turns, best first, and lines, newest last; the shown lines that answer, too: those must not make room for it."""

    lines: tuple[BlockLine, ...] = ()
    messages: tuple[Message, ...] = ()
    answering: frozenset[str] = frozenset()


def query_terms(text: str, named: Iterable[Name]) -> tuple[str, ...]:
    """The terms to search for: those of the names, then those of the other words that mean something."""
    wanted = [term for name in named if not name.is_word for term in name.terms]
    wanted += terms(text[:MAX_QUERY_CHARACTERS], without=FUNCTION_WORDS)
    return tuple(dict.fromkeys(wanted))[:MAX_QUERY_TERMS]


def wanted(findings: Findings, named: Sequence[Name], shown: Shown) -> Wanted:
    """What of the findings is worth reading."""
    turns: dict[tuple[int, int], float] = {}
    anchors: dict[str, None] = {}
    for found in findings.found:
        if found.anchor:
            anchors[found.anchor] = None
        elif found.turn[1] < shown.first_safe and found.turn[1] - found.turn[0] < MAX_TURN_MESSAGES:
            bonus = NAME_BONUS if any(set(name.terms) <= set(found.terms) for name in _whole(named)) else 1.0
            turns[found.turn] = max(turns.get(found.turn, 0.0), found.score * bonus)
    best = sorted(turns, key=lambda turn: (-turns[turn], -turn[0]))
    return Wanted(tuple(best[:MAX_TURNS]), tuple(anchors))


def choose(
    findings: Findings,
    named: Sequence[Name],
    shown: Shown,
    facts: Sequence[Fact],
    messages: Sequence[Message],
    room: int,
    *,
    count: Count,
    count_text: Callable[[str], int],
) -> Recalled:
    """The best of what was read that fits into `room` tokens.

    `facts` are the folded facts of the anchors found, `messages` the turns, oldest first. What the context shows
    competes as well: beside a line that answers, what only shares words with the question stays away. What it shows
    of newer date is told again, after what comes back.
    """
    scorer = _Scorer(findings, named)
    older = [fact for fact in facts if fact.source_seq < shown.start]
    lines = list(_scored_lines(older, scorer, count_text))
    turns = [(scorer.turn(turn), turn) for turn in runs_of_turns(messages)]
    safe = (scorer.turn([message]) for message in shown.window if (message.seq or 0) >= shown.first_safe)
    least = RELEVANT_SHARE * max([*(score for score, _ in (*lines, *turns)), *safe], default=0.0)
    relevant = [line for score, line in lines if score >= least and line.text in shown.lines]
    said = _said(shown.window, scorer, least, count_text)
    again = _last_words(relevant, room // 2) + _last_words(said, room // 2)
    left = room - sum(line.tokens for line in again)
    chosen = _fitting_lines([each for each in lines if each[0] >= least and each[1].text not in shown.lines], left)
    left -= sum(line.tokens for line in chosen) + FRAME_TOKENS * bool(chosen or again)
    recalled = tuple(_fitting_turns([each for each in turns if each[0] >= least], left, count))
    return Recalled(
        lines=tuple(sorted((*chosen, *_since(again, chosen, recalled)), key=_newest_source)),
        messages=recalled,
        answering=frozenset(line.text for line in relevant),
    )


def _newest_source(line: BlockLine) -> int:
    return line.source_seqs[-1] if line.source_seqs else 0


def _last_words(lines: Iterable[BlockLine], room: int) -> list[BlockLine]:
    """The newest of the lines that fit into their share of the room."""
    room = int(LAST_SHARE * room)
    kept: list[BlockLine] = []
    for line in sorted(lines, key=_newest_source, reverse=True)[:LAST_WORDS]:
        if line.tokens <= room:
            room -= line.tokens
            kept.append(line)
    return kept


def _since(again: Iterable[BlockLine], lines: Iterable[BlockLine], recalled: Sequence[Message]) -> Iterator[BlockLine]:
    """What is newer than the oldest thing that comes back: without it, something old would be the last word."""
    oldest = min([*(message.seq or 0 for message in recalled), *map(_newest_source, lines)], default=NOTHING)
    for line in again:
        if _newest_source(line) > oldest:
            yield line


def _said(
    window: Iterable[Message], scorer: _Scorer, least: float, count_text: Callable[[str], int]
) -> Iterator[BlockLine]:
    """What the messages of the window say that answer, as lines."""
    for message in window:
        if message.content and message.role != "tool" and scorer.turn([message]) >= least:
            yield from render_facts([_quoted(message)], count=count_text)


def _quoted(message: Message) -> Fact:
    seq = message.seq or 0
    return Fact(
        anchor=f"the user #{seq}" if message.role == "user" else f"told #{seq}",
        key="said",
        value=message.content[:MAX_SAID_CHARACTERS],
        source_seq=seq,
        said_by=message.role,
        verified=True,
        salience=1,
    )


def _scored_lines(
    facts: Iterable[Fact], scorer: _Scorer, count_text: Callable[[str], int]
) -> Iterator[tuple[float, BlockLine]]:
    anchors: dict[str, list[Fact]] = {}
    for fact in facts:
        anchors.setdefault(fact.anchor, []).append(fact)
    for anchor, about in anchors.items():
        for line in render_facts(about, count=count_text):
            yield scorer.line(anchor, line), line


class _Scorer:
    """Scores what was read by the best entry that found it, with the bonus for a whole name in its text."""

    def __init__(self, findings: Findings, named: Sequence[Name]) -> None:
        self._names = [name.text for name in _whole(named)]
        self._messages: defaultdict[int, float] = defaultdict(float)
        self._anchors: defaultdict[str, float] = defaultdict(float)
        for found in findings.found:
            if found.anchor:
                self._anchors[found.anchor] = max(self._anchors[found.anchor], found.score)
            else:
                self._messages[found.seq] = max(self._messages[found.seq], found.score)

    def line(self, anchor: str, line: BlockLine) -> float:
        return self._anchors.get(anchor, 0.0) * self._bonus(line.text)

    def turn(self, turn: Sequence[Message]) -> float:
        found = [message for message in turn if message.seq in self._messages]
        return max(
            (self._messages[message.seq or 0] * self._bonus(searchable(message)) for message in found), default=0.0
        )

    def _bonus(self, text: str) -> float:
        folded = fold_text(text) if self._names else ""
        return NAME_BONUS if any(holds(folded, name) for name in self._names) else 1.0


def _whole(named: Iterable[Name]) -> Iterator[Name]:
    return (name for name in named if not name.is_word)


def _fitting_lines(lines: Sequence[tuple[float, BlockLine]], room: int) -> list[BlockLine]:
    """The best lines that fit into their share of the room; of equals the newest."""
    room = int(LINE_SHARE * room) - FRAME_TOKENS
    chosen: list[BlockLine] = []
    for _, line in sorted(lines, key=lambda each: (each[0], each[1].source_seqs, each[1].text), reverse=True):
        if line.tokens <= room:
            room -= line.tokens
            chosen.append(line)
    return chosen


def _fitting_turns(turns: Sequence[tuple[float, Sequence[Message]]], room: int, count: Count) -> Iterator[Message]:
    """The messages of the turns with most value for their tokens, best turn first."""
    costed = [(score, sum(map(count, turn)), turn) for score, turn in turns]
    for _, tokens, turn in sorted(costed, key=lambda each: (-each[0] / each[1] ** SIZE_WEIGHT, -(each[2][0].seq or 0))):
        if tokens <= room:
            room -= tokens
            yield from turn
