"""The Gemini summarizer against a local server: every way to fail is one typed error."""

from __future__ import annotations

import json
import logging
import subprocess
import sys
from collections.abc import AsyncIterator
from typing import Any

import pytest
from google.genai.types import GenerateContentConfig

from reactor_memory.errors import ConfigurationError, SummarizationError
from reactor_memory.features.facts.summarizers.language_model import LanguageModelSummarizer
from reactor_memory.models.ledger import Usage
from tests.doubles.asked_summarizers import gemini_summarizer
from tests.doubles.fake_gemini import FakeGemini, blocks, says
from tests.doubles.fake_provider import Answer, disconnects, replies, replies_text
from tests.features.facts.summarizers.provider_rules import (
    FACT,
    GOOD,
    KEY,
    MESSAGES,
    RECORDS,
    SECRET,
    SHIPPED,
    ProviderRules,
    assert_no_canary,
    failure_of,
)

pytestmark = pytest.mark.anyio


def summarizer_at(url: str, **options: Any) -> LanguageModelSummarizer:
    return gemini_summarizer("a-model", KEY, base_url=url, **options)


@pytest.fixture
async def summarizer(fake_gemini: FakeGemini) -> AsyncIterator[LanguageModelSummarizer]:
    summarizer = summarizer_at(fake_gemini.url)
    yield summarizer
    await summarizer.aclose()


class TestLikeEveryProvider(ProviderRules):
    says = staticmethod(says)

    @pytest.fixture
    def fake(self, fake_gemini: FakeGemini) -> FakeGemini:
        return fake_gemini

    def made(self, fake: FakeGemini, **options: Any) -> LanguageModelSummarizer:
        return summarizer_at(fake.url, **options)


async def test_facts_and_narrative_come_back(fake_gemini: FakeGemini, summarizer: LanguageModelSummarizer):
    usage = {"promptTokenCount": 321, "candidatesTokenCount": 45, "thoughtsTokenCount": 6, "totalTokenCount": 372}
    fake_gemini.script(says(GOOD, usage=usage, thought="hm"))
    extraction = await summarizer.summarize(MESSAGES)
    assert extraction.facts == (SHIPPED,)
    assert extraction.narrative == GOOD["narrative"]
    assert extraction.headline == "Order shipped"
    assert extraction.usage == Usage(tokens_read=321, tokens_written=51)


async def test_what_is_asked(fake_gemini: FakeGemini, summarizer: LanguageModelSummarizer):
    await summarizer.summarize(MESSAGES)
    [question] = fake_gemini.questions
    assert question.path == "/v1/models/a-model:generateContent"
    assert question.headers["x-goog-api-key"] == KEY
    assert KEY not in json.dumps(question.body)
    assert question.document == {"records": RECORDS}
    assert "[user]" not in json.dumps(question.body).lower()
    assert SECRET not in question.instruction
    config = question.body["generationConfig"]
    assert config["responseMimeType"] == "application/json"
    assert config["responseSchema"]["required"] == ["facts", "narrative", "headline"]
    assert config["maxOutputTokens"] == 8192
    assert "tools" not in question.body


async def test_tier_of_the_settings_is_asked_for(fake_gemini: FakeGemini) -> None:
    """An older google-genai knows none: then nothing is asked at another price than the one that was wanted."""
    summarizer = summarizer_at(fake_gemini.url, service_tier="flex")
    if "service_tier" in GenerateContentConfig.model_fields:
        await summarizer.summarize(MESSAGES)
        assert [question.body["serviceTier"] for question in fake_gemini.questions] == ["flex"]
    else:
        with pytest.raises(SummarizationError, match="update it, or leave the setting out"):
            await summarizer.summarize(MESSAGES)
        assert fake_gemini.questions == []
    await summarizer.aclose()


async def test_nothing_to_read_is_not_asked(fake_gemini: FakeGemini, summarizer: LanguageModelSummarizer):
    extraction = await summarizer.summarize(())
    assert extraction.facts == ()
    assert fake_gemini.questions == []


async def test_facts_that_cite_other_messages_are_dropped(fake_gemini: FakeGemini, summarizer: LanguageModelSummarizer):
    forged = {**FACT, "source_seq": 99}
    fake_gemini.script(says({**GOOD, "facts": [forged, *GOOD["facts"]]}))
    assert [fact.source_seq for fact in (await summarizer.summarize(MESSAGES)).facts] == [3]


async def test_a_narrative_that_is_too_long_ends_at_a_sentence(fake_gemini: FakeGemini):
    summarizer = summarizer_at(fake_gemini.url, max_narrative_tokens=10)
    fake_gemini.script(says({**GOOD, "narrative": "One two three. Four five six. " + "Seven eight nine. " * 100}))
    assert (await summarizer.summarize(MESSAGES)).narrative == "One two three. Four five six."
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
    summarizer: LanguageModelSummarizer,
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


async def test_a_redirect_does_not_carry_the_key_away(fake_gemini: FakeGemini, summarizer: LanguageModelSummarizer):
    async with FakeGemini.running() as elsewhere:
        fake_gemini.script(replies({}, status=307, headers={"Location": f"{elsewhere.url}/v1/models/x"}))
        await failure_of(summarizer)
        assert elsewhere.questions == []


async def test_an_installed_aiohttp_is_not_used(
    fake_gemini: FakeGemini, summarizer: LanguageModelSummarizer, monkeypatch: pytest.MonkeyPatch
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


async def test_the_key_is_in_no_repr(fake_gemini: FakeGemini, summarizer: LanguageModelSummarizer):
    await summarizer.summarize(MESSAGES)
    assert KEY not in repr(summarizer)
    assert summarizer.name == "gemini:a-model"


def test_a_blank_key_names_the_setting():
    with pytest.raises(ConfigurationError) as caught:
        gemini_summarizer("a-model", " ")
    assert caught.value.key == "api_key"


def test_the_client_library_is_imported_at_the_first_question_only():
    script = """
import sys
from tests.doubles.asked_summarizers import gemini_summarizer
gemini_summarizer("m", "k")
assert not [name for name in sys.modules if name.startswith(("google", "httpx2"))]
"""
    subprocess.run([sys.executable, "-c", script], check=True)
