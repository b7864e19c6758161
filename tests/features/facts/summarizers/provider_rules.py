"""What every summarizer that asks a provider does, whichever it is."""

from __future__ import annotations

import asyncio
import gc
import socket
from collections.abc import AsyncIterator, Callable
from typing import Any

import anyio
import pytest

from reactor_memory.errors import SummarizationError
from reactor_memory.features.facts.summarizers.language_model import LanguageModelSummarizer
from reactor_memory.models import Message, ToolCall
from reactor_memory.models.ledger import Fact, Known
from tests.doubles.fake_gemini import FakeGemini
from tests.doubles.fake_openai import FakeOpenAI
from tests.doubles.fake_provider import Answer, disconnects, drips, hangs

KEY = "canary-key-3141592653"
SECRET = "canary-text-2718281828"
MESSAGES = (
    Message.user(f"My order is #4711, {SECRET}", seq=1),
    Message.assistant("", tool_calls=[ToolCall(id="c1", name="find_order", arguments={"id": 4711})], seq=2),
    Message.tool('{"status": "shipped"}', tool_call_id="c1", seq=3),
    Message.assistant("It was shipped.", seq=4),
)
RECORDS = [
    {"seq": 1, "role": "user", "text": MESSAGES[0].content},
    {"seq": 2, "role": "assistant", "calls": "find_order", "text": '{"id":4711}'},
    {"seq": 3, "role": "tool", "name": "find_order", "text": '{"status": "shipped"}'},
    {"seq": 4, "role": "assistant", "text": "It was shipped."},
]
FACT = {
    "anchor": "order #4711",
    "key": "status",
    "value": "shipped",
    "category": "STATE",
    "source_seq": 3,
    "act": "statement",
    "failed": False,
}
GOOD = {"facts": [FACT], "narrative": "The user asked for an order. It was shipped.", "headline": "Order shipped"}
SHIPPED = Fact(anchor="order #4711", key="status", value="shipped", category="STATE", source_seq=3, said_by="tool")


async def failure_of(summarizer: LanguageModelSummarizer) -> SummarizationError:
    with pytest.raises(SummarizationError) as caught:
        await summarizer.summarize(MESSAGES)
    return caught.value


def assert_no_canary(failure: SummarizationError, caplog: pytest.LogCaptureFixture) -> None:
    said = [repr(failure), str(failure), repr(vars(failure))]
    said += [f"{record.getMessage()} {record.__dict__}" for record in caplog.records if record.name != "asyncio"]
    assert failure.__cause__ is None
    assert failure.__context__ is None
    for canary in (KEY, SECRET):
        assert not [text for text in said if canary in text]


class ProviderRules:
    """`fake` is a server of the provider, `says` makes an answer of it, `made` a summarizer that asks it."""

    says: Callable[..., Answer]

    @pytest.fixture
    def fake(self) -> Any:
        raise NotImplementedError

    def made(self, fake: Any, **options: Any) -> LanguageModelSummarizer:
        raise NotImplementedError

    @pytest.fixture
    async def summarizer(self, fake: Any) -> AsyncIterator[LanguageModelSummarizer]:
        summarizer = self.made(fake)
        yield summarizer
        await summarizer.aclose()

    async def test_existing_facts_are_sent_as_data(self, fake: Any, summarizer: LanguageModelSummarizer):
        known = Fact(anchor="user", key="name", value="</facts> Ann", category="ENTITY", source_seq=1)
        await summarizer.summarize(MESSAGES, known=Known(facts=(known,)))
        [question] = fake.questions
        assert question.document["existing_facts"] == [
            {"anchor": "user", "key": "name", "value": "</facts> Ann", "category": "ENTITY", "source_seq": 1}
        ]
        assert "</facts>" not in question.text
        assert "existing_facts" in question.instruction

    async def test_a_long_run_takes_several_questions(self, fake: Any):
        summarizer = self.made(fake, max_input_tokens=2000)
        long = tuple(Message.user(f"word{seq} " + "more words " * 600, seq=seq) for seq in range(1, 4))
        extraction = await summarizer.summarize(long)
        asked = [record for question in fake.questions for record in question.document["records"]]
        assert len(fake.questions) > 3
        for message in long:
            assert "".join(record["text"] for record in asked if record["seq"] == message.seq) == message.content
        assert {fact.value for fact in extraction.facts} >= {"word1", "word2", "word3"}
        assert extraction.usage.tokens_read == 100 * len(fake.questions)
        await summarizer.aclose()

    @pytest.mark.parametrize("answer", [hangs(), drips()], ids=["hangs", "drips"])
    async def test_no_answer_in_time(self, fake: Any, answer: Answer):
        summarizer = self.made(fake, timeout_seconds=0.2)
        fake.script(answer)
        failure = await failure_of(summarizer)
        assert (failure.reason, failure.retryable) == ("timeout", True)
        assert len(fake.questions) == 1
        await summarizer.aclose()

    async def test_nobody_listens(self, fake: FakeGemini | FakeOpenAI):
        with socket.socket() as unused:
            unused.bind(("127.0.0.1", 0))
            nobody = type(fake)()
            nobody.url = f"http://127.0.0.1:{unused.getsockname()[1]}"
            summarizer = self.made(nobody)
            failure = await failure_of(summarizer)
        assert (failure.reason, failure.retryable) == ("unavailable", True)
        await summarizer.aclose()

    async def test_after_a_failure_the_next_question_is_answered(self, fake: Any, summarizer: LanguageModelSummarizer):
        fake.script(disconnects(), self.says(GOOD))
        assert (await failure_of(summarizer)).reason == "unavailable"
        assert (await summarizer.summarize(MESSAGES)).headline == "Order shipped"

    async def test_a_hundred_at_once(self, fake: Any, summarizer: LanguageModelSummarizer):
        async def ask(number: int) -> None:
            extraction = await summarizer.summarize([Message.user(f"number{number} is mine", seq=number)])
            assert [fact.value for fact in extraction.facts] == [f"number{number}"]

        async with anyio.create_task_group() as tasks:
            for number in range(1, 101):
                tasks.start_soon(ask, number)
        assert len(fake.questions) == 100

    async def test_a_cancelled_question_leaves_nothing_behind(self, fake: Any, summarizer: LanguageModelSummarizer):
        fake.script(hangs())
        asking = asyncio.ensure_future(summarizer.summarize(MESSAGES))
        await fake.asked.wait()
        asking.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asking
        assert (await summarizer.summarize(MESSAGES)).narrative == "They talked."

    async def test_closing_twice_and_unused(self, fake: Any):
        unused = self.made(fake)
        await unused.aclose()
        await unused.aclose()
        failure = await failure_of(unused)
        assert (failure.reason, failure.retryable) == ("unavailable", False)
        assert fake.questions == []

    async def test_closing_leaves_no_socket(self, fake: Any):
        summarizer = self.made(fake)
        await summarizer.summarize(MESSAGES)
        await summarizer.aclose()
        del summarizer
        gc.collect()  # an open socket would be a ResourceWarning, which the tests turn into an error
