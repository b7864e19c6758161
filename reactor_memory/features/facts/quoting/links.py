"""What the records of a log have to do with each other: questions and answers, corrections, repeats, changes. Pure.

Links are drawn over all records that are kept, never stored: what is erased, retracted or corrected has none.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Generic, NamedTuple, TypeVar

from reactor_memory.features.facts.quoting.language_packs import is_courtesy, takes_back
from reactor_memory.features.facts.quoting.log_records import Made, Said, label_of
from reactor_memory.features.facts.quoting.read_backs import HALF, agreements, is_short, needs_more, read_backs
from reactor_memory.features.facts.quoting.record_keys import replies_to
from reactor_memory.features.facts.quoting.term_worth import weighed_terms
from reactor_memory.models.ledger import KEPT_SALIENCE, Fact
from reactor_memory.text.asking import asks
from reactor_memory.text.caches import memo

T = TypeVar("T", Said, Made)

DONE, DONE_IN_TEXT, LOOKED_UP = 3.5, 4.0, 0.8
USER, CLOSING, MODEL = 1.0, 0.4, 0.15
ANSWER, ASKED, PASTED, REPLACED, BOILERPLATE = 1.2, 0.4, 0.5, 0.25, 0.1
"""The weights of records. `DONE`: a call that did something and answered with a record; in text: with prose, which
tools answer that are called often.
"""

KEPT = 2.5
"""What a model chose to keep."""

WORKED, FOUND = 1.7, 0.35
"""The answer to a question for which the model called tools is worth so much more, and what those calls found so much
of what they are worth elsewhere.
"""

SHORT_VALUE = 16
SOON = 12
"""Messages within which a call is made again with another number."""

FOLLOWS = 4
"""Messages after which short words still follow a statement of the same speaker."""

MANY_WORDS = 5
"""Of so many words one may be another where a statement is made again; of fewer none, for it tells things apart."""

OFTEN = 3
MOST_AFTER = 4
NAMING = frozenset({"name", "title", "label"})
MOST_BEARERS = 20


class Change(NamedTuple):
    """What a value was before a call."""

    fact: Fact
    before: Fact


class Linked(NamedTuple, Generic[T]):
    """A record with what belongs to it. `then`: short words of the same speaker after it. `question`: which it answers.
    `rest`: further sentences of what was read back.
    `is_read_back`: it says again what was said before, or answers that; `is_agreed`: and the user accepted it.
    `after`: later calls about the thing that the call made. `tried`: the same call right before it, with one other
    number. `comment`: what the model said of a call without a result.
    `names`: of ids among its arguments, each with the field that names it.
    `unchanged`: fields that say what was known before. `remark`: ends its line.
    """

    record: T
    weight: float
    then: tuple[Said, ...] = ()
    question: Said | None = None
    rest: tuple[Said, ...] = ()
    is_read_back: bool = False
    is_agreed: bool = False
    changes: tuple[Change, ...] = ()
    unchanged: frozenset[Fact] = frozenset()
    after: tuple[Made, ...] = ()
    tried: tuple[Made, ...] = ()
    comment: Said | None = None
    names: Mapping[Fact, Fact] = {}
    remark: str = ""


class LinkedRecords(NamedTuple):
    said: Sequence[Linked[Said]]
    made: Sequence[Linked[Made]]


def linked(said: Sequence[Said], made: Sequence[Made]) -> LinkedRecords:
    """The records that are worth a line, each with its weight. Both sequences are in the order of the log."""
    statements, calls = list(_statements(said, made)), list(_calls(made, said))
    turns = [(each.question.seq, each.record.seq) for each in statements if each.question and _answers_user(each)]
    worked = {answer for question, answer in turns if _within(question, answer, [each.seq for each in made])}
    return LinkedRecords(
        [
            each._replace(weight=WORKED * each.weight) if each.record.seq in worked and _answers_user(each) else each
            for each in statements
        ],
        [_after_answer(each, turns) for each in calls],
    )


def _answers_user(each: Linked[Said]) -> bool:
    return each.question is not None and not each.record.is_users


def _within(first: int, last: int, seqs: Sequence[int]) -> bool:
    return bisect_right(seqs, first) < bisect_right(seqs, last)


def _after_answer(each: Linked[Made], turns: Sequence[tuple[int, int]]) -> Linked[Made]:
    """What a call that answers in prose found for a question that the model then answered is worth less: the answer
    tells it.
    """
    place = bisect_right(turns, (each.record.seq, 0))
    is_told = place > 0 and each.record.seq <= turns[place - 1][1]
    return each._replace(weight=FOUND * each.weight) if is_told and each.record.lines else each


# -- statements -------------------------------------------------------------------------------------------------------


def _statements(said: Sequence[Said], made: Sequence[Made]) -> Iterator[Linked[Said]]:
    times = Counter(_letters(each) for each in said)
    last = {_letters(each): place for place, each in enumerate(said)}
    first = {_letters(each): place for place, each in reversed(list(enumerate(said)))}
    replaced = _replaced(said)
    restated = read_backs(said, made)
    agreed, answers = agreements(restated)
    open_questions = {place: each for place, each in _answers(said).items() if place not in agreed.settled}
    questions = {**open_questions, **answers}
    glued = _follow_ups(said, times, questions)
    rests = {id(each.said): each.rest for each in restated if each.rest}
    asked = _answered(said, questions)
    told = (each for each in asked.values() if each.stance == "asked" and id(each) not in glued)
    repeated = (each for place, each in questions.items() if place not in glued)
    questions = {**questions, **asked}
    elsewhere = (*glued.values(), *rests.values(), told, repeated, _echoes(said, glued))
    hidden = {id(other) for others in elsewhere for other in others}
    for place, each in enumerate(said):
        words = _letters(each)
        is_often = times[words] >= OFTEN
        is_repeated = place != (first if is_often and each.is_users else last)[words] and id(each) not in answers
        if id(each) in hidden or is_repeated:
            continue
        is_polite = is_courtesy(each.fact.value)
        if is_polite and id(each) not in questions:
            continue
        weight = agreed.weights.get(id(each)) or (ANSWER if id(each) in asked else _weight(each, said, place))
        if is_often or is_polite:
            weight *= BOILERPLATE
        if id(each) in replaced:
            weight *= REPLACED
        yield Linked(
            each,
            weight,
            then=glued.get(id(each), ()),
            question=questions.get(id(each)),
            rest=rests.get(id(questions.get(id(each), each)), ()),
            is_read_back=id(each) in agreed.weights,
            is_agreed=id(each) in agreed.agreed,
            remark=" (told otherwise later)" if id(each) in replaced else "",
        )


def _weight(each: Said, said: Sequence[Said], place: int) -> float:
    stance = {"own": 1.0, "cut": 1.0, "asked": ASKED, "pasted": PASTED}[each.stance]
    if each.fact.salience == KEPT_SALIENCE:
        return KEPT * stance
    if each.is_users:
        return USER * stance
    after = next((other for other in said[place + 1 :] if other.seq > each.seq), None)
    return (CLOSING if after is None or after.is_users else MODEL) * stance


def _letters(each: Said) -> str:
    return f"{each.is_users}{each.name}{_bare(each.fact.value)}"


@memo(maxsize=8192)
def _bare(text: str) -> str:
    return "".join(filter(str.isalnum, text.casefold()))


def _answers(said: Sequence[Said]) -> Mapping[int, Said]:
    """Short statements of a user with the question of the message right before."""
    found: dict[int, Said] = {}
    for before, each in pairwise(said):
        if (
            each.is_users
            and is_short(each)
            and before.stance == "asked"
            and not before.is_users
            and each.seq - before.seq <= 2
        ):
            found[id(each)] = before
    return found


def _echoes(said: Sequence[Said], glued: Mapping[int, tuple[Said, ...]]) -> Iterator[Said]:
    """What the model said of a statement between it and its taking back: that is taken back, too."""
    for each in said:
        ends = [other.seq for other in glued.get(id(each), ()) if takes_back(other.fact.value)]
        if ends:
            yield from (other for other in said if each.seq < other.seq < ends[0] and not other.is_users)


def _answered(said: Sequence[Said], answers: Mapping[int, Said]) -> Mapping[int, Said]:
    """What the model says last in a turn, with the question of the user that began it. Each question has one answer.
    Not all that was said need be known, so the statement itself names the message that it replies to.
    """
    found: dict[int, Said] = {}
    question: Said | None = None
    for place, each in enumerate(said):
        if each.is_users:
            question = each if id(each) not in answers and asks(each.fact.value) else None
        elif question is not None and replies_to(each.fact.key) == question.seq and each.stance in ("own", "cut"):
            after = next((other for other in said[place + 1 :] if other.seq > each.seq), None)
            if after is None or after.is_users:
                found[id(each)] = question
                question = None
    return found


def _follow_ups(
    said: Sequence[Said], times: Counter[str], answered: Mapping[int, Said]
) -> Mapping[int, tuple[Said, ...]]:
    """Statements of users with the short ones of the same user that follow: they correct or take back what was said,
    and say nothing alone. What is one of a series corrects nothing.
    """
    series = Counter(map(_shape, said))
    found: dict[int, tuple[Said, ...]] = {}
    newest: dict[str, Said] = {}
    for each in said:
        if not each.is_users or each.stance == "pasted":
            continue
        before = newest.get(each.name)
        says_nothing = times[_letters(each)] >= OFTEN or is_courtesy(each.fact.value)
        if says_nothing and not takes_back(each.fact.value):
            continue
        is_bare = each.stance == "own" and needs_more(each) and id(each) not in answered
        is_follow_up = is_bare and series[_shape(each)] < OFTEN
        if before and is_follow_up and 0 < each.seq - before.seq <= FOLLOWS:
            found[id(before)] = (*found.get(id(before), ()), each)
        else:
            newest[each.name] = each
    return found


def _replaced(said: Sequence[Said]) -> frozenset[int]:
    """Statements that the same speaker made again later in about the same words with other numbers. Many that differ
    in nothing but their numbers are a series.
    """
    found: set[int] = set()
    about: defaultdict[tuple[str, str], list[Said]] = defaultdict(list)
    series = Counter(_shape(each) for each in said)
    for each in said:
        if each.stance != "own" or series[_shape(each)] >= OFTEN:
            continue
        words, numbers = _words_and_numbers(each.fact.value)
        older = {id(o): o for word in words for o in about[each.name, word][-8:]}
        for other in older.values():
            known, were = _words_and_numbers(other.fact.value)
            lacks = len(known - words)
            is_same = len(words & known) >= 2 and (not lacks or (lacks == 1 and len(known) >= MANY_WORDS))
            if numbers and were and numbers != were and is_same:
                found.add(id(other))
        for word in words:
            about[each.name, word].append(each)
    return frozenset(found)


def _shape(each: Said) -> str:
    return each.name + "".join(filter(str.isalpha, each.fact.value))


@memo(maxsize=8192)
def _words_and_numbers(text: str) -> tuple[frozenset[str], frozenset[str]]:
    terms = weighed_terms(text)
    numbers = frozenset(term for term in terms if any(map(str.isdigit, term)))
    return frozenset(term for term, worth in terms.items() if worth > HALF - 0.1) - numbers, numbers


# -- calls ------------------------------------------------------------------------------------------------------------


def _calls(made: Sequence[Made], said: Sequence[Said]) -> Iterator[Linked[Made]]:
    count = Counter(each.tool for each in made)
    tries: defaultdict[tuple[str, ...], list[Made]] = defaultdict(list)
    for each in made:
        tries[_same(each)].append(each)
    changes, followed, names = _changes(made), _followed(made), _names(made)
    tried = _tried(made)
    hidden = {id(other) for others in (*followed.values(), *tried.values()) for other in others}
    for each in made:
        again = tries[_same(each)]
        if each is not again[-1] or id(each) in hidden:
            continue
        changed, unchanged = changes[id(each)]
        yield Linked(
            each,
            _call_weight(each, count[each.tool]),
            changes=changed,
            unchanged=unchanged,
            after=tuple(followed.get(id(each), ())),
            tried=tuple(tried.get(id(each), ())),
            comment=_comment(each, said),
            names={fact: names[fact.value] for fact in each.given if fact.value in names},
            remark=_times(again),
        )


def _comment(each: Made, said: Sequence[Said]) -> Said | None:
    """What the model says right after a call that gave nothing back, unless the user spoke before."""
    if each.fields or each.lines or each.failed or each.role == "read":
        return None
    after = next((other for other in said if each.seq < other.seq <= each.seq + 2), None)
    return None if after is None or after.is_users else after


def _names(made: Sequence[Made]) -> Mapping[str, Fact]:
    """The names that stand beside ids in results, each by its id. What many ids are called names a kind."""
    found: dict[str, Fact] = {}
    bearers: defaultdict[str, set[str]] = defaultdict(set)
    for each in made:
        ids = {_place(fact): fact for fact in each.fields if label_of(fact).endswith("id")}
        for fact in each.fields:
            if label_of(fact).rpartition("_")[2] in NAMING and (ident := ids.get(_place(fact))):
                found.setdefault(ident.value, fact)
                bearers[fact.value].add(ident.value)
    return {ident: name for ident, name in found.items() if len(bearers[name.value]) <= MOST_BEARERS}


def _place(fact: Fact) -> str:
    """The record of a result that a field stands in."""
    return fact.key.rpartition(".")[0]


def _followed(made: Sequence[Made]) -> Mapping[int, list[Made]]:
    """Calls that made something new, each with the later ones that did something with it. What more calls are about
    owns things, and is none.
    """
    makers: dict[str, Made] = {}
    found: defaultdict[int, list[Made]] = defaultdict(list)
    for each in made:
        if each.role != "act":
            continue
        things = _things(each)
        maker = next((makers[thing] for thing in things if thing in makers), None)
        if maker is not None:
            found[id(maker)].append(each)
        elif not each.failed:
            makers.update({fact.value: each for fact in each.fields if _names_thing(fact)})
    return {maker: others for maker, others in found.items() if len(others) <= MOST_AFTER}


def _same(each: Made) -> tuple[str, ...]:
    """What makes two calls one that was repeated: the arguments, and a result that says the same but for its numbers.
    Failures are alike.
    """
    told = ("failed",) if each.failed else tuple("".join(filter(str.isalpha, fact.value)) for fact in each.lines)
    return (each.tool, *(f"{fact.key}={fact.value}" for fact in each.given), *told)


def _tried(made: Sequence[Made]) -> Mapping[int, list[Made]]:
    """Deeds with those of the same tool shortly before them that differ in one number or time, and made nothing."""
    found: dict[int, list[Made]] = {}
    newest: dict[str, Made] = {}
    for each in made:
        before = newest.get(each.tool)
        if each.role == "act" and before is not None and each.seq - before.seq <= SOON and _is_try(before, each):
            found[id(each)] = [*found.pop(id(before), []), before]
        newest[each.tool] = each
    return found


def _is_try(before: Made, each: Made) -> bool:
    if [fact.key for fact in before.given] != [fact.key for fact in each.given] or before.lines:
        return False
    if any(map(_names_thing, before.fields)):
        return False
    other = [(a.value, b.value) for a, b in zip(before.given, each.given, strict=True) if a.value != b.value]
    return len(other) == 1 and all(len(value) <= SHORT_VALUE and any(map(str.isdigit, value)) for value in other[0])


def _times(again: Sequence[Made]) -> str:
    """How often the same was called: the last outcome stands in the line."""
    return f" ({len(again)} times)" if len(again) > 1 else ""


def _call_weight(each: Made, count: int) -> float:
    if each.given[0].salience == KEPT_SALIENCE:
        return KEPT + DONE
    often = 1 + math.log2(count) / 3
    if each.role == "read":
        return LOOKED_UP / often if each.lines else LOOKED_UP
    return DONE_IN_TEXT / often if each.lines else DONE


def _changes(made: Sequence[Made]) -> Mapping[int, tuple[tuple[Change, ...], frozenset[Fact]]]:
    """For each call what it changed of a thing that was seen before, and which fields it left as they were. What a call
    makes changes nothing of what calls of its tool made before (two payments of one bill).
    """
    state: dict[tuple[str, str], Fact] = {}
    tools = {fact: each.tool for each in made for fact in each.facts}
    found: dict[int, tuple[tuple[Change, ...], frozenset[Fact]]] = {}
    for each in made:
        things = _things(each)
        changed: list[Change] = []
        unchanged: set[Fact] = set()
        now: dict[tuple[str, str], Fact] = {}
        ids = (fact for fact in each.fields if label_of(fact).endswith("id") and _names_thing(fact))
        makes = any(fact.value not in things for fact in ids)
        for fact in (*each.given, *each.fields):
            label = label_of(fact).removeprefix("new_")
            if not label or fact.value in things or _is_listed(fact):
                continue
            before = next((known for thing in things if (known := state.get((thing, label)))), None)
            if before and makes and tools[before] == each.tool:
                before = None
            if before and each.role == "act" and not each.failed:
                if before.value != fact.value:
                    changed.append(Change(fact, before))
                elif fact in each.fields:
                    unchanged.add(fact)
            now.update({(thing, label): fact for thing in things})
        if not each.failed:
            state.update(now)
        found[id(each)] = (tuple(changed), frozenset(unchanged))
    return found


def _is_listed(fact: Fact) -> bool:
    return any(part.isdigit() for part in fact.key.split(".")[2:])


def _things(each: Made) -> list[str]:
    """The ids that a call was given."""
    return [fact.value for fact in each.given if _names_thing(fact)]


def _names_thing(fact: Fact) -> bool:
    is_word = len(fact.value) >= 3 and " " not in fact.value and any(map(str.isdigit, fact.value))
    return is_word and not _is_number_of(fact)


def _is_number_of(fact: Fact) -> bool:
    """A value that is a number or a time, where the key names no id."""
    label = label_of(fact)
    is_plain = all(c.isdigit() or c in ".,:-/T+Z" for c in fact.value)
    return is_plain and not (label.endswith(("id", "number")) or "ref" in label)
