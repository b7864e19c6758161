"""The working state that a model keeps, through the wire formats of all providers, and what ends with its messages."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from reactor_memory import Memory, Message, open_memory
from tests.acceptance.scenes import USER, memory_blocks, save, settings
from tests.doubles.fake_gemini import FakeGemini
from tests.doubles.fake_gemini import says as gemini_says
from tests.doubles.fake_openai import FakeOpenAI
from tests.doubles.fake_openai import says as openai_says
from tests.doubles.fake_provider import Answer

pytestmark = pytest.mark.anyio

FORMS = ["gemini", "json_schema", "json_object", "text"]
OPEN = {"name": "", "kind": "open", "text": "book a hotel in Porto for 3 nights", "lines": "1", "ended": ""}
FALSE = {"name": "", "kind": "open", "text": "book a hotel in Lisbon for 9 nights", "lines": "1", "ended": ""}
TALK = [
    Message.user("Please book a hotel in Porto for 3 nights."),
    Message.assistant("I will look for one."),
    Message.user("My sister Ana comes along."),
    Message.assistant("Noted."),
]
CHAT = [said for number in range(8) for said in (Message.user(f"Hm {number}."), Message.assistant("Well."))]


def edits_of(document: dict[str, Any]) -> dict[str, Any]:
    is_first = any("Porto" in line for line in document["lines"])
    known = [item.split()[0] for item in document.get("state", ()) if ends(document)]
    ended = [{"name": name, "kind": "open", "text": "", "lines": "", "ended": "done"} for name in known]
    return {"drop": "2 4", "keep": "3", "state": [OPEN, FALSE] if is_first else ended, "narrative": "", "headline": ""}


def ends(document: dict[str, Any]) -> bool:
    return any("is booked" in line for line in document["lines"])


class EditingGemini(FakeGemini):
    def usually(self, question: Any) -> Answer:
        return gemini_says(edits_of(question.document))


class EditingOpenAI(FakeOpenAI):
    def usually(self, question: Any) -> Answer:
        return openai_says(edits_of(question.document))


@asynccontextmanager
async def edited_memory(form: str = "gemini") -> AsyncGenerator[Memory]:
    async with (EditingGemini if form == "gemini" else EditingOpenAI).running() as fake:
        name, server = "gemini", {"base_url": fake.url, "api_key": "k"}
        if isinstance(fake, EditingOpenAI):
            name, server = "openai", {"base_url": fake.base_url, "model": "m", "response_format": form}
        counted = {"trigger_message_count": 4, "recent_message_count": 2, "segment_message_count": 4}
        counted["question_message_count"] = 8
        async with open_memory(settings(summary={"provider": name, **counted}, models={name: server})) as memory:
            await save(memory, "s", [*TALK, *CHAT])
            await memory.drain()
            yield memory


async def shown(memory: Memory, session_id: str = "s") -> str:
    context = await memory.load_history(session_id, user_id=USER)
    return "\n".join(block.content for block in memory_blocks(context.messages))


@pytest.mark.parametrize("form", FORMS)
async def test_state_is_shown_as_derived_and_drops_count(form: str) -> None:
    async with edited_memory(form) as memory:
        block = await shown(memory)
    assert "open: book a hotel in Porto for 3 nights (derived, 1)" in block
    assert "Lisbon" not in block
    assert "I will look for one" not in block
    assert "My sister Ana comes along." in block


async def test_refused_item_stands_in_facts_with_its_reason() -> None:
    async with edited_memory() as memory:
        found = await memory.facts.trace("s", user_id=USER, everything=True)
    assert [each.fact.key for each in found if "Lisbon" in each.fact.value] == ["state.1b.refused_number"]


async def test_ended_item_is_shown_no_more() -> None:
    async with edited_memory() as memory:
        await save(memory, "s", [Message.user("The hotel is booked."), Message.assistant("Good."), *CHAT[:6]])
        await memory.drain()
        assert "(derived" not in await shown(memory)


async def test_fork_has_the_state_of_its_past() -> None:
    async with edited_memory() as memory:
        fork = await memory.fork("s", at_seq=15, user_id=USER)
        await memory.drain()
        assert "(derived, 1)" in await shown(memory, fork.session_id)


async def test_state_ends_with_the_message_it_rests_on() -> None:
    async with edited_memory() as memory:
        await memory.erasure.erase("s", seq=1, user_id=USER)
        await memory.drain()
        assert "Porto" not in await shown(memory)
