"""Calls as lines, ``tool: arguments -> what came back``, and the calls of one tool as a table. Pure.

A line tells what a call was given and what it made; the rest of its result goes on behind it as a line of its own that
begins with a blank (`more`), so that a small memory has the calls and a large one the details, too.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from reactor_memory.features.facts.labels import Part, is_switch, labels, shape_of, short_label
from reactor_memory.features.facts.plain_text import plain_quotation, plain_title, unforged
from reactor_memory.features.facts.quoting.call_links import NAMING, REFERENCE, other_than_asked
from reactor_memory.features.facts.quoting.json_lines import shown_record
from reactor_memory.features.facts.quoting.linked_records import Linked
from reactor_memory.features.facts.quoting.log_records import Made, Said, label_of, without_signs
from reactor_memory.features.facts.quoting.record_keys import MODEL, is_cut, whole_key
from reactor_memory.features.facts.quoting.result_lines import fitting_lines, line_worth
from reactor_memory.models.ledger import Fact
from reactor_memory.text.borders import cut, cut_at_word
from reactor_memory.text.caches import memo

LONGEST = 400
LEAST_GIVEN = 140
"""Of a line of so many characters, arguments of more than that give way to what came back; remarks are never cut."""

BRIEF, BRIEFER = 60, 32
"""A value of a later call about a thing is no longer, and one that says a single new word of it."""

LEAST_ROWS, LEAST_LONG_ROWS, LONG_ROW = 3, 2, 3
"""Calls of a tool that are worth a table, and how many of so many arguments are."""

LEAST_COMMON = 3
"""Rows that have a value or phrase in common which stands in the title."""

SEVERAL = 3
"""What results of so many tools say alike says nothing of a call."""

LEAST_TEXT = 12
"""Characters of a field that may be a phrase."""

MOST_FIELDS = 4
"""Fields of a result that a line tells; those with digits first."""

FIRST_LINES, MOST_NAMING = 2, 3
"""Lines of a result that stand with the call, and how many of those that name something; the others go on behind it."""

MOST_MADE = 2
"""Ids in a result that stand with the call. A result of so few fields stands with it as a whole."""

OFTEN = 4
"""A line that results have so often, but for its numbers, says nothing where there are others."""

MOSTLY, NEARLY_ALL = 2 / 3, 0.9
"""The later call that so many rows have, and the values that so many have in common, stand in the title of their table;
where a row has another value, it says so.
"""

COLUMN_SHARE = 0.5
"""An argument of so many rows is a column."""

SEPARATOR, RESULT, THEN = "; ", " -> ", " then "
ROW, NOTHING, LEFT_OPEN = "+ ", "-", "…"
SHORT_NUMBER = 5
ID_WORDS = frozenset({"id", "key", "code"})
LEFT_OUT = "[left out]"
CUT_MARK = " …"

_WORD = re.compile(r"\w+")
_PIECE = re.compile(r"[^\s\"'()\[\],;:]+")
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
    dull, used = _dull_replies(calls), _used(calls)
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
        is_table = len(done) >= (LEAST_ROWS if min(len(row.given) for row in rows) < LONG_ROW else LEAST_LONG_ROWS)
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
    changed = {*(change.fact for change in call.changes), *other_than_asked(made)}
    fields = [fact for fact in _once(made.fields) if fact not in call.unchanged]
    fields = [fact for fact in fields if fact in changed or _tells(fact, made, dull)]
    if made.role == "read" and not made.failed:
        fields = [fact for fact in fields if not _is_id(fact) or fact.value in used or _item(fact)]
    ids = [fact for fact in fields if fact in changed or _is_id(fact)]
    first = (
        ids[:MOST_MADE]
        if made.role == "act" and not made.failed and len(fields) > MOST_MADE
        else _telling(fields, call.told)
    )
    if made.role == "act" and any(fact.value in used for fact in first):
        first = [fact for fact in first if fact in changed or fact.value in used or not _is_id(fact)]
    telling = _telling(fields, call.told)
    rest = [fact for fact in telling if fact not in first and not _is_outdated(fact, call.after)]
    given, lines = _given(call), _telling_lines(made, dull)
    first_lines = _fitting(call, _first_lines(lines), given)
    further = [fact for fact in lines if fact not in first_lines]
    return _Row(
        call,
        given,
        [_part(call, fact) for fact in first],
        [*(_part(call, fact) for fact in rest), *(Part("", _line_of(fact)) for fact in further)],
        (*rest, *further),
        _said(call, first_lines),
        [_shortly(each, made, dull) for each in call.after],
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


def _telling(fields: Sequence[Fact], told: Container[Fact]) -> Sequence[Fact]:
    """The fields that say most: those that were told, then those with a digit, in their order. Of one in a list, what
    names its record says of what it is: its name or its id, and the first field where it has neither.
    """
    best = sorted(fields, key=lambda fact: (fact not in told, not any(map(str.isdigit, fact.value))))[:MOST_FIELDS]
    items = {_item(fact) for fact in best} - {""}
    naming = {_naming([fact for fact in fields if _item(fact) == item]) for item in items}
    return [fact for fact in fields if fact in best or fact in naming or (_is_name(fact) and _item(fact) in items)]


def _naming(fields: Sequence[Fact]) -> Fact:
    """The field of a record in a list that says which one it is."""
    by_name, by_id = filter(_is_name, fields), filter(_is_id, fields)
    return next(by_name, None) or next(by_id, None) or fields[0]


def _part(call: Linked[Made], fact: Fact) -> Part:
    """A value with its label: an id with its name, a change with what it was before, a repeated try with the first."""
    value = _quoted(fact.value, cut=is_cut(fact))
    changed = next((change.before for change in call.changes if change.fact == fact), None)
    tried = [f"{_quoted(other.value)}{made.mark}{_other_outcome(made, call.record)}" for made in call.tried
             for other in made.given if other.key == fact.key and other.value != fact.value]  # fmt: skip
    before = "" if changed is None else _quoted(changed.value)
    value = THEN.join([*(each for each in dict.fromkeys(tried) if each != before), value])
    if before:
        value = f"{before} → {value}"
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
    return SEPARATOR.join(map(_line_of, lines))


def _line_of(fact: Fact) -> str:
    if record := shown_record(fact.value, is_cut=is_cut(fact)):
        return record
    return f'"{plain_quotation(fact.value)}{CUT_MARK * is_cut(fact)}"'


def _first_lines(lines: Sequence[Fact]) -> Sequence[Fact]:
    """The lines of a result that say most: those that name something, then those of words, errors and sums first."""
    places = {fact: place for place, fact in enumerate(lines)}

    def rank(fact: Fact) -> tuple[bool, bool, float]:
        is_nameless = REFERENCE.search(fact.value) is None
        return is_nameless, _is_of_signs(fact.value), -line_worth(fact.value, places[fact], len(lines))

    best = sorted(lines, key=rank)
    naming = sum(REFERENCE.search(fact.value) is not None for fact in lines)
    return [fact for fact in lines if fact in best[: max(FIRST_LINES, min(naming, MOST_NAMING))]]


def _is_of_signs(text: str) -> bool:
    """Whether less than half of a text are letters."""
    signs = "".join(text.split())
    return 2 * sum(map(str.isalpha, signs)) < len(signs)


def _fitting(call: Linked[Made], lines: Sequence[Fact], given: Sequence[Part]) -> Sequence[Fact]:
    """The lines of a result that say most, as many as a line has room for beside its arguments."""
    head = len(call.record.tool) + len(call.record.mark) + 1
    begin = min(head + sum(len(part.key) + len(part.value) + 3 for part in given), LEAST_GIVEN + len(CUT_MARK))
    room = LONGEST - begin - len(call.remark) - len(RESULT) - (2 + len(SEPARATOR)) * len(lines)
    return [lines[place] for place in fitting_lines([fact.value for fact in lines], room)]


def _shortly(made: Made, maker: Made, dull: frozenset[str]) -> str:
    """A later call about a thing, without what names the thing."""
    named = (name for fact in maker.lines for name in REFERENCE.findall(fact.value))
    known = {*(fact.value for fact in maker.facts), *named, made.tool, LEFT_OUT}
    told = [fact for fact in (*made.fields, *made.lines[:1]) if _tells(fact, made, dull)]
    given = _given(Linked(made._replace(given=tuple(fact for fact in made.given if fact.value not in known)), 1.0))
    words = frozenset[str]().union(*map(_words, known))
    replies = [
        _brief(_part(Linked(made, 1.0), fact), BRIEF if len(_words(fact.value) - words) > 1 else BRIEFER)
        for fact in told
        if not _words(fact.value) <= words
    ]
    parts = [*given, *replies][:MOST_FIELDS]
    names = _short([*map(label_of, maker.facts), *(part.key for part in parts)])
    values = SEPARATOR.join(_labelled(_brief(part, BRIEF), names[part.key]) for part in parts)
    return f"{plain_title(made.tool)}{made.mark}{': ' * bool(values)}{values}"


def _brief(part: Part, most: int) -> Part:
    return part if len(part.value) <= most else part._replace(value=f"{cut_at_word(part.value, most)}{CUT_MARK}")


def _common_ending(rows: Sequence[_Row]) -> str:
    """The later call that most things of a tool had, and that says nothing beside its name."""
    endings = Counter(ending for row in rows for ending in set(row.after))
    ending, times = endings.most_common(1)[0] if endings else ("", 0)
    return ending if times >= LEAST_COMMON and times >= MOSTLY * len(rows) else ""


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
    remark, back = row.call.remark, _taken_back(row.call.retraction)
    room = max(LONGEST - len(remark) - len(back), LONGEST // 2)
    then = _clamped("".join(f"{THEN}{each}" for each in after), room // 2)
    given = _clamped(unforged(text), max(room - len(then) - len(reply) - len(CUT_MARK), LEAST_GIVEN))
    whole = f"{_clamped(given + reply, room - len(then))}{remark}{then}{back}"
    more = SEPARATOR.join(rest)
    if more:
        more = f" ({more})" if results or remark or then or back else f"{RESULT}{more}"
    made = row.call.record
    return CallLine(
        text=whole,
        facts=row.facts,
        seq=made.seq,
        weight=row.call.weight,
        title=title,
        more=f" {unforged(more.strip())}" if more else "",
        details=row.details,
        values=" ".join([*(part.value for part in (*row.given, *row.made)), row.said, *after]),
        is_record=made.role == "act" and (row.call.is_new or not made.lines),
    )


def _taken_back(said: Said | None) -> str:
    return f' (taken back: "{plain_quotation(said.fact.value)}")' if said else ""


def _table(tool: str, rows: Sequence[_Row], ending: str) -> Iterator[CallLine]:
    """The rows of a table. Columns are what most rows have; what most rows have in common stands in the title."""
    given = _columns([row.given for row in rows], COLUMN_SHARE)
    made = _columns([row.made for row in rows], 1.0)
    common = _common([row.given for row in rows], given)
    names = _short([part.key for row in rows for part in (*row.given, *row.made, *row.rest)])
    same = _common([row.made for row in rows], made)
    heads = [f"{names[key]}={common[key]}" if key in common else names[key] for key in given]
    replies = SEPARATOR.join(f"{names[key]}={same[key]}" if key in same else names[key] for key in made)
    phrase = _common_phrase(rows)
    told = SEPARATOR.join(filter(None, (replies, LEFT_OPEN.join(phrase) if phrase else "")))
    columns = f"{SEPARATOR.join(heads)}{RESULT * bool(told)}{told}{(THEN + ending) * bool(ending)}"
    title = unforged(_clamped(f"{plain_title(tool)}{f' ({columns})' if columns else ''}:"))
    for row in rows:
        values = _cells(row.given, given, common, names)
        after = [each for each in row.after if each != ending]
        rest = [_labelled(part, names[part.key]) for part in row.rest]
        if phrase and _phrase(row.said) == phrase:
            row = row._replace(said=row.said[len(phrase[0]) : len(row.said) - len(phrase[1])])
        yield _line(row, ROW + SEPARATOR.join(values), _cells(row.made, made, same, names), rest, after, title)


def _common_phrase(rows: Sequence[_Row]) -> tuple[str, str] | None:
    """What nearly all results say around the one word that tells them apart."""
    phrases = Counter(_phrase(row.said) for row in rows)
    phrase, times = phrases.most_common(1)[0]
    return phrase if phrase and times >= LEAST_COMMON and times >= NEARLY_ALL * len(rows) else None


@memo(maxsize=4096)
def _phrase(said: str) -> tuple[str, str] | None:
    """What stands before and behind the only number or reference of a result of several words."""
    numbered = [place for place in _PIECE.finditer(said) if any(map(str.isdigit, place[0]))]
    if len(numbered) != 1 or " " not in said:
        return None
    word = numbered[0][0].rstrip(".!?")
    return said[: numbered[0].start()], said[numbered[0].start() + len(word) :]


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
        if times >= LEAST_COMMON and times >= NEARLY_ALL * len(rows):
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
    is_bare = (
        value != NOTHING
        and not is_id
        and len(value) <= SHORT_NUMBER
        and (shape_of(value) == "number" or is_switch(value))
    )
    return f"{name}={value}" if is_bare else value


def _once(fields: Sequence[Fact]) -> Iterable[Fact]:
    """The fields without those that say the value of one before."""
    return {fact.value: fact for fact in reversed(fields)}.values().__reversed__()


def _tells(reply: Fact, made: Made, dull: frozenset[str]) -> bool:
    """Whether a part of a result says more than that the call was granted, and more than its arguments. What was looked
    up, and why a call failed, says that of its thing, however often it is said.
    """
    if reply.value.casefold() in _GRANTED or _is_repeated(reply.value, made.given):
        return False
    if reply not in made.lines and (made.failed or made.role == "read"):
        return True
    return _shape(reply, made) not in dull and f"{label_of(reply)}={reply.value}" not in dull


def _telling_lines(made: Made, dull: frozenset[str]) -> Sequence[Fact]:
    """The lines of a result that say more than those of other calls, and those that name what no other line does."""
    told = [fact for fact in made.lines if _tells(fact, made, dull)]
    known = {name for fact in (*told, *made.given) for name in REFERENCE.findall(fact.value)}
    for fact in made.lines:
        names = REFERENCE.findall(fact.value)
        if not known.issuperset(names):
            told.append(fact)
            known.update(names)
    return [fact for fact in made.lines if fact in told] or made.lines[:1]


def _is_repeated(told: str, given: Sequence[Fact]) -> bool:
    """Whether a text is an argument, or several words of it are those of whole arguments."""
    if any(without_signs(fact.value) == without_signs(told) for fact in given):
        return True
    words = _words(told)
    touched = [of_fact for fact in given if (of_fact := _words(fact.value)) & words]
    return len(words) > 1 and bool(touched) and frozenset[str]().union(*touched) == words


def _dull_replies(calls: Sequence[Linked[Made]]) -> frozenset[str]:
    """What results say of each call alike: the shapes of lines that stand often, of phrases that stand in nearly all
    results of a tool, and fields that have the same value in those of several tools.
    """
    made = [each for call in calls for each in (call.record, *call.after)]
    lines = Counter(_shape(fact, call.record) for call in calls for fact in call.record.lines * call.times)
    phrases = Counter(_shape(fact, each) for each in made for fact in each.fields if len(fact.value) >= LEAST_TEXT)
    fields = Counter(_place(fact, each) for each in made for fact in each.fields)
    tools: defaultdict[str, set[str]] = defaultdict(set)
    for each in made:
        for fact in each.fields:
            tools[f"{label_of(fact)}={fact.value}"].add(each.tool)
    dull = {shape for shape, times in lines.items() if times >= OFTEN}
    for shape, times in phrases.items():
        if times >= max(LEAST_COMMON, NEARLY_ALL * fields[shape.partition("\n")[0]]):
            dull.add(shape)
    dull.update(told for told, of_tools in tools.items() if len(of_tools) >= SEVERAL)
    return frozenset(dull - {""})


def _place(reply: Fact, made: Made) -> str:
    return f"{made.tool} {reply.key}" if reply.key.startswith("reply.field.") else ""


def _shape(reply: Fact, made: Made) -> str:
    """A part of a result without the words of the arguments, numbers, and what is written together with them; empty if
    that is all.
    """
    shape = _without_numbers(reply.value, tuple(fact.value for fact in made.given))
    return f"{_place(reply, made)}\n{shape}" if shape else ""


@memo(maxsize=8192)
def _without_numbers(text: str, given: tuple[str, ...]) -> str:
    known = frozenset[str]().union(*map(_words, given))
    words = (word for word in text.split() if not any(map(str.isdigit, word)))
    return "".join(word for word in words if not (known and _words(word) <= known))


@memo(maxsize=8192)
def _words(text: str) -> frozenset[str]:
    return frozenset(_WORD.findall(text.casefold()))


def _clamped(text: str, most: int = LONGEST) -> str:
    return text if len(text) <= most else f"{cut(text, most)}{CUT_MARK}"
