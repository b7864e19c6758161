"""The records of the reader that quotes as lines with numbers: what a model is given to keep memory by. Pure.

A line is ``12 user: text``, or ``13 book_ferry(from=Rome) → id=F-1`` for a call. The number is that of the message;
further lines of the same message are ``12.2``, ``12.3``, without the speaker. Results are as the reader reads them, so
nothing of a file or an image that a tool returned stands here, and what stood in other lines before does not again.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

from reactor_memory.features.facts.quoting.log_records import Made, Said, calls_of, label_of, statements_of
from reactor_memory.features.facts.quoting.record_keys import USER
from reactor_memory.features.facts.summarizers.records import to_json
from reactor_memory.models.ledger import Fact

if TYPE_CHECKING:
    from reactor_memory.core.ports import TokenCounter

OFTEN = 3
"""What was said so many times before in the same words is no line again: instructions that each task repeats."""

MOST_OF_VALUE = 100
MOST_OF_FAILURE = 160
LEAST_ENCODED = 80
_ENCODED = re.compile(rf"[A-Za-z0-9+/=_-]{{{LEAST_ENCODED},}}")


class NumberedLine(NamedTuple):
    """A record. `facts`: what it was made of. `made` is set for a call, `said` for a statement."""

    number: str
    text: str
    facts: tuple[Fact, ...]
    said: Said | None = None
    made: Made | None = None

    @property
    def seqs(self) -> frozenset[int]:
        """The messages that it tells."""
        return frozenset(fact.source_seq for fact in self.facts)


def numbered_lines(facts: Iterable[Fact]) -> list[NumberedLine]:
    """The records in the order of the log. `facts` are what the reader found, in any order."""
    found = tuple(facts)
    drafts = [*map(_of_statement, statements_of(found)), *map(_of_call, calls_of(found))]
    drafts.sort(key=lambda draft: (_seq(draft), draft.made is not None))
    lines: list[NumberedLine] = []
    places: dict[int, int] = {}
    for draft in drafts:
        seq = _seq(draft)
        places[seq] = place = places.get(seq, 0) + 1
        lines.append(draft._replace(number=str(seq) if place == 1 else f"{seq}.{place}"))
    return lines


def asked_about(lines: Sequence[NumberedLine]) -> list[NumberedLine]:
    """The lines that a model need be shown: those said for the third time are not among them."""
    times: dict[str, int] = {}
    found: list[NumberedLine] = []
    for line in lines:
        times[line.text] = times.get(line.text, 0) + 1
        if times[line.text] < OFTEN:
            found.append(line)
    return found


def portions(lines: Iterable[NumberedLine], most: int, counter: TokenCounter) -> Iterator[list[NumberedLine]]:
    """The lines in runs of at most `most` tokens of JSON; a longer line stands alone."""
    portion: list[NumberedLine] = []
    used = 0
    for line in lines:
        tokens = counter.count(to_json(f"{line.number} {line.text}")) + 1
        if portion and used + tokens > most:
            yield portion
            portion, used = [], 0
        portion.append(line)
        used += tokens
    if portion:
        yield portion


def written(lines: Sequence[NumberedLine]) -> list[str]:
    """The lines as a model reads them: what goes on in the same message names its speaker once, and a line that results
    end with again and again stands there twice.
    """
    found: list[str] = []
    times: dict[str, int] = {}
    before: NumberedLine | None = None
    for line in lines:
        text = line.text if line.made is None else _call(line.made, times)
        if line.said and before and before.said and _speaker(line.text) == _speaker(before.text):
            text = text.removeprefix(_speaker(text)) if line.said.seq == before.said.seq else text
        found.append(f"{line.number} {text}")
        before = line
    return found


def _speaker(text: str) -> str:
    return text[: text.find(": ") + 2]


def _seq(line: NumberedLine) -> int:
    record = line.said or line.made
    return record.seq if record else 0


def _of_statement(said: Said) -> NumberedLine:
    who = "user" if said.name == USER else said.name.removeprefix("the ")
    mark = {"own": "", "asked": "", "pasted": " (pasted)", "cut": ""}[said.stance]
    return NumberedLine("", f"{who}{mark}: {_bare(said.fact.value, len(said.fact.value))}", (said.fact,), said=said)


def _of_call(made: Made) -> NumberedLine:
    return NumberedLine("", _call(made, {}), made.facts, made=made)


def _call(made: Made, times: dict[str, int]) -> str:
    """The call with its outcome. `times`: how often lines of results stood in those before."""
    most = MOST_OF_FAILURE if made.failed else MOST_OF_VALUE
    given = [_named(fact, most) for fact in made.given]
    told = dict.fromkeys(each for each in (_named(fact, most) for fact in made.fields) if each not in given)
    for fact in made.lines:
        line = _bare(fact.value, most)
        times[line] = times.get(line, 0) + 1
        if times[line] < OFTEN:
            told[line] = None
    outcome = ("FAILED: " if made.failed else "") + ", ".join(told)
    if not outcome and (made.fields or made.lines):
        outcome = "ok"
    text = f"{made.tool}({', '.join(filter(None, given))})"
    return f"{text} → {outcome}" if outcome else text


def _named(fact: Fact, most: int) -> str:
    label, value = label_of(fact), _bare(fact.value, most)
    return f"{label}={value}" if label else value


def _bare(text: str, most: int) -> str:
    """One line without encoded data."""
    return " ".join(_ENCODED.sub("[data]", text).split())[:most]
