"""Segments that a model reads in one question: memory has each at once, and the model improves them together."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from reactor_memory import Container, Message
from reactor_memory.errors import SummarizationError
from reactor_memory.features.facts.extractor import Extracted, parted
from reactor_memory.features.facts.jobs import asked_now, together
from reactor_memory.features.facts.working_state import StateItem, fact_of, items_of
from reactor_memory.models.ledger import Extraction, Fact, Segment, Usage
from reactor_memory.testing import ScriptedSummarizer
from tests.acceptance.scenes import USER, memory

pytestmark = pytest.mark.anyio

COUNTS = {"trigger_message_count": 4, "recent_message_count": 2, "segment_message_count": 4}
SECTIONS: dict[str, Any] = {
    "summary": {**COUNTS, "provider": "gemini", "question_message_count": 12},
    "background": {"backoff_seconds": 300.0, "max_backoff_seconds": 300.0},
}


def turn(number: int) -> list[Message]:
    return [Message.user(f"My parcel {number} weighs {number + 20} kilos."), Message.assistant(f"Parcel {number}.")]


def weights(messages: Sequence[Message]) -> Extraction:
    """A fact of each parcel, and an item that rests on all of them."""
    said = [each for each in messages if each.role == "user"]
    facts = [
        Fact(anchor="user", key=f"parcel_{each.seq}", value=each.content.split()[4], source_seq=each.seq or 0)
        for each in said
    ]
    first, last = said[0].seq or 0, said[-1].seq or 0
    item = StateItem(f"{last}a", "open", "kilos of the parcels", first, last)
    return Extraction(facts=(*facts, fact_of(item)), usage=Usage(tokens_read=90, tokens_written=10))


def asked(summarizer: ScriptedSummarizer) -> list[int]:
    """How many messages each question was about."""
    return [len(call.messages) for call in summarizer.calls]


async def grown(container: Container, numbers: range) -> None:
    for number in numbers:
        await container.conversation_manager().save_history("s", turn(number), user_id=USER)
        await container.conversation_manager().drain()


async def segments(container: Container) -> tuple[Segment, ...]:
    return await container.facts().segments("s", user_id=USER)


async def test_few_segments_are_read_offline_until_a_question_is_full() -> None:
    summarizer = ScriptedSummarizer(default=weights)
    async with memory(summarizer, "memory://", **SECTIONS) as container:
        await grown(container, range(7))
        made = await segments(container)
        assert asked(summarizer) == [4]
        assert [each.waits for each in made] == [False, True, True]
        assert {each.summarizer for each in made[1:]} == {"extractive"}
        await grown(container, range(7, 9))
        made = await segments(container)
        assert asked(summarizer) == [4, 12]
        assert [each.summarizer for each in made] == ["scripted"] * 4
        assert [(each.start_seq, each.end_seq) for each in made] == [(1, 4), (5, 8), (9, 12), (13, 16)]
        assert [each.usage.total for each in made] == [100, 100, 0, 0]


async def test_what_came_at_once_is_one_question() -> None:
    summarizer = ScriptedSummarizer(default=weights)
    async with memory(summarizer, "memory://", **SECTIONS) as container:
        saved = [message for number in range(24) for message in turn(number)]
        await container.conversation_manager().save_history("s", saved, user_id=USER)
        await container.conversation_manager().drain()
        ledger = await container.facts().list("s", user_id=USER)
        assert asked(summarizer) == [48]
        assert {fact.key for fact in ledger if fact.anchor == "user"} == {f"parcel_{seq}" for seq in range(1, 49, 2)}


async def test_model_without_answers_leaves_no_gap_and_is_asked_again() -> None:
    late = SummarizationError("timeout", "no answer in time")
    summarizer = ScriptedSummarizer([late] * 3, default=weights)
    async with memory(summarizer, "memory://", **SECTIONS) as container:
        for number in range(8):
            await grown(container, range(number, number + 1))
            summary = await container.conversation_manager().get_summary("s", user_id=USER)
            assert 2 * (number + 1) - (summary.covered_seq if summary else 0) <= 8
        await grown(container, range(8, 14))
        made = await segments(container)
        assert {each.summarizer for each in made if not each.waits} == {"scripted"}
        assert made[0].summarizer == "scripted"


async def test_refused_segments_stay_as_they_were_read() -> None:
    summarizer = ScriptedSummarizer([SummarizationError("refused", "not this")], default=weights)
    async with memory(summarizer, "memory://", **SECTIONS) as container:
        await grown(container, range(4))
        await grown(container, range(4, 6))
        made = await segments(container)
        assert len(summarizer.calls) == 1
        assert made[0].summarizer == "extractive"
        assert not made[0].waits


async def epoch(container: Container) -> int:
    """With another one, contexts have new blocks at once, and a prompt cache reads them anew."""
    summary = await container.conversation_manager().get_summary("s", user_id=USER)
    return summary.epoch if summary else -1


async def test_answers_leave_contexts_until_their_window_moves() -> None:
    summarizer = ScriptedSummarizer(default=weights)
    async with memory(summarizer, "memory://", **SECTIONS) as container:
        await grown(container, range(9))
        assert asked(summarizer) == [4, 12]
        assert await epoch(container) == 0
        await container.facts().rebuild("s", user_id=USER)
        await container.conversation_manager().drain()
        assert await epoch(container) > 0


async def test_rebuild_asks_about_what_waits() -> None:
    summarizer = ScriptedSummarizer(default=weights)
    async with memory(summarizer, "memory://", **SECTIONS) as container:
        await grown(container, range(7))
        assert any(each.waits for each in await segments(container))
        await container.facts().rebuild("s", user_id=USER)
        await container.conversation_manager().drain()
        made = await segments(container)
        assert {each.summarizer for each in made} == {"scripted"}
        assert not any(each.waits or each.outdated for each in made)


async def test_item_goes_with_any_message_it_rests_on() -> None:
    summarizer = ScriptedSummarizer(default=weights)
    async with memory(summarizer, "memory://", **SECTIONS) as container:
        saved = [message for number in range(12) for message in turn(number)]
        await container.conversation_manager().save_history("s", saved, user_id=USER)
        await container.conversation_manager().drain()
        assert [item.first for item in items_of(await container.facts().list("s", user_id=USER))] == [1]
        await container.erasure().erase("s", seq=1, user_id=USER)
        stored = await container.facts().trace("s", user_id=USER, everything=True)
        assert not [each.fact for each in stored if each.fact.anchor == "working state"]


def test_what_was_found_is_parted_by_its_messages() -> None:
    said = ("I moved to Lyon in May.", "My cat is called Mimi.")
    messages = tuple(Message(role="user", content=text, seq=seq) for seq, text in ((1, said[0]), (5, said[1])))
    facts = tuple(Fact(anchor="user", key="k", value="v", source_seq=seq) for seq in (1, 5))
    whole = Extraction(
        facts=facts,
        narrative="The user moved to Lyon in May. The cat is called Mimi.",
        headline="moved to Lyon",
        usage=Usage(tokens_read=7),
    )
    extracted = Extracted(extraction=whole, summarizer="m", prompt_version="1", messages=messages)
    first, second = (each.extraction for each in parted(extracted, [(1, 4), (5, 8)]))
    assert [each.source_seq for each in first.facts] == [1]
    assert (first.narrative, second.narrative) == ("The user moved to Lyon in May.", "The cat is called Mimi.")
    assert (first.headline, second.headline) == ("moved to Lyon", "")
    assert (first.usage.total, second.usage.total) == (7, 0)


@pytest.mark.parametrize(
    ("ranges", "found"),
    [
        ([], []),
        ([(1, 4)], [(1, 4)]),
        ([(1, 4), (5, 8), (9, 12)], [(1, 4), (5, 8)]),
        ([(1, 4), (9, 12)], [(1, 4)]),
        ([(1, 30), (31, 34)], [(1, 30)]),
    ],
)
def test_question_is_about_segments_without_gap(ranges: list[tuple[int, int]], found: list[tuple[int, int]]) -> None:
    assert list(together(ranges, 8)) == found


def test_later_segments_wait_for_others_the_first_do_not() -> None:
    assert asked_now([(1, 4)], 12) == [(1, 4)]
    assert asked_now([(5, 8), (9, 12)], 12) == ()
    assert asked_now([(5, 8), (9, 12), (13, 16)], 12) == [(5, 8), (9, 12), (13, 16)]
    assert asked_now([], 12) == []
