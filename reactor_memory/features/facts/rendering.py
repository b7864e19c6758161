"""Facts and narrative as the lines of a memory block.

Memory is data: nothing that a user, a tool or a summarizer wrote can start a line, end the block, or look like a role,
a header, a chat token or markup, in whatever letters it is written. A line is ``title: value; label=value; ...``. The
title is the anchor. A label is shown only where the value alone would not say what it is, for every word here is a word
less of the conversation.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple, TypeAlias

from msgspec.structs import replace

from reactor_memory.features.facts.labels import Part, labels, shape_of, short_label
from reactor_memory.features.facts.line_values import revalued
from reactor_memory.features.facts.plain_text import BULLETS, plain_title, plain_value, unforged
from reactor_memory.features.facts.quoting.quotation_lines import quotation_lines
from reactor_memory.features.facts.quoting.record_keys import is_quoting
from reactor_memory.features.facts.working_state import is_state
from reactor_memory.models.block_lines import BlockLine, Form
from reactor_memory.models.ledger import FAILED_MARK, INTERRUPTED_MARK, RULED, SETTLED, Fact
from reactor_memory.text.borders import cut
from reactor_memory.text.caches import memo
from reactor_memory.text.relative_dates import said_on, with_dates
from reactor_memory.text.words import read_sentences, says_what, squeeze

Count: TypeAlias = Callable[[str], int]
Stated: TypeAlias = Mapping[tuple[str, bool], str]
Origins: TypeAlias = Mapping[Fact, tuple[Fact, ...]]
Detail: TypeAlias = tuple[str, str]
"""The stem of a key, and the value."""

Columns: TypeAlias = tuple[str, ...]
Run: TypeAlias = list[tuple[Fact, ...]]
Thing: TypeAlias = tuple[str, str, str]
"""The thing in the name of a tool (``ticket`` of ``buy_ticket``), and a key and a name among its arguments."""

MAX_LINE_CHARACTERS = 400
SEPARATOR = "; "
TOOL_MARK = " (tool)"
ID_SUFFIX = ".id"
QUOTED = "-"
READ_BACK = "Confirm: "
ABOUT_USER = "the user"
"""The anchor of facts about the user (``phone_number``): the key says what it is."""

UNNAMED = frozenset({"agreed", "told", ABOUT_USER})
"""Titles that are left out before a model's words: it has no name, and none may be taken for the user."""

AGAIN = "then "
BELOW_TITLE = "+ "
LEAST_ROWS = 3
"""Rows of the same columns that are worth a line with their names."""

NAME = "name"
COMMON_SHARE = 0.67
COMMON_TITLE = "unless told otherwise"
TITLE_WORTH = 0.001
SOON = 12
"""A call made again within so many messages belongs to the one before."""
MOST_CHANGES = 2
MOST_CALLS = 4

MOST_ANCHORS = 8192
LARGEST_ANCHOR = 32
"""The lines of so many anchors of at most so many facts are remembered (12 MB): when a window moves, all but a few are
those of before. An anchor of hundreds of facts, such as a user, changes with nearly every segment.
"""

MANY_FACTS = 8
FURTHER_FACT_WORTH = 0.06

_NAME_WORDS = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")
_LABEL = re.compile(r"([^=;()]{1,60})=")
_NEW = "new_"
_AGAIN = re.compile(r"(^|(?<=[^\s,])) ?\bthen ")
_BLANK = re.compile(r"; (?=\d)")
"""Before a digit a blank is a token of its own; before a letter it is part of the word."""
_OWN_SEQ = re.compile(r" #(\d+)$")


class _Style(NamedTuple):
    """How lines are made: whether quotations are squeezed, and what decisions need not say."""

    tokens_of: Count
    squeezed: bool
    common: frozenset[Detail]


class _Piece(NamedTuple):
    """A part of a line, and the facts that it shows: more than one where a value was changed."""

    text: str
    facts: tuple[Fact, ...]


class RenderedLine(NamedTuple):
    """A line, and the facts that it shows: where an id is shown as a name, the fact with the name, too."""

    line: BlockLine
    facts: tuple[Fact, ...] = ()


def render_facts(facts: Iterable[Fact], *, count: Count, form: Form = "full") -> tuple[BlockLine, ...]:
    """Verified facts as lines, in the order of the log: one anchor a line, its facts side by side.

    What tools told about an anchor follows on a line of its own that is worth less, so that a tight budget keeps what
    was decided. Failed attempts are marked, and what a tool said where somebody else said something different. A call
    that was soon made again with other values stands behind the first: ``then`` and what differs.

    `form` is for memories that are too long otherwise. ``short``: what was said, in fewer words. ``brief``: also, what
    most decisions have in common is told once, and the decisions that have one title stand below it, each on a
    line that begins with ``+``, before everything else.
    """
    return tuple([each.line for each in render_lines(facts, count=count, form=form)])


def render_lines(facts: Iterable[Fact], *, count: Count, form: Form = "full") -> tuple[RenderedLine, ...]:
    """The lines of `render_facts`, each with its facts. A fact without a line repeats one that has a line.

    What the reader that quotes found stands behind, in lines of its own, below the working state.
    """
    verified = sorted((fact for fact in facts if fact.verified), key=lambda fact: (fact.source_seq, fact.span))
    quoting = tuple(fact for fact in verified if is_quoting(fact) or is_state(fact))
    quoted = (RenderedLine(each.line, each.facts) for each in quotation_lines(quoting, count)) if quoting else ()
    stated = (fact for fact in verified if not (is_quoting(fact) or is_state(fact)))
    values = _lines_of_values(stated, count, form)
    return (*values, *quoted)


def _lines_of_values(facts: Iterable[Fact], count: Count, form: Form) -> tuple[RenderedLine, ...]:
    anchors: dict[str, list[Fact]] = {}
    for fact in facts:
        anchors.setdefault(fact.anchor, []).append(fact)
    style = _Style(count, form != "full", _common(anchors.values()) if form == "brief" else frozenset())
    lines = [line for run in _runs(map(tuple, anchors.values())) for line in _anchor_lines(tuple(run), style)]
    lines = [
        each if value == each.line.value else RenderedLine(replace(each.line, value=value), each.facts)
        for each, value in zip(lines, revalued(lines), strict=True)
    ]
    lines = _said_once(lines)
    return (*_common_line(style), *_grouped(lines, count)) if form == "brief" else tuple(lines)


def _said_once(lines: Sequence[RenderedLine]) -> list[RenderedLine]:
    """The facts without quotations that a later message repeats word for word, and without those of one or two words
    out of a sentence that is quoted as a whole.
    """
    newest = {each.line.text: place for place, each in enumerate(lines)}
    wholes: dict[int, RenderedLine] = {}
    for each in sorted((each for each in lines if each.facts[0].salience), key=lambda each: len(each.line.text)):
        wholes[each.facts[0].source_seq] = each
    return [
        each
        for place, each in enumerate(lines)
        if not each.facts[0].salience
        or (newest[each.line.text] == place and not _is_part_of(each, wholes[each.facts[0].source_seq]))
    ]


def _is_part_of(line: RenderedLine, whole: RenderedLine) -> bool:
    if line is whole or any(fact.source_seq != whole.facts[0].source_seq for fact in line.facts):
        return False
    said = whole.line.text.casefold()
    return all(fact.key.replace("_", " ") in said and fact.value.casefold() in said for fact in line.facts)


def _runs(groups: Iterable[tuple[Fact, ...]]) -> list[Run]:
    """The facts of each anchor; calls that only repeat one shortly before them, or change what it made, stand with it.

    A thing stands where it was changed last, so that an older statement is not read as a newer one.
    """
    runs: list[Run] = []
    latest: dict[str, Run] = {}
    things: dict[Thing, Run] = {}
    for facts in groups:
        call = _OWN_SEQ.sub("", facts[0].anchor)
        names = tuple(_things(call, facts))
        changed = _changed_thing(facts, filter(None, map(things.get, names)))
        if changed is not None:
            changed.append(facts)
            continue
        run = latest.get(call)
        if run is not None and len(run) < MOST_CALLS and _is_again(facts, run[-1]):
            run.append(facts)
        else:
            runs.append([facts])
            latest[call] = runs[-1]
            things.update(dict.fromkeys(names, runs[-1]))
    return sorted(runs, key=_newest)


def _newest(run: Run) -> int:
    return max(facts[-1].source_seq for facts in run)


def _changed_thing(facts: Sequence[Fact], alike: Iterable[Run]) -> Run | None:
    """The run of calls that made the thing that this call of another tool changes: both name it alike, and some of the
    arguments have other values.
    """
    return next((run for run in alike if _changes_thing(facts, run)), None)


def _changes_thing(facts: Sequence[Fact], run: Run) -> bool:
    made, now, then = run[0], _given(facts), _given([fact for call in run for fact in call])
    is_other_tool = _OWN_SEQ.sub("", facts[0].anchor) != _OWN_SEQ.sub("", made[0].anchor)
    is_part = now.keys() < then.keys() and any(now[key] != then[key] for key in now)
    return is_other_tool and is_part and facts[0].failed == made[0].failed


def _things(call: str, facts: Sequence[Fact]) -> Iterator[Thing]:
    """What identifies a decision without an id: each name it was given, with the thing in the name of its tool."""
    if call != facts[0].anchor and facts[0].act == "decision" and not facts[0].salience:
        _, *after = _NAME_WORDS.findall(call) or [""]
        thing = " ".join(word.lower() for word in after)
        yield from (
            (thing, key, value) for key, value in _given(facts).items() if shape_of(plain_value(value)) == "text"
        )


def _is_again(facts: Sequence[Fact], before: Sequence[Fact]) -> bool:
    """The same decision a few messages later with another number, time or flag; failed if that one failed.

    Another name is another thing, not the same thing again.
    """
    if (
        facts[0].salience
        or facts[0].act != "decision"
        or facts[0].source_seq - before[-1].source_seq > SOON
        or facts[0].failed != before[0].failed
    ):
        return False
    now, then = _given(facts), _given(before)
    changed = [key for key in now if now[key] != then.get(key)]
    few = 0 < len(changed) <= min(MOST_CHANGES, len(now) - len(changed))
    return few and list(now) == list(then) and all(shape_of(plain_value(now[key])) != "text" for key in changed)


def _given(facts: Sequence[Fact]) -> dict[str, str]:
    """The arguments of the call, by key."""
    return {fact.key.removeprefix(_NEW): fact.value for fact in facts if fact.said_by != "tool"}


def _common(groups: Iterable[Sequence[Fact]]) -> frozenset[Detail]:
    """The details that nearly all decisions have in common, so that they tell none from another."""
    said = [{_detail(fact) for fact in facts if fact.act == "decision" and not fact.salience} for facts in groups]
    seen = Counter(detail for details in said for detail in details)
    least = max(MANY_FACTS, COMMON_SHARE * sum(map(bool, said)))
    return frozenset(detail for detail, times in seen.items() if times >= least)


def _detail(fact: Fact) -> Detail:
    return fact.key.split(".")[0], fact.value


def _common_line(style: _Style) -> Iterator[RenderedLine]:
    """The line with what the decisions below have in common; it is given up last."""
    if style.common:
        told = SEPARATOR.join(sorted(f"{plain_value(stem)}={plain_value(value)}" for stem, value in style.common))
        text = cut(f"{COMMON_TITLE}: {told}", MAX_LINE_CHARACTERS)
        yield RenderedLine(BlockLine(text=text, tokens=style.tokens_of("\n" + text), value=RULED + 1))


def _grouped(lines: Sequence[RenderedLine], count: Count) -> Iterator[RenderedLine]:
    """The decisions with one title below it, then the other lines. A title goes only when all below it are gone. A
    line that could be read as a role or a header without its title keeps it.
    """
    groups: dict[str, list[RenderedLine]] = {}
    for each in lines:
        title = each.line.text.partition(": ")[0] if each.line.value >= SETTLED else ""
        groups.setdefault(title, []).append(each)
    others = groups.pop("", [])
    for title, group in groups.items():
        for columns, rows in _tables(title, group):
            yield from _table(title, columns, rows, count) if len(rows) > 1 else rows
    yield from others


def _tables(title: str, group: Sequence[RenderedLine]) -> Iterator[tuple[Columns, Sequence[RenderedLine]]]:
    """The lines below a title: first those without columns, then those with the same."""
    tables: dict[Columns, list[RenderedLine]] = {}
    for each in group:
        tables.setdefault(_columns(each.line.text.removeprefix(f"{title}: ")), []).append(each)
    large = {columns for columns, rows in tables.items() if len(columns) > 1 and len(rows) >= LEAST_ROWS}
    rest = {id(each) for columns, rows in tables.items() if columns not in large for each in rows}
    yield (), [each for each in group if id(each) in rest]
    yield from ((columns, rows) for columns, rows in tables.items() if columns in large)


def _table(title: str, columns: Columns, rows: Sequence[RenderedLine], count: Count) -> Iterator[RenderedLine]:
    """A title with its columns, if it has any, and the rows: a value that has a column bears no label. Rows of
    decisions have no blank before a number, which would be a token.
    """
    best = max((each.line for each in rows), key=lambda line: (line.value, line.source_seqs))
    names = f" ({SEPARATOR.join(columns)})" if columns else ""
    text = f"{title}{names}:"
    yield RenderedLine(replace(best, text=text, tokens=count("\n" + text), value=best.value + TITLE_WORTH))
    for line, facts in rows:
        told = line.text.removeprefix(f"{title}: ")
        if columns:
            told = SEPARATOR.join(_LABEL.sub("", part) for part in told.split(SEPARATOR))
        if not facts[0].salience:
            told = _BLANK.sub(";", told)
        text = BELOW_TITLE + told if unforged(told) == told else line.text
        yield RenderedLine(replace(line, text=text, tokens=count("\n" + text)), facts)


def _columns(row: str) -> Columns:
    """What each part of a row is: its label, or what it looks like. Empty for a row that no column names."""
    labelled = [_LABEL.match(part) for part in row.split(SEPARATOR)]
    if not any(labelled):
        return ()
    shapes = (shape_of(part.split(f" {AGAIN}")[0]) for part in row.split(SEPARATOR))
    return tuple(
        label.group(1) if label else NAME if shape == "text" else shape
        for label, shape in zip(labelled, shapes, strict=True)
    )


def _anchor_lines(run: tuple[tuple[Fact, ...], ...], style: _Style) -> tuple[RenderedLine, ...]:
    lines = _remembered_lines if sum(map(len, run)) <= LARGEST_ANCHOR else _fresh_lines
    return lines(run, style)


@memo(maxsize=MOST_ANCHORS)
def _remembered_lines(run: tuple[tuple[Fact, ...], ...], style: _Style) -> tuple[RenderedLine, ...]:
    return _fresh_lines(run, style)


def _fresh_lines(run: tuple[tuple[Fact, ...], ...], style: _Style) -> tuple[RenderedLine, ...]:
    facts, *again = run
    quoted = _quotation_lines([fact for fact in facts if fact.salience], style)
    return (*quoted, *_record_lines([fact for fact in facts if not fact.salience], again, style))


def _quotation_lines(facts: Sequence[Fact], style: _Style) -> Iterator[RenderedLine]:
    """Words of somebody with a name have the title; words of the model, alone or in answer, have none. What stands
    under one name for good (``my dog is Rex``) has the names.
    """
    if not facts:
        return
    title = _title(facts)
    head = QUOTED if title in UNNAMED and any(fact.said_by != "user" for fact in facts) else f"{title}:"
    shortened = {replace(fact, value=quoted_text(fact, squeezed=style.squeezed)): (fact,) for fact in facts}
    is_sentence = facts[0].anchor == ABOUT_USER or bool(_OWN_SEQ.search(facts[0].anchor))
    pieces = [_quoted(fact, is_sentence=is_sentence) for fact in shortened if fact.value]
    if pieces and is_sentence:
        pieces[0] = pieces[0]._replace(text=_read_back(pieces[0].facts[0], _begun(pieces[0].text)))
    yield from _row_lines(head, pieces, shortened, style.tokens_of)


def _quoted(fact: Fact, *, is_sentence: bool) -> _Piece:
    if is_sentence and "=" not in fact.value:
        return _Piece(fact.value, (fact,))
    return _Piece(f"{short_label(fact.key)}={fact.value}", (fact,))


def _begun(said: str) -> str:
    """A sentence with a capital letter, but for names such as "iPad"."""
    first = said.partition(" ")[0]
    return said[:1].upper() + said[1:] if first.islower() else said


def _read_back(fact: Fact, said: str) -> str:
    """Where the model read back or proposed something in no whole sentence, the line says that it did."""
    proposed = fact.act == "decision" and fact.said_by != "user"
    bare = proposed and not any(map(says_what, read_sentences(said)[:1]))
    return f"{READ_BACK}{said.removeprefix('So ')}" if bare else said


def quoted_text(fact: Fact, *, squeezed: bool) -> str:
    """The words of a quotation as a line shows them: relative times stand with their date."""
    day = said_on(fact.key)
    said = with_dates(fact.value, day) if day else fact.value
    if fact.anchor == ABOUT_USER:
        said = f"{fact.key.replace('_', ' ')} {said}"
    return unforged(BULLETS.sub("", plain_value(squeeze(said) if squeezed else said)))


def _record_lines(facts: Sequence[Fact], again: Sequence[Sequence[Fact]], style: _Style) -> Iterator[RenderedLine]:
    if not facts:
        return
    stated = {(fact.key, fact.failed): plain_value(fact.value).casefold() for fact in facts if fact.said_by != "tool"}
    title = _title(facts)
    named = _with_names(facts)
    for mark in ("", FAILED_MARK, INTERRUPTED_MARK):
        for from_tool in (False, True):
            row = [fact for fact in named if fact.mark == mark and (fact.said_by == "tool") == from_tool]
            pieces = _pieces(_uncommon(row, again, style), stated if from_tool else {}, named, title)
            if row and not from_tool:
                for call, before in zip(again, (facts, *again), strict=False):
                    pieces = _changed(pieces, call, _given(before), failed=bool(mark))
            yield from _row_lines(f"{title}{mark}:", pieces, named, style.tokens_of)


def _uncommon(row: Sequence[Fact], again: Sequence[Sequence[Fact]], style: _Style) -> Sequence[Fact]:
    """The facts that the common line does not hold, or that were changed since; at least one fact."""
    if not style.common:
        return row
    given = {fact.key.removeprefix(_NEW): fact.value for call in again for fact in call if fact.said_by != "tool"}
    return [f for f in row if _detail(f) not in style.common or given.get(f.key, f.value) != f.value] or row[:1]


def _changed(pieces: Sequence[_Piece], call: Sequence[Fact], known: Mapping[str, str], *, failed: bool) -> list[_Piece]:
    """The pieces, each with what a call that was made again was given in its place: ``13:00 then 12:30``."""
    changed = list(pieces)
    for fact in call:
        key, value = fact.key.removeprefix(_NEW), _unmarked(plain_value(fact.value))
        if fact.said_by == "tool" or fact.failed != failed or not value or fact.value == known.get(key):
            continue
        keys = [piece.facts[0].key.removeprefix(_NEW) for piece in changed]
        if key in keys:
            place = keys.index(key)
            before = changed[place]
            changed[place] = _Piece(f"{before.text} {AGAIN}{value}", (*before.facts, fact))
        else:
            changed.append(_Piece(f"{short_label(key)}={AGAIN}{value}", (fact,)))
    return changed


def _with_names(facts: Sequence[Fact]) -> dict[Fact, tuple[Fact, ...]]:
    """The facts as they are shown, each with those that say so: an id (``menu_item.id``) is shown as the name that a
    tool gave for it (``menu_item``).
    """
    names = {(fact.key, fact.failed): fact for fact in facts if fact.said_by == "tool"}
    named = {
        (fact.key.removesuffix(ID_SUFFIX), fact.failed)
        for fact in facts
        if fact.said_by != "tool" and fact.key.endswith(ID_SUFFIX)
    } & names.keys()
    shown: dict[Fact, tuple[Fact, ...]] = {}
    for fact in facts:
        key = (fact.key.removesuffix(ID_SUFFIX), fact.failed)
        if key not in named:
            shown[fact] = (fact,)
        elif fact.said_by != "tool":
            shown[replace(fact, value=names[key].value, key=key[0])] = (fact, names[key])
    return shown


def _row_lines(head: str, pieces: Sequence[_Piece], origins: Origins, count: Count) -> Iterator[RenderedLine]:
    """A line, and if it would be too long, further lines with the same head."""
    while pieces:
        taken = _fitting(head, [piece.text for piece in pieces])
        yield _line(head, pieces[:taken], origins, count)
        pieces = pieces[taken:]


def _title(facts: Sequence[Fact]) -> str:
    """The anchor; its number is left out where it only says from which message the line was made."""
    anchor = facts[0].anchor
    own = _OWN_SEQ.search(anchor)
    if own and any(fact.source_seq == int(own.group(1)) for fact in facts):
        return plain_title(anchor[: own.start()])
    return plain_title(anchor)


def _fitting(head: str, pieces: Sequence[str]) -> int:
    """How many pieces fit into one line: at least one."""
    length = len(head) + 1
    for number, piece in enumerate(pieces):
        length += len(piece) + len(SEPARATOR)
        if number and length - len(SEPARATOR) > MAX_LINE_CHARACTERS:
            return number
    return len(pieces)


def _line(head: str, pieces: Sequence[_Piece], origins: Origins, count: Count) -> RenderedLine:
    text = f"{head} {SEPARATOR.join(piece.text for piece in pieces)}"
    shown = [fact for piece in pieces for fact in piece.facts]
    facts = tuple(origin for fact in shown for origin in origins.get(fact, (fact,)))
    line = BlockLine(
        text=text,
        tokens=count("\n" + text),
        value=_value(shown),
        source_seqs=tuple(sorted({fact.source_seq for fact in facts})),
    )
    return RenderedLine(line, facts)


def _value(facts: Sequence[Fact]) -> float:
    """The worth of the best fact, and a little for the others: never as much as the next kind of fact is worth."""
    best = max(fact.worth for fact in facts)
    return best if any(fact.salience for fact in facts) else best + min(len(facts), MANY_FACTS) * FURTHER_FACT_WORTH


def _pieces(row: Sequence[Fact], stated: Stated, origins: Origins, title: str) -> list[_Piece]:
    """Each fact as ``value`` or ``label=value``, without what the anchor says already."""
    parts = [Part(fact.key, plain_value(fact.value), len(origins[fact]) > 1) for fact in row]
    labelled = zip(row, parts, labels(parts, title=title), strict=True)
    return [
        _Piece(text, (fact,)) for fact, part, label in labelled if (text := _piece(fact, part.value, label, stated))
    ]


def _piece(fact: Fact, value: str, label: str, stated: Stated) -> str:
    other = stated.get((fact.key, fact.failed))
    if not value or value.casefold() == other:
        return ""
    value = _unmarked(value)
    if other:
        return f"{label or fact.key}={value}{TOOL_MARK}"
    return f"{label}={value}" if label else value


def _unmarked(value: str) -> str:
    """A value that cannot be taken for one that was changed."""
    return _AGAIN.sub(", then ", value).lstrip(", ")
