"""The records of the reader that quotes as lines of a memory block, under the days on which they were said.

``Ann: "..."`` is what Ann said, ``"..."`` alone what the user said. A call is its tool, its arguments, and behind
``->`` what its result says. Whatever stands between marks of quotation stands so in the log.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import date
from typing import NamedTuple, TypeAlias

from reactor_memory.features.facts.plain_text import plain_quotation, plain_title, unforged
from reactor_memory.features.facts.quoting.call_lines import call_lines
from reactor_memory.features.facts.quoting.coverage import AGAIN, Candidate, told_values
from reactor_memory.features.facts.quoting.language_packs import days_meant, takes_back
from reactor_memory.features.facts.quoting.linked_records import Linked
from reactor_memory.features.facts.quoting.links import is_at_stake, linked
from reactor_memory.features.facts.quoting.log_records import Made, Said, calls_of, statements_of, turn_by_turn
from reactor_memory.features.facts.quoting.record_keys import MODEL, NOTICE, Stance
from reactor_memory.features.facts.quoting.series import others_in_series
from reactor_memory.features.facts.quoting.term_worth import weighed_terms
from reactor_memory.features.facts.working_state import CONCLUDED, IN_MIND, state_lines
from reactor_memory.models.block_lines import BlockLine
from reactor_memory.models.ledger import Fact
from reactor_memory.text.caches import memo
from reactor_memory.text.words import MONTHS

Count: TypeAlias = Callable[[str], int]

ABOVE = 1e-4
"""A heading is worth so much more than the best line below it: it goes only with all of them."""

SAID_POWER, MADE_POWER = 0.7, 1.0
RECORDED_AGAIN = 0.85
"""Of a term in a call that answers with a record: bookings of one kind have most of their terms in common."""

DETAIL = 0.25
"""What a result tells beside what the call made, of the weight of its call."""


MOST_SETS = 16
"""The lines of so many working sets are remembered: a layout asks for the same several times."""


MOST_LIKEWISE = 12

STATE_TITLE = "working state:"
AT_HAND, NOTED = 6.0, 2.5
"""The weights of items of the working state: of what has to be kept in mind, and of what was done or noted."""

STATE_AGAIN = 0.1
"""Of a term in such an item: its records may have told it."""

FEWER, LACKS = 1.5, 0.3
"""A record that says all of an item but so much stands for it, unless it takes so many times its tokens."""

RESTATED = 0.25
"""What an item says all of is worth so much beside it."""

TELLING = 0.4
"""The worth from which a term says something: small words are worth less."""

AGREED_MARK = "agreed: "
"""What the model read back and the user accepted."""


class QuotationLine(NamedTuple):
    """A line, its facts, and the message that it tells; 0 for headings."""

    line: BlockLine
    facts: tuple[Fact, ...] = ()
    seq: int = 0


class _Draft(NamedTuple):
    """A line to be: where it stands, and what it is worth."""

    text: str
    facts: tuple[Fact, ...]
    seq: int
    day: date | None
    weight: float
    power: float
    terms: str
    title: str = ""
    goes_on: bool = False
    again: float = AGAIN


@memo(maxsize=MOST_SETS)
def quotation_lines(facts: tuple[Fact, ...], count: Count) -> tuple[QuotationLine, ...]:
    """The lines in the order of the log; before them the working state, then tables, in the order in which they began.
    Their values are the order in which they are worth telling.
    """
    said, made, seqs = turn_by_turn(statements_of(facts), calls_of(facts))
    records = list(_drafts(said, made))
    drafts = [*_state_drafts(facts, records, seqs, count), *records]
    begins = {each.title: each.seq for each in sorted(drafts, key=lambda each: -each.seq) if each.title}
    begins[STATE_TITLE] = 0
    drafts.sort(key=lambda each: (each.title == "", begins.get(each.title, 0), each.title, each.seq))
    tokens = [count("\n" + each.text) for each in drafts]
    values = told_values(
        [
            Candidate(cost, each.weight, weighed_terms(each.terms), each.seq, each.power, each.again)
            for each, cost in zip(drafts, tokens, strict=True)
        ]
    )
    for place in range(1, len(drafts)):
        if drafts[place].goes_on:
            values[place] = min(values[place], values[place - 1] * (1 - ABOVE))
    lines = [
        QuotationLine(_line(each, cost, value), each.facts, seqs.get(each.seq, each.seq))
        for each, cost, value in zip(drafts, tokens, values, strict=True)
    ]
    return tuple(_under_headings(lines, _headings(drafts), count))


def _line(draft: _Draft, tokens: int, value: float) -> BlockLine:
    """The value has six digits, so that what is kept of a line is short."""
    seqs = tuple(sorted({fact.source_seq for fact in draft.facts}))
    return BlockLine(text=draft.text, tokens=tokens, value=float(f"{value:.6g}"), source_seqs=seqs)


def _drafts(said: Sequence[Said], made: Sequence[Made]) -> Iterator[_Draft]:
    has_names = any(each.is_named and each.is_users for each in said)
    found = linked(said, made)
    seqs = [each.seq for each in said]
    yield from (_said_draft(each, has_names=has_names) for each in found.said)
    for call in call_lines(found.made):
        day = None if call.title else _day_at(call.seq, seqs, said)
        draft = _Draft(call.text, call.facts, call.seq, day, call.weight, MADE_POWER, call.values, call.title)
        draft = draft._replace(again=RECORDED_AGAIN if call.is_record else AGAIN)
        yield draft
        if call.more:
            yield draft._replace(
                text=call.more, facts=call.details, weight=DETAIL * call.weight, terms=call.more, goes_on=True
            )


def _state_drafts(
    facts: Sequence[Fact], records: list[_Draft], seqs: Mapping[int, int], count: Count
) -> Iterator[_Draft]:
    """The items of the working state that say more than a record does, or the same in fewer tokens. In `records`, what
    says all of an item takes over its weight, and what an item says all of is worth less. `seqs`: the numbers in the
    log of those that records have here.
    """
    places = {seq: place for place, seq in seqs.items()}
    told = [_telling_terms(f"{each.title} {each.text}") for each in records]
    for item, text, fact in state_lines(facts):
        weight, said = AT_HAND if item.kind in IN_MIND else NOTED, _telling_terms(item.text)
        cited = [place for place, each in enumerate(records) if item.first <= seqs.get(each.seq, each.seq) <= item.last]
        whole = next((place for place in cited if _is_told(said, told[place])), None)
        if whole is not None and item.kind not in CONCLUDED and count(records[whole].text) <= FEWER * count(text):
            records[whole] = records[whole]._replace(weight=max(weight, records[whole].weight))
            continue
        for place in cited:
            if _is_told(told[place], said):
                records[place] = records[place]._replace(weight=RESTATED * records[place].weight)
        seq = places.get(item.first, item.first)
        yield _Draft(text, (fact,), seq, None, weight, MADE_POWER, item.text, STATE_TITLE, again=STATE_AGAIN)


def _telling_terms(text: str) -> Mapping[str, float]:
    return {term: worth for term, worth in weighed_terms(text).items() if worth > TELLING}


def _is_told(said: Mapping[str, float], other: Mapping[str, float]) -> bool:
    """Whether another text says what this one says: all of its numbers, and most of its words."""
    left = [term for term in said if term not in other]
    has_numbers = any(any(map(str.isdigit, term)) for term in left)
    return not has_numbers and sum(said[term] for term in left) <= LACKS * sum(said.values())


def _said_draft(each: Linked[Said], *, has_names: bool) -> _Draft:
    said = each.record
    speaker = AGREED_MARK if each.is_agreed else _speaker(said, has_names=has_names)
    rest = "".join(f" {_quoted(other)}" for other in each.rest)
    asked = ""
    if each.question is not None and each.question.fact.value not in said.fact.value:
        is_of_question = bool(rest) and each.rest[0].seq == each.question.seq
        asked = f'(to "{plain_quotation(each.question.fact.value)}"{rest * is_of_question}) '
        rest *= not is_of_question
    text = f"{speaker}{asked}{_quoted(said)}{rest}"
    text += "".join(_then(other, has_names=has_names) for other in each.then)
    text += each.remark + _likewise(said, each.series)
    sources = (said, *each.then, *each.series, *each.rest, *((each.question,) if each.question else ()))
    return _Draft(
        text=unforged(text),
        facts=tuple(source.fact for source in sources),
        seq=said.seq,
        day=said.day,
        weight=each.weight,
        power=MADE_POWER if each.is_read_back or is_at_stake(said) else SAID_POWER,
        again=RECORDED_AGAIN if each.is_read_back else AGAIN,
        terms=" ".join(source.fact.value for source in sources if source not in each.series),
    )


def _then(other: Said, *, has_names: bool) -> str:
    if takes_back(other.fact.value):
        return f" (taken back: {_quoted(other)})"
    return f" then {_quoted(other)}" if other.is_users else f" ({_speaker(other, has_names=has_names)}{_quoted(other)})"


def _likewise(said: Said, series: Sequence[Said]) -> str:
    """The words in which other statements differ from one."""
    others = others_in_series(said.fact.value, [each.fact.value for each in series])
    told = ", ".join(f'"{plain_quotation(other)}"' for other in others[:MOST_LIKEWISE])
    return f" (also: {told}{', …' * (len(others) > MOST_LIKEWISE)})" if told else ""


def _speaker(said: Said, *, has_names: bool) -> str:
    pasted = " (pasted)" if said.stance == "pasted" else ""
    if said.is_named:
        return f"{plain_title(said.name)}{pasted}: "
    if said.name in (MODEL, NOTICE) or has_names:
        return f"{said.name}{pasted}: "
    return "pasted: " if pasted else ""


def _quoted(said: Said) -> str:
    return _quotation(said.fact.value, said.stance, said.day)


@memo(maxsize=8192)
def _quotation(value: str, stance: Stance, day: date | None) -> str:
    text = plain_quotation(value)
    mark = " …" if stance == "cut" else ""
    days = days_meant(value, day) if day and stance != "pasted" else ()
    return f'"{text}{mark}"{" (" * bool(days)}{", ".join(days)}{")" * bool(days)}'


def _day_at(seq: int, seqs: Sequence[int], said: Sequence[Said]) -> date | None:
    """The day of the last statement up to a message, else of the first one."""
    return said[max(0, bisect_right(seqs, seq) - 1)].day if said else None


def _headings(drafts: Sequence[_Draft]) -> list[str]:
    """For each line the columns of its table, or its day, with the year where that is not the one of the last day."""
    newest = max((each.day.year for each in drafts if each.day), default=0)
    return [each.title if each.title or each.day is None else _day(each.day, newest) for each in drafts]


def _under_headings(lines: Sequence[QuotationLine], headings: Sequence[str], count: Count) -> Iterator[QuotationLine]:
    best: dict[str, float] = {}
    for each, heading in zip(lines, headings, strict=True):
        best[heading] = max(best.get(heading, 0.0), each.line.value)
    above = ""
    for each, heading in zip(lines, headings, strict=True):
        if heading and heading != above:
            value = best[heading] * (1 + ABOVE)
            yield QuotationLine(BlockLine(text=heading, tokens=count("\n" + heading), value=value))
        above = heading
        yield each


@memo(maxsize=1024)
def _day(day: date, newest: int) -> str:
    year = f" {day.year}" if day.year != newest else ""
    return f"{day.day} {MONTHS[day.month - 1].capitalize()}{year}:"
