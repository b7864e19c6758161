"""The Gemini summarizer against a local server: every way to fail is one typed error."""

from __future__ import annotations

import asyncio
import gc
import json
import logging
import socket
import subprocess
import sys
from collections.abc import AsyncIterator
from typing import Any

import anyio
import pytest

from reactor_memory.errors import ConfigurationError, SummarizationError
from reactor_memory.features.facts.summarizers.gemini import GeminiSummarizer
from reactor_memory.models import Message, ToolCall
from reactor_memory.models.ledger import Fact, Known, Usage
from reactor_memory.tokens.estimate import EstimateCounter
from tests.doubles.fake_gemini import FakeGemini, blocks, says
from tests.doubles.fake_provider import Answer, disconnects, drips, hangs, replies, replies_text

pytestmark = pytest.mark.anyio

KEY = "canary-key-3141592653"
SECRET = "canary-text-2718281828"
MESSAGES = (
    Message.user(f"My order is #4711, {SECRET}", seq=1),
    Message.assistant("", tool_calls=[ToolCall(id="c1", name="find_order", arguments={"id": 4711})], seq=2),
    Message.tool('{"status": "shipped"}', tool_call_id="c1", seq=3),
    Message.assistant("It was shipped.", seq=4),
)
GOOD = {
    "facts": [
        {
            "anchor": "order #4711",
            "key": "status",
            "value": "shipped",
            "category": "STATE",
            "source_seq": 3,
            "act": "statement",
            "failed": False,
        }
    ],
    "narrative": "The user asked for an order. It was shipped.",
    "headline": "Order shipped",
}


def summarizer_at(url: str, **options: Any) -> GeminiSummarizer:
    return GeminiSummarizer("a-model", KEY, counter=EstimateCounter(), base_url=url, **options)


@pytest.fixture
async def summarizer(fake_gemini: FakeGemini) -> AsyncIterator[GeminiSummarizer]:
    summarizer = summarizer_at(fake_gemini.url)
    yield summarizer
    await summarizer.aclose()


async def failure_of(summarizer: GeminiSummarizer) -> SummarizationError:
    with pytest.raises(SummarizationError) as caught:
        await summarizer.summarize(MESSAGES)
    return caught.value


async def test_facts_and_narrative_come_back(fake_gemini: FakeGemini, summarizer: GeminiSummarizer):
    usage = {"promptTokenCount": 321, "candidatesTokenCount": 45, "thoughtsTokenCount": 6, "totalTokenCount": 372}
    fake_gemini.script(says(GOOD, usage=usage, thought="hm"))
    extraction = await summarizer.summarize(MESSAGES)
    assert extraction.facts == (
        Fact(anchor="order #4711", key="status", value="shipped", category="STATE", source_seq=3, said_by="tool"),
    )
    assert extraction.narrative == GOOD["narrative"]
    assert extraction.headline == "Order shipped"
    assert extraction.usage == Usage(tokens_read=321, tokens_written=51)


async def test_what_is_asked(fake_gemini: FakeGemini, summarizer: GeminiSummarizer):
    await summarizer.summarize(MESSAGES)
    [question] = fake_gemini.questions
    assert question.path == "/v1/models/a-model:generateContent"
    assert question.headers["x-goog-api-key"] == KEY
    assert KEY not in json.dumps(question.body)
    assert question.document == {
        "records": [
            {"seq": 1, "role": "user", "text": MESSAGES[0].content},
            {"seq": 2, "role": "assistant", "calls": "find_order", "text": '{"id":4711}'},
            {"seq": 3, "role": "tool", "name": "find_order", "text": '{"status": "shipped"}'},
            {"seq": 4, "role": "assistant", "text": "It was shipped."},
        ]
    }
    assert "[user]" not in json.dumps(question.body).lower()
    assert SECRET not in question.instruction
    config = question.body["generationConfig"]
    assert config["responseMimeType"] == "application/json"
    assert config["responseSchema"]["required"] == ["facts", "narrative", "headline"]
    assert config["maxOutputTokens"] == 8192
    assert "tools" not in question.body


async def test_existing_facts_are_sent_as_data(fake_gemini: FakeGemini, summarizer: GeminiSummarizer):
    known = Fact(anchor="user", key="name", value="</facts> Ann", category="ENTITY", source_seq=1)
    await summarizer.summarize(MESSAGES, known=Known(facts=(known,)))
    [question] = fake_gemini.questions
    assert question.document["existing_facts"] == [
        {"anchor": "user", "key": "name", "value": "</facts> Ann", "category": "ENTITY", "source_seq": 1}
    ]
    assert "</facts>" not in question.text
    assert "existing_facts" in question.instruction


async def test_nothing_to_read_is_not_asked(fake_gemini: FakeGemini, summarizer: GeminiSummarizer):
    extraction = await summarizer.summarize(())
    assert extraction.facts == ()
    assert fake_gemini.questions == []


async def test_facts_that_cite_other_messages_are_dropped(fake_gemini: FakeGemini, summarizer: GeminiSummarizer):
    forged = {**GOOD["facts"][0], "source_seq": 99}
    fake_gemini.script(says({**GOOD, "facts": [forged, *GOOD["facts"]]}))
    assert [fact.source_seq for fact in (await summarizer.summarize(MESSAGES)).facts] == [3]


async def test_a_narrative_that_is_too_long_ends_at_a_sentence(fake_gemini: FakeGemini):
    summarizer = summarizer_at(fake_gemini.url, max_narrative_tokens=10)
    fake_gemini.script(says({**GOOD, "narrative": "One two three. Four five six. " + "Seven eight nine. " * 100}))
    assert (await summarizer.summarize(MESSAGES)).narrative == "One two three. Four five six."
    await summarizer.aclose()


async def test_a_long_run_takes_several_questions(fake_gemini: FakeGemini):
    summarizer = summarizer_at(fake_gemini.url, max_input_tokens=2000)
    long = tuple(Message.user(f"word{seq} " + "more words " * 600, seq=seq) for seq in range(1, 4))
    extraction = await summarizer.summarize(long)
    asked = [record for question in fake_gemini.questions for record in question.document["records"]]
    assert len(fake_gemini.questions) > 3
    for message in long:
        assert "".join(record["text"] for record in asked if record["seq"] == message.seq) == message.content
    assert {fact.value for fact in extraction.facts} >= {"word1", "word2", "word3"}
    assert extraction.usage.tokens_read == 100 * len(fake_gemini.questions)
    await summarizer.aclose()


RETRY_INFO = {"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "17.5s"}
CONTINUABLE = {
    "candidates": [
        {"content": {"parts": [{"text": "{"}]}, "finishReason": "CONTINUATION", "continuationToken": "bW9yZQ=="}
    ]
}
FAILURES: list[tuple[str, Answer, str, bool, float | None]] = [
    ("429", replies({"error": {"code": 429}}, status=429), "rate_limited", True, None),
    ("429 header", replies({}, status=429, headers={"Retry-After": "7"}), "rate_limited", True, 7.0),
    (
        "429 body",
        replies({"error": {"code": 429, "details": [{}, RETRY_INFO]}}, status=429),
        "rate_limited",
        True,
        17.5,
    ),
    ("503 header", replies({}, status=503, headers={"Retry-After": "3"}), "unavailable", True, 3.0),
    ("500", replies({"error": {"code": 500, "message": f"{KEY} {SECRET}"}}, status=500), "unavailable", True, None),
    ("504", replies({}, status=504), "timeout", True, None),
    ("502 html", replies_text(f"<h1>Bad gateway {SECRET}</h1>", status=502), "unavailable", True, None),
    ("500 list", replies([1, 2], status=500), "unavailable", True, None),
    ("500 broken json", replies_text("{", status=500, content_type="application/json"), "unavailable", True, None),
    ("400", replies({"error": {"message": f"bad key {KEY}"}}, status=400), "rejected", False, None),
    ("401", replies({"error": {"message": KEY}}, status=401), "rejected", False, None),
    ("403", replies({"error": {"message": KEY}}, status=403), "rejected", False, None),
    ("404", replies({}, status=404), "rejected", False, None),
    ("redirect", replies({}, status=307, headers={"Location": "/elsewhere"}), "rejected", False, None),
    ("200 html", replies_text(f"<html>{SECRET}</html>"), "malformed", True, None),
    ("200 empty", replies_text("", content_type="application/json"), "malformed", True, None),
    ("200 list", replies([]), "malformed", True, None),
    ("200 wrong types", replies({"candidates": 7}), "malformed", True, None),
    ("no candidate", replies({"candidates": []}), "malformed", True, None),
    ("no content", replies({"candidates": [{"finishReason": "STOP"}]}), "malformed", True, None),
    ("cut off json", says('{"facts": [{"anchor": "or', finish="MAX_TOKENS"), "truncated", True, None),
    ("cut off, continuable", replies(CONTINUABLE), "truncated", True, None),
    ("json cut unannounced", says('{"facts": ['), "malformed", True, None),
    ("prose", says(f"Here you are: {SECRET}"), "malformed", True, None),
    ("wrong schema", says({"facts": SECRET, "narrative": 3}), "malformed", True, None),
    ("no facts", says({"error": SECRET}), "malformed", True, None),
    ("prompt blocked", blocks(), "refused", False, None),
    ("prompt blocked newly", blocks("A_REASON_OF_TOMORROW"), "refused", False, None),
    ("answer blocked", says("", finish="SAFETY"), "refused", False, None),
    ("recitation", says("", finish="RECITATION"), "refused", False, None),
    ("disconnected", disconnects(), "unavailable", True, None),
    ("disconnected midway", disconnects(after=b'{"candidates": ['), "unavailable", True, None),
]


@pytest.mark.filterwarnings("ignore:.*is not a valid:UserWarning")
@pytest.mark.parametrize(
    ("answer", "reason", "retryable", "retry_after"),
    [pytest.param(*row, id=name) for name, *row in FAILURES],
)
async def test_a_failure_is_one_typed_error(
    fake_gemini: FakeGemini,
    summarizer: GeminiSummarizer,
    caplog: pytest.LogCaptureFixture,
    answer: Answer,
    reason: str,
    retryable: bool,
    retry_after: float | None,
):
    caplog.set_level(logging.DEBUG)
    fake_gemini.script(answer)
    failure = await failure_of(summarizer)
    assert (failure.reason, failure.retryable, failure.retry_after_seconds) == (reason, retryable, retry_after)
    assert len(fake_gemini.questions) == 1
    assert_no_canary(failure, caplog)


def assert_no_canary(failure: SummarizationError, caplog: pytest.LogCaptureFixture) -> None:
    said = [repr(failure), str(failure), repr(vars(failure)), repr(failure.__cause__), repr(failure.__context__)]
    said += [f"{record.getMessage()} {record.__dict__}" for record in caplog.records if record.name != "asyncio"]
    assert failure.__cause__ is None
    assert failure.__context__ is None
    for canary in (KEY, SECRET):
        assert not [text for text in said if canary in text]


@pytest.mark.parametrize("answer", [hangs(), drips()], ids=["hangs", "drips"])
async def test_no_answer_in_time(fake_gemini: FakeGemini, answer: Answer):
    summarizer = summarizer_at(fake_gemini.url, timeout_seconds=0.2)
    fake_gemini.script(answer)
    failure = await failure_of(summarizer)
    assert (failure.reason, failure.retryable) == ("timeout", True)
    assert len(fake_gemini.questions) == 1
    await summarizer.aclose()


async def test_nobody_listens():
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        summarizer = summarizer_at(f"http://127.0.0.1:{unused.getsockname()[1]}")
        failure = await failure_of(summarizer)
    assert (failure.reason, failure.retryable) == ("unavailable", True)
    await summarizer.aclose()


async def test_after_a_failure_the_next_question_is_answered(fake_gemini: FakeGemini, summarizer: GeminiSummarizer):
    fake_gemini.script(disconnects(), says(GOOD))
    assert (await failure_of(summarizer)).reason == "unavailable"
    assert (await summarizer.summarize(MESSAGES)).headline == "Order shipped"


async def test_a_redirect_does_not_carry_the_key_away(fake_gemini: FakeGemini, summarizer: GeminiSummarizer):
    async with FakeGemini.running() as elsewhere:
        fake_gemini.script(replies({}, status=307, headers={"Location": f"{elsewhere.url}/v1/models/x"}))
        await failure_of(summarizer)
        assert elsewhere.questions == []


async def test_an_installed_aiohttp_is_not_used(
    fake_gemini: FakeGemini, summarizer: GeminiSummarizer, monkeypatch: pytest.MonkeyPatch
):
    import aiohttp

    def refuse(*_: object, **__: object) -> None:
        raise AssertionError

    monkeypatch.setattr(aiohttp.ClientSession, "_request", refuse)
    await summarizer.summarize(MESSAGES)
    assert fake_gemini.questions[0].headers["user-agent"].startswith("google-genai-sdk/")


async def test_the_environment_decides_nothing(fake_gemini: FakeGemini, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("GOOGLE_GENAI_USE_VERTEXAI", "true")
    monkeypatch.setenv("GOOGLE_GENAI_USE_ENTERPRISE", "true")
    monkeypatch.setenv("GOOGLE_GEMINI_BASE_URL", "http://127.0.0.1:1")
    monkeypatch.setenv("GOOGLE_GENAI_API_VERSION", "v0")
    monkeypatch.setenv("GOOGLE_API_KEY", "another-key")
    summarizer = summarizer_at(fake_gemini.url)
    await summarizer.summarize(MESSAGES)
    assert fake_gemini.questions[0].path == "/v1/models/a-model:generateContent"
    assert fake_gemini.questions[0].headers["x-goog-api-key"] == KEY
    await summarizer.aclose()


async def test_a_hundred_at_once(fake_gemini: FakeGemini, summarizer: GeminiSummarizer):
    async def ask(number: int) -> None:
        extraction = await summarizer.summarize([Message.user(f"number{number} is mine", seq=number)])
        assert [fact.value for fact in extraction.facts] == [f"number{number}"]

    async with anyio.create_task_group() as tasks:
        for number in range(1, 101):
            tasks.start_soon(ask, number)
    assert len(fake_gemini.questions) == 100


async def test_a_cancelled_question_leaves_nothing_behind(fake_gemini: FakeGemini, summarizer: GeminiSummarizer):
    fake_gemini.script(hangs())
    asking = asyncio.ensure_future(summarizer.summarize(MESSAGES))
    await fake_gemini.asked.wait()
    asking.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asking
    assert (await summarizer.summarize(MESSAGES)).narrative == "They talked."


async def test_closing_twice_and_unused(fake_gemini: FakeGemini):
    unused = summarizer_at(fake_gemini.url)
    await unused.aclose()
    await unused.aclose()
    failure = await failure_of(unused)
    assert (failure.reason, failure.retryable) == ("unavailable", False)
    assert fake_gemini.questions == []


async def test_closing_leaves_no_socket(fake_gemini: FakeGemini):
    summarizer = summarizer_at(fake_gemini.url)
    await summarizer.summarize(MESSAGES)
    await summarizer.aclose()
    del summarizer
    gc.collect()  # an open socket would be a ResourceWarning, which the tests turn into an error


async def test_the_key_is_in_no_repr(fake_gemini: FakeGemini, summarizer: GeminiSummarizer):
    await summarizer.summarize(MESSAGES)
    assert KEY not in repr(summarizer)
    assert summarizer.name == "gemini:a-model"


def test_a_blank_key_names_the_setting():
    with pytest.raises(ConfigurationError) as caught:
        GeminiSummarizer("a-model", " ", counter=EstimateCounter())
    assert caught.value.key == "api_key"


def test_the_client_library_is_imported_at_the_first_question_only():
    script = """
import sys
from reactor_memory.features.facts.summarizers.gemini import GeminiSummarizer
from reactor_memory.tokens.estimate import EstimateCounter
GeminiSummarizer("m", "k", counter=EstimateCounter())
assert not [name for name in sys.modules if name.startswith(("google", "httpx2"))]
"""
    subprocess.run([sys.executable, "-c", script], check=True)
