"""What of an older conversation comes back for a question: cheap fact lines first, then whole turns. Pure."""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from itertools import groupby
from typing import NamedTuple

from msgspec.structs import replace

from reactor_memory.core.context.selection import Count
from reactor_memory.features.facts.rendering import render_facts
from reactor_memory.features.facts.summarizers.tool_facts import ToolReader, exchanges
from reactor_memory.features.recall.days import named_days
from reactor_memory.features.recall.entries import searchable
from reactor_memory.features.recall.gate import Name, fold_text, holds
from reactor_memory.models import LARGEST, Message, Value
from reactor_memory.models.block_lines import BlockLine
from reactor_memory.models.index_requests import IndexAnswer, IndexHit
from reactor_memory.models.ledger import Fact
from reactor_memory.models.seq_ranges import joined_ranges
from reactor_memory.models.turns import runs_of_turns
from reactor_memory.text.analyzer import query_words, terms
from reactor_memory.text.borders import cut

MAX_QUERY_TERMS = 64
MIN_TURNS, MAX_TURNS = 24, 200
"""How many turns are read to choose from: so many that they would fill the room if they were short ones."""

SHORT_TURN_TOKENS = 40

MAX_TURN_MESSAGES = 40
"""A longer turn is not brought back: it would not fit."""

NAME_BONUS = 3.0
"""What holds a whole name of the question counts so many times as much."""

COMMON_SHARE = 0.1
FEW_ENTRIES = 5
"""A name that more of the entries hold, as those of the speakers do, tells nothing apart and brings no bonus."""

NEIGHBOUR_SHARE = 0.5
"""What a message counts of the better one of the two beside it: an answer stands beside its question."""

NEIGHBOUR_MESSAGES = 2
"""A turn beside one that was found is read if it has no more messages: talk has, a task has longer ones."""

RELEVANT_SHARE = 0.3
"""A line that scores less than this share of the best answer, shown or not, shares only common words with the
question.
"""

RELEVANT_TURN_SHARE = 0.1
"""The same for turns, which are told among others."""

LINE_SHARE = 0.15
"""The most that lines take of the room: turns say more, but a line costs a tenth of one."""

SIZE_WEIGHT = 0.3
"""A turn's score is divided by its tokens to this power: a long turn must be worth more."""


LAST_WORDS = 3
"""How many lines of memory, and how many messages of the window, are told again after what came back."""

LAST_SHARE = 0.09
"""The most that either takes of the room."""

MAX_SAID_CHARACTERS = 256
"""How much of such a message is told."""

MAX_QUERY_CHARACTERS = 4_000
FRAME_TOKENS = 25
"""About what the frame of a memory block takes."""


class Wanted(NamedTuple):
    """What has to be read: turns by their first and last message, best first, and the anchors of fact lines."""

    turns: tuple[tuple[int, int], ...]
    anchors: tuple[str, ...]


class VisibleContext(Value, frozen=True, kw_only=True):
    """What the context shows without recall: lines of its blocks, and its window.

    The messages from `first_safe` on would stay in the window even if recall took all its room.
    """

    lines: frozenset[str]
    window: tuple[Message, ...]
    first_safe: int

    @property
    def start(self) -> int:
        return (self.window[0].seq or 1) if self.window else LARGEST


class Recalled(Value, frozen=True, kw_only=True):
    """Turns, best first, and lines, newest last; the shown lines that answer, too: those must not make room for it."""

    lines: tuple[BlockLine, ...] = ()
    messages: tuple[Message, ...] = ()
    answering: frozenset[str] = frozenset()


def query_terms(text: str, named: Iterable[Name]) -> tuple[str, ...]:
    """The terms to search for: those of names, then those of days and of the other words that mean something."""
    text = text[:MAX_QUERY_CHARACTERS]
    wanted = [term for name in named if not name.is_word for term in name.terms]
    wanted += terms(named_days(text)) + [term for word in query_words(text) for term in word.terms]
    return tuple(dict.fromkeys(wanted))[:MAX_QUERY_TERMS]


def wanted(findings: IndexAnswer, named: Sequence[Name], shown: VisibleContext, room: int) -> Wanted:
    """What of the findings is worth reading to fill `room` tokens, and the places beside it."""
    scores = _Scores(findings)
    telling = [set(name.terms) for name in _telling(named, findings)]
    places: defaultdict[tuple[int, int], float] = defaultdict(float)
    for found in findings.found:
        if found.anchor or found.turn[1] - found.turn[0] >= MAX_TURN_MESSAGES:
            continue
        bonus = NAME_BONUS if any(name.issubset(found.terms) for name in telling) else 1.0
        places[found.turn] = max(places[found.turn], scores.around(found.seq) * bonus)
        for place in _beside(found):
            places[place] = max(places[place], NEIGHBOUR_SHARE * found.score * bonus)
    offered = (place for place in places if place[0] < shown.first_safe)
    best = sorted(offered, key=lambda place: (-places[place], -place[0], place[1]))
    anchors = dict.fromkeys(found.anchor for found in findings.found if found.anchor)
    return Wanted(tuple(best[: min(MAX_TURNS, max(MIN_TURNS, room // SHORT_TURN_TOKENS))]), tuple(anchors))


def _beside(found: IndexHit) -> Iterator[tuple[int, int]]:
    """Where the turns are whose border is the message `found`, and the message that tells that the later one ends."""
    first, last = found.turn
    if found.seq == first > 1:
        yield max(1, first - NEIGHBOUR_MESSAGES), first - 1
    if found.seq == last:
        yield last + 1, last + 1 + NEIGHBOUR_MESSAGES


def _whole_turns(
    messages: Sequence[Message], findings: IndexAnswer, asked: Collection[tuple[int, int]], before: int
) -> Iterator[Sequence[Message]]:
    """The turns that were found and `asked` for, and those beside them that were read from their beginning to their
    end. Of others only a part may have been read: what lies beside what was found in a long turn is left out, for it
    may begin or end within what came with one reasoning.
    """
    found = {each.seq: each.turn for each in findings.found if not each.anchor and each.turn in asked}
    read = {message.seq for message in messages}
    for turn in _runs(messages, joined_ranges(asked)):
        parts = [found[seq] for message in turn if (seq := message.seq or 0) in found]
        is_closed = (turn[-1].seq or 0) + 1 in read
        if parts:
            first = 0 if turn[0].role == "user" else min(parts)[0]
            last = LARGEST if is_closed else max(end for _, end in parts)
            turn = [message for message in turn if first <= (message.seq or 0) <= last]
        if turn and (turn[-1].seq or 0) < before and (parts or (is_closed and turn[0].role == "user")):
            yield turn


def _runs(messages: Sequence[Message], ranges: Sequence[tuple[int, int]]) -> Iterator[Sequence[Message]]:
    """The turns of what was read; what lies between two ranges was not."""
    starts = [start for start, _ in ranges]
    for _, run in groupby(messages, key=lambda message: bisect_right(starts, message.seq or 0)):
        yield from runs_of_turns([*run])


def choose(
    findings: IndexAnswer,
    named: Sequence[Name],
    shown: VisibleContext,
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
    asked = wanted(findings, named, shown, room).turns
    turns = [(scorer.turn(turn), turn) for turn in _whole_turns(messages, findings, asked, shown.first_safe)]
    safe = (scorer.message(message) for message in shown.window if (message.seq or 0) >= shown.first_safe)
    best = max([*(score for score, _ in (*lines, *turns)), *safe], default=0.0)
    least = RELEVANT_SHARE * best
    relevant = [line for score, line in lines if score >= least and line.text in shown.lines]
    said = _said(shown.window, scorer, least, count_text)
    again = _last_words(relevant, room) + _last_words(said, room)
    left = room - sum(line.tokens for line in again)
    chosen = _fitting_lines([each for each in lines if each[0] >= least and each[1].text not in shown.lines], left)
    left -= sum(line.tokens for line in chosen) + FRAME_TOKENS * bool(chosen or again)
    telling = [each for each in turns if each[0] and each[0] >= RELEVANT_TURN_SHARE * best]
    recalled = tuple(_fitting_turns(telling, left, count))
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
    oldest = min([*(message.seq or 0 for message in recalled), *map(_newest_source, lines)], default=LARGEST)
    for line in again:
        if _newest_source(line) > oldest:
            yield line


def _said(
    window: Sequence[Message], scorer: _Scorer, least: float, count_text: Callable[[str], int]
) -> Iterator[BlockLine]:
    """What the messages of the window say that answer, and what was done with them, as lines."""
    answering = {message.seq for message in window if message.role != "tool" and scorer.message(message) >= least}
    for message in window:
        if message.content and message.seq in answering:
            yield from render_facts([_quoted(message)], count=count_text)
    if any(message.tool_calls and message.seq in answering for message in window):
        yield from _done(window, answering, count_text)


def _done(
    window: Sequence[Message], answering: Collection[int | None], count_text: Callable[[str], int]
) -> Iterator[BlockLine]:
    made = exchanges(window)
    reader = ToolReader(made)
    for exchange in made:
        if exchange.seq in answering:
            done = [replace(fact, verified=True) for fact in reader.facts(exchange) if fact.act == "decision"]
            yield from render_facts(done, count=count_text)


def _quoted(message: Message) -> Fact:
    seq = message.seq or 0
    return Fact(
        anchor=f"the user #{seq}" if message.role == "user" else f"told #{seq}",
        key="said",
        value=cut(message.content, MAX_SAID_CHARACTERS),
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


class _Scores:
    """What the findings score, by anchor and by message."""

    def __init__(self, findings: IndexAnswer) -> None:
        self.anchors: dict[str, float] = {}
        self.messages: dict[int, float] = {}
        for found in findings.found:
            if found.anchor:
                self.anchors[found.anchor] = max(self.anchors.get(found.anchor, 0.0), found.score)
            else:
                self.messages[found.seq] = max(self.messages.get(found.seq, 0.0), found.score)

    def around(self, seq: int) -> float:
        """The score of a message, lifted by the better one of the two beside it."""
        beside = max(self.messages.get(seq - 1, 0.0), self.messages.get(seq + 1, 0.0))
        return self.messages.get(seq, 0.0) + NEIGHBOUR_SHARE * beside


class _Scorer:
    """Scores what was read by the entries that found it, with the bonus for a whole name in its text."""

    def __init__(self, findings: IndexAnswer, named: Sequence[Name]) -> None:
        self._names = [name.text for name in _telling(named, findings)]
        self._scores = _Scores(findings)

    def line(self, anchor: str, line: BlockLine) -> float:
        return self._scores.anchors.get(anchor, 0.0) * self._bonus(line.text)

    def message(self, message: Message) -> float:
        return self._scores.messages.get(message.seq or 0, 0.0) * self._bonus(searchable(message))

    def turn(self, turn: Sequence[Message]) -> float:
        return max(self._scores.around(message.seq or 0) * self._bonus(searchable(message)) for message in turn)

    def _bonus(self, text: str) -> float:
        folded = fold_text(text) if self._names else ""
        return NAME_BONUS if any(holds(folded, name) for name in self._names) else 1.0


def _telling(named: Iterable[Name], findings: IndexAnswer) -> Iterator[Name]:
    """The names that tell an entry from the others."""
    most = max(FEW_ENTRIES, COMMON_SHARE * findings.total)
    for name in named:
        if not name.is_word and min(findings.frequencies.get(term, 0) for term in name.terms) <= most:
            yield name


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
