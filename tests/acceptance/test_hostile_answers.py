"""Scripted answers of a hostile model, through the wire formats of all providers: none is shown, what is true is."""

from __future__ import annotations

import re
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from reactor_memory import Memory, Message, open_memory
from tests.acceptance.scenes import USER, memory_blocks, save, settings
from tests.conftest import counts
from tests.doubles.fake_gemini import FakeGemini
from tests.doubles.fake_gemini import says as gemini_says
from tests.doubles.fake_openai import FakeOpenAI
from tests.doubles.fake_openai import says as openai_says
from tests.doubles.fake_provider import Answer, records_in
from tests.scenes.hostile_answers import HostileAnswer, hostile_answers

DAY = re.compile(r"\d{1,2} [A-Z][a-z]+(?: \d{4})?:")
"""The heading of what was said on a day: its number may be one of those that are looked for."""

pytestmark = pytest.mark.anyio

ANSWERS = list(hostile_answers())
FORMS = ["gemini", "json_schema", "json_object", "text"]
NOTHING: dict[str, Any] = {"facts": [], "narrative": "", "headline": ""}


class Model:
    """Claims what it is told to of the messages that it is asked about."""

    def __init__(self) -> None:
        self.claims = ANSWERS[0]

    def answer(self, document: dict[str, Any]) -> dict[str, Any]:
        seqs = {record["seq"] for record in records_in(document)}
        facts = [claim for claim in self.claims.facts if claim["source_seq"] in seqs]
        return {**self.claims.answer, "facts": facts} if 1 in seqs else NOTHING


class HostileGemini(FakeGemini):
    model = Model()

    def usually(self, question: Any) -> Answer:
        return gemini_says(self.model.answer(question.document))


class HostileOpenAI(FakeOpenAI):
    model = Model()

    def usually(self, question: Any) -> Answer:
        return openai_says(self.model.answer(question.document))


@asynccontextmanager
async def hostile_memory(form: str) -> AsyncGenerator[tuple[Model, Memory]]:
    """A memory whose model has the wire format `form`, or OpenAI's with answers of that form."""
    provider = HostileGemini if form == "gemini" else HostileOpenAI
    async with provider.running() as fake:
        name, server = "gemini", {"base_url": fake.url, "api_key": "k"}
        if isinstance(fake, HostileOpenAI):
            name, server = "openai", {"base_url": fake.base_url, "model": "m", "response_format": form}
        counted = {"trigger_message_count": 4, "recent_message_count": 2, "segment_message_count": 6}
        summary = {"provider": name, **counted}
        async with open_memory(settings(summary=summary, models={name: server})) as memory:
            yield fake.model, memory


@pytest.mark.slow
@pytest.mark.parametrize("form", FORMS)
async def test_nothing_false_is_shown_and_everything_true_is(form: str) -> None:
    async with hostile_memory(form) as (model, memory):
        for number, each in enumerate(ANSWERS):
            model.claims = each
            assert problems(each, await shown(memory, f"s{number}", each)) == []
            counts["scripted answers of a hostile model, of which nothing was shown"] += 1


@pytest.mark.parametrize("form", FORMS)
async def test_a_dropped_negation_is_shown_in_no_form(form: str) -> None:
    async with hostile_memory(form) as (model, memory):
        model.claims = ANSWERS[0]
        assert problems(ANSWERS[0], await shown(memory, "s", ANSWERS[0])) == []


async def shown(memory: Memory, session_id: str, each: HostileAnswer) -> str:
    """What memory tells after small talk."""
    closing = () if each.messages[-1].role == "assistant" else (Message.assistant("OK."),)
    talk = (said for number in range(6) for said in (Message.user(f"Hm {number}."), Message.assistant("Well.")))
    await save(memory, session_id, [*each.messages, *closing, *talk])
    await memory.drain()
    context = await memory.load_history(session_id, user_id=USER)
    return "\n".join(block.content for block in memory_blocks(context.messages))


def problems(each: HostileAnswer, blocks: str) -> list[str]:
    """A line says a part of a message only in the words of a whole one."""
    said = [bare(message.content) for message in each.messages if message.content]
    blocks = blocks.replace('"', "")
    told = [line for line in blocks.splitlines() if not DAY.fullmatch(line)]
    lines = [line for line in told if not any(text in line for text in said)]
    values = [claim["value"] for claim in each.facts]
    false = [f"{each.name}: {line}" for line in lines for value in values if value in line]
    narrated = bare(each.narrative)
    untrue = [f"{each.name}: {narrated}"] if narrated and narrated not in said and narrated in blocks else []
    missing = [f"{each.name}: without {text}" for text in each.true if bare(text) not in blocks]
    return false + untrue + missing


def bare(text: str) -> str:
    return text.replace('"', "").rstrip(".?。？؟। ")
