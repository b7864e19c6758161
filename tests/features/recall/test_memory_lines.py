"""Lines of memory that leave a context for what comes back, and answer, come back with it."""

from __future__ import annotations

from collections.abc import Sequence

from reactor_memory.core.context.blocks import Block
from reactor_memory.core.context.budget import assemble
from reactor_memory.core.context.context import Context
from reactor_memory.core.context.draft import ContextLimits
from reactor_memory.features.facts.frames import FACTS
from reactor_memory.features.recall.memory_lines import answering_lines, in_order
from reactor_memory.models.block_lines import BlockLine
from reactor_memory.models.index_requests import IndexAnswer, IndexHit, Passage
from tests.scenes.drafts import draft

TITLE = BlockLine(text="set_date (shipment; date):")
ROW = BlockLine(text="+ KF533454; 2026-04-02", tokens=12, source_seqs=(110, 112))
DAY = BlockLine(text="2 March:")
SAID = BlockLine(text='"Shipment KF533454 is fragile."', tokens=9, source_seqs=(7,))
OTHER = BlockLine(text='"I like tea."', tokens=5, source_seqs=(9,))
LINES = (TITLE, ROW, DAY, SAID, OTHER)


def showing(lines: Sequence[BlockLine]) -> Context:
    return assemble(draft(fact_lines=lines), (), ContextLimits(budget=5_000), count=lambda _: 1, count_text=len)


def answer(*terms: str) -> IndexAnswer:
    hit = IndexHit(passage=Passage(seq=1, start=0, end_seq=1, end=5, tokens=5, terms=terms), score=5.0)
    return IndexAnswer(found=(hit,), frequencies={"kf533454": 3, "deliv": 4}, total=200)


def texts(lines: Sequence[BlockLine], context: Context, findings: IndexAnswer) -> list[str]:
    return [line.text for line in answering_lines([Block(frame=FACTS, lines=lines)], context, findings)]


def test_a_line_comes_back_with_its_place_and_heading() -> None:
    found = texts(LINES, showing([DAY, OTHER]), answer("kf533454", "deliv"))
    assert found == [
        "[#110, set_date (shipment; date)] KF533454; 2026-04-02",
        '[#7, 2 March] "Shipment KF533454 is fragile."',
    ]


def test_a_heading_of_rows_is_none_of_what_was_said() -> None:
    assert texts([TITLE, ROW, SAID], showing([OTHER]), answer("kf533454"))[1].startswith("[#7] ")


def test_what_is_shown_or_answers_nothing_stays_away() -> None:
    assert texts(LINES, showing(LINES), answer("kf533454", "deliv")) == []
    assert texts([DAY, OTHER], showing([ROW]), answer("kf533454")) == []


def test_a_line_far_below_the_best_passage_stays_away() -> None:
    weak = BlockLine(text='"It is delivered here."', source_seqs=(3,))
    findings = IndexAnswer(
        found=answer("kf533454", "deliv").found, frequencies={"kf533454": 1, "deliv": 150}, total=200
    )
    assert texts([weak], showing([OTHER]), findings) == []


def test_lines_and_passages_stand_in_one_order() -> None:
    assert in_order([ROW, OTHER], [SAID]) == (SAID, OTHER, ROW)
