"""A model that is slower than its deadline leaves memory no gap, and improves it once it answers."""

from __future__ import annotations

from typing import Any

import pytest

from reactor_memory import Message
from reactor_memory.errors import SummarizationError
from reactor_memory.models.ledger import Extraction
from reactor_memory.testing import ScriptedSummarizer
from tests.acceptance.scenes import USER, memory

pytestmark = pytest.mark.anyio

SECTIONS: dict[str, Any] = {
    "summary": {"trigger_message_count": 4, "recent_message_count": 2, "segment_message_count": 4},
    "background": {"backoff_seconds": 300.0, "max_backoff_seconds": 300.0},
}


def turn(number: int) -> list[Message]:
    return [Message.user(f"My parcel {number} weighs {number + 20} kilos."), Message.assistant(f"Parcel {number}.")]


def late() -> SummarizationError:
    return SummarizationError("timeout", "no answer in time")


async def behind(container: Any) -> int:
    manager = container.conversation_manager()
    summary = await manager.get_summary("s", user_id=USER)
    session = await manager.get_session("s", user_id=USER)
    return session.last_seq - (summary.covered_seq if summary else 0)


async def test_memory_is_never_more_than_two_segments_behind() -> None:
    async with memory(ScriptedSummarizer(default=late()), "memory://", **SECTIONS) as container:
        manager = container.conversation_manager()
        for number in range(20):
            await manager.save_history("s", turn(number), user_id=USER)
            await manager.drain()
            assert await behind(container) <= 8
        context = await manager.load_history("s", user_id=USER)
        assert "My parcel 0 weighs 20 kilos" in "\n".join(message.content for message in context.messages)


async def test_later_answer_improves_what_was_read_without_model() -> None:
    summarizer = ScriptedSummarizer([late(), late()], default=Extraction(narrative="They spoke of parcels."))
    async with memory(summarizer, "memory://", **SECTIONS) as container:
        manager = container.conversation_manager()
        for number in range(3):
            await manager.save_history("s", turn(number), user_id=USER)
        await manager.drain()
        assert [each.summarizer for each in await container.facts().segments("s", user_id=USER)] == ["extractive"]
        await manager.save_history("s", turn(3), user_id=USER)
        await manager.drain()
        made = [each.summarizer for each in await container.facts().segments("s", user_id=USER)]
        assert made == ["scripted"] * len(made)


async def test_refused_range_is_read_once_without_model() -> None:
    summarizer = ScriptedSummarizer(default=SummarizationError("refused", "not this"))
    async with memory(summarizer, "memory://", **SECTIONS) as container:
        manager = container.conversation_manager()
        for number in range(3):
            await manager.save_history("s", turn(number), user_id=USER)
        await manager.drain()
        await manager.drain()
        assert await behind(container) <= 4
        assert len(summarizer.calls) == 1
