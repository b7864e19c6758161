"""The records of the reader that quotes as lines with numbers: what a model is given to keep memory by. Pure.

A line is ``12 user: text``, or ``13 book_ferry(from=Rome) -> ok: id=F-1`` for a call. The number is that of the
message; further lines of the same message are ``12.2``, ``12.3``. Results are as the reader reads them, so nothing of a
file or an image that a tool returned stands here.
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

MOST_OF_VALUE = 160
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

    @property
    def written(self) -> str:
        return f"{self.number} {self.text}"


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
        tokens = counter.count(to_json(line.written)) + 1
        if portion and used + tokens > most:
            yield portion
            portion, used = [], 0
        portion.append(line)
        used += tokens
    if portion:
        yield portion


def _seq(line: NumberedLine) -> int:
    record = line.said or line.made
    return record.seq if record else 0


def _of_statement(said: Said) -> NumberedLine:
    who = "user" if said.name == USER else said.name.removeprefix("the ")
    mark = {"own": "", "asked": "", "pasted": " (pasted)", "cut": ""}[said.stance]
    return NumberedLine("", f"{who}{mark}: {_bare(said.fact.value, len(said.fact.value))}", (said.fact,), said=said)


def _of_call(made: Made) -> NumberedLine:
    given = ", ".join(filter(None, map(_named, made.given)))
    told = ", ".join((*map(_named, made.fields), *(_bare(line.value, MOST_OF_VALUE) for line in made.lines)))
    outcome = "FAILED" if made.failed else "ok" if made.fields or made.lines else ""
    text = f"{made.tool}({given})"
    if outcome:
        text += f" -> {outcome}: {told}" if told else f" -> {outcome}"
    return NumberedLine("", text, made.facts, made=made)


def _named(fact: Fact) -> str:
    label, value = label_of(fact), _bare(fact.value, MOST_OF_VALUE)
    return f"{label}={value}" if label else value


def _bare(text: str, most: int) -> str:
    """One line without encoded data."""
    return " ".join(_ENCODED.sub("[data]", text).split())[:most]
