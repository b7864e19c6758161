"""The facts of the reader that quotes, put together: one record a statement, one a call. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import date
from typing import NamedTuple, cast

from msgspec.structs import replace

from reactor_memory.features.facts.key_spelling import read_again
from reactor_memory.features.facts.plain_text import visible
from reactor_memory.features.facts.quoting.record_keys import (
    MODEL,
    NO_ARGUMENT,
    NOTICE,
    USER,
    CallRole,
    Stance,
    name_and_seq,
    replies_to,
    whole_key,
    without_reply,
)
from reactor_memory.models.ledger import Fact
from reactor_memory.text.caches import memo
from reactor_memory.text.relative_dates import said_on

MIXED = 0.3
"""A tool of which a larger share of calls plays the other role plays both (a shell): then each call has its own."""


class Said(NamedTuple):
    """A statement: who, in which words, on which day."""

    fact: Fact
    name: str
    stance: Stance
    day: date | None
    seq: int
    is_users: bool
    to: int
    """The message of the user that the model speaks after; 0 if that is unknown."""

    @property
    def is_named(self) -> bool:
        return self.name not in (USER, MODEL, NOTICE)


class Made(NamedTuple):
    """A call: its arguments, the fields and the lines of its result."""

    tool: str
    seq: int
    role: CallRole
    given: tuple[Fact, ...]
    fields: tuple[Fact, ...] = ()
    lines: tuple[Fact, ...] = ()
    to: int = 0
    """The message of the user after which it was made, where the log alone does not tell."""

    @property
    def facts(self) -> tuple[Fact, ...]:
        return (*self.given, *self.fields, *self.lines)

    @property
    def failed(self) -> bool:
        return any(fact.failed for fact in self.facts)

    @property
    def is_interrupted(self) -> bool:
        return any(fact.act == "interrupted" for fact in self.facts)

    @property
    def mark(self) -> str:
        return next((fact.mark for fact in self.facts if fact.failed), "")


def statements_of(facts: Iterable[Fact]) -> list[Said]:
    """The statements, in the order of the log."""
    found = [_said(fact) for fact in facts if fact.key.startswith("quote.")]
    return sorted(found, key=lambda each: (each.seq, each.fact.span, each.fact.key))


def _said(fact: Fact) -> Said:
    name, stance, day, to = _told_by_names(fact.anchor, fact.key)
    return Said(fact, name, stance, day, fact.source_seq, fact.said_by in ("user", "system"), to)


@memo(maxsize=8192)
def _told_by_names(anchor: str, key: str) -> tuple[str, Stance, date | None, int]:
    """The speaker, the stance, the day, and the message that was replied to."""
    _, stance, *_ = key.split(".")
    return name_and_seq(anchor)[0], cast(Stance, stance), said_on(key), replies_to(key)


def calls_of(facts: Iterable[Fact]) -> list[Made]:
    """The calls, in the order of the log, each with the role that most calls of its tool have. A result whose call is
    not among the facts, for the context shows it elsewhere, is none.
    """
    anchors: dict[str, list[Fact]] = {}
    for fact in facts:
        if not fact.key.startswith("quote."):
            anchors.setdefault(fact.anchor, []).append(fact)
    made = [each for each in (_made(anchor, of_call) for anchor, of_call in anchors.items()) if each.given]
    roles = _roles(made)
    return sorted((each._replace(role=roles.get(each.tool, each.role)) for each in made), key=lambda each: each.seq)


def _made(anchor: str, facts: Sequence[Fact]) -> Made:
    name, seq = name_and_seq(anchor)
    given, fields, lines = (_of_kind(facts, kind) for kind in ("call.", "reply.field.", "reply.line."))
    to = replies_to(given[0].key) if given else 0
    if to:
        given = tuple(replace(fact, key=without_reply(fact.key)) for fact in given)
    told = (*fields, *lines)
    if told and any(fact.act == "interrupted" for fact in given):  # the result came later, when nobody waited for it
        given = tuple(replace(fact, act="statement", failed=told[0].failed) for fact in given)
    return Made(
        tool=name,
        seq=seq,
        role="read" if any(fact.key.startswith("call.read.") for fact in given) else "act",
        given=given,
        fields=fields,
        lines=lines,
        to=to,
    )


def _of_kind(facts: Sequence[Fact], kind: str) -> tuple[Fact, ...]:
    return tuple(sorted((fact for fact in facts if fact.key.startswith(kind)), key=lambda fact: fact.span))


def _roles(made: Sequence[Made]) -> Mapping[str, CallRole]:
    calls, reads = Counter(each.tool for each in made), Counter(each.tool for each in made if each.role == "read")
    shares = {tool: reads[tool] / count for tool, count in calls.items()}
    return {tool: "read" if share > 0.5 else "act" for tool, share in shares.items() if not MIXED < share < 1 - MIXED}


def turn_by_turn(
    said: Sequence[Said], made: Sequence[Made]
) -> tuple[Sequence[Said], Sequence[Made], Mapping[int, int]]:
    """Records of turns that ran at once, as if one turn had followed the other: numbered anew, as their messages would
    be, and in that order. With the number in the log of each new one; none where turns followed each other.
    """
    if not _ran_at_once(said, made):
        return said, made, {}
    turns = dict(_turns_of(said, made))
    order, seqs = sorted(turns, key=lambda seq: (turns[seq], seq)), sorted(turns)
    places = dict(zip(order, seqs, strict=True))
    spoken = (each._replace(seq=places[each.seq], to=places.get(each.to, each.to)) for each in said)
    called = (each._replace(seq=places[each.seq]) for each in made)
    return (
        sorted(spoken, key=lambda each: each.seq),
        sorted(called, key=lambda each: each.seq),
        dict(zip(seqs, order, strict=True)),
    )


def _ran_at_once(said: Sequence[Said], made: Sequence[Made]) -> bool:
    newest = 0
    for each in said:
        if each.is_users:
            newest = each.seq
        elif 0 < each.to < newest:
            return True
    return any(each.to for each in made)


def _turns_of(said: Sequence[Said], made: Sequence[Made]) -> Iterator[tuple[int, int]]:
    """Where the turn begins of each message that there is a record of."""
    newest = 0
    for each in sorted([*said, *made], key=lambda each: each.seq):
        if isinstance(each, Said):
            newest = each.seq if each.is_users else newest
            yield each.seq, each.to or newest
        else:
            turn = each.to or newest
            yield each.seq, turn
            yield from ((fact.source_seq, turn) for fact in (*each.fields, *each.lines))


def label_of(fact: Fact) -> str:
    """What an argument or a field is called; empty if the name says nothing or cannot be read."""
    return _label_in(fact.key)


@memo(maxsize=4096)
def _label_in(key: str) -> str:
    parts = whole_key(key).split(".")[2:]
    names = [part for part in parts if not part.isdigit()]
    last = names[-1] if names else ""
    return "" if last in ("", "text", NO_ARGUMENT) or _is_hash(last) else visible(read_again(last))


@memo(maxsize=8192)
def letters_of(text: str) -> str:
    """A text without its numbers, signs and spaces: what is one of a series has the same."""
    return "".join(filter(str.isalpha, text))


def _is_hash(name: str) -> bool:
    """A long key of another script stands as a number (`evidence.clean_key`)."""
    tail = name.rpartition("_")[2]
    return len(tail) == 8 and all(c in "0123456789abcdef" for c in tail)


def without_signs(text: str) -> str:
    """A text without its signs and spaces, whatever the case of its letters: an id and the name that it is made from
    have the same.
    """
    return "".join(filter(str.isalnum, text.casefold()))
