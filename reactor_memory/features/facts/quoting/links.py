"""What the records of a log have to do with each other: questions and answers, corrections, repeats. Pure.

Links are drawn over all records that are kept, never stored: what is erased, retracted or corrected has none.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import Counter, deque
from collections.abc import Container, Iterator, Mapping, Sequence
from itertools import pairwise

from reactor_memory.features.facts.quoting.call_links import KEPT, linked_calls
from reactor_memory.features.facts.quoting.language_packs import (
    begins_to_correct,
    days_meant,
    is_courtesy,
    takes_back,
    tells_health,
)
from reactor_memory.features.facts.quoting.later_changes import later_changes
from reactor_memory.features.facts.quoting.linked_records import Linked, LinkedRecords
from reactor_memory.features.facts.quoting.log_records import Made, Said, letters_of
from reactor_memory.features.facts.quoting.measures import counted, gives_another_number, measures
from reactor_memory.features.facts.quoting.outcome_words import all_words
from reactor_memory.features.facts.quoting.read_backs import (
    HALF,
    accepts,
    agreements,
    is_short,
    needs_more,
    read_backs,
    telling_terms,
)
from reactor_memory.features.facts.quoting.series import told_in_series
from reactor_memory.features.facts.quoting.term_worth import weighed_terms
from reactor_memory.models.ledger import KEPT_SALIENCE
from reactor_memory.text.asking import asks
from reactor_memory.text.caches import memo

USER, CLOSING, MODEL = 1.0, 0.4, 0.15
ANSWER, ASKED, PASTED, REPLACED, BOILERPLATE = 1.2, 0.4, 0.5, 0.25, 0.1
"""The weights of statements."""

AT_STAKE = 6.0
"""Rules and conditions that users say, and health: few, and worse to miss than anything that was done."""

DATED = 2.0
"""What a person says of yesterday or next month tells of an event. Contexts of 2,000 tokens hold .09 of LoCoMo word for
word with it and .08 without; bookings, service desks and ten languages are as they were.
"""

WORKED, FOUND = 1.7, 0.35
"""The answer to a question for which the model called tools is worth so much more, and what those calls found so much
of what they are worth elsewhere.
"""

TOLD, TOLD_NEAR, FEW_DONE = 3.5, 12, 0.1
"""What was looked up and told to the user within so many messages is worth so much more, where so small a share of the
calls did something: what calls do tells what was found, too.
"""

FOLLOWS = 4
"""Messages after which short words still follow a statement of the same speaker."""

REMEMBERED = 8
"""How many of the newest statements with a word are looked at for one that is made again."""

BRIEF_WORDS, BRIEF_CHARACTERS = 4, 24
"""So few words with another number of the same kind correct what was said before."""

MOST_OTHER = 4
"""So few words, of which the first one corrects, give another word for what was said before."""

MOST_LITTLE = 80
MOST_TOLD = 2
"""Characters, and words that tell something, of a statement that tells little but a number."""

OF_SAME = 0.4
"""A rule and what has a smaller share of the words of both in common, and no pair of them, are about different things:
requests for two things of a kind share up to .3.
"""

MANY_WORDS = 5
"""Of so many words one may be another where a statement is made again; of fewer none, for it tells things apart."""

OFTEN = 3
_WRITTEN, _DIGITS = re.compile(r"\d(?:[.,:]?\d){0,12}"), re.compile(r"\d+")
_SEVERAL_DIGITS, _DIGIT = re.compile(r"(?<![\w.,:])\d(?:[.,:]?\d){1,11}(?![\w])"), re.compile(r"\d")


def linked(said: Sequence[Said], made: Sequence[Made]) -> LinkedRecords:
    """The records that are worth a line, each with its weight. Both sequences are in the order of the log."""
    statements, calls = list(_statements(said, made)), list(linked_calls(made, said))
    turns = [(each.question.seq, each.record.seq) for each in statements if each.question and _answers_user(each)]
    worked = {answer for question, answer in turns if _within(question, answer, [each.seq for each in made])}
    looks = sum(each.role == "act" for each in made) <= FEW_DONE * len(made)
    return LinkedRecords(
        [
            each._replace(weight=WORKED * each.weight) if each.record.seq in worked and _answers_user(each) else each
            for each in statements
        ],
        [_told(_after_answer(each, turns), said, TOLD if looks else 1.0) for each in _taken_back(calls, statements)],
    )


def _told(each: Linked[Made], said: Sequence[Said], times: float) -> Linked[Made]:
    """What was looked up and told to the user soon after is worth `times` as much."""
    made = each.record
    if made.role != "read" or not made.fields:
        return each
    start = bisect_right(said, made.seq, key=lambda other: other.seq)
    near = (other for other in said[start : start + TOLD_NEAR] if other.seq <= made.seq + TOLD_NEAR)
    text = "\n".join(other.fact.value.casefold() for other in near if not other.is_users)
    values = {fact: fact.value.casefold() for fact in made.fields if len(fact.value) > 1}
    told = frozenset(fact for fact, value in values.items() if value in text)
    return each._replace(weight=each.weight * (times if told else 1.0), told=told)


def _taken_back(calls: Sequence[Linked[Made]], statements: Sequence[Linked[Said]]) -> Iterator[Linked[Made]]:
    """What the model did for a statement that the user took back then is taken back, too."""
    ends = [(each.record.seq, other) for each in statements for other in each.then if takes_back(other.fact.value)]
    for each in calls:
        seq = each.record.seq if each.record.role == "act" and not each.record.failed else 0
        yield each._replace(retraction=next((end for start, end in ends if start < seq < end.seq), None))


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


def _statements(said: Sequence[Said], made: Sequence[Made]) -> Iterator[Linked[Said]]:
    letters = [_letters(each) for each in said]
    times = Counter(letters)
    last = {words: place for place, words in enumerate(letters)}
    first = {words: place for place, words in reversed(list(enumerate(letters)))}
    shapes = Counter(map(_shape, said))
    followers = _followers(said)
    terms = telling_terms(said)
    restated = read_backs(said, terms, made)
    agreed, answers = agreements(restated)
    open_questions = {place: each for place, each in _answers(said).items() if place not in agreed.settled}
    questions = {**open_questions, **answers}
    glued = {**_new_limits(said), **_follow_ups(said, letters, times, shapes, questions)}
    taken = {*answers, *agreed.settled, *(id(each) for others in glued.values() for each in others)}
    for of, later in later_changes(said, terms, restated, agreed.agreed, taken).items():
        glued[of] = (*glued.get(of, ()), *later)
    rests = {id(each.said): each.rest for each in restated if each.rest}
    asked = _answered(said, followers, questions)
    replaced = (_replaced(said, shapes) - _of_own_questions(said, asked, times)) | _outdated_echoes(said, glued)
    told = (each for each in asked.values() if id(each) not in glued)
    repeated = (each for place, each in questions.items() if place not in glued)
    questions = {**questions, **asked}
    series = told_in_series(said, open_questions)
    folded = (each for others in series.values() for each in others)
    elsewhere = (*glued.values(), *rests.values(), told, repeated, _echoes(said, glued), folded)
    hidden = {id(other) for others in elsewhere for other in others}
    is_alone = len(said) == 1 and not made  # a pin has one fact, and that is shown
    called = [each.seq for each in made]
    settled = {each.seq for each in said if each.is_users and (takes_back(each.fact.value) or _corrects(each))}
    for place, (each, words) in enumerate(zip(said, letters, strict=True)):
        is_often = times[words] >= OFTEN
        is_repeated = place != (first if is_often and each.is_users else last)[words] and id(each) not in answers
        accepted = accepts(each, questions.get(id(each)))
        if id(each) in hidden or (is_repeated and not accepted):
            continue
        is_polite = is_courtesy(each.fact.value)
        says_more = id(each) in questions or id(each) in agreed.weights or id(each) in agreed.agreed
        if not (says_more or is_alone) and (is_polite or _is_nod(each, called, settled)):
            continue
        own = ANSWER if id(each) in asked else _weight(each, followers[place], is_person=_is_person(each, made))
        weight = agreed.weights.get(id(each)) or own
        if ((is_often or is_polite) and not accepted) or id(each) in series:
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
            series=series.get(id(each), ()),
        )


def is_at_stake(each: Said) -> bool:
    """Whether a user, or somebody with a name, says a rule, a condition, or what somebody cannot bear."""
    if not (each.is_users or each.is_named) or each.stance != "own":
        return False
    category = each.fact.category
    return category == "CONDITION" or (category == "STATE" and tells_health(each.fact.value))


def _is_nod(each: Said, called: Sequence[int], settled: Container[int]) -> bool:
    """Whether the model says a few words to what was said, and has done nothing that they may tell of. What it says
    to what was taken back or corrected tells that this is so.
    """
    if each.is_users or each.is_named or each.stance != "own" or any(map(str.isdigit, each.fact.value)):
        return False
    return is_short(each) and each.to not in settled and not _within(each.to, each.seq, called)


def _is_person(each: Said, made: Sequence[Made]) -> bool:
    """A user, or whoever has a name where no tools are called: talk of people may give the role of the model to one."""
    return each.is_users or (each.is_named and not made)


def _weight(each: Said, after: Said | None, *, is_person: bool) -> float:
    stance = {"own": 1.0, "cut": 1.0, "asked": ASKED, "pasted": PASTED}[each.stance]
    if each.fact.salience == KEPT_SALIENCE:
        return KEPT * stance
    if is_person:
        own = AT_STAKE if is_at_stake(each) else DATED if each.day and days_meant(each.fact.value, each.day) else USER
        return own * stance
    return (CLOSING if after is None or _is_of_other_turn(after, each) else MODEL) * stance


def _is_of_other_turn(after: Said, each: Said) -> bool:
    """Whether a statement behind what the model said is of a user, or replies to another message than that did: what
    the user said between them need not be known.
    """
    return after.is_users or bool(each.to and after.to and after.to != each.to)


def _followers(said: Sequence[Said]) -> Sequence[Said | None]:
    """For each statement the first one of a later message."""
    found: list[Said | None] = []
    after: Said | None = None
    for place in range(len(said) - 1, -1, -1):
        if place + 1 < len(said) and said[place + 1].seq > said[place].seq:
            after = said[place + 1]
        found.append(after)
    return found[::-1]


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


def _outdated_echoes(said: Sequence[Said], glued: Mapping[int, tuple[Said, ...]]) -> frozenset[int]:
    """What the model said between a statement and its correction with a number that the correction replaces."""
    found: set[int] = set()
    for each in said:
        for other in glued.get(id(each), ()):
            old, now = _replaced_numbers(each.fact.value, other.fact.value)
            between = (echo for echo in said if old and each.seq < echo.seq < other.seq and not echo.is_users)
            found.update(id(echo) for echo in between if _repeats_old(_written_numbers(echo.fact.value), old, now))
    return frozenset(found)


def _replaced_numbers(text: str, correction: str) -> tuple[frozenset[str], frozenset[str]]:
    """The numbers of a statement that do not hold any more, and those that do. Of a correction that says both ("11:00,
    not 09:30") what is new replaces what is written alike.
    """
    before, told = _written_numbers(text), _written_numbers(correction)
    new = told - before
    left_out = before - told
    alike = {_form(number) for number in new}
    denied = {number for number in before & told if _form(number) in alike}
    return (frozenset(denied), new) if denied and alike.isdisjoint(map(_form, left_out)) else (left_out, told)


@memo(maxsize=8192)
def _written_numbers(text: str) -> frozenset[str]:
    return frozenset(_WRITTEN.findall(text))


def _form(number: str) -> str:
    """How a number is written: a time or an amount by its signs, another one by how many digits it has."""
    return str(len(number)) if number.isdigit() else _DIGITS.sub("0", number)


def _repeats_old(numbers: frozenset[str], old: frozenset[str], now: frozenset[str]) -> bool:
    return bool(now) and not numbers.isdisjoint(old) and numbers.isdisjoint(now)


def _answered(
    said: Sequence[Said], followers: Sequence[Said | None], answers: Mapping[int, Said]
) -> Mapping[int, Said]:
    """What the model says last in a turn, with the question of the user that began it. Each question has one answer.
    Not all that was said need be known, so the statement itself names the message that it replies to.
    """
    found: dict[int, Said] = {}
    question: Said | None = None
    for each, after in zip(said, followers, strict=True):
        if each.is_users:
            question = each if id(each) not in answers and asks(each.fact.value) else None
        elif question is not None and (after is None or _is_of_other_turn(after, each)) and _replies(each, question):
            found[id(each)] = question
            question = None
    return found


def _of_own_questions(said: Sequence[Said], asked: Mapping[int, Said], times: Mapping[str, int]) -> frozenset[int]:
    """The answers that repeat their questions word for word, where these were asked once: the answer to another
    question replaces none of them, in whatever words they agree.
    """
    repeating = (each for each in said if id(each) in asked and asked[id(each)].fact.value in each.fact.value)
    return frozenset(id(each) for each in repeating if times[_letters(asked[id(each)])] == 1)


def _replies(each: Said, question: Said) -> bool:
    return each.to == question.seq and each.stance in ("own", "cut")


def _follow_ups(
    said: Sequence[Said],
    letters: Sequence[str],
    times: Mapping[str, int],
    shapes: Mapping[str, int],
    answered: Mapping[int, Said],
) -> Mapping[int, tuple[Said, ...]]:
    """Statements of users with the short ones of the same user that follow: they correct or take back what was said,
    and say nothing alone. What is one of a series corrects nothing; behind another user's words, only what says that it
    corrects does.
    """
    found: dict[int, tuple[Said, ...]] = {}
    newest: dict[str, Said] = {}
    measured: dict[tuple[str, str], Said] = {}
    numbered: dict[tuple[str, str], Said] = {}
    asked = _asked_for(said)
    speaker = ""
    for each, words in zip(said, letters, strict=True):
        if not each.is_users or each.stance == "pasted":
            continue
        before = newest.get(each.name)
        if speaker not in (each.name, "") and not (takes_back(each.fact.value) or _corrects(each)):
            before = None
        speaker = each.name
        says_nothing = times[words] >= OFTEN or is_courtesy(each.fact.value)
        if says_nothing and not takes_back(each.fact.value):
            continue
        may_follow = each.stance == "own" and id(each) not in answered and shapes[_shape(each)] < OFTEN
        tells_more = id(each) in asked and not is_short(each)
        is_bare = may_follow and _is_bare(each, before, tells_more=tells_more)
        if may_follow and (known := _corrected(each, measured, numbered, tells_more=tells_more)):
            found[id(known)] = (*found.get(id(known), ()), each)
        elif before and is_bare and 0 < each.seq - before.seq <= FOLLOWS:
            found[id(before)] = (*found.get(id(before), ()), each)
        else:
            newest[each.name] = each
            measured.update({(each.name, unit): each for unit in counted(each.fact.value)})
            numbered.update({(each.name, number): each for number in _numbers(each.fact.value)})
    return found


def _asked_for(said: Sequence[Said]) -> frozenset[int]:
    """The statements of users right behind a question of the model."""
    return frozenset(
        id(each)
        for before, each in pairwise(said)
        if each.is_users and before.stance == "asked" and not before.is_users and each.seq - before.seq <= 2
    )


def _corrected(
    each: Said, measured: Mapping[tuple[str, str], Said], numbered: Mapping[tuple[str, str], Said], *, tells_more: bool
) -> Said | None:
    """The newest statement of the same speaker with another number of the same kind, or with the number that is not so
    ("900, not 800"), if `each` says it corrects. What answers a question in more than a few words (`tells_more`) is of
    something else, unless it has a further word in common.
    """
    text = each.fact.value
    denied_here = frozenset[str]() if _corrects(each) else _denied_numbers(text)
    if not (denied_here or _corrects(each)):
        return None
    known = {id(said): said for unit in counted(text) if (said := measured.get((each.name, unit)))}
    others = [said for said in known.values() if gives_another_number(said.fact.value, text)]
    if denied_here:
        return max((said for said in others if _denied(said.fact.value, denied_here)), key=_seq, default=None)
    if tells_more:
        others = [said for said in others if _have_words_in_common(said.fact.value, text)]
    if not others:
        denied = (numbered.get((each.name, number)) for number in _numbers(text))
        others = [said for said in denied if said and _numbers(text) - _numbers(said.fact.value)]
    return max(others, key=_seq, default=None)


def _seq(said: Said) -> int:
    return said.seq


def _denied(text: str, numbers: frozenset[str]) -> bool:
    """Whether all numbers that a later statement denies stand in a text."""
    return numbers <= _written_numbers(text)


@memo(maxsize=8192)
def _denied_numbers(text: str) -> frozenset[str]:
    """The numbers of a text behind a word that denies them, where another one stands before ("2 May, not 3 May")."""
    words = text.casefold().split()
    places = [place for place, word in enumerate(words) if word[0].isdigit()]
    denied = [place for place in places if not all_words("denies").isdisjoint(words[max(place - 2, 0) : place])]
    if not denied or places[0] in denied:
        return frozenset()
    return frozenset(number for place in denied for number in _WRITTEN.findall(words[place])[:1])


def _numbers(text: str) -> frozenset[str]:
    return frozenset(number for number in _words_and_numbers(text)[1] if len(number) > 1)


def _have_words_in_common(text: str, other: str) -> bool:
    """Whether two texts share a word beside those that stand behind their numbers."""
    units = {term for unit in (*measures(text), *measures(other)) for term in weighed_terms(unit)}
    return bool((_words_and_numbers(text)[0] & _words_and_numbers(other)[0]) - units)


def _new_limits(said: Sequence[Said]) -> Mapping[int, tuple[Said, ...]]:
    """Rules and conditions with a number, with what the same speaker says later of the same matter with another one."""
    numbered = [each for each in said if each.is_users and each.stance == "own" and measures(each.fact.value)]
    matters = _matters([each for each in numbered if is_at_stake(each)])
    found: dict[int, tuple[Said, ...]] = {}
    taken: set[int] = set()
    for place, each in enumerate(numbered):
        if id(each) in matters and id(each) not in taken:
            matter = matters[id(each)]
            later = tuple(other for other in numbered[place + 1 :] if _is_new_limit(each, other, matter))
            taken.update(map(id, later))
            if later:
                found[id(each)] = later
    return found


def _is_new_limit(each: Said, other: Said, matter: frozenset[str]) -> bool:
    if other.name != each.name or not gives_another_number(each.fact.value, other.fact.value):
        return False
    words, later = _words_and_numbers(each.fact.value)[0], _words_and_numbers(other.fact.value)[0]
    shared = words & later
    units = frozenset(term for unit in measures(each.fact.value) for term in weighed_terms(unit))
    same = shared - units
    is_same = len(same) >= OF_SAME * len((words | later) - units) or _has_same_pair(
        each.fact.value, other.fact.value, same
    )
    return len(same) >= 2 and is_same and not shared.isdisjoint(matter)


def _has_same_pair(text: str, other: str, same: Container[str]) -> bool:
    """Whether two texts have a pair of words in common that stand beside each other ("cold samples")."""
    return not _pairs(text, same).isdisjoint(_pairs(other, same))


def _pairs(text: str, same: Container[str]) -> frozenset[frozenset[str]]:
    told = [term for term, worth in weighed_terms(text).items() if worth > HALF - 0.1]
    return frozenset(frozenset(pair) for pair in pairwise(told) if all(term in same for term in pair))


def _matters(rules: Sequence[Said]) -> Mapping[int, frozenset[str]]:
    """For each rule the words that the fewest of them have: several of one person are worded alike."""
    words = {id(each): _words_and_numbers(each.fact.value)[0] for each in rules}
    times = Counter(word for of_rule in words.values() for word in of_rule)
    least = {rule: min((times[word] for word in of_rule), default=0) for rule, of_rule in words.items()}
    return {rule: frozenset(word for word in words[rule] if times[word] == least[rule]) for rule in words}


def _is_bare(each: Said, before: Said | None, *, tells_more: bool) -> bool:
    """Whether a statement says little without the one before: few words, or another number of the same kind in words
    that are few or correct.
    """
    if needs_more(each):
        return True
    text = each.fact.value
    is_brief = len(text) <= BRIEF_CHARACTERS and len(text.split()) <= BRIEF_WORDS
    if before is None or not (is_brief or _corrects(each) or _says_little_but_a_number(text)):
        return False
    if tells_more and not _have_words_in_common(before.fact.value, text):
        return False
    if _gives_another_word(text):
        return True
    is_alike = _has_alike_numbers(before.fact.value, text)
    if not (is_brief or _corrects(each)):
        return is_alike and gives_another_number(before.fact.value, text)
    return gives_another_number(before.fact.value, text) or (is_brief and is_alike)


def _gives_another_word(text: str) -> bool:
    """Whether a text is a word that corrects and at most three others ("Doch lieber Mittwoch."). One that may deny has
    a pause behind it ("No, Hamburg.", but "No onions.").
    """
    words = text.casefold().split()
    if not (1 < len(words) <= MOST_OTHER and begins_to_correct(text)):
        return False
    return not words[0].isalpha() or words[0] not in all_words("denies")


def _says_little_but_a_number(text: str) -> bool:
    """Whether a text tells at most two things beside a number of something ("Hm, I misread it, it's 4,310 dollars")."""
    units = {term for unit in measures(text) for term in weighed_terms(unit)}
    return len(text) <= MOST_LITTLE and len(_words_and_numbers(text)[0] - units) <= MOST_TOLD


def _has_alike_numbers(text: str, other: str) -> bool:
    """Whether two texts have different numbers that are written alike (a code of four digits, a time)."""
    known, told = _SEVERAL_DIGITS.findall(text), _SEVERAL_DIGITS.findall(other)
    forms = {_DIGIT.sub("9", number) for number in known}
    return any(number not in known and _DIGIT.sub("9", number) in forms for number in told)


def _corrects(each: Said) -> bool:
    """Whether it begins with a word that corrects, maybe behind an exclamation ("Oh no, at 8")."""
    return begins_to_correct(each.fact.value) or begins_to_correct(each.fact.value.partition(" ")[2])


def _replaced(said: Sequence[Said], shapes: Mapping[str, int]) -> frozenset[int]:
    """Statements that the same speaker made again later in about the same words with other numbers. Many that differ
    in nothing but their numbers (`shapes`: how many there are of each) are a series.
    """
    found: set[int] = set()
    alone = [each for each in said if each.stance == "own" and shapes[_shape(each)] < OFTEN]
    read = [(each, *_words_and_numbers(each.fact.value)) for each in alone]
    looked_up = {(each.name, word) for each, words, numbers in read if numbers for word in words}
    about: dict[tuple[str, str], deque[Said]] = {key: deque(maxlen=REMEMBERED) for key in looked_up}
    for each, words, numbers in read:
        told = [about[key] for word in words if (key := (each.name, word)) in about]
        if numbers:
            older = {id(other): other for others in told for other in others}
            found.update(at for at, other in older.items() if _is_other_number(words, numbers, other))
        for others in told:
            others.append(each)
    return frozenset(found)


def _is_other_number(words: frozenset[str], numbers: frozenset[str], older: Said) -> bool:
    """Whether an older statement has about the same words, and other numbers."""
    known, were = _words_and_numbers(older.fact.value)
    if not were or numbers == were or len(words & known) < 2:
        return False
    lacks = len(known - words)
    return not lacks or (lacks == 1 and len(known) >= MANY_WORDS)


def _shape(each: Said) -> str:
    return each.name + letters_of(each.fact.value)


@memo(maxsize=8192)
def _words_and_numbers(text: str) -> tuple[frozenset[str], frozenset[str]]:
    terms = weighed_terms(text)
    numbers = frozenset(term for term in terms if any(map(str.isdigit, term)))
    return frozenset(term for term, worth in terms.items() if worth > HALF - 0.1) - numbers, numbers
