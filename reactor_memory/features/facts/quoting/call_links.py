"""What calls have to do with each other: repeats, failures, changes, later calls about the same thing. Pure."""

from __future__ import annotations

import math
import re
from bisect import bisect
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence

from reactor_memory.features.facts.labels import shape_of
from reactor_memory.features.facts.quoting.linked_records import Change, Linked
from reactor_memory.features.facts.quoting.log_records import Made, Said, label_of, letters_of, without_signs
from reactor_memory.features.facts.quoting.record_keys import whole_key
from reactor_memory.models.ledger import KEPT_SALIENCE, Fact

DONE, DONE_IN_TEXT, LOOKED_UP = 3.5, 4.0, 0.8
"""The weights of calls. `DONE`: a call that did something and answered with a record, or named what it made; in text:
with other prose, which tools answer that are called often.
"""

OVERCOME = 0.3
"""What a call is worth that failed before another one of its tool worked in the same turn."""

KEPT = 2.5
"""What a model chose to keep."""

SHORT_VALUE = 16
SOON = 12
"""Messages within which a call is made again with another number."""

MOST_AFTER = 4
EARLIER = " (earlier result)"

REFERENCE = re.compile(
    r"(?<![A-Za-z0-9_-])(?:(?=[0-9a-f]{0,39}\d)(?=\d{0,39}[a-f])[0-9a-f]{7,40}|[A-Za-z]{1,5}-?\d{3,10})"
    r"(?![A-Za-z0-9_-])"
)
"""What a text calls something new: the number of a commit, of a booking. Scripts without spaces touch it."""

OFTEN = 3
"""What is said so often says nothing of a call."""

NAMING = frozenset({"name", "title", "label"})
_NAME_WORDS = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")
MOST_BEARERS = 20


def linked_calls(made: Sequence[Made], said: Sequence[Said]) -> Iterator[Linked[Made]]:
    count = Counter(each.tool for each in made)
    times = Counter(each.fact.value for each in said)
    tries: defaultdict[tuple[str, ...], list[Made]] = defaultdict(list)
    for each in made:
        tries[_same(each)].append(each)
    changes, followed, names = _changes(made), _followed(made), _names(made)
    tried, failures = _tried(made), _failures(made)
    last = {_asked(each): each for each in made}
    overcome, naming = _overcome(made, said), _naming_new(made)
    hidden = {id(other) for others in (*followed.values(), *tried.values(), *failures.values()) for other in others}
    for each in made:
        again = tries[_same(each)]
        if each is not again[-1] or id(each) in hidden:
            continue
        changed, unchanged = changes[id(each)]
        is_new, newest = id(each) in naming, last[_asked(each)]
        is_deed = is_new and id(newest) in naming and _named(each).isdisjoint(_named(newest))
        is_earlier = bool(each.lines) and not each.failed and newest.seq > each.seq and not is_deed
        yield Linked(
            each,
            _call_weight(each, count[each.tool], is_new=is_new) * (OVERCOME if id(each) in overcome else 1.0),
            times=len(again),
            is_new=is_new,
            changes=changed,
            unchanged=unchanged,
            after=tuple(followed.get(id(each), ())),
            tried=tuple(tried.get(id(each), ())),
            failures=tuple(failures.get(id(each), ())),
            comment=_comment(each, said, times),
            names={fact: names[fact.value] for fact in each.given if fact.value in names},
            remark=f"{_times(again)}{_after_failures(failures.get(id(each), ()))}{EARLIER if is_earlier else ''}",
        )


def _overcome(made: Sequence[Made], said: Sequence[Said]) -> frozenset[int]:
    """The calls that failed in prose before another one of their tool worked, and the user spoke: tries on the way."""
    users = [each.seq for each in said if each.is_users]
    worked: dict[str, int] = {}
    found: set[int] = set()
    for each in reversed(made):
        if not each.failed:
            worked[each.tool] = each.seq
        elif each.lines and each.tool in worked and bisect(users, each.seq) == bisect(users, worked[each.tool]):
            found.add(id(each))
    return frozenset(found)


def _comment(each: Made, said: Sequence[Said], times: Mapping[str, int]) -> Said | None:
    """What the model says right after a call that gave nothing back, unless the user spoke before, or all is said so
    often (`times`) that it is about no call.
    """
    if each.fields or each.lines or each.failed or each.role == "read":
        return None
    after = next((other for other in said if each.seq < other.seq <= each.seq + 2), None)
    if after is None or after.is_users or times[after.fact.value] >= OFTEN:
        return None
    return after


def other_than_asked(each: Made) -> list[Fact]:
    """The fields of what a deed gave back that have another value than the argument of their name."""
    if each.role == "read":
        return []
    times = Counter(map(label_of, each.given))
    given = {label_of(fact): without_signs(fact.value) for fact in each.given if times[label_of(fact)] == 1}
    told = (
        (fact, given.get(label_of(fact), ""), without_signs(fact.value)) for fact in each.fields if not _is_listed(fact)
    )
    return [fact for fact, asked, got in told if asked and got and asked not in got and got not in asked]


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
    return whole_key(fact.key).rpartition(".")[0]


def _followed(made: Sequence[Made]) -> Mapping[int, list[Made]]:
    """Calls that made something new, each with the later ones that did something with it. What more calls are about
    owns things, and is none.
    """
    makers: dict[str, Made] = {}
    named: defaultdict[tuple[str, str, str], list[Made]] = defaultdict(list)
    found: defaultdict[int, list[Made]] = defaultdict(list)
    for each in made:
        if each.role != "act":
            continue
        told = [place[0] for fact in each.lines for place in REFERENCE.finditer(fact.value)]
        first = [place[0] for fact in each.lines[:1] for place in REFERENCE.finditer(fact.value)]
        maker = next((makers[thing] for thing in (*_things(each), *first) if thing in makers), None)
        maker = maker or _made_by_name(each, named)
        if maker is not None:
            found[id(maker)].append(each)
        elif not each.failed:
            makers.update({fact.value: each for fact in each.fields if _names_thing(fact)})
            makers.update({thing: each for thing in told if thing not in makers})
            for name in _names_of(each):
                named[name].append(each)
    return {maker: others for maker, others in found.items() if len(others) <= MOST_AFTER}


def _made_by_name(each: Made, named: Mapping[tuple[str, str, str], Sequence[Made]]) -> Made | None:
    """The only call of another tool that made the thing which a call names alike, and tells nothing else of. What a
    thing is called stands first among the arguments of what made it.
    """
    names = set(_names_of(each))
    known = {id(made): made for name in names for made in named.get(name, ())[:2]}
    if len(known) != 1:
        return None
    (made,) = known.values()
    is_called = next(_names_of(made), None) in names
    return made if is_called and made.tool != each.tool and _is_about(_values(each), _values(made)) else None


def _is_about(now: Mapping[str, str], then: Mapping[str, str]) -> bool:
    """Whether a call was given a part of what another one was, with other values or none: by their labels, or by one
    value that is such a label and one more (``field=start_time; value=15:30``).
    """
    others = now.keys() - then.keys()
    return len(now) < len(then) and (not others or (len(others) == 2 and any(now[each] in then for each in others)))


def _names_of(each: Made) -> Iterator[tuple[str, str, str]]:
    """Each name that a call was given, with what it names and with the thing in the name of its tool."""
    thing = "".join(word.lower() for word in _NAME_WORDS.findall(each.tool)[1:])
    if thing:
        values = _values(each).items()
        yield from ((thing, label, value) for label, value in values if shape_of(value) == "text")


def _values(each: Made) -> dict[str, str]:
    """What a call was given, by its labels."""
    return {label_of(fact).removeprefix("new_"): fact.value for fact in each.given}


def _same(each: Made) -> tuple[str, ...]:
    """What makes two calls one that was repeated: the arguments, and a result that says the same but for its numbers.
    Failures are alike; what made two things is done twice.
    """
    if each.failed:
        return (*_asked(each), "failed")
    made = _new_things(each) if each.role == "act" else ()
    return (*_asked(each), *(letters_of(fact.value) for fact in each.lines), *made)


def _asked(each: Made) -> tuple[str, ...]:
    """The tool and the arguments."""
    return (each.tool, *(f"{fact.key}={fact.value}" for fact in each.given))


def _failures(made: Sequence[Made]) -> Mapping[int, list[Made]]:
    """Calls that did what the same ones before them failed to do. What became of one that was interrupted nobody knows:
    it may have been done, too.
    """
    found: dict[int, list[Made]] = {}
    waiting: defaultdict[tuple[str, ...], list[Made]] = defaultdict(list)
    for each in made:
        asked = _asked(each)
        if each.is_interrupted:
            continue
        if each.failed:
            waiting[asked].append(each)
        elif asked in waiting:
            found[id(each)] = waiting.pop(asked)
    return found


def _after_failures(failures: Sequence[Made]) -> str:
    return f" (after {len(failures)} {'failures' if len(failures) > 1 else 'failure'})" if failures else ""


def _tried(made: Sequence[Made]) -> Mapping[int, list[Made]]:
    """Deeds with those of the same tool shortly before them that differ in one number or time, and made nothing. What
    was done stays so beside a later try that failed, which stands by itself.
    """
    found: dict[int, list[Made]] = {}
    newest: dict[str, Made] = {}
    for each in made:
        before = newest.get(each.tool)
        if each.role == "act" and before is not None and each.seq - before.seq <= SOON and _is_try(before, each):
            if each.failed and not before.failed:
                continue
            found[id(each)] = [*found.pop(id(before), []), before]
        newest[each.tool] = each
    return found


def _is_try(before: Made, each: Made) -> bool:
    if [fact.key for fact in before.given] != [fact.key for fact in each.given] or before.lines:
        return False
    if any(map(_names_thing, before.fields)):
        return False
    other = [(a.value, b.value) for a, b in zip(before.given, each.given, strict=True) if a.value != b.value]
    if len(other) != 1 or letters_of(other[0][0]) != letters_of(other[0][1]):
        return False
    return all(len(value) <= SHORT_VALUE and any(map(str.isdigit, value)) for value in other[0])


def _times(again: Sequence[Made]) -> str:
    """How often the same was called: the last outcome stands in the line."""
    return f" ({len(again)} times)" if len(again) > 1 else ""


def _naming_new(made: Sequence[Made]) -> frozenset[int]:
    """The deeds whose results in prose call something by a reference that stood in no call before."""
    known: set[str] = set()
    found: set[int] = set()
    for each in made:
        named = _named(each)
        known.update(name for fact in each.given for name in REFERENCE.findall(fact.value))
        if each.role == "act" and not each.failed and not named <= known:
            found.add(id(each))
        known |= named
    return frozenset(found)


def _named(each: Made) -> frozenset[str]:
    return frozenset(name for fact in each.lines for name in REFERENCE.findall(fact.value))


def _call_weight(each: Made, count: int, *, is_new: bool) -> float:
    if each.given[0].salience == KEPT_SALIENCE:
        return KEPT + DONE
    often = 1 + math.log2(count) / 3
    if each.role == "read":
        return LOOKED_UP / often if each.lines else LOOKED_UP
    return DONE_IN_TEXT / often if each.lines and not is_new else DONE


def _changes(made: Sequence[Made]) -> Mapping[int, tuple[tuple[Change, ...], frozenset[Fact]]]:
    """For each call what it changed of a thing that was seen before, and which fields it left as they were. What a call
    makes changes nothing of what calls of its tool made before (two payments of one bill), and its arguments and fields
    are not those of the thing that it was made for (the amount of a refund, of an order).
    """
    state: dict[tuple[str, str], Fact] = {}
    makers = {fact: each for each in made for fact in each.facts}
    seen: set[str] = set()
    found: dict[int, tuple[tuple[Change, ...], frozenset[Fact]]] = {}
    for each in made:
        things, new = _things(each), _new_things(each)
        changed: list[Change] = []
        unchanged: set[Fact] = set()
        now: dict[tuple[str, str], Fact] = {}
        unseen = [thing for thing in new if thing not in seen and each.role == "act"]
        for fact, about in (
            *((given, things) for given in each.given),
            *((field, unseen or things) for field in each.fields),
        ):
            label = label_of(fact).removeprefix("new_")
            if not label or fact.value in about or _is_listed(fact):
                continue
            before = next((known for thing in about if (known := state.get((thing, label)))), None)
            if before and new and makers[before].tool == each.tool:
                before = None
            if before and each.role == "act" and not each.failed:
                if before.value != fact.value:
                    changed.append(Change(fact, before))
                elif fact in each.fields:
                    unchanged.add(fact)
            now.update({(thing, label): fact for thing in unseen or about})
        if not each.failed:
            state.update(now)
        seen.update(fact.value for fact in each.facts)
        found[id(each)] = (tuple(_of_one_part(each, changed, makers)), frozenset(unchanged))
    return found


def _of_one_part(each: Made, changed: Sequence[Change], makers: Mapping[Fact, Made]) -> Sequence[Change]:
    """The changes, without those between the arguments of two calls of one tool that differ in several: they were made
    for different parts of the thing (clauses of a contract), and neither replaced the other.
    """
    return [change for change in changed if not _is_of_another_part(each, change, makers[change.before])]


def _is_of_another_part(each: Made, change: Change, before: Made) -> bool:
    if before.tool != each.tool or change.fact not in each.given or change.before not in before.given:
        return False
    known = {(fact.key, fact.value) for fact in before.given}
    return sum((fact.key, fact.value) not in known for fact in each.given) > 1


def _new_things(each: Made) -> list[str]:
    """The ids that a call gave back and was not given."""
    things = _things(each)
    ids = (fact for fact in each.fields if _names_thing(fact) and not _is_listed(fact))
    named = (fact.value for fact in ids if label_of(fact).endswith("id") or REFERENCE.fullmatch(fact.value))
    return [thing for thing in named if thing not in things]


def _is_listed(fact: Fact) -> bool:
    return any(part.isdigit() for part in fact.key.split(".")[2:])


def _things(each: Made) -> list[str]:
    """The ids that a call was given."""
    return [fact.value for fact in each.given if _names_thing(fact)]


def _names_thing(fact: Fact) -> bool:
    is_word = len(fact.value) >= 3 and " " not in fact.value and any(map(str.isdigit, fact.value))
    return is_word and not _is_number_of(fact)


def _is_number_of(fact: Fact) -> bool:
    """A value that is a number or a time, where the key names no id. A time begins with no letter (``T-9``)."""
    label = label_of(fact)
    is_plain = fact.value[0] not in "TZ" and all(c.isdigit() or c in ".,:-/T+Z" for c in fact.value)
    return is_plain and not (label.endswith(("id", "number")) or "ref" in label)
