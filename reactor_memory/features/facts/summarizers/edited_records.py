"""The records of a range after a model's edits. Pure.

The edits choose among records and never make one: actions, outcomes, amounts and speakers are those of the log. What
the user ruled, what failed and what was done stays, whatever the model says of it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple, cast

from msgspec.structs import replace

from reactor_memory.features.facts.evidence import find_span
from reactor_memory.features.facts.quoting.language_packs import begins_to_correct, takes_back
from reactor_memory.features.facts.quoting.record_keys import MODEL, USER, anchor_of
from reactor_memory.features.facts.quoting.statements_said import statements_said
from reactor_memory.features.facts.summarizers.line_edits import LineEdits, Naming, StateEdit, numbers_in
from reactor_memory.features.facts.summarizers.numbered_lines import NumberedLine
from reactor_memory.features.facts.verification.claim_words import language_for, read, words_of
from reactor_memory.features.facts.verification.derived_proof import has_word_of_user, refusal
from reactor_memory.features.facts.verification.proof import cited_sentence, is_about_the_same
from reactor_memory.features.facts.verification.statement_verdicts import NARROWING, covers, is_of_others
from reactor_memory.features.facts.working_state import (
    ENDINGS,
    KINDS,
    MOST_CHARACTERS,
    MOST_ITEMS,
    Kind,
    StateItem,
    fact_of,
)
from reactor_memory.models import Message
from reactor_memory.models.ledger import KEPT_SALIENCE, Fact

LONGEST_ADDED = 240
MOST_ADDED = 40
FIRST_ADDED = 100
"""Numbers of added quotations begin here, behind those of the reader."""

LONGEST_LABEL = 60
NEAR = 12
"""Messages around a call in which its thing may have been named."""

MOST_CITED = 8
LETTERS = "abcdefghijklmnopqrstuvwxyz"


class Edited(NamedTuple):
    """The facts that stay, and of the working state the items that changed or were refused. `dropped`: lines that no
    later turn needs.
    """

    facts: tuple[Fact, ...]
    state: tuple[Fact, ...]
    dropped: tuple[NumberedLine, ...] = ()


def edited(
    lines: Sequence[NumberedLine], edits: LineEdits, messages: Sequence[Message], known: Sequence[StateItem] = ()
) -> Edited:
    """The records of `lines` and the working state after `edits`."""
    by_number = {line.number: line for line in lines}
    order = list(by_number)
    log = {message.seq or 0: message for message in messages}

    def named(text: str) -> list[NumberedLine]:
        return [by_number[number] for number in numbers_in(text, order)]

    kept = {line.number for line in named(edits.keep)}
    dropped = tuple(line for line in named(edits.drop) if not is_protected(line) and line.number not in kept)
    gone = {line.number for line in dropped}
    gone |= {old.number for each in edits.replace for old in _replaced(named(each.old), named(each.new))}
    merged: list[Fact] = []
    for number, each in enumerate(edits.merge):
        sources = named(each.text and each.lines)
        note, is_whole = _merged(each.text, sources, log, number)
        merged += note
        gone |= {line.number for line in sources} if is_whole else set()
    facts = [_weighed(fact, line.number in kept) for line in lines if line.number not in gone for fact in line.facts]
    facts += _added(edits.add, lines, messages)
    facts += _labels(edits.name, by_number, messages)
    state = _state(edits.state, known, named, log)
    return Edited(tuple(facts), (*merged, *state), dropped)


def is_protected(line: NumberedLine) -> bool:
    """Whether a model may not drop it: a deed, a failure, a ruling of the user."""
    if line.made is not None:
        return line.made.role == "act" or line.made.failed
    return line.said is not None and line.said.is_users and is_ruling(line.said.fact.value)


def is_ruling(text: str) -> bool:
    """Whether words of a user bind, deny, narrow or correct: losing them does more harm than keeping them."""
    if takes_back(text) or begins_to_correct(text):
        return True
    language = language_for(text)
    marks = read(text, language) if language else ()
    if any(mark.kind == "negation" or (mark.kind == "limit" and mark.term in NARROWING) for mark in marks):
        return True
    folded = f" {text.casefold()} "
    return any(
        f" {word} " in folded if word.isascii() or " " in word else word in folded
        for word in words_of("names", "rules")
    )


def _replaced(old: Sequence[NumberedLine], new: Sequence[NumberedLine]) -> Iterator[NumberedLine]:
    """The old lines that a later one of somebody with the right to say so takes the place of."""
    for each in old:
        if any(_replaces(other, each) for other in new):
            yield each


def _replaces(new: NumberedLine, old: NumberedLine) -> bool:
    if new.said is None or old.said is None or new.said.seq <= old.said.seq:
        return False
    if old.said.is_users and (not new.said.is_users or new.said.name != old.said.name):
        return False
    language = language_for(new.said.fact.value, old.said.fact.value)
    if language is None or new.said.stance != "own":
        return False
    later, before = read(new.said.fact.value, language), read(old.said.fact.value, language)
    return is_of_others(later) == is_of_others(before) and is_about_the_same(later, before)


def _weighed(fact: Fact, is_kept: bool) -> Fact:
    return replace(fact, salience=KEPT_SALIENCE) if is_kept else fact


def _merged(
    text: str, sources: Sequence[NumberedLine], log: Mapping[int, Message], number: int
) -> tuple[list[Fact], bool]:
    """A note that says in other words what its lines say, and whether it says all of it: then it stands for them."""
    if len(sources) < 2 or any(line.said is None for line in sources):
        return [], False
    cited = sorted({seq for line in sources for seq in line.seqs})
    item = StateItem(f"m{cited[-1]}_{number}", "note", text[:MOST_CHARACTERS], cited[0], cited[-1])
    reason = refusal(item.text, [log[seq] for seq in cited if seq in log])
    if reason:
        return [fact_of(item, reason)], False
    is_whole = all(covers([text], line.said.fact.value) for line in sources if line.said)
    return ([fact_of(item)] if is_whole else []), is_whole


def _added(quotations: Iterable[str], lines: Sequence[NumberedLine], messages: Sequence[Message]) -> Iterator[Fact]:
    """The sentences in which words stand that the reader left out, each once."""
    told = {(fact.source_seq, fact.value) for line in lines for fact in line.facts}
    for number, quotation in enumerate(list(quotations)[:MOST_ADDED]):
        for fact in _quoted(quotation, FIRST_ADDED + number, lines, messages):
            if (fact.source_seq, fact.value) not in told:
                told.add((fact.source_seq, fact.value))
                yield fact


def _quoted(quotation: str, number: int, lines: Sequence[NumberedLine], messages: Sequence[Message]) -> Iterator[Fact]:
    for message in reversed(messages):
        span = find_span(message.content, quotation) if len(quotation) > 2 else None
        if span is None or not message.seq:
            continue
        if message.role == "tool":
            yield from _result_line(message, span, number, lines)
        elif message.role != "summary":
            sentence = cited_sentence(message.content, *span)
            start, text = _stripped(message.content, sentence.start, sentence.stop)
            is_own = sentence.is_own and not _is_pasted(message, span)
            stance = "own" if is_own else "pasted"
            speaker = message.name or message.author_id or (USER if message.role == "user" else MODEL)
            if 0 < len(text) <= LONGEST_ADDED:
                yield Fact(
                    anchor=anchor_of(" ".join(speaker.replace("#", " ").split())[:60] or USER, message.seq),
                    key=f"quote.{stance}.{number}",
                    value=text,
                    source_seq=message.seq,
                    span=(start, start + len(text)),
                    said_by=message.role,
                    salience=KEPT_SALIENCE,
                )
        return


def _is_pasted(message: Message, span: tuple[int, int]) -> bool:
    stances = [
        fact.key.split(".")[1]
        for fact in statements_said([message])
        if fact.span[0] < span[1] and span[0] < fact.span[1]
    ]
    return "own" not in stances and "cut" not in stances and bool(stances)


def _stripped(content: str, start: int, stop: int) -> tuple[int, str]:
    said = content[start:stop]
    return start + len(said) - len(said.lstrip()), said.strip()


def _result_line(message: Message, span: tuple[int, int], number: int, lines: Sequence[NumberedLine]) -> Iterator[Fact]:
    """The line of a result in which the words stand, as a part of its call."""
    call = next((line for line in lines if line.made and message.seq in line.seqs), None)
    if call is None or call.made is None:
        return
    begin = message.content.rfind("\n", 0, span[0]) + 1
    end = message.content.find("\n", span[1])
    start, text = _stripped(message.content, begin, len(message.content) if end < 0 else end)
    if 0 < len(text) <= LONGEST_ADDED:
        first = call.made.given[0]
        yield Fact(
            anchor=first.anchor,
            key=f"reply.line.{number}",
            value=text,
            source_seq=message.seq or 0,
            span=(start, start + len(text)),
            said_by="tool",
            salience=first.salience,
            failed=first.failed,
        )


def _labels(
    named: Iterable[Naming], by_number: Mapping[str, NumberedLine], messages: Sequence[Message]
) -> Iterator[Fact]:
    """The names of things that calls know by an id only: words of the call, of its result or of a user near it."""
    for each in named:
        line, label = by_number.get(each.line.strip()), " ".join(each.label.split())
        if line is None or line.made is None or not 0 < len(label) <= LONGEST_LABEL or is_ruling(label):
            continue
        near = [
            message
            for message in messages
            if message.seq in line.seqs or (message.role == "user" and 0 <= line.made.seq - (message.seq or 0) <= NEAR)
        ]
        source = next((message for message in reversed(near) if find_span(message.content, label)), None)
        if source is not None and not line.made.failed:
            yield replace(
                line.made.given[0],
                key="reply.field.name",
                value=label,
                source_seq=source.seq or 0,
                span=find_span(source.content, label) or (0, 0),
                said_by=source.role,
            )


def _state(
    edits: Iterable[StateEdit],
    known: Sequence[StateItem],
    named: Callable[[str], list[NumberedLine]],
    log: Mapping[int, Message],
) -> Iterator[Fact]:
    before = {item.name: item for item in known}
    newest = max(log, default=0)
    seen: set[str] = set()
    taken: dict[int, int] = {}
    for each in list(edits)[:MOST_ITEMS]:
        item, lines = before.get(each.name.strip()), named(each.lines)[:MOST_CITED]
        if item is not None and item.name in seen:
            continue
        if item is not None:
            seen.add(item.name)
        cited = sorted({seq for line in lines for seq in line.seqs})
        if each.ended in ENDINGS and item is not None:
            yield fact_of(item._replace(ended=each.ended, first=(cited or [newest])[0], last=(cited or [newest])[-1]))
            continue
        text = " ".join(each.text.split())[:MOST_CHARACTERS]
        if each.kind not in KINDS or not text or (item is not None and (item.kind, item.text) == (each.kind, text)):
            continue
        if not cited:
            continue
        name = item.name if item else _new_name(cited[-1], taken)
        changed = StateItem(name, cast("Kind", each.kind), text, cited[0], cited[-1], who=_who(each.kind, lines))
        yield fact_of(changed, _refusal(changed, lines, log))


def _new_name(seq: int, taken: dict[int, int]) -> str:
    place = taken.get(seq, 0)
    taken[seq] = place + 1
    return f"{seq}{LETTERS[place % len(LETTERS)]}{place // len(LETTERS) or ''}"


def _refusal(item: StateItem, lines: Sequence[NumberedLine], log: Mapping[int, Message]) -> str:
    if item.kind in ("done", "artefact") and lines and all(line.made and line.made.failed for line in lines):
        return "failed"
    cited = [log[seq] for seq in sorted({s for line in lines for s in line.seqs}) if seq in log]
    if item.kind in ("constraint", "goal") and not has_word_of_user(item.text, cited):
        return "authority"
    return refusal(item.text, cited)


def _who(kind: str, lines: Sequence[NumberedLine]) -> str:
    """Who set a constraint or a goal, or decided: the speaker of the lines it cites, if that is one."""
    if kind not in ("constraint", "goal", "decision", "rejected"):
        return ""
    names = {line.said.name.removeprefix("the ") for line in lines if line.said}
    return names.pop() if len(names) == 1 else ""
