"""Facts as the lines of a memory block.

Memory is data: nothing that a user, a tool or a summarizer wrote can start a line, end the block, or look like a role,
a header, a chat token or markup, in whatever letters it is written. What a model or a plug-in states is a line
``title: value; label=value; ...``. The title is the anchor. A label is shown only where the value alone would not say
what it is, for every word here is a word less of the conversation.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple, TypeAlias

from reactor_memory.features.facts.labels import Part, labels
from reactor_memory.features.facts.plain_text import plain_title, plain_value
from reactor_memory.features.facts.quoting.quotation_lines import quotation_lines
from reactor_memory.features.facts.quoting.record_keys import is_quoting
from reactor_memory.features.facts.working_state import is_state
from reactor_memory.models.block_lines import BlockLine
from reactor_memory.models.ledger import FAILED_MARK, INTERRUPTED_MARK, Fact
from reactor_memory.text.caches import memo

Count: TypeAlias = Callable[[str], int]
Stated: TypeAlias = Mapping[tuple[str, bool], str]

MAX_LINE_CHARACTERS = 400
SEPARATOR = "; "
TOOL_MARK = " (tool)"

MOST_ANCHORS = 8192
LARGEST_ANCHOR = 32
"""The lines of so many anchors of at most so many facts are remembered (12 MB): when a window moves, all but a few are
those of before. An anchor of hundreds of facts, such as a user, changes with nearly every segment.
"""

MANY_FACTS = 8
FURTHER_FACT_WORTH = 0.06

_OWN_SEQ = re.compile(r" #(\d+)$")


class _Piece(NamedTuple):
    """A part of a line, and the fact that it shows."""

    text: str
    fact: Fact


class RenderedLine(NamedTuple):
    """A line, and the facts that it shows."""

    line: BlockLine
    facts: tuple[Fact, ...] = ()


def render_facts(facts: Iterable[Fact], *, count: Count) -> tuple[BlockLine, ...]:
    """Verified facts as lines, in the order of the log: one anchor a line, its facts side by side.

    An anchor stands where it was told of last, so that an older statement is not read as a newer one. What tools told
    about it follows on a line of its own that is worth less, so that a tight budget keeps what was decided. Failed
    attempts are marked, and what a tool said where somebody else said something different.
    """
    return tuple([each.line for each in render_lines(facts, count=count)])


def render_lines(facts: Iterable[Fact], *, count: Count) -> tuple[RenderedLine, ...]:
    """The lines of `render_facts`, each with its facts. A fact without a line repeats one that has a line.

    What the reader that quotes found stands behind, in lines of its own, below the working state.
    """
    verified = sorted((fact for fact in facts if fact.verified), key=lambda fact: (fact.source_seq, fact.span))
    quoting = tuple(fact for fact in verified if is_quoting(fact) or is_state(fact))
    quoted = (RenderedLine(each.line, each.facts) for each in quotation_lines(quoting, count)) if quoting else ()
    stated = (fact for fact in verified if not (is_quoting(fact) or is_state(fact)))
    return (*_lines_of_anchors(stated, count), *quoted)


def _lines_of_anchors(facts: Iterable[Fact], count: Count) -> Iterator[RenderedLine]:
    anchors: dict[str, list[Fact]] = {}
    for fact in facts:
        anchors.setdefault(fact.anchor, []).append(fact)
    for told in sorted(anchors.values(), key=lambda told: told[-1].source_seq):
        lines = _remembered_lines if len(told) <= LARGEST_ANCHOR else _anchor_lines
        yield from lines(tuple(told), count)


@memo(maxsize=MOST_ANCHORS)
def _remembered_lines(facts: tuple[Fact, ...], count: Count) -> tuple[RenderedLine, ...]:
    return _anchor_lines(facts, count)


def _anchor_lines(facts: tuple[Fact, ...], count: Count) -> tuple[RenderedLine, ...]:
    return tuple(_lines_of(facts, count))


def _lines_of(facts: Sequence[Fact], count: Count) -> Iterator[RenderedLine]:
    stated = {(fact.key, fact.failed): plain_value(fact.value).casefold() for fact in facts if fact.said_by != "tool"}
    title = _title(facts)
    for mark in ("", FAILED_MARK, INTERRUPTED_MARK):
        for from_tool in (False, True):
            row = [fact for fact in facts if fact.mark == mark and (fact.said_by == "tool") == from_tool]
            yield from _row_lines(f"{title}{mark}:", _pieces(row, stated if from_tool else {}, title), count)


def _title(facts: Sequence[Fact]) -> str:
    """The anchor; its number is left out where it only says from which message the line was made."""
    anchor = facts[0].anchor
    own = _OWN_SEQ.search(anchor)
    if own and any(fact.source_seq == int(own.group(1)) for fact in facts):
        return plain_title(anchor[: own.start()])
    return plain_title(anchor)


def _pieces(row: Sequence[Fact], stated: Stated, title: str) -> list[_Piece]:
    """Each fact as ``value`` or ``label=value``, without what the anchor says already."""
    parts = [Part(fact.key, plain_value(fact.value)) for fact in row]
    labelled = zip(row, parts, labels(parts, title=title), strict=True)
    return [_Piece(text, fact) for fact, part, label in labelled if (text := _piece(fact, part.value, label, stated))]


def _piece(fact: Fact, value: str, label: str, stated: Stated) -> str:
    other = stated.get((fact.key, fact.failed))
    if not value or value.casefold() == other:
        return ""
    if other:
        return f"{label or fact.key}={value}{TOOL_MARK}"
    return f"{label}={value}" if label else value


def _row_lines(head: str, pieces: Sequence[_Piece], count: Count) -> Iterator[RenderedLine]:
    """A line, and if it would be too long, further lines with the same head."""
    while pieces:
        taken = _fitting(head, [piece.text for piece in pieces])
        yield _line(head, pieces[:taken], count)
        pieces = pieces[taken:]


def _fitting(head: str, pieces: Sequence[str]) -> int:
    """How many pieces fit into one line: at least one."""
    length = len(head) + 1
    for number, piece in enumerate(pieces):
        length += len(piece) + len(SEPARATOR)
        if number and length - len(SEPARATOR) > MAX_LINE_CHARACTERS:
            return number
    return len(pieces)


def _line(head: str, pieces: Sequence[_Piece], count: Count) -> RenderedLine:
    text = f"{head} {SEPARATOR.join(piece.text for piece in pieces)}"
    facts = tuple(piece.fact for piece in pieces)
    seqs = tuple(sorted({fact.source_seq for fact in facts}))
    return RenderedLine(BlockLine(text=text, tokens=count("\n" + text), value=_value(facts), source_seqs=seqs), facts)


def _value(facts: Sequence[Fact]) -> float:
    """The worth of the best fact, and a little for the others: never as much as the next kind of fact is worth."""
    return max(fact.worth for fact in facts) + min(len(facts), MANY_FACTS) * FURTHER_FACT_WORTH
