"""Calls as lines, ``tool: arguments -> what came back``, and the calls of one tool as a table. Pure.

A line tells what a call was given and what it made; the rest of its result goes on behind it as a line of its own that
begins with a blank (`more`), so that a small memory has the calls and a large one the details, too.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from reactor_memory.features.facts.labels import Part, labels, shape_of, short_label
from reactor_memory.features.facts.plain_text import plain_quotation, plain_title, unforged
from reactor_memory.features.facts.quoting.call_links import NAMING, other_than_asked
from reactor_memory.features.facts.quoting.linked_records import Linked
from reactor_memory.features.facts.quoting.log_records import Made, Said, label_of, without_signs
from reactor_memory.features.facts.quoting.record_keys import MODEL, is_cut, whole_key
from reactor_memory.models.ledger import Fact
from reactor_memory.text.borders import cut, cut_at_word
from reactor_memory.text.caches import memo

LONGEST = 400
BRIEF = 60
"""A value of a later call about a thing is no longer."""

LEAST_ROWS = 3
MOST_FIELDS = 4
"""Fields of a result that a line tells; those with digits first."""

MOST_MADE = 2
"""Ids in a result that stand with the call. A result of so few fields stands with it as a whole."""

OFTEN = 5
"""A line that results of one tool have so often, but for its numbers, says nothing where there are others."""

MOSTLY, NEARLY_ALL = 2 / 3, 0.9
"""The later call that so many rows have, and the values that so many have in common, stand in the title of their table;
where a row has another value, it says so.
"""

COLUMN_SHARE = 0.5
"""An argument of so many rows is a column."""

SEPARATOR, RESULT, THEN = "; ", " -> ", " then "
ROW, NOTHING = "+ ", "-"
SHORT_NUMBER = 5
ID_WORDS = frozenset({"id", "key", "code"})
LEFT_OUT = "[left out]"
CUT_MARK = " …"

_GRANTED = frozenset({"true", "success", "ok", "succeeded", "successful", "200"})


class CallLine(NamedTuple):
    """A line of a call; with a `title` it is a row of the table under it. `more` goes on behind it, `values` is
    what it says beside names of tools and labels.
    """

    text: str
    facts: tuple[Fact, ...]
    seq: int
    weight: float
    title: str = ""
    more: str = ""
    details: tuple[Fact, ...] = ()
    values: str = ""
    is_record: bool = False


class _Row(NamedTuple):
    """A call as values with labels: of its arguments, of what it made, of the rest of its result; the lines of its
    result, its remark, and the later calls about its thing.
    """

    call: Linked[Made]
    given: Sequence[Part]
    made: Sequence[Part]
    rest: Sequence[Part]
    details: tuple[Fact, ...]
    said: str
    after: Sequence[str]

    @property
    def facts(self) -> tuple[Fact, ...]:
        later = [fact for made in self.call.after for fact in made.facts]
        comment = (said.fact for said in (self.call.comment, self.call.retraction) if said)
        befores = (change.before for change in self.call.changes)
        tried = (fact for made in (*self.call.tried, *self.call.failures) for fact in made.facts)
        own = (fact for fact in self.call.record.facts if fact not in self.details)
        return (*own, *befores, *self.call.names.values(), *tried, *later, *comment)


def call_lines(calls: Sequence[Linked[Made]]) -> Iterator[CallLine]:
    """One line a call. Those of a table come without a place in the log, in its order."""
    dull, used = _dull_lines(calls), _used(calls)
    tools: dict[str, list[_Row]] = {}
    for row in (_row(each, dull, used) for each in calls):
        if _says_something(row):
            tools.setdefault(row.call.record.tool, []).append(row)
    for tool, rows in tools.items():
        ending = _common_ending(rows)
        is_row = [
            not row.call.record.failed and len(row.given) > 0 and (ending in row.after or not ending) for row in rows
        ]
        done = [row for row, fits in zip(rows, is_row, strict=True) if fits]
        is_table = len(done) >= LEAST_ROWS
        if is_table:
            yield from _table(tool, done, ending)
        yield from (_alone(row) for row, fits in zip(rows, is_row, strict=True) if not (is_table and fits))


def _says_something(row: _Row) -> bool:
    """What was looked up says nothing where nothing is known of what was found."""
    made = row.call.record
    return bool(made.role == "act" or made.failed or row.made or row.rest or row.said or row.after)


def _used(calls: Sequence[Linked[Made]]) -> frozenset[str]:
    """All values that calls were given."""
    made = (each for call in calls for each in (call.record, *call.after, *call.tried))
    return frozenset(fact.value for each in made for fact in each.given)


def _row(call: Linked[Made], dull: frozenset[str], used: frozenset[str]) -> _Row:
    made = call.record
    fields = [fact for fact in made.fields if fact not in call.unchanged and fact.value.casefold() not in _GRANTED]
    if made.role == "read" and not made.failed:
        fields = [fact for fact in fields if not _is_id(fact) or fact.value in used]
    changed = {*(change.fact for change in call.changes), *other_than_asked(made)}
    ids = [fact for fact in fields if fact in changed or _is_id(fact)]
    first = ids[:MOST_MADE] if made.role == "act" and not made.failed and len(fields) > MOST_MADE else _telling(fields)
    if made.role == "act" and any(fact.value in used for fact in first):
        first = [fact for fact in first if fact in changed or fact.value in used or not _is_id(fact)]
    rest = [fact for fact in _telling(fields) if fact not in first and not _is_outdated(fact, call.after)]
    lines = [fact for fact in made.lines if _shape(made, fact) not in dull] or made.lines[:1]
    return _Row(
        call,
        _given(call),
        [_part(call, fact) for fact in first],
        [_part(call, fact) for fact in rest],
        tuple(rest),
        _said(call, lines),
        [_shortly(each, made) for each in call.after],
    )


def _is_outdated(fact: Fact, after: Sequence[Made]) -> bool:
    """Whether a later call about the thing gave the field another value: the old one would stand behind the new one."""
    label = label_of(fact)
    told = (each for made in after if not made.failed for each in (*made.given, *made.fields))
    others = (each.value for each in told if label_of(each).removeprefix("new_") == label)
    return bool(label) and any(value != fact.value for value in others)


def _is_id(fact: Fact) -> bool:
    label = label_of(fact)
    ends = label.rpartition("_")[2]
    is_mixed = any(map(str.isalpha, fact.value)) and any(map(str.isdigit, fact.value)) and " " not in fact.value
    return ends in ID_WORDS or (ends in ("number", "reference") and is_mixed)


def _given(call: Linked[Made]) -> Sequence[Part]:
    """The arguments. A record of two values in a list is a label and its value (``Milk=Oat``)."""
    parts: list[Part] = []
    facts = [fact for fact in call.record.given if fact.value != LEFT_OUT]
    sizes = Counter(_item(fact) for fact in facts)
    held: Part | None = None
    for fact in facts:
        if not label_of(fact) and fact.value == call.record.tool:
            continue
        part = _part(call, fact)
        if _item(fact) and sizes[_item(fact)] == 2:
            if held is None:
                held = part
                continue
            part, held = Part(f"{held.value}", part.value, is_resolved=True), None
        parts.append(part)
    return parts


def _is_name(fact: Fact) -> bool:
    return label_of(fact).rpartition("_")[2] in NAMING


def _item(fact: Fact) -> str:
    """The record of a list that an argument stands in; empty if it stands in none."""
    parts = whole_key(fact.key).split(".")
    return ".".join(parts[:-1]) if len(parts) > 3 and parts[-2].isdigit() else ""


def _telling(fields: Sequence[Fact]) -> Sequence[Fact]:
    """The fields that say most: those with a digit, then the first ones, in their order. Of one in a list, what names
    its place says of what it is.
    """
    best = sorted(fields, key=lambda fact: not any(map(str.isdigit, fact.value)))[:MOST_FIELDS]
    items = {_item(fact) for fact in best} - {""}
    return [fact for fact in fields if fact in best or (_is_name(fact) and _item(fact) in items)]


def _part(call: Linked[Made], fact: Fact) -> Part:
    """A value with its label: an id with its name, a change with what it was before, a repeated try with the first."""
    value = _quoted(fact.value, cut=is_cut(fact))
    changed = next((change.before for change in call.changes if change.fact == fact), None)
    tried = [f"{_quoted(other.value)}{made.mark}{_other_outcome(made, call.record)}" for made in call.tried
             for other in made.given if other.key == fact.key and other.value != fact.value]  # fmt: skip
    if changed is not None:
        value = f"{_quoted(changed.value)} → {value}"
    elif tried:
        value = THEN.join([*dict.fromkeys(tried), value])
    return _named(Part(label_of(fact), value), call.names.get(fact))


def _other_outcome(tried: Made, made: Made) -> str:
    """What came back of a try and not of the call that was made in its place (``status=refused``)."""
    known = {(fact.key, fact.value) for fact in made.fields}
    told = [fact for fact in tried.fields if (fact.key, fact.value) not in known]
    parts = [_labelled(Part(label_of(fact), _quoted(fact.value)), short_label(label_of(fact))) for fact in told]
    return f" ({SEPARATOR.join(parts[:MOST_MADE])})" if parts else ""


def _quoted(text: str, *, cut: bool = False) -> str:
    value = f"{plain_quotation(text)}{CUT_MARK * cut}"
    return f'"{value}"' if SEPARATOR.strip() in value or RESULT in value else value


def _named(part: Part, name: Fact | None) -> Part:
    """An id with its name; the name alone where the id says the same (``oat-milk-3`` for Oat Milk)."""
    if name is None or name.value == part.value:
        return part
    said = without_signs(name.value)
    is_same = len(said) > 2 and said in without_signs(part.value)
    return Part(part.key, plain_quotation(name.value) if is_same else f"{part.value} ({plain_quotation(name.value)})")


def _said(call: Linked[Made], lines: Sequence[Fact]) -> str:
    """The lines of a result as quotations, or what the model said of a call that gave nothing back."""
    if call.comment is not None:
        return f'{MODEL}: "{plain_quotation(call.comment.fact.value)}"'
    return SEPARATOR.join(f'"{plain_quotation(fact.value)}{CUT_MARK * is_cut(fact)}"' for fact in lines)


def _shortly(made: Made, maker: Made) -> str:
    """A later call about a thing, without what names the thing."""
    known = {fact.value for fact in maker.facts} | {made.tool, LEFT_OUT}
    told = [fact for fact in (*made.fields, *made.lines) if fact.value.casefold() not in _GRANTED]
    given = _given(Linked(made._replace(given=tuple(fact for fact in made.given if fact.value not in known)), 1.0))
    replies = [_part(Linked(made, 1.0), fact) for fact in told if fact.value not in known]
    parts = [*given, *replies][:MOST_FIELDS]
    names = _short([*map(label_of, maker.facts), *(part.key for part in parts)])
    values = SEPARATOR.join(_labelled(_brief(part), names[part.key]) for part in parts)
    return f"{plain_title(made.tool)}{made.mark}{': ' * bool(values)}{values}"


def _brief(part: Part) -> Part:
    return part if len(part.value) <= BRIEF else part._replace(value=f"{cut_at_word(part.value, BRIEF)}{CUT_MARK}")


def _common_ending(rows: Sequence[_Row]) -> str:
    """The later call that most things of a tool had, and that says nothing beside its name."""
    endings = Counter(ending for row in rows for ending in set(row.after))
    ending, times = endings.most_common(1)[0] if endings else ("", 0)
    return ending if times >= LEAST_ROWS and times >= MOSTLY * len(rows) else ""


def _alone(row: _Row) -> CallLine:
    made = row.call.record
    title = plain_title(made.tool)
    parts = [*row.given, *row.made, *row.rest]
    named = [_labelled(part, label) for part, label in zip(parts, labels(parts, title=made.tool), strict=True)]
    border = len(row.given) + len(row.made)
    given, told, rest = named[: len(row.given)], named[len(row.given) : border], named[border:]
    text = f"{title}{made.mark}:{' ' * bool(given)}{SEPARATOR.join(given)}"
    return _line(row, text, told, rest, row.after)


def _labelled(part: Part, label: str) -> str:
    if part.is_resolved:
        return f"{part.key}={part.value}"
    return f"{label}={part.value}" if label else part.value


def _line(
    row: _Row, text: str, told: Sequence[str], rest: Sequence[str], after: Sequence[str], title: str = ""
) -> CallLine:
    results = [*told, *([row.said] if row.said else [])]
    reply = f"{RESULT if text != ROW else ''}{SEPARATOR.join(results)}" if results else ""
    end = f"{reply}{row.call.remark}{''.join(f'{THEN}{each}' for each in after)}{_taken_back(row.call.retraction)}"
    more = SEPARATOR.join(rest)
    if more:
        more = f" ({more})" if results or end else f"{RESULT}{more}"
    made = row.call.record
    return CallLine(
        text=_clamped(unforged(text + end)),
        facts=row.facts,
        seq=made.seq,
        weight=row.call.weight,
        title=title,
        more=f" {unforged(more.strip())}" if more else "",
        details=row.details,
        values=" ".join([*(part.value for part in (*row.given, *row.made)), row.said, *after]),
        is_record=made.role == "act" and not made.lines,
    )


def _taken_back(said: Said | None) -> str:
    return f' (taken back: "{plain_quotation(said.fact.value)}")' if said else ""


def _table(tool: str, rows: Sequence[_Row], ending: str) -> Iterator[CallLine]:
    """The rows of a table. Columns are what most rows have; what most rows have in common stands in the title."""
    given = _columns([row.given for row in rows], COLUMN_SHARE)
    made = _columns([row.made for row in rows], 1.0)
    common = _common([row.given for row in rows], given)
    names = _short([part.key for row in rows for part in (*row.given, *row.made, *row.rest)])
    heads = [f"{names[key]}={common[key]}" if key in common else names[key] for key in given]
    replies = SEPARATOR.join(names[key] for key in made)
    columns = f"{SEPARATOR.join(heads)}{RESULT * bool(replies)}{replies}{(THEN + ending) * bool(ending)}"
    title = unforged(_clamped(f"{plain_title(tool)} ({columns}):"))
    for row in rows:
        values = _cells(row.given, given, common, names)
        after = [each for each in row.after if each != ending]
        rest = [_labelled(part, names[part.key]) for part in row.rest]
        yield _line(row, ROW + SEPARATOR.join(values), _cells(row.made, made, {}, names), rest, after, title)


def _columns(rows: Sequence[Sequence[Part]], share: float) -> list[str]:
    """The labels that stand once in at least that share of the rows, in the order in which they came."""
    times: Counter[str] = Counter()
    for row in rows:
        labelled = Counter(part.key for part in row if not part.is_resolved)
        times.update(key for key, count in labelled.items() if key and count == 1)
    return [key for key, count in times.items() if count >= share * len(rows)]


def _short(keys: Iterable[str]) -> dict[str, str]:
    """The name of each key: short, unless two would have the same."""
    names = {key: short_label(key) for key in keys}
    taken = Counter(names.values())
    return {key: key if taken[name] > 1 else name for key, name in names.items()}


def _common(rows: Sequence[Sequence[Part]], columns: Sequence[str]) -> dict[str, str]:
    """The value that most rows have in a column."""
    found: dict[str, str] = {}
    for key in columns:
        values = Counter(part.value for row in rows for part in row if part.key == key and not part.is_resolved)
        value, times = values.most_common(1)[0]
        if times >= LEAST_ROWS and times >= NEARLY_ALL * len(rows):
            found[key] = value
    return found


def _cells(
    parts: Sequence[Part], columns: Sequence[str], common: Mapping[str, str], names: Mapping[str, str]
) -> list[str]:
    """The values of a row in the order of its columns, then what stands in no column, with its label."""
    known = {part.key: part for part in parts if part.key in columns and not part.is_resolved}
    cells: list[str] = []
    for key in columns:
        value = known[key].value if key in known else NOTHING
        if key not in common:
            cells.append(_cell(key, value, names[key]))
        elif value != common[key]:
            cells.append(f"{names[key]}={value}")
    others = (part for part in parts if part is not known.get(part.key))
    return [*cells, *(_labelled(part, names[part.key]) for part in others)]


def _cell(key: str, value: str, name: str) -> str:
    """A value under its column. A bare number or flag says little without its label."""
    is_id = key.rpartition("_")[2] in ID_WORDS
    is_bare = value != NOTHING and not is_id and len(value) <= SHORT_NUMBER and shape_of(value) in ("number", "flag")
    return f"{name}={value}" if is_bare else value


def _dull_lines(calls: Iterable[Linked[Made]]) -> frozenset[str]:
    shapes: Counter[str] = Counter()
    for call in calls:
        shapes.update({_shape(call.record, fact): call.times for fact in call.record.lines})
    return frozenset(shape for shape, times in shapes.items() if times >= OFTEN)


def _shape(made: Made, line: Fact) -> str:
    """A line of a result without its numbers, and what is written together with them."""
    return made.tool + _without_numbers(line.value)


@memo(maxsize=8192)
def _without_numbers(text: str) -> str:
    return "".join(word for word in text.split() if not any(map(str.isdigit, word)))


def _clamped(text: str) -> str:
    return text if len(text) <= LONGEST else f"{cut(text, LONGEST)}{CUT_MARK}"
