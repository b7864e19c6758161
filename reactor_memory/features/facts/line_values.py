"""A line that corrects an older one is worth no less than that. Pure.

A line that takes back an older one may say less than that, and so rank lower: a small context would show the old one
and not the new one. Two lines are about one thing if two words stand side by side in both: a name, or a thing and what
it is for. Small words, numbers and days do not count, for those are what changes.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple, TypeAlias

from reactor_memory.models.block_lines import BlockLine
from reactor_memory.models.ledger import SETTLED, Fact
from reactor_memory.text.caches import memo
from reactor_memory.text.words import COMMON_WORDS, PICTURE_MARK, STOP_WORDS, Sentence, read_sentences

Pair: TypeAlias = tuple[str, str]

MOSTLY = 0.6
"""What says so many words of an older line again tells the same thing anew,"""

SIDE_BY_SIDE = 0.5
"""if so many of its pairs stand in it, too: the name of another thing would break them."""

REPLACED = 1.35
"""What was told anew is worth no more than a remark in passing: the newer line says it."""

REMEMBERED = 8
"""How many of the newest lines about one thing are looked at."""

MOST_LINES = 2048
"""What so many lines and facts say is remembered (16 MB): when a window moves, all but a few are those of before."""


class _Quotations(NamedTuple):
    """A line of quotations: its words, alone and in pairs, what its facts do, and the highest value it had."""

    words: frozenset[str]
    pairs: frozenset[Pair]
    by_user: bool
    settles: bool
    corrects: bool
    value: float = 0.0


def revalued(lines: Iterable[tuple[BlockLine, tuple[Fact, ...]]]) -> list[float]:
    """The value of each line, given in the order of the log: no less than that of an older one that it corrects or
    tells anew. The one told anew is worth little then; what a user ruled keeps its worth.
    """
    values: list[float] = []
    told: dict[int, _Quotations] = {}
    about: defaultdict[Pair, deque[int]] = defaultdict(lambda: deque(maxlen=REMEMBERED))
    for place, (line, facts) in enumerate(lines):
        values.append(line.value)
        if facts and facts[0].salience:
            new = _quotations(facts)
            older = {at: told[at] for pair in new.pairs for at in about.get(pair, ())}
            told[place] = _revalue(place, new, older, values)
            for pair in new.pairs:
                about[pair].append(place)
    return values


def still_said(story: Sequence[BlockLine], facts: Iterable[Fact]) -> tuple[BlockLine, ...]:
    """The lines of a narrative, without those about a thing that quotations settle or correct: the narrative may say
    how it was before.
    """
    known = frozenset[Pair]().union(
        *(word_pairs(fact.value) for fact in facts if fact.salience and fact.act != "statement")
    )
    return tuple(line for line in story if known.isdisjoint(word_pairs(line.text)))


@memo(maxsize=MOST_LINES)
def word_pairs(text: str) -> frozenset[Pair]:
    """The words of a text that stand side by side, without small words, numbers and days, case folded."""
    said = (sentence for sentence in read_sentences(text) if not sentence.text.startswith(PICTURE_MARK))
    return frozenset(pair for sentence in said for pair in pairwise(_naming(sentence)))


def _naming(sentence: Sentence) -> Iterator[str]:
    for word in sentence.words:
        name = word.folded.removesuffix("'s").removesuffix("’s")
        if name and name not in STOP_WORDS and name not in COMMON_WORDS and not word.counts:
            yield name


@memo(maxsize=MOST_LINES)
def _quotations(facts: tuple[Fact, ...]) -> _Quotations:
    return _Quotations(
        words=frozenset(word for fact in facts for said in read_sentences(fact.value) for word in said.content),
        pairs=frozenset[Pair]().union(*(word_pairs(fact.value) for fact in facts)),
        by_user=all(fact.said_by == "user" for fact in facts),
        settles=any(fact.act == "decision" for fact in facts),
        corrects=any(fact.act == "correction" for fact in facts),
    )


def _revalue(place: int, new: _Quotations, older: Mapping[int, _Quotations], values: list[float]) -> _Quotations:
    """The line at `place`, valued beside the older lines about the same things; `values` by the place of a line."""
    corrects = new.corrects or (new.by_user and any(old.settles and _is_about(new, old) for old in older.values()))
    anew = {at: old for at, old in older.items() if _tells_anew(new, old)}
    for at, old in older.items():
        if corrects or at in anew or (old.corrects and not new.by_user):
            values[place] = max(values[place], old.value)
    for at, old in anew.items():
        if old.value < SETTLED:
            values[at] = min(values[at], REPLACED)
    return new._replace(corrects=corrects, value=values[place])


def _is_about(new: _Quotations, old: _Quotations) -> bool:
    """Whether a line that bears no word of a correction is about the thing of an older one, and not only about
    something that many things have, such as an airline.
    """
    shared = len(new.pairs & old.pairs)
    return shared > 1 or shared >= SIDE_BY_SIDE * len(old.pairs)


def _tells_anew(new: _Quotations, old: _Quotations) -> bool:
    said_again = len(new.words & old.words) >= MOSTLY * len(old.words) and not new.words < old.words
    return said_again and len(new.pairs & old.pairs) >= SIDE_BY_SIDE * len(old.pairs)
