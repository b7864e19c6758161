"""The measure of what a question finds by kind: the baseline beside it, and its table."""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass

import pytest

from benchmarks.kinds_of_work import Bm25, Found, kind_of, look, replayed, table
from reactor_memory.core.context.message_counter import MessageCounter
from reactor_memory.evaluation.metrics import TextCount
from reactor_memory.evaluation.probes import Probe
from reactor_memory.evaluation.transcripts import Line
from reactor_memory.models import Message

SAID = [
    Message(
        role=("user", "assistant")[seq % 2],
        content=f"The permit of site {seq} has the code KX-{400 + seq}.",
        seq=seq + 1,
    )
    for seq in range(40)
]
PROBE = Probe(question="Which code has the permit of site 3?", anchor=("site 3",), value=("KX-403",))


@dataclass
class Words:
    """Counts words."""

    name: str = "words"

    def count(self, text: str) -> int:
        return len(text.split())


def line(name: str = "desk-3", where: str = "made.jsonl.gz:1") -> Line:
    return Line(where, name, tuple(SAID), lambda: (PROBE,))


@pytest.mark.parametrize(
    ("name", "kind"), [("desk-3", "desk"), ("sgd-train-003", "sgd-train"), ("lang-de", "lang-de"), ("26.json", "made")]
)
def test_a_kind_is_a_name_without_its_number(name: str, kind: str) -> None:
    assert kind_of(line(name)) == kind


def test_bm25_finds_the_piece_and_the_newest() -> None:
    plain = Bm25(SAID, TextCount(MessageCounter(Words())), 4)
    units = plain.units(PROBE.question, 60)
    assert units[0] == SAID[3].content
    assert SAID[-1].content in units
    assert sum(len(unit.split()) + 4 for unit in units) <= 60
    assert plain.units("zebra", 40) == [message.content for message in SAID[:-4:-1]]


def test_what_query_finds_less_is_told() -> None:
    counts = defaultdict(int, {("desk", "bm25", 1_000): 2, ("desk", "query", 1_000): 1, ("desk", "off", 1_000): 1})
    told = list(table(Found(counts, Counter(desk=4)), [1_000]))
    assert "query finds fewer than bm25: desk 1" in told
    assert not any("fewer than off" in row for row in told)


@pytest.mark.anyio
async def test_a_session_is_measured_in_every_row() -> None:
    found = Found(defaultdict(int), Counter())
    await look(line(), [PROBE], [500], found)
    assert {row: found.counts["desk", row, 500] for row in ("whole", "bm25", "message", "query")} == dict.fromkeys(
        ("whole", "bm25", "message", "query"), 1
    )
    turns = await replayed(line(), 500, "")
    assert len(turns.shares) == 19
    assert not any(turns.fired)
