"""The working state of a session: what it is about, what binds it, what was decided, done and left open. Pure.

Its items are facts of the ledger with an anchor of their own, so they go where facts go: with forks, copies, erasures.
A later segment that changes an item writes it again under its name; what it does not name stays as it is. An item is
derived: a model worded it, and it names the messages that it rests on.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Literal, NamedTuple, TypeAlias, cast, get_args

from msgspec.structs import replace

from reactor_memory.features.facts.plain_text import plain_value, unforged
from reactor_memory.models.ledger import Fact

Kind: TypeAlias = Literal["goal", "constraint", "decision", "rejected", "done", "artefact", "error", "open", "note"]
Ending: TypeAlias = Literal["done", "obsolete", "replaced", "wrong"]

CONCLUDED: frozenset[Kind] = frozenset({"decision", "rejected", "error", "open"})
"""That it is one of these says more than its words."""

IN_MIND: frozenset[Kind] = frozenset({*CONCLUDED, "goal", "constraint"})
"""What has to be kept in mind. The other kinds tell what was done and noted, as records do."""

ANCHOR = "working state"
MOST_ITEMS = 40
MOST_CHARACTERS = 220

KINDS = frozenset(get_args(Kind))
ENDINGS = frozenset(get_args(Ending))

_KEY = re.compile(r"state\.(?P<name>[a-z0-9_]{1,24})(?:\.refused_(?P<reason>[a-z]+))?")
_VALUE = re.compile(
    r"(?P<kind>[a-z]+)(?: by (?P<who>[^:,]{1,60}))?(?P<ended>, ended as [a-z]+)?: (?P<text>.*)", re.DOTALL
)
_ENDED = ", ended as "
_NOT_IN_NAMES = re.compile("[:,]")


class StateItem(NamedTuple):
    """`first` and `last`: the range of the messages it rests on. `who` set a constraint or decided. `ended`: why it
    holds no more.
    """

    name: str
    kind: Kind
    text: str
    first: int
    last: int
    who: str = ""
    ended: Ending | Literal[""] = ""


def is_state(fact: Fact) -> bool:
    return fact.anchor == ANCHOR and _KEY.fullmatch(fact.key) is not None


def fact_of(item: StateItem, refused: str = "") -> Fact:
    """The item as it is stored; `refused`: why it does not count. Its span is the range of its messages."""
    who = f" by {' '.join(_NOT_IN_NAMES.sub(' ', item.who).split())[:60]}" if item.who else ""
    return Fact(
        anchor=ANCHOR,
        key=f"state.{item.name}{f'.refused_{refused}' if refused else ''}",
        value=f"{item.kind}{who}{f'{_ENDED}{item.ended}' if item.ended else ''}: {item.text}",
        category="DECISION",
        source_seq=item.last,
        span=(item.first, item.last),
        said_by="assistant",
        verified=not refused,
    )


def item_of(fact: Fact) -> StateItem | None:
    """The item that a fact stores; None for any other fact."""
    key, value = _KEY.fullmatch(fact.key), _VALUE.fullmatch(fact.value)
    if fact.anchor != ANCHOR or key is None or value is None or value["kind"] not in KINDS:
        return None
    ended = (value["ended"] or "").removeprefix(_ENDED)
    return StateItem(
        name=key["name"],
        kind=cast("Kind", value["kind"]),
        text=value["text"],
        first=fact.span[0],
        last=fact.source_seq,
        who=value["who"] or "",
        ended=cast("Ending", ended) if ended in ENDINGS else "",
    )


def corrected_value(fact: Fact, value: str) -> str:
    """What a fact is corrected to: an item of the state stays of its kind, whoever words it anew."""
    item = item_of(fact)
    is_whole = item_of(replace(fact, value=value)) is not None
    return value if item is None or is_whole else fact_of(item._replace(text=value)).value


def items_of(facts: Iterable[Fact]) -> list[StateItem]:
    """The items that hold, in the order of the log. `facts` are folded."""
    found = (item_of(fact) for fact in facts if fact.verified and is_state(fact))
    return [item for item in found if item is not None and not item.ended]


def told_from(fact: Fact) -> int:
    """The first message that a fact tells. A window that begins there shows all that the fact rests on."""
    return fact.span[0] if is_state(fact) else fact.source_seq


def is_touched(fact: Fact, first: int, last: int) -> bool:
    """Whether an item rests on a message of the range."""
    return is_state(fact) and fact.span[0] <= last and first <= fact.span[1]


def state_lines(facts: Iterable[Fact]) -> Iterator[tuple[StateItem, str, Fact]]:
    """Each item that holds, its line, which is marked as derived, and its fact."""
    for fact in facts:
        item = item_of(fact)
        if item is not None and not item.ended:
            who = f" ({plain_value(item.who)})" if item.who else ""
            where = f"{item.first}" if item.first == item.last else f"{item.first}-{item.last}"
            yield item, unforged(f"{item.kind}{who}: {plain_value(item.text)} (derived, {where})"), fact
