"""Corrections that meet what is sealed later, and segments that are replaced."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from msgspec.structs import replace

from reactor_memory import Message
from reactor_memory.features.facts.jobs import with_segments
from reactor_memory.features.facts.merge import refold
from reactor_memory.models.ledger import Extraction, Fact, Ledger, SealedSegment, Segment
from reactor_memory.testing import ScriptedSummarizer
from tests.acceptance.scenes import USER, extract, memory, memory_blocks, save, talk

pytestmark = pytest.mark.anyio

FACT = ("user", "name")


def naming(messages: Sequence[Message]) -> Extraction:
    """As `extract`, and a name of the user at the end of every segment."""
    found = extract(messages)
    names = [
        Fact(anchor=FACT[0], key=FACT[1], value=each.content.split()[-1], source_seq=each.seq or 0)
        for each in messages
        if each.content.startswith("my order")
    ][-1:]
    return replace(found, facts=(*found.facts, *names))


async def test_correction_beats_messages_that_were_there_and_are_sealed_later() -> None:
    async with memory(ScriptedSummarizer(default=naming)) as container:
        manager = container.conversation_manager()
        await save(manager, "s", talk(25))
        await manager.drain()
        sealed = await manager.get_summary("s", user_id=USER)
        assert sealed is not None
        assert sealed.covered_seq < 25
        await container.facts().correct("s", fact=FACT, value="Ann", user_id=USER)
        await save(manager, "s", [Message.assistant("and so on") for _ in range(20)])
        await manager.drain()
        summary = await manager.get_summary("s", user_id=USER)
        assert summary is not None
        assert summary.covered_seq >= 25
        assert [fact.value for fact in summary.facts() if (fact.anchor, fact.key) == FACT] == ["Ann"]


async def test_a_correction_shows_though_its_message_is_in_the_window() -> None:
    async with memory(ScriptedSummarizer(default=naming), summary={"recent_message_count": 4}) as container:
        manager = container.conversation_manager()
        await save(manager, "s", talk(40))
        await manager.drain()
        window = (await manager.load_history("s", user_id=USER)).report.seqs
        facts = await container.facts().list("s", user_id=USER)
        (name,) = [fact for fact in facts if (fact.anchor, fact.key) == FACT]
        assert name.source_seq >= min(seq for seq in window if seq is not None)
        await container.facts().correct("s", fact=FACT, value="Ann", user_id=USER)
        blocks = memory_blocks((await manager.load_history("s", user_id=USER)).messages)
        assert "Ann" in "\n".join(message.content for message in blocks)


def test_a_segment_that_is_replaced_takes_its_facts_along() -> None:
    def of(start: int, end: int) -> Segment:
        return Segment(
            conversation_id="s", start_seq=start, end_seq=end, source_hash="h", summarizer="s", prompt_version="1"
        )

    def fact(seq: int, value: str) -> Fact:
        return Fact(anchor=f"a{seq}", key="k", value=value, source_seq=seq, verified=True)

    ledger = Ledger(segments=(of(1, 4), of(5, 8)), facts=(fact(2, "old"), fact(6, "kept")))
    after = with_segments(ledger, [SealedSegment(segment=of(1, 4), facts=(fact(3, "new"),))])
    summary = refold(after, max_fact_tokens=99, max_narrative_tokens=9, count=len)
    assert [each.value for each in summary.facts()] == ["new", "kept"]
