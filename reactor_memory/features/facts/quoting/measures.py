"""Numbers beside words: what a text counts, and whether another one gives another number of it. Pure."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Mapping

from reactor_memory.text.caches import memo

_MEASURE = re.compile(
    r"(?P<number>\d[\d.,:]{0,12}?)[.]?\s{0,2}"
    r"(?P<unit>[\u3400-\u9fff]|(?![이예입에으은는을를로까])[\uac00-\ud7af]|[^\W\d_\u3040-\u30ff\uac00-\ud7af]{1,20}"
    r"|%|[€$£¥₹])"
)


_COUNTED = re.compile(r"(?P<word>[^\W\d_\u3040-\u9fff]{2,20})[\s:#=]{1,2}(?P<number>\d[\d.,:]{0,12}(?<![.,:]))")


def gives_another_number(before: str, after: str) -> bool:
    """Whether two texts have different numbers beside the same word (``5 August``, ``9월 2일``)."""
    known, told = counted(before), counted(after)
    return any(unit in known and number not in known[unit] for unit, numbers in told.items() for number in numbers)


@memo(maxsize=8192)
def counted(text: str) -> Mapping[str, frozenset[str]]:
    """The same, and the words that stand right before numbers ("platform 7")."""
    found: defaultdict[str, set[str]] = defaultdict(set)
    for place in _COUNTED.finditer(text.casefold()):
        found[f"{place['word']} #"].add(place["number"])
    return {**measures(text), **{word: frozenset(numbers) for word, numbers in found.items()}}


@memo(maxsize=8192)
def measures(text: str) -> Mapping[str, frozenset[str]]:
    """The words that stand right behind numbers, each with its numbers."""
    found: defaultdict[str, set[str]] = defaultdict(set)
    for place in _MEASURE.finditer(text.casefold()):
        found[place["unit"]].add(place["number"])
    return {unit: frozenset(numbers) for unit, numbers in found.items()}
