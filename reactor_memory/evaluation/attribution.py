"""Whether a reader can tell what a value in a context is of.

A sentence and a message say it in words. A record, a line of parts between semicolons, says it with labels: by the
value, in a header of columns above it, or not at all where no other part could be meant.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Literal, NamedTuple, TypeAlias

from reactor_memory.evaluation.probes import Probe, holds, is_about
from reactor_memory.evaluation.units import RESULT, Unit
from reactor_memory.models import Message
from reactor_memory.text.spans import arguments_of, decode, leaves

Kind: TypeAlias = Literal["date", "time", "number", "flag", "text"]
Words: TypeAlias = frozenset[str]
Keys: TypeAlias = Mapping[str, frozenset[Words]]
"""The words of the keys under which a session holds a value, by the value, case folded."""

WORDS_OF_A_SENTENCE = 2
"""A part with so many words in lower case beside the value says what it is about in words."""
LEAST_LABEL = 2
"""Characters of the shortest label."""
MOST_LABEL = 60

_AFTER_LABEL = re.compile(r"[=:;]")
_TITLED = re.compile(r"([^=:;]{1,100}): +(?=\S)(.*)")
_MARKS = re.compile(r" \((?:tool|failed|superseded|cancelled)\)")
_CHANGED = re.compile(r"(?:^| )then ")
_LATER = re.compile(r" then [\w -]{1,60}?(?:: |$|(?= then ))")
_DETAILS = re.compile(r" \(([^()=]{1,60}=[^()]{1,300})\)(?= then |$)")
_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+|[^\W\d_]+")
_QUOTE = re.compile(r"\s*[-*•] ")
_KINDS: tuple[tuple[Kind, re.Pattern[str]], ...] = (
    ("flag", re.compile(r"true|false|yes|no|on|off|none|null|add|remove", re.IGNORECASE)),
    ("date", re.compile(r"\d{4}-\d\d?-\d\d?(?:[T ][\d:.+Z-]+)?|\d\d?[/.]\d\d?[/.]\d{2,4}")),
    ("time", re.compile(r"\d\d?:\d\d(?::\d\d)?(?: ?[ap]\.?m\.?)?|\d\d? ?[ap]\.?m\.?", re.IGNORECASE)),
    ("number", re.compile(r"[-+]?[$€£¥₹]? ?\d[\d.,]*%?")),
)


class Part(NamedTuple):
    """A part of a record: the words of its label, none if it has none, its text as it is written, and of which of the
    calls that the line tells of, by number.
    """

    label: Words
    text: str
    call: int = 0

    @property
    def values(self) -> tuple[str, ...]:
        """The value, and those that it was changed to."""
        return tuple(" ".join(each.casefold().split()) for each in _CHANGED.split(self.text) if each.strip())

    @property
    def kind(self) -> Kind:
        value = (self.values or ("",))[0]
        for kind, pattern in _KINDS:
            if pattern.fullmatch(value):
                return kind
        return "text"


class Record(NamedTuple):
    """A line that is made of parts."""

    title: str
    parts: tuple[Part, ...]


def keys_in(messages: Iterable[Message]) -> Keys:
    """Under which keys the calls and results of these messages hold which values."""
    found: defaultdict[str, set[Words]] = defaultdict(set)
    for message in messages:
        values = [arguments_of(call.arguments) for call in message.tool_calls]
        for value in (*values, decode(message.content) if message.role == "tool" else None):
            for leaf in leaves(value):
                found[leaf.text.casefold()].add(words_of(re.sub(r"\.\d+(?=\.|$)", "", leaf.path)))
    return {value: frozenset(keys) for value, keys in found.items()}


def is_attributable(probe: Probe, units: Iterable[Unit], said: Keys | None = None) -> bool:
    """Whether one unit holds a form of the anchor and one of the value, and says what the value is of.

    `said` are the keys of the messages that the detail is from.
    """
    return any(_says_of_what(probe, unit, said or {}) for unit in units)


def words_of(label: str) -> Words:
    return frozenset(word.casefold() for word in _WORD.findall(label))


def record_of(unit: Unit) -> Record | None:
    """The parts of a line; None if it is a sentence."""
    text = _MARKS.sub("", unit.text.removeprefix("+ "))
    if not unit.is_line or _QUOTE.match(text):
        return None
    titled = _TITLED.fullmatch(text)
    title, rest = titled.groups() if titled else ("", text)
    parts = tuple(_parts(rest, unit.columns))
    is_record = len(parts) > 1 or any(part.label or part.kind != "text" for part in parts)
    return Record(title, parts) if is_record else None


def is_clear(record: Record) -> bool:
    """Whether each part can be told from the others."""
    return all(_is_named(part, record) for part in record.parts)


def _parts(text: str, columns: Sequence[str]) -> Iterator[Part]:
    """The parts of a line: of what a call was given, of what it gave back, of later calls about it."""
    given, _, made = _DETAILS.sub(r"; \1", text).partition(f" {RESULT} ")
    border = columns.index(RESULT) if RESULT in columns else len(columns)
    yield from _aligned(given.split(";"), columns[:border])
    made, *later = _LATER.split(made) if made else ("",)
    yield from _aligned(made.split(";") if made else (), columns[border + 1 :])
    for number, call in enumerate(later, start=1):
        yield from (part._replace(call=number) for part in _aligned(call.split(";") if call else (), ()))


def _aligned(pieces: Sequence[str], columns: Sequence[str]) -> Iterator[Part]:
    """The pieces under their columns: in the order of these, and those with another label behind them."""
    labels = [(_labelled(piece) or ("",))[0] for piece in pieces]
    own = [piece for piece, label in zip(pieces, labels, strict=True) if not label or label in columns]
    names = iter(columns if len(own) == len(columns) else [""] * len(own))
    for piece, label in zip(pieces, labels, strict=True):
        yield _part(piece, next(names) if not label or label in columns else "")


def _part(piece: str, column: str) -> Part:
    label, text = _labelled(piece) or (column, piece)
    return Part(words_of(label) if len(label) >= LEAST_LABEL else frozenset(), text.strip())


def _labelled(piece: str) -> tuple[str, str] | None:
    """A label and its text, of "label=text" or "label: text"."""
    sign = _AFTER_LABEL.search(piece)
    if sign is None or not piece.startswith(("=", ": "), sign.start()):
        return None
    label, text = piece[: sign.start()].strip(), piece[sign.end() :].strip()
    return (label, text) if text and 0 < len(label) <= MOST_LABEL else None


def _says_of_what(probe: Probe, unit: Unit, said: Keys) -> bool:
    if not (is_about(unit.text, probe) and holds(unit.text, probe.value)):
        return False
    record = record_of(unit)
    if record is None or holds(record.title, probe.value):
        return True
    return any(_is_told(part, record, probe, said) for part in record.parts if holds(part.text, probe.value))


def _is_told(part: Part, record: Record, probe: Probe, said: Keys) -> bool:
    return (not part.label and _is_sentence(part, probe.value)) or _is_named(part, record, said)


def _is_named(part: Part, record: Record, said: Keys = MappingProxyType({})) -> bool:
    others = [other for other in record.parts if other is not part]
    if part.label:
        return all(_tells_apart(part, other, said) for other in others)
    return _is_sentence(part) or not any(
        not other.label and other.kind == part.kind and not _is_sentence(other) for other in others
    )


def _tells_apart(part: Part, other: Part, said: Keys) -> bool:
    """Whether the label of `part` could not as well be that of `other`, which says something else. What a later call
    was given stands behind its name.
    """
    if part.values == other.values or part.call != other.call:
        return True
    own, others = _keys_of(part, said), _keys_of(other, said)
    if part.label in own and part.label != other.label:
        return True
    return not (part.label <= other.label or (others and all(part.label <= key for key in others)))


def _keys_of(part: Part, said: Keys) -> frozenset[Words]:
    return frozenset[Words]().union(*(said.get(value, frozenset()) for value in part.values))


def _is_sentence(part: Part, forms: Sequence[str] = ()) -> bool:
    """Whether so many words beside the value are neither names nor numbers."""
    rest = part.text
    for form in forms:
        rest = re.sub(re.escape(form), " ", rest, flags=re.IGNORECASE)
    words = [word for word in re.findall(r"[^\W\d_]+", rest) if word.islower()]
    return len(words) >= (WORDS_OF_A_SENTENCE if forms else WORDS_OF_A_SENTENCE + 1)
