"""How a block of quotations goes on from the one before. Pure.

What a prompt cache holds is the beginning of a context. So a line that is shown stays where it is for as long as it
holds and few lines before it should go, and new ones follow, under their heading once more where another stands above.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Sequence, Set
from typing import NamedTuple, TypeAlias

from msgspec.structs import replace

from reactor_memory.features.facts.line_choice import LOWEST, Rank, floor_within, rank
from reactor_memory.features.facts.quoting.call_lines import ROW
from reactor_memory.models.block_lines import BlockLine, Layout

STAYS = 1.25
"""What is shown is worth so much more than what is not: it is left out only for something much better."""

OUTDATED, LEAST_ROOM = 0.1, 600
"""Of the room above so many tokens, so much may stay at the beginning though other lines are worth more by now. A small
block has no room for that.
"""

TWICE = 0.05
"""Of the room so much may go to headings that stand a second time."""

GOES_ON = " "
"""With it a line begins that goes on behind the one before it."""

_Key: TypeAlias = tuple[str, tuple[int, ...]]


class QuotedBlock(NamedTuple):
    """The lines of a block, and the rank that a new line needs to stand behind them."""

    lines: Sequence[BlockLine]
    floor: Rank = LOWEST


class _Entry(NamedTuple):
    """A line with what goes on behind it, and the heading that it stands under."""

    heading: BlockLine | None
    head: BlockLine
    tail: BlockLine | None = None

    @property
    def whole(self) -> BlockLine:
        if self.tail is None:
            return self.head
        seqs = tuple(sorted({*self.head.source_seqs, *self.tail.source_seqs}))
        text, tokens = self.head.text + self.tail.text, self.head.tokens + self.tail.tokens
        return replace(self.head, text=text, tokens=tokens, source_seqs=seqs)

    @property
    def key(self) -> _Key:
        return _key(self.whole)


def chosen_block(offered: Sequence[BlockLine], most: int) -> QuotedBlock:
    """The best lines within so many tokens, in their order."""
    entries = list(_entries(offered))
    floor = floor_within(offered, most)
    return QuotedBlock(list(_arranged((), _best(entries, floor))), floor)


def grown_block(offered: Sequence[BlockLine], most: int, before: Layout) -> QuotedBlock:
    """The beginning of the layout before, as long as it holds and little of it should go, and the best lines behind;
    sorted anew where too many headings would stand twice.
    """
    known = {_key(line) for line in before.fact_lines if line.source_seqs}
    entries = [_kept_longer(_as_shown(each, known), known) for each in _entries(offered)]
    floor = floor_within(list(_lines(entries)), most)
    outdated, twice = int(OUTDATED * max(0, most - LEAST_ROOM)), int(TWICE * most)
    grown = _grown(entries, most, before, floor, outdated)
    if grown.floor > floor:  # what stays though it is outdated, or stands twice, takes the room of what is worth more
        spared = floor_within(list(_lines(entries)), most - outdated)
        grown = _grown(entries, most, before, spared, outdated)
    return grown if _twice(grown.lines) <= twice else QuotedBlock(list(_arranged((), _best(entries, floor))), floor)


def _grown(entries: Sequence[_Entry], most: int, before: Layout, floor: Rank, outdated: int) -> QuotedBlock:
    """The beginning of the layout before, with so many tokens of lines below the floor, and the best lines behind."""
    begin = _beginning(before.fact_lines, entries, floor, outdated)
    held = [each for each in entries if each.key in begin]
    others = [each for each in entries if each.key not in begin]
    room = max(0, most - _tokens(_arranged(before.fact_lines, held)))
    floor_behind = floor_within(list(_lines(others)), room) if others else LOWEST
    shown = _up_to(before.fact_lines, begin)
    return QuotedBlock(list(_arranged(shown, [*held, *_best(others, floor_behind)])), floor_behind)


def _twice(lines: Iterable[BlockLine]) -> int:
    """The tokens of headings that stood before."""
    headings = [line for line in lines if not line.source_seqs]
    return _tokens(headings) - _tokens({line.text: line for line in headings}.values())


def _beginning(shown: Iterable[BlockLine], entries: Iterable[_Entry], floor: Rank, most: int) -> Set[_Key]:
    """The first lines that are shown, up to one that holds no more, or to more tokens of lines below the floor; the
    last of them is above it.
    """
    outdated = {
        each.key: _tokens(line for line in (each.head, each.tail) if line and rank(line) < floor) for each in entries
    }
    found: set[_Key] = set()
    waiting: set[_Key] = set()
    for line in shown:
        if line.source_seqs:
            taken = outdated.get(_key(line), most + 1)
            most -= taken
            if most < 0:
                break
            waiting.add(_key(line))
            if not taken:
                found |= waiting
                waiting = set()
    return found


def _up_to(shown: Sequence[BlockLine], begin: Set[_Key]) -> Sequence[BlockLine]:
    """The lines that are shown, up to the last of the beginning."""
    last = max((place for place, line in enumerate(shown) if _key(line) in begin), default=-1)
    return shown[: last + 1]


def _tokens(lines: Iterable[BlockLine]) -> int:
    return sum(line.tokens for line in lines)


def _key(line: BlockLine) -> _Key:
    return line.text, line.source_seqs


def _entries(lines: Iterable[BlockLine]) -> Iterator[_Entry]:
    """The lines, each with its heading. Rows stand under titles, all else under days."""
    heading: BlockLine | None = None
    is_title = False
    entry: _Entry | None = None
    for line in lines:
        if entry is not None and line.text.startswith(GOES_ON):
            entry = entry._replace(tail=line)
            continue
        if entry is not None:
            yield entry
            entry = None
        if line.source_seqs:
            is_row = line.text.startswith(ROW)
            is_title = is_title or is_row
            entry = _Entry(heading if is_title == is_row else None, line)
        else:
            heading, is_title = line, False
    if entry is not None:
        yield entry


def _as_shown(each: _Entry, known: Container[_Key]) -> _Entry:
    """A line without what goes on behind it, where it is shown without that."""
    return each._replace(tail=None) if _key(each.head) in known else each


def _kept_longer(each: _Entry, known: Container[_Key]) -> _Entry:
    """A line that is shown, worth more: it stays unless others say much more."""
    if each.key not in known:
        return each
    tail = replace(each.tail, value=STAYS * each.tail.value) if each.tail else None
    return _Entry(each.heading, replace(each.head, value=STAYS * each.head.value), tail)


def _best(entries: Iterable[_Entry], floor: Rank) -> list[_Entry]:
    """The lines of such a rank, with what goes on behind them if that has it, too."""
    best = (each for each in entries if rank(each.head) >= floor)
    return [each._replace(tail=None) if each.tail and rank(each.tail) < floor else each for each in best]


def _lines(entries: Iterable[_Entry]) -> Iterator[BlockLine]:
    heading: BlockLine | None = None
    for each in entries:
        if each.heading is not None and each.heading is not heading:
            heading = each.heading
            yield heading
        yield from filter(None, (each.head, each.tail))


def _arranged(shown: Iterable[BlockLine], entries: Sequence[_Entry]) -> Iterator[BlockLine]:
    """The lines under their headings: as they are shown up to the first that is not among them, the others in their
    order. A heading that stands above is not repeated.
    """
    waiting = {each.key for each in entries}
    heading: BlockLine | None = None
    above = ""
    was_row = False
    for line in shown:
        if not line.source_seqs:
            heading = line
        elif _key(line) not in waiting:
            break
        else:
            is_row = line.text.startswith(ROW)
            if heading is not None:
                yield heading
                above, heading = heading.text, None
            elif is_row != was_row:
                above = ""
            was_row = is_row
            waiting.remove(_key(line))
            yield line
    for each in entries:
        if each.key in waiting:
            wanted = each.heading.text if each.heading else ""
            if each.heading is not None and wanted != above:
                yield each.heading
            above = wanted
            yield each.whole
