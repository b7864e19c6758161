"""Calls as lines, ``tool: arguments -> what came back``, and calls with the same columns as a table. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple, TypeAlias

from reactor_memory.features.facts.labels import Part, labels, shape_of, short_label
from reactor_memory.features.facts.plain_text import plain_quotation, plain_title, unforged
from reactor_memory.features.facts.quoting.links import Change, Linked
from reactor_memory.features.facts.quoting.log_records import Made, label_of
from reactor_memory.features.facts.quoting.record_keys import MODEL
from reactor_memory.models.ledger import Fact
from reactor_memory.text.borders import cut

LONGEST = 400
LEAST_ROWS = 3
MOST_FIELDS = 4
"""Fields of a result that a line tells; those with digits first."""

OFTEN = 5
"""A line that results of one tool have so often, but for its numbers, says nothing where there are others."""

SEPARATOR, RESULT, THEN, FAILED = "; ", " -> ", " then ", " (failed)"
ROW = "+ "

SHORT_NUMBER = 5
"""A number of no more digits says little without its label."""

_GRANTED = frozenset({"true", "success", "ok", "succeeded", "successful", "200"})

Columns: TypeAlias = tuple[tuple[str, ...], tuple[str, ...]]


class CallLine(NamedTuple):
    """A line of a call; with a `title` it is a row of the table under it."""

    text: str
    facts: tuple[Fact, ...]
    seq: int
    weight: float
    title: str = ""


class _Row(NamedTuple):
    """A call as values with labels: of its arguments, of its result, and what ends the line."""

    call: Linked[Made]
    given: Sequence[Part]
    fields: Sequence[Part]
    end: str

    @property
    def columns(self) -> Columns:
        return tuple(part.key for part in self.given), tuple(part.key for part in self.fields)

    @property
    def facts(self) -> tuple[Fact, ...]:
        later = [fact for made in self.call.after for fact in made.facts]
        comment = (self.call.comment.fact,) if self.call.comment else ()
        befores = (change.before for change in self.call.changes)
        return (*self.call.record.facts, *befores, *self.call.names.values(), *later, *comment)


def call_lines(calls: Sequence[Linked[Made]]) -> Iterator[CallLine]:
    """One line a call. Those of a table come without a place in the log, in its order."""
    dull = _dull_lines(each.record for each in calls)
    tables: dict[tuple[str, Columns], list[_Row]] = {}
    for row in (_row(each, dull) for each in calls):
        key = (row.call.record.tool, row.columns)
        tables.setdefault(key, []).append(row)
    for (tool, columns), rows in tables.items():
        done = [row for row in rows if not row.call.record.failed]
        is_table = len(done) >= LEAST_ROWS and sum(map(len, columns)) > 1
        if is_table:
            yield from _table(tool, columns, done)
        yield from (_alone(row) for row in rows if not is_table or row.call.record.failed)


def _row(call: Linked[Made], dull: frozenset[str]) -> _Row:
    made = call.record
    changed = {change.fact: change for change in call.changes}
    given = [
        _named(_part(fact, changed), call.names.get(fact))
        for fact in made.given
        if label_of(fact) or fact.value != made.tool
    ]
    fields = [fact for fact in made.fields if fact not in call.unchanged and fact.value.casefold() not in _GRANTED]
    told = [_part(fact, changed) for fact in _telling(fields)]
    lines = [fact for fact in made.lines if _shape(made, fact) not in dull] or made.lines
    return _Row(call, given, told, _end(call, lines))


def _telling(fields: Sequence[Fact]) -> Sequence[Fact]:
    """The fields that say most: those with a digit, then the first ones, in their order."""
    best = sorted(fields, key=lambda fact: not any(map(str.isdigit, fact.value)))[:MOST_FIELDS]
    return [fact for fact in fields if fact in best]


def _part(fact: Fact, changed: dict[Fact, Change]) -> Part:
    value = plain_quotation(fact.value)
    if SEPARATOR.strip() in value or RESULT in value:
        value = f'"{value}"'
    if fact in changed:
        value = f"{plain_quotation(changed[fact].before.value)} → {value}"
    return Part(label_of(fact), value)


def _named(part: Part, name: Fact | None) -> Part:
    """An id with its name; the name alone where the id says the same (``oat-milk-3`` for Oat Milk)."""
    if name is None or name.value == part.value:
        return part
    said = _letters(name.value)
    is_same = len(said) > 2 and said in _letters(part.value)
    return Part(part.key, plain_quotation(name.value) if is_same else f"{part.value} ({plain_quotation(name.value)})")


def _letters(text: str) -> str:
    return "".join(c for c in text.casefold() if c.isalnum())


def _end(call: Linked[Made], lines: Sequence[Fact]) -> str:
    quoted = SEPARATOR.join(f'"{plain_quotation(fact.value)}"' for fact in lines)
    if call.comment is not None:
        quoted = f'{MODEL}: "{plain_quotation(call.comment.fact.value)}"'
    later = "".join(f"{THEN}{_shortly(made, call.record)}" for made in call.after)
    return f"{quoted}{call.remark}{later}"


def _shortly(made: Made, maker: Made) -> str:
    """A later call about a thing, without what names the thing."""
    known = {fact.value for fact in maker.facts}
    said = [fact for fact in (*made.given, *made.fields, *made.lines) if fact.value not in known]
    told = [fact for fact in said if fact.value.casefold() not in _GRANTED and fact.value != made.tool]
    values = SEPARATOR.join(
        f"{label_of(fact)}={plain_quotation(fact.value)}"
        if label_of(fact) and not fact.key.startswith("reply.line")
        else plain_quotation(fact.value)
        for fact in told[:MOST_FIELDS]
    )
    return f"{plain_title(made.tool)}{FAILED * made.failed}{': ' * bool(values)}{values}"


def _alone(row: _Row) -> CallLine:
    made = row.call.record
    title = plain_title(made.tool)
    parts = [*row.given, *row.fields]
    named = [_labelled(part, label) for part, label in zip(parts, labels(parts, title=made.tool), strict=True)]
    given, told = named[: len(row.given)], named[len(row.given) :]
    text = f"{title}{FAILED * made.failed}:{' ' * bool(given)}{SEPARATOR.join(given)}"
    return CallLine(_clamped(unforged(text + _told(told, row.end))), row.facts, made.seq, row.call.weight)


def _labelled(part: Part, label: str) -> str:
    return f"{label}={part.value}" if label else part.value


def _told(parts: Sequence[str], end: str) -> str:
    """What came back, and what ends the line: remarks and later calls need no sign before them."""
    is_told = bool(end) and not end.startswith((THEN, " ("))
    told = SEPARATOR.join([*parts, *([end] if is_told else [])])
    return f"{RESULT * bool(told)}{told}{'' if is_told else end}"


def _table(tool: str, columns: Columns, rows: Sequence[_Row]) -> Iterator[CallLine]:
    """The rows of a table. What all have in common stands in the title. A bare number keeps its label."""
    same = [_same_in_all([row.given for row in rows]), _same_in_all([row.fields for row in rows])]
    named = [_columns(keys, same[side]) for side, keys in enumerate(columns)]
    replies = f"{RESULT}{SEPARATOR.join(named[1])}" if named[1] else ""
    end = rows[0].end if len({row.end for row in rows}) == 1 else ""
    title = unforged(_clamped(f"{plain_title(tool)} ({SEPARATOR.join(named[0])}{replies}{end}):"))
    for row in rows:
        values = [_value(part) for at, part in enumerate(row.given) if at not in same[0]]
        fields = [_value(part) for at, part in enumerate(row.fields) if at not in same[1]]
        text = ROW + SEPARATOR.join(values) + _told(fields, "" if end else row.end)
        yield CallLine(_clamped(text), row.facts, row.call.record.seq, row.call.weight, title)


def _columns(keys: Sequence[str], same: Mapping[int, str]) -> list[str]:
    """The name of each column: short, unless two would have the same."""
    short = [short_label(key) if key else "text" for key in keys]
    names = [key if key and short.count(name) > 1 else name for key, name in zip(keys, short, strict=True)]
    return [f"{name}={same[at]}" if at in same else name for at, name in enumerate(names)]


def _value(part: Part) -> str:
    is_bare = part.key and shape_of(part.value) in ("number", "flag") and len(part.value) <= SHORT_NUMBER
    return f"{short_label(part.key)}={part.value}" if is_bare else part.value


def _same_in_all(rows: Sequence[Sequence[Part]]) -> dict[int, str]:
    """The columns in which all rows have one value."""
    return {at: part.value for at, part in enumerate(rows[0]) if all(row[at].value == part.value for row in rows)}


def _dull_lines(calls: Iterable[Made]) -> frozenset[str]:
    shapes = Counter(shape for made in calls for shape in {_shape(made, fact) for fact in made.lines})
    return frozenset(shape for shape, times in shapes.items() if times >= OFTEN)


def _shape(made: Made, line: Fact) -> str:
    """A line of a result without its numbers."""
    return made.tool + "".join(c for c in line.value if c.isalpha())


def _clamped(text: str) -> str:
    return text if len(text) <= LONGEST else f"{cut(text, LONGEST)} …"
