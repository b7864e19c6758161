"""What can be pointed at in a text: its sentences, and the leaves of the JSON in it."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple, cast

MAX_LEAVES = 5000
"""How many leaves of one payload are read; what stands beyond is only text."""

_SENTENCE_END = re.compile(r"(?<=[.!?])\s+|\n+|(?<=[。！？])")
_ABBREVIATION = re.compile(r"(?:^|\W)(?:mr|mrs|ms|dr|prof|st|no|vs|jr|sr|e\.g|i\.e|[A-Z])\.$", re.IGNORECASE)


class Leaf(NamedTuple):
    """A scalar inside a JSON value: where it stands (``items.0.name``) and its text, on one line."""

    path: str
    text: str


def decode(text: str) -> object:
    """The JSON object or array that the whole text is, else None. Numbers stay the text that was written."""
    if text.lstrip()[:1] not in ("{", "["):
        return None
    try:
        return cast(object, json.loads(text, parse_float=str, parse_int=str, parse_constant=str))
    except (ValueError, RecursionError):
        return None


def arguments_of(arguments: Mapping[str, Any] | str) -> object:
    """The arguments of a tool call as a JSON value; malformed JSON text stays a text."""
    if not isinstance(arguments, str):
        return arguments
    decoded = decode(arguments)
    return arguments if decoded is None else decoded


def leaves(value: object) -> Iterator[Leaf]:
    """The scalars of a JSON value in the order in which they are written, nulls and empty texts left out."""
    stack: list[tuple[str, object]] = [("", value)]
    found = 0
    while stack and found < MAX_LEAVES:
        path, node = stack.pop()
        children = _children(node)
        if children is not None:
            stack.extend((f"{path}.{name}" if path else name, child) for name, child in reversed(children))
        elif text := leaf_text(node):
            found += 1
            yield Leaf(path, text)


def leaf_text(scalar: object) -> str:
    """A JSON scalar as text on one line; null is empty."""
    if scalar is None:
        return ""
    text = scalar if isinstance(scalar, str) else json.dumps(scalar, default=str)
    return " ".join(text.split())


def sentences(text: str) -> list[str]:
    """The sentences of a text, white space collapsed. Line breaks end a sentence; common abbreviations do not."""
    found: list[list[str]] = []
    for piece in _SENTENCE_END.split(text):
        words = " ".join(piece.split())
        if not words:
            continue
        if found and _ABBREVIATION.search(found[-1][-1][-8:]):
            found[-1].append(words)
        else:
            found.append([words])
    return [" ".join(pieces) for pieces in found]


def _children(node: object) -> list[tuple[str, object]] | None:
    if isinstance(node, Mapping):
        return [(str(name), child) for name, child in cast("Mapping[object, object]", node).items()]
    if isinstance(node, (list, tuple)):
        return [(str(index), child) for index, child in enumerate(cast("list[object]", node))]
    return None
