"""What was said is found by another form of its words, in every language: by search, and by recall inside a session."""

from __future__ import annotations

from pathlib import Path

import pytest

from reactor_memory import Memory, open_memory
from reactor_memory.features.search.models import MessageSearch
from reactor_memory.settings.settings import Settings
from tests.scenes.word_forms import PAIRS

pytestmark = [pytest.mark.anyio, pytest.mark.slow]

FIRST = 3
"""Among how many hits a message must be."""

MOST_MISSED_BY_RECALL, MOST_MISSED_BY_SEARCH = 8, 2


async def test_words_are_found_in_another_form(tmp_path: Path) -> None:
    settings = Settings.model_validate(
        {
            "store": {"url": f"sqlite:///{tmp_path / 'memory.db'}"},
            "search": {"enabled": True},
            "summary": {"segment_message_count": 8, "trigger_message_count": 10, "recent_message_count": 4},
        }
    )
    async with open_memory(settings) as memory:
        for _, said, _ in PAIRS:
            turn = [{"role": "user", "content": said}, {"role": "assistant", "content": "OK."}]
            await memory.save_history("s", turn, user_id="ann")
        await memory.drain()
        await memory.container.background_work().run_once()
        missed_by_search = [pair for pair in PAIRS if not await searched(memory, *pair[1:])]
        missed_by_recall = [pair for pair in PAIRS if not await recalled(memory, *pair[1:])]
    assert len(missed_by_search) <= MOST_MISSED_BY_SEARCH, missed_by_search
    assert len(missed_by_recall) <= MOST_MISSED_BY_RECALL, missed_by_recall


async def searched(memory: Memory, said: str, asked: str) -> bool:
    found = await memory.search.search(MessageSearch(user_id="ann", text=asked, limit=FIRST))
    return any(hit.message.content == said for hit in found.hits)


async def recalled(memory: Memory, said: str, asked: str) -> bool:
    return any(said in hit.text for hit in await memory.recall("s", asked, user_id="ann", limit=FIRST))
