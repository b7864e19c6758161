"""The summarizer for servers with OpenAI's wire format, against a local one: every way to fail is one typed error."""

from __future__ import annotations

import json
import logging
import subprocess
import sys
from collections.abc import AsyncIterator
from typing import Any

import pytest

from reactor_memory.errors import ConfigurationError, SummarizationError
from reactor_memory.features.facts.summarizers.language_model import LanguageModelSummarizer
from reactor_memory.models import Message
from reactor_memory.models.ledger import Usage
from reactor_memory.providers import bounded_http
from reactor_memory.tokens.estimate import EstimateCounter
from tests.doubles.asked_summarizers import openai_summarizer
from tests.doubles.fake_openai import FakeOpenAI, complains, says
from tests.doubles.fake_provider import Answer, disconnects, drips, replies, replies_text
from tests.features.facts.summarizers.provider_rules import (
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


def summarizer_at(fake: FakeOpenAI, key: str | None = KEY, **options: Any) -> LanguageModelSummarizer:
    return openai_summarizer("a-model", key, base_url=fake.base_url, **options)


@pytest.fixture
async def summarizer(fake_openai: FakeOpenAI) -> AsyncIterator[LanguageModelSummarizer]:
    summarizer = summarizer_at(fake_openai)
    yield summarizer
    await summarizer.aclose()


class TestLikeEveryProvider(ProviderRules):
    says = staticmethod(says)

    @pytest.fixture
    def fake(self, fake_openai: FakeOpenAI) -> FakeOpenAI:
        return fake_openai

    def made(self, fake: FakeOpenAI, **options: Any) -> LanguageModelSummarizer:
        return summarizer_at(fake, **options)


# -- what is asked, what comes back -----------------------------------------------------------------------------------


async def test_facts_and_narrative_come_back(fake_openai: FakeOpenAI, summarizer: LanguageModelSummarizer):
    fake_openai.script(says(GOOD, usage={"prompt_tokens": 321, "completion_tokens": 51, "total_tokens": 372}))
    extraction = await summarizer.summarize(MESSAGES)
    assert extraction.facts == (SHIPPED,)
    assert extraction.narrative == GOOD["narrative"]
    assert extraction.headline == "Order shipped"
    assert extraction.usage == Usage(tokens_read=321, tokens_written=51)
    assert summarizer.name == "openai:a-model"


async def test_what_is_asked(fake_openai: FakeOpenAI, summarizer: LanguageModelSummarizer):
    await summarizer.summarize(MESSAGES)
    [question] = fake_openai.questions
    assert question.path == "/v1/chat/completions"
    assert question.headers["authorization"] == f"Bearer {KEY}"
    assert KEY not in json.dumps(question.body)
    assert [message["role"] for message in question.body["messages"]] == ["system", "user"]
    assert question.document == {"records": RECORDS}
    assert SECRET not in question.instruction
    assert set(question.body) == {"model", "messages", "max_tokens", "response_format"}
    assert (question.body["model"], question.body["max_tokens"]) == ("a-model", 8192)


async def test_the_schema_is_one_that_the_strict_mode_takes(
    fake_openai: FakeOpenAI, summarizer: LanguageModelSummarizer
):
    await summarizer.summarize(MESSAGES)
    form = fake_openai.questions[0].body["response_format"]
    assert (form["type"], form["json_schema"]["strict"]) == ("json_schema", True)
    answer = form["json_schema"]["schema"]
    fact = answer["properties"]["facts"]["items"]
    for node in (answer, fact):
        assert (node["type"], node["additionalProperties"]) == ("object", False)
        assert set(node["required"]) == set(node["properties"])
    assert fact["properties"]["source_seq"]["type"] == "integer"


async def test_without_a_key_no_key_is_sent(fake_openai: FakeOpenAI):
    summarizer = summarizer_at(fake_openai, None)
    await summarizer.summarize(MESSAGES)
    assert "authorization" not in fake_openai.questions[0].headers
    await summarizer.aclose()


@pytest.mark.parametrize("finish", ["stop", None, "eos"])
async def test_servers_have_their_own_words_for_the_end(
    fake_openai: FakeOpenAI, summarizer: LanguageModelSummarizer, finish: str | None
):
    fake_openai.script(says(GOOD, finish=finish))
    assert (await summarizer.summarize(MESSAGES)).headline == "Order shipped"


@pytest.mark.parametrize("text", ["<think>\n{hm} </think>\n%s", "```json\n%s\n```", " %s\n"])
async def test_thoughts_and_fences_around_an_answer_are_taken_off(
    fake_openai: FakeOpenAI, summarizer: LanguageModelSummarizer, text: str
):
    fake_openai.script(says(text % json.dumps(GOOD)))
    assert (await summarizer.summarize(MESSAGES)).headline == "Order shipped"


async def test_a_server_that_counts_nothing_is_counted_for(
    fake_openai: FakeOpenAI, summarizer: LanguageModelSummarizer
):
    fake_openai.script(replies({"choices": [{"message": {"content": json.dumps(GOOD)}}]}))
    usage = (await summarizer.summarize(MESSAGES)).usage
    asked = fake_openai.questions[0]
    counter = EstimateCounter()
    assert usage.tokens_read == counter.count(asked.instruction) + counter.count(asked.text)
    assert usage.tokens_written == counter.count(json.dumps(GOOD))


# -- servers that know less ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("forms", "asked"),
    [
        (["json_object", "text"], ["json_schema", "json_object", "json_object"]),
        (["text"], ["json_schema", "json_object", "text", "text"]),
    ],
)
async def test_a_form_that_is_refused_gives_way_for_good(
    fake_openai: FakeOpenAI, summarizer: LanguageModelSummarizer, forms: list[str], asked: list[str]
):
    fake_openai.forms = forms
    for _ in range(2):
        assert (await summarizer.summarize(MESSAGES)).narrative == "They talked."
    assert [question.form for question in fake_openai.questions] == asked


async def test_limit_that_is_refused_by_name_gets_its_other_name(
    fake_openai: FakeOpenAI, summarizer: LanguageModelSummarizer
):
    fake_openai.limits = ["max_completion_tokens"]
    for _ in range(2):
        await summarizer.summarize(MESSAGES)
    limits = [{"max_tokens", "max_completion_tokens"} & set(question.body) for question in fake_openai.questions]
    assert limits == [{"max_tokens"}, {"max_completion_tokens"}, {"max_completion_tokens"}]


async def test_tier_of_the_settings_is_asked_for(fake_openai: FakeOpenAI) -> None:
    summarizer = summarizer_at(fake_openai, service_tier="flex")
    await summarizer.summarize(MESSAGES)
    await summarizer.aclose()
    assert [question.body["service_tier"] for question in fake_openai.questions] == ["flex"]


async def test_tier_that_a_server_refuses_is_left_out(fake_openai: FakeOpenAI) -> None:
    summarizer = summarizer_at(fake_openai, service_tier="flex")
    fake_openai.script(complains("Unknown parameter: 'service_tier'.", param="service_tier"))
    await summarizer.summarize(MESSAGES)
    await summarizer.summarize(MESSAGES)
    await summarizer.aclose()
    assert ["service_tier" in question.body for question in fake_openai.questions] == [True, False, False]


async def test_a_server_that_lacks_it_is_asked_only_few_times(
    fake_openai: FakeOpenAI, summarizer: LanguageModelSummarizer
):
    fake_openai.forms, fake_openai.limits = [], ["max_completion_tokens"]
    assert (await failure_of(summarizer)).reason == "rejected"
    assert len(fake_openai.questions) == 4


@pytest.mark.parametrize("form", ["json_schema", "json_object", "text"])
async def test_a_form_of_the_settings_is_kept(fake_openai: FakeOpenAI, form: Any):
    summarizer = summarizer_at(fake_openai, response_format=form)
    await summarizer.summarize(MESSAGES)
    fake_openai.forms = []
    assert (await failure_of(summarizer)).reason == "rejected"
    assert [question.form for question in fake_openai.questions] == [form, form]
    await summarizer.aclose()


# -- failures -----------------------------------------------------------------------------------------------------

OPENAI_TOO_LONG = complains("This model's maximum context length is 128 tokens.", code="context_length_exceeded")
VLLM_TOO_LONG = replies(
    {
        "object": "error",
        "message": "'max_tokens' or 'max_completion_tokens' is too large: 8192. This model's maximum context length is "
        "4096 tokens and your request has 900 input tokens.",
        "type": "BadRequestError",
        "code": 400,
    },
    status=400,
)
LLAMA_TOO_LONG = complains("the request exceeds the available context size, try increasing it")
FAILURES: list[tuple[str, Answer, str, bool, float | None]] = [
    ("429", complains("slow down", status=429), "rate_limited", True, None),
    ("429 header", replies({}, status=429, headers={"Retry-After": "7"}), "rate_limited", True, 7.0),
    ("no credit", complains("quota", status=429, code="insufficient_quota"), "rejected", False, None),
    ("503 header", replies({}, status=503, headers={"Retry-After": "3"}), "unavailable", True, 3.0),
    ("500", complains(f"{KEY} {SECRET}", status=500), "unavailable", True, None),
    ("504", replies({}, status=504), "timeout", True, None),
    ("502 html", replies_text(f"<h1>Bad gateway {SECRET}</h1>", status=502), "unavailable", True, None),
    ("400", complains(f"bad {SECRET}"), "rejected", False, None),
    ("401", complains(f"Incorrect API key provided: {KEY}", status=401), "rejected", False, None),
    ("404", complains("model 'a-model' not found", status=404), "rejected", False, None),
    ("too long, OpenAI", OPENAI_TOO_LONG, "too_long", False, None),
    ("too long, vLLM", VLLM_TOO_LONG, "too_long", False, None),
    ("too long, llama.cpp", LLAMA_TOO_LONG, "too_long", False, None),
    ("redirect", replies({}, status=307, headers={"Location": "/elsewhere"}), "rejected", False, None),
    ("200 html", replies_text(f"<html>{SECRET}</html>"), "malformed", True, None),
    ("200 empty", replies_text("", content_type="application/json"), "malformed", True, None),
    ("200 list", replies([]), "malformed", True, None),
    ("200 error", replies({"error": {"message": SECRET}}), "malformed", True, None),
    ("200 wrong types", replies({"choices": 7}), "malformed", True, None),
    ("no choice", replies({"choices": []}), "malformed", True, None),
    ("no content", says(None), "malformed", True, None),
    ("a tool call", says(None, finish="tool_calls"), "malformed", True, None),
    ("cut off", says('{"facts": [{"anchor": "or', finish="length"), "truncated", True, None),
    ("cut off while thinking", says("", finish="length"), "truncated", True, None),
    ("json cut unannounced", says('{"facts": ['), "malformed", True, None),
    ("prose", says(f"Here you are: {SECRET}"), "malformed", True, None),
    ("wrong schema", says({"facts": SECRET, "narrative": 3}), "malformed", True, None),
    ("no facts", says({"error": SECRET}), "malformed", True, None),
    ("refused", says(None, refusal=f"I cannot, {SECRET}"), "refused", False, None),
    ("filtered", says("", finish="content_filter"), "refused", False, None),
    ("disconnected", disconnects(), "unavailable", True, None),
    ("disconnected midway", disconnects(after=b'{"choices": ['), "unavailable", True, None),
]


@pytest.mark.parametrize(
    ("answer", "reason", "retryable", "retry_after"), [pytest.param(*row, id=name) for name, *row in FAILURES]
)
async def test_a_failure_is_one_typed_error(
    fake_openai: FakeOpenAI,
    summarizer: LanguageModelSummarizer,
    caplog: pytest.LogCaptureFixture,
    answer: Answer,
    reason: str,
    retryable: bool,
    retry_after: float | None,
):
    caplog.set_level(logging.DEBUG)
    fake_openai.script(answer)
    failure = await failure_of(summarizer)
    assert (failure.reason, failure.retryable, failure.retry_after_seconds) == (reason, retryable, retry_after)
    assert len(fake_openai.questions) == 1
    assert_no_canary(failure, caplog)


async def test_an_answer_that_was_cut_off_gives_its_whole_facts(
    fake_openai: FakeOpenAI, summarizer: LanguageModelSummarizer
) -> None:
    facts = '{"facts": [{"key": "order", "value": "A-13", "category": "ENTITY"}, {"key": "total", "val'
    fake_openai.script(says(facts, finish="length"))
    extraction = await summarizer.summarize(MESSAGES)
    assert [(fact.key, fact.value, fact.source_seq) for fact in extraction.facts] == [("order", "A-13", 0)]
    assert extraction.usage.total


async def test_an_answer_of_no_use_has_its_price(fake_openai: FakeOpenAI):
    summarizer = summarizer_at(fake_openai, max_input_tokens=2000)
    fake_openai.script(says(GOOD), says("no json"))
    with pytest.raises(SummarizationError) as caught:
        await summarizer.summarize([Message.user("more words " * 600, seq=1)])
    assert caught.value.tokens == 240
    fake_openai.script(says("", finish="length"))
    with pytest.raises(SummarizationError) as caught:
        await summarizer.summarize(MESSAGES)
    assert caught.value.tokens == 120
    await summarizer.aclose()


async def test_an_answer_without_end_is_given_up(fake_openai: FakeOpenAI, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(bounded_http, "MAX_ANSWER_BYTES", 3)
    summarizer = summarizer_at(fake_openai, timeout_seconds=10)
    fake_openai.script(drips())
    assert (await failure_of(summarizer)).reason == "malformed"
    await summarizer.aclose()


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
async def test_redirect_does_not_carry_the_key_or_the_conversation_away(
    fake_openai: FakeOpenAI, summarizer: LanguageModelSummarizer, status: int
):
    async with FakeOpenAI.running() as elsewhere:
        location = f"{elsewhere.base_url}/chat/completions"
        fake_openai.script(replies({}, status=status, headers={"Location": location}))
        await failure_of(summarizer)
        assert elsewhere.questions == []


async def test_server_on_this_machine_is_not_asked_through_a_proxy(
    fake_openai: FakeOpenAI, monkeypatch: pytest.MonkeyPatch
):
    async with FakeOpenAI.running() as proxy:
        for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
            monkeypatch.setenv(name, proxy.url)
        monkeypatch.delenv("NO_PROXY", raising=False)
        monkeypatch.delenv("no_proxy", raising=False)
        summarizer = summarizer_at(fake_openai)
        await summarizer.summarize(MESSAGES)
        await summarizer.aclose()
        assert (len(fake_openai.questions), proxy.questions) == (1, [])


async def test_the_environment_decides_nothing(
    fake_openai: FakeOpenAI, summarizer: LanguageModelSummarizer, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("OPENAI_API_KEY", "another-key")
    monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:1")
    await summarizer.summarize(MESSAGES)
    assert fake_openai.questions[0].headers["authorization"] == f"Bearer {KEY}"


# -- life ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("key", [None, "", " "])
def test_openai_itself_needs_a_key(key: str | None):
    with pytest.raises(ConfigurationError, match="OPENAI_API_KEY") as caught:
        openai_summarizer("a-model", key)
    assert caught.value.key == "api_key"


@pytest.mark.parametrize("key", ["two\nlines", "schlüssel"])
def test_a_key_unfit_for_headers_is_refused_without_repeating_it(key: str):
    with pytest.raises(ConfigurationError) as caught:
        openai_summarizer("a-model", key)
    assert caught.value.key == "api_key"
    assert key not in str(caught.value)


def test_the_transport_is_imported_at_the_first_question_only():
    script = """
import sys
from tests.doubles.asked_summarizers import openai_summarizer
openai_summarizer("m", "k")
assert not [name for name in sys.modules if name.startswith(("google", "httpx2"))]
"""
    subprocess.run([sys.executable, "-c", script], check=True)
