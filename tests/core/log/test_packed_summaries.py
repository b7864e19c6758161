"""The texts of a summary as they are stored: long ones packed."""

from __future__ import annotations

import pytest

from reactor_memory.core.log.summaries import MOST_PLAIN, packed, summary_from
from reactor_memory.errors import StoreCorruptError
from reactor_memory.models.ledger import Fact, Summary, facts_to_json

HEAD = (1, 1, 0, 0, None, 1, 1, "")
FACTS = tuple(
    Fact(anchor="order", key=f"key_{n}", value=f'a "value" \u2028 {n} ü', source_seq=n, span=(1, 2), verified=True)
    for n in range(1, 90)
)


def stored(facts_json: object) -> Summary:
    return summary_from((*HEAD, facts_json, "[]", ""))


@pytest.mark.parametrize("count", [0, 1, 89])
def test_facts_come_back_as_they_were(count: int) -> None:
    text = facts_to_json(FACTS[:count])
    assert stored(packed(text)).facts() == FACTS[:count]
    assert (packed(text) == text) == (len(text) <= MOST_PLAIN)


def test_long_texts_take_much_less_room() -> None:
    text = facts_to_json(FACTS)
    assert len(packed(text)) < len(text) / 4


@pytest.mark.parametrize("damage", ["eJwrSS0", "no base64!", "AAAA", 7, b"\xff"])
def test_damaged_facts_are_told_when_they_are_read(damage: object) -> None:
    with pytest.raises(StoreCorruptError):
        stored(damage).facts()
