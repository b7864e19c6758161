"""Chat models against local servers with their wire formats: pieces as they come, one kind of error for all faults."""

from __future__ import annotations

import traceback
from collections.abc import AsyncIterator
from contextlib import aclosing
from typing import Any

import anyio
import pytest

from reactor_memory.errors import ChatModelError, ConfigurationError
from reactor_memory.features.chat.chat_model import ChatModel
from reactor_memory.features.chat.echo import EchoModel
from reactor_memory.features.chat.gemini import GeminiChatModel
from reactor_memory.features.chat.openai import OpenAIChatModel
from reactor_memory.models import Message
from tests.doubles import fake_gemini as gemini
from tests.doubles import fake_openai as openai
from tests.doubles.fake_gemini import FakeGemini
from tests.doubles.fake_openai import FakeOpenAI
from tests.doubles.fake_provider import FakeProvider, breaks_off, disconnects, hangs, replies, replies_text, streams

pytestmark = pytest.mark.anyio

KEY = "canary-key-3141592653"
SECRET = "canary-text-2718281828"
MESSAGES = (
    Message.system("Facts: none"),
    Message.user("hello"),
    Message.assistant("hi"),
    Message.user(f"how are you? {SECRET}"),
)


class Served:
    """A model, the server that it asks, and how that server speaks."""

    def __init__(self, model: ChatModel, fake: FakeProvider[Any], speaks: Any) -> None:
        self.model, self.fake, self.speaks = model, fake, speaks

    async def answer(self) -> list[str]:
        async with aclosing(self.model.stream(MESSAGES, system="Be kind.")) as pieces:
            return [piece async for piece in pieces if piece]

    async def failure(self) -> ChatModelError:
        with pytest.raises(ChatModelError) as caught:
            await self.answer()
        return caught.value


@pytest.fixture(params=["gemini", "openai"])
async def served(
    request: pytest.FixtureRequest, fake_gemini: FakeGemini, fake_openai: FakeOpenAI
) -> AsyncIterator[Served]:
    if request.param == "gemini":
        model: ChatModel = GeminiChatModel("a-model", KEY, base_url=fake_gemini.url, timeout_seconds=60)
        yield Served(model, fake_gemini, gemini.speaks)
    else:
        model = OpenAIChatModel("a-model", KEY, base_url=fake_openai.base_url, timeout_seconds=60)
        yield Served(model, fake_openai, openai.speaks)
    await model.aclose()


async def test_pieces_come_one_by_one_and_are_the_answer(served: Served) -> None:
    served.fake.script(served.speaks("I am ", "fine, ", "日本 🦊"))
    assert await served.answer() == ["I am ", "fine, ", "日本 🦊"]
    [question] = served.fake.questions
    assert KEY in str(dict(question.headers))
    assert KEY not in str(question.body)


async def test_a_piece_is_there_before_the_next_one_is_sent(served: Served) -> None:
    served.fake.script(served.speaks("I am", finish=None, then=hangs()))
    async with aclosing(served.model.stream(MESSAGES)) as pieces:
        assert [piece async for piece in _until_text(pieces)] == ["I am"]


async def _until_text(pieces: AsyncIterator[str]) -> AsyncIterator[str]:
    async for piece in pieces:
        if piece:
            yield piece
            return


async def test_session_and_system_prompt_are_sent_as_provider_wants_them(
    fake_gemini: FakeGemini, fake_openai: FakeOpenAI
) -> None:
    for model in (
        GeminiChatModel("m", KEY, base_url=fake_gemini.url),
        OpenAIChatModel("m", base_url=fake_openai.base_url),
    ):
        fake_gemini.script(gemini.speaks("ok"))
        fake_openai.script(openai.speaks("ok"))
        async for _ in model.stream(MESSAGES, system="Be kind."):
            pass
        await model.aclose()
    [asked] = fake_gemini.questions
    assert asked.path == "/v1/models/m:streamGenerateContent"
    assert [part["text"] for part in asked.body["systemInstruction"]["parts"]] == ["Be kind.", "Facts: none"]
    assert [content["role"] for content in asked.body["contents"]] == ["user", "model", "user"]
    [asked] = fake_openai.questions
    assert "authorization" not in asked.headers
    assert set(asked.body) == {"model", "messages", "stream"}
    assert [message["role"] for message in asked.body["messages"]] == ["system", "system", "user", "assistant", "user"]


async def test_thoughts_are_no_answer(fake_gemini: FakeGemini) -> None:
    fake_gemini.script(gemini.speaks("fine", thought="what shall I say?"))
    model = GeminiChatModel("m", KEY, base_url=fake_gemini.url)
    assert [piece async for piece in model.stream(MESSAGES) if piece] == ["fine"]
    await model.aclose()


async def test_after_the_end_nothing_is_waited_for(served: Served) -> None:
    served.fake.script(served.speaks("fine", then=hangs()))
    assert await served.answer() == ["fine"]


def _failures() -> list[tuple[str, Any, str]]:
    """Name, answer (or how to make it of `speaks`), reason."""
    return [
        ("401", replies({"error": {"message": f"{KEY} {SECRET}"}}, status=401), "rejected"),
        ("429", replies({"error": {"message": SECRET}}, status=429), "rate_limited"),
        ("500", replies({"error": {"message": SECRET}}, status=500), "unavailable"),
        ("502 html", replies_text(f"<h1>{SECRET}</h1>", status=502), "unavailable"),
        ("redirect", replies({}, status=307, headers={"Location": "/elsewhere"}), "rejected"),
        ("connection", disconnects(), "unavailable"),
        ("no stream", streams(f"<html>{SECRET}"), "malformed"),
        ("broken off", lambda speaks: speaks("I am", finish=None, then=breaks_off()), "unavailable"),
        ("no end", lambda speaks: speaks("I am", finish=None), "truncated"),
        ("empty", streams(), "truncated"),
    ]


@pytest.mark.parametrize(
    ("answer", "reason"), [case[1:] for case in _failures()], ids=[case[0] for case in _failures()]
)
async def test_every_fault_is_one_kind_of_error_that_quotes_nothing(
    served: Served, answer: Any, reason: str, caplog: pytest.LogCaptureFixture
) -> None:
    served.fake.script(answer(served.speaks) if getattr(answer, "__name__", "") == "<lambda>" else answer)
    failure = await served.failure()
    assert failure.reason == reason
    assert len(served.fake.questions) == 1
    said = "".join(traceback.format_exception(failure)) + caplog.text
    assert KEY not in said
    assert SECRET not in said


@pytest.mark.parametrize(("finish", "reason"), [("MAX_TOKENS", "truncated"), ("SAFETY", "refused")])
async def test_gemini_ends_an_answer_early(fake_gemini: FakeGemini, finish: str, reason: str) -> None:
    await _ends_early(GeminiChatModel("m", KEY, base_url=fake_gemini.url), fake_gemini, gemini.speaks, finish, reason)


async def test_gemini_blocks_a_conversation(fake_gemini: FakeGemini) -> None:
    fake_gemini.script(streams({"promptFeedback": {"blockReason": "SAFETY"}}))
    model = GeminiChatModel("m", KEY, base_url=fake_gemini.url)
    failure = await Served(model, fake_gemini, gemini.speaks).failure()
    assert failure.reason == "refused"
    await model.aclose()


@pytest.mark.parametrize(("finish", "reason"), [("length", "truncated"), ("content_filter", "refused")])
async def test_openai_ends_an_answer_early(fake_openai: FakeOpenAI, finish: str, reason: str) -> None:
    await _ends_early(OpenAIChatModel("m", base_url=fake_openai.base_url), fake_openai, openai.speaks, finish, reason)


async def _ends_early(model: ChatModel, fake: FakeProvider[Any], speaks: Any, finish: str, reason: str) -> None:
    fake.script(speaks("I am", finish=finish))
    assert (await Served(model, fake, speaks).failure()).reason == reason
    await model.aclose()


@pytest.mark.parametrize(
    ("complaint", "reason"),
    [("context_length_exceeded", "too_long"), ("something else", "rejected")],
)
async def test_a_context_that_is_too_long_is_told_apart(fake_openai: FakeOpenAI, complaint: str, reason: str) -> None:
    fake_openai.script(openai.complains(complaint, code=complaint))
    model = OpenAIChatModel("m", base_url=fake_openai.base_url)
    assert (await Served(model, fake_openai, openai.speaks).failure()).reason == reason
    await model.aclose()


async def test_a_server_that_says_nothing_more_is_given_up(fake_gemini: FakeGemini, fake_openai: FakeOpenAI) -> None:
    fake_gemini.script(gemini.speaks("I am", finish=None, then=hangs()))
    fake_openai.script(openai.speaks("I am", finish=None, then=hangs()))
    models: list[tuple[ChatModel, FakeProvider[Any], Any]] = [
        (GeminiChatModel("m", KEY, base_url=fake_gemini.url, timeout_seconds=0.2), fake_gemini, gemini.speaks),
        (OpenAIChatModel("m", base_url=fake_openai.base_url, timeout_seconds=0.2), fake_openai, openai.speaks),
    ]
    for model, fake, speaks in models:
        assert (await Served(model, fake, speaks).failure()).reason == "timeout"
        await model.aclose()


async def test_a_stream_without_end_is_given_up(fake_openai: FakeOpenAI, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("reactor_memory.features.chat.openai.MAX_ANSWER_BYTES", 2000)
    fake_openai.script(openai.speaks(*["word "] * 100, finish=None))
    model = OpenAIChatModel("m", base_url=fake_openai.base_url)
    assert (await Served(model, fake_openai, openai.speaks).failure()).reason == "malformed"
    await model.aclose()


async def test_cancelled_answer_ends_at_once_and_the_next_one_comes(served: Served) -> None:
    served.fake.script(served.speaks("I am", finish=None, then=hangs()), served.speaks("fine"))
    async with anyio.create_task_group() as group:

        async def ask() -> None:
            async for piece in served.model.stream(MESSAGES):
                if piece:
                    group.cancel_scope.cancel()

        group.start_soon(ask)
    assert await served.answer() == ["fine"]


async def test_echo_repeats_the_last_message_and_says_what_it_is() -> None:
    pieces = [piece async for piece in EchoModel().stream(MESSAGES)]
    assert len(pieces) > 3
    assert "".join(pieces) == f"You said: how are you? {SECRET}\n(offline echo, it was given 4 messages)"


def test_key_is_needed_where_there_is_no_other_way_in() -> None:
    with pytest.raises(ConfigurationError, match=r"api_key: is not set: set it, GEMINI_API_KEY"):
        GeminiChatModel("m", " ")
    with pytest.raises(ConfigurationError, match=r"api_key: is not set: set it or OPENAI_API_KEY, or base_url"):
        OpenAIChatModel("m")
    with pytest.raises(ConfigurationError, match=r"api_key: must consist of printable"):
        OpenAIChatModel("m", "k\u00e9", base_url="http://localhost/v1")


def test_what_is_sent_away_is_said_before() -> None:
    assert "sent to Google" in GeminiChatModel("m", KEY).notice
    assert "sent to https://elsewhere/v1" in OpenAIChatModel("m", base_url="https://elsewhere/v1").notice
    assert "nothing leaves this machine" in EchoModel().notice
