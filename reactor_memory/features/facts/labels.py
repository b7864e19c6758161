"""Which parts of a line get a label, and which words of the key it is. Pure.

A part needs no label where its form alone says what it is: the only date of the line, its only time, and one text. Any
other gets the fewest words of its key that no other key of the line has, too.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Literal, NamedTuple, TypeAlias

from reactor_memory.text.caches import memo

Shape: TypeAlias = Literal["flag", "date", "time", "number", "text"]

_FLAG = re.compile(r"(?:true|false|yes|no|on|off|none|[^\W\d_]{1,3})", re.IGNORECASE)
_SWITCH = re.compile(r"true|false|yes|no|on|off|none|add|remove", re.IGNORECASE)
"""Flags that say nothing without the whole key."""
_DATE = re.compile(r"\d{4}-\d\d?-\d\d?|\d\d?[/.]\d\d?[/.]\d{2,4}")
_TIME = re.compile(r"\d\d?:\d\d(?::\d\d)?(?: ?[ap]\.?m\.?)?|\d\d? ?[ap]\.?m\.?", re.IGNORECASE)
_NUMBER = re.compile(r"[-+]?[$€£¥₹]? ?\d[\d.,]*%?")
_PART_NUMBER = re.compile(r"\.(\d+)$")
_TOOL_WORDS = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")

EMPTY_WORDS = frozenset(
    {"of", "is", "has", "the", "a", "number", "num", "value", "text", "option", "name", "id", "detail", "date", "time"}
)
"""Words of keys that the form of the value says, or that say nothing."""

DIRECTIONS = frozenset(
    [
        "from",
        "to",
        "origin",
        "destination",
        "source",
        "target",
        "start",
        "starting",
        "begin",
        "end",
        "ending",
        "departure",
        "departing",
        "arrival",
        "arriving",
        "return",
        "returning",
        "outbound",
        "inbound",
        "pickup",
        "dropoff",
        "checkin",
        "checkout",
        "sender",
        "recipient",
        "old",
        "new",
    ]
)
"""Words that say a direction together with the one before: ``check_in``."""

MEASURES = frozenset(
    [
        "min",
        "max",
        "minimum",
        "maximum",
        "least",
        "most",
        "total",
        "sub",
        "subtotal",
        "average",
        "mean",
        "net",
        "gross",
        "lowest",
        "highest",
    ]
)
"""Words that say which of several amounts it is, and not of what."""

_JOINING_WORDS = "after before between by in no not per since until without da de del des di do du van von"
JOINING = frozenset(_JOINING_WORDS.split())
"""Words without which the others say something else: ``days_before_expiry``, ``numero_de_noches``."""

WEAK = frozenset({"type", "kind", "code"})
"""Words that say less than the one before: ``fare`` of ``fare_type``."""

NAMING = frozenset({"name", "title"})


class Part(NamedTuple):
    """A value with its key. `is_resolved`: it is the name that an id stands for."""

    key: str
    value: str
    is_resolved: bool = False


def labels(parts: Sequence[Part], *, title: str = "") -> list[str]:
    """The label of each part, empty where it stands bare. `title` is what the line is called after."""
    bare = _bare(parts, title)
    keys = [_all_words(part.key) for part in parts]
    made = ["" if place in bare else _label(part, place, keys) for place, part in enumerate(parts)]
    taken = Counter(label for label in made if label)
    return _ordered([part.key if taken[label] > 1 else label for part, label in zip(parts, made, strict=True)])


def short_label(key: str) -> str:
    """A label for a part that stands alone."""
    return next(iter(_candidates(key)), key)


def is_switch(value: str) -> bool:
    """Whether a value says nothing without its whole key."""
    return _SWITCH.fullmatch(value) is not None


@memo(maxsize=8192)
def shape_of(value: str) -> Shape:
    """What a value looks like; a word of up to three letters passes for a flag."""
    if _FLAG.fullmatch(value):
        return "flag"
    if _DATE.fullmatch(value):
        return "date"
    if _TIME.fullmatch(value):
        return "time"
    return "number" if _NUMBER.fullmatch(value) else "text"


def _ordered(made: Sequence[str]) -> list[str]:
    """Of things that were added to another, all but the first bear a number: ``first_milk`` beside ``milk.71010``."""
    numbered = {label[: number.start()] for label in made if (number := _PART_NUMBER.search(label))}
    return [f"first_{label}" if label in numbered else label for label in made]


def _bare(parts: Sequence[Part], title: str) -> frozenset[int]:
    """The places of the parts without a label."""
    places: dict[Shape, list[int]] = {}
    for place, part in enumerate(parts):
        if part.value:
            places.setdefault(shape_of(part.value), []).append(place)
    sole = {at[0] for shape, at in places.items() if len(at) == 1 and _needs_no_label(shape, parts[at[0]].key)}
    return frozenset(
        place for place in sole | _bare_text(parts, places.get("text", []), title) if "=" not in parts[place].value
    )


def _needs_no_label(shape: Shape, key: str) -> bool:
    """Of the only part of its shape."""
    return shape in ("date", "time") or not _telling(_all_words(key))


def _bare_text(parts: Sequence[Part], texts: Sequence[int], title: str) -> set[int]:
    """One text: the only one, or that by which the thing is called."""
    if len(texts) == 1:
        return {texts[0]}
    called = {word.casefold() for word in _TOOL_WORDS.findall(title)}
    by_rank = [(_naming_rank(parts[place], called), place) for place in texts]
    return {place for rank, place in sorted(by_rank)[:1] if rank < _NO_NAME}


_NO_NAME = 5


def _naming_rank(part: Part, called: set[str]) -> int:
    """How surely it is the name of what the line is called after: 0 the surest."""
    words = _all_words(part.key)
    is_name, is_called = bool(words) and words[-1] in NAMING, not called.isdisjoint(words)
    if _PART_NUMBER.search(part.key):
        return _NO_NAME
    if part.is_resolved:
        return 0
    unnamed = _NO_NAME if _telling(words) else 4
    return {(True, True): 1, (True, False): 2, (False, True): 3}.get((is_name, is_called), unnamed)


def _label(part: Part, place: int, keys: Sequence[Sequence[str]]) -> str:
    """The first candidate that could not be the label of another part."""
    if is_switch(part.value):
        return part.key.removeprefix("has_").removeprefix("is_")
    if set(part.value.casefold().split()) <= set(keys[place]):
        return part.key  # one of the choices that the key names: ``hot_or_iced=Iced``
    others = [frozenset(words) for index, words in enumerate(keys) if index != place and words != keys[place]]
    for label in _candidates(part.key):
        if not any(words.issuperset(_all_words(label)) for words in others):
            return label
    return part.key


@memo(maxsize=4096)
def _candidates(key: str) -> tuple[str, ...]:
    """Labels for a key, the shortest first; the number of a part stays."""
    return tuple(_candidates_for(key))


def _candidates_for(key: str) -> Iterator[str]:
    number = _PART_NUMBER.search(key)
    stem, suffix = (key[: number.start()], number.group()) if number else (key, "")
    words = re.split(r"[._]", stem)
    telling = _telling(words)
    if not telling:
        return
    if MEASURES.isdisjoint(words) and JOINING.isdisjoint(words):
        yield from (label + suffix for label in _short_labels(words, telling))
    yield "_".join(telling) + suffix


def _short_labels(words: Sequence[str], telling: Sequence[str]) -> Iterator[str]:
    """A direction, the x of ``x_of_y``, the last two words: one alone may be a unit, or no noun (``trang_thai``)."""
    yield from (word for word in words if word in DIRECTIONS)
    if "of" in words:
        yield from (word for word in words[: words.index("of")][-1:] if word not in EMPTY_WORDS | WEAK)
    yield telling[-2] if telling[-1] in WEAK and len(telling) == 2 else "_".join(telling[-2:])


def _telling(words: Sequence[str]) -> list[str]:
    return [word for word in words if word and not word.isdigit() and word not in EMPTY_WORDS]


@memo(maxsize=4096)
def _all_words(key: str) -> tuple[str, ...]:
    return tuple(word for word in re.split(r"[._]", key) if word)
