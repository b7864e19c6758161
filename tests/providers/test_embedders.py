"""Embedders: the one in a wheel, without a network, and Gemini's, against a server on loopback."""

from __future__ import annotations

import math
import socket
from typing import Any

import pytest

from reactor_memory.errors import ConfigurationError, EmbeddingError, MissingExtraError
from reactor_memory.providers.gemini_embedder import GeminiEmbedder, of_length_one
from reactor_memory.providers.openai_embedder import OpenAIEmbedder
from reactor_memory.providers.wordllama_embedder import WordLlamaEmbedder
from reactor_memory.settings.settings import Settings
from reactor_memory.wiring.container import Container
from tests.doubles import fake_openai as openai_questions
from tests.doubles.fake_gemini import FakeGemini, Question
from tests.doubles.fake_openai import FakeOpenAI, complains
from tests.doubles.fake_provider import Answer, hangs, replies, replies_text

pytestmark = pytest.mark.anyio

KEY = "AIza-not-a-real-key"


def cosine(one: Any, other: Any) -> float:
    return math.fsum(a * b for a, b in zip(one, other, strict=True))


class TestWordLlama:
    async def test_like_texts_have_like_vectors_and_nobody_is_asked(self, monkeypatch: pytest.MonkeyPatch) -> None:
        def refuse(*_: object) -> None:
            raise AssertionError("the network was touched")

        monkeypatch.setattr(socket.socket, "connect", refuse)
        monkeypatch.setattr(socket, "getaddrinfo", refuse)
        embedder = WordLlamaEmbedder()
        policy, money, weather, nothing = await embedder.embed(
            ["refund policy", "How do I get my money back?", "The weather is nice", ""]
        )
        assert len(policy) == embedder.dimensions
        assert cosine(policy, policy) == pytest.approx(1, abs=1e-5)
        assert cosine(policy, money) > 0.3 > cosine(policy, weather)
        assert not any(nothing)
        [again] = await embedder.embed(["refund policy"], is_query=True)
        assert again == pytest.approx(policy, abs=1e-5)
        await embedder.aclose()

    async def test_a_fault_says_nothing_of_the_text(self, monkeypatch: pytest.MonkeyPatch) -> None:
        embedder = WordLlamaEmbedder()

        def fail(texts: object) -> None:
            raise ValueError(texts)

        monkeypatch.setattr(embedder, "_embed", fail)
        with pytest.raises(EmbeddingError) as caught:
            await embedder.embed(["secret"])
        assert "secret" not in repr(caught.value)
        assert caught.value.__cause__ is caught.value.__context__ is None

    async def test_without_the_package_the_extra_is_named(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("reactor_memory.features.search.wiring.find_spec", lambda name: None)
        container = Container(settings=Settings(search={"embedder": "wordllama"}))
        with pytest.raises(MissingExtraError, match=r"reactor-memory\[wordllama\]"):
            container.embedder()


class EmbeddingGemini(FakeGemini):
    """Answers with a vector for each text: its length, and 1."""

    def usually(self, question: Question) -> Answer:
        texts = [request["content"]["parts"][0]["text"] for request in question.body["requests"]]
        return replies({"embeddings": [{"values": [float(len(text)), 1.0]} for text in texts]})


@pytest.fixture
async def fake():
    async with EmbeddingGemini.running() as server:
        yield server


def embedder_of(fake: FakeGemini, **options: Any) -> GeminiEmbedder:
    return GeminiEmbedder(
        "gemini-embedding-001", KEY, **{"dimensions": 2, "base_url": fake.url, "timeout_seconds": 5.0, **options}
    )


class TestGemini:
    async def test_one_question_for_a_batch(self, fake: EmbeddingGemini) -> None:
        embedder = embedder_of(fake)
        vectors = await embedder.embed(["abc", "d"])
        assert vectors == [of_length_one([3.0, 1.0]), of_length_one([1.0, 1.0])]
        assert cosine(vectors[0], vectors[0]) == pytest.approx(1)
        [question] = fake.questions
        assert question.path == "/v1/models/gemini-embedding-001:batchEmbedContents"
        assert question.headers["x-goog-api-key"] == KEY
        assert {request["taskType"] for request in question.body["requests"]} == {"RETRIEVAL_DOCUMENT"}
        assert {request["outputDimensionality"] for request in question.body["requests"]} == {2}
        await embedder.embed(["q"], is_query=True)
        assert fake.questions[1].body["requests"][0]["taskType"] == "RETRIEVAL_QUERY"
        await embedder.aclose()

    @pytest.mark.parametrize(
        ("answer", "reason", "retryable"),
        [
            (replies({"error": {"message": KEY}}, status=403), "rejected", False),
            (replies({}, status=429), "rate_limited", True),
            (replies({}, status=500), "unavailable", True),
            (replies_text("<html>secret text"), "malformed", True),
            (replies({"embeddings": []}), "malformed", True),
            (replies({"embeddings": [{"values": [1.0]}]}), "malformed", True),
        ],
    )
    async def test_failures_have_a_reason_and_no_content(
        self, fake: EmbeddingGemini, answer: Answer, reason: str, retryable: bool
    ) -> None:
        fake.script(answer)
        embedder = embedder_of(fake)
        with pytest.raises(EmbeddingError) as caught:
            await embedder.embed(["secret text"])
        assert (caught.value.reason, caught.value.retryable) == (reason, retryable)
        assert "secret" not in str(caught.value)
        assert KEY not in str(caught.value)
        assert caught.value.__cause__ is caught.value.__context__ is None
        assert len(fake.questions) == 1
        await embedder.aclose()

    async def test_a_deadline(self, fake: EmbeddingGemini) -> None:
        fake.script(hangs())
        embedder = embedder_of(fake, timeout_seconds=0.2)
        with pytest.raises(EmbeddingError) as caught:
            await embedder.embed(["text"])
        assert caught.value.reason == "timeout"
        await embedder.aclose()

    async def test_a_redirect_is_not_followed(self, fake: EmbeddingGemini) -> None:
        fake.script(replies({}, status=307, headers={"Location": fake.url + "/elsewhere"}))
        embedder = embedder_of(fake)
        with pytest.raises(EmbeddingError):
            await embedder.embed(["text"])
        assert [question.path for question in fake.questions] == ["/v1/models/gemini-embedding-001:batchEmbedContents"]
        await embedder.aclose()

    async def test_after_closing(self, fake: EmbeddingGemini) -> None:
        embedder = embedder_of(fake)
        await embedder.aclose()
        with pytest.raises(EmbeddingError):
            await embedder.embed(["text"])


class EmbeddingServer(FakeOpenAI):
    """Answers, in any order, with a vector for each text: its length, and 1."""

    def usually(self, question: openai_questions.Question) -> Answer:
        texts = list(enumerate(question.body["input"]))
        data = [{"index": index, "embedding": [float(len(text)), 1.0]} for index, text in reversed(texts)]
        return replies({"object": "list", "data": data, "model": "fake", "usage": {}})


@pytest.fixture
async def server():
    async with EmbeddingServer.running() as server:
        yield server


def openai_embedder(server: FakeOpenAI, **options: Any) -> OpenAIEmbedder:
    given = {"api_key": KEY, "dimensions": 2, "base_url": server.base_url, "timeout_seconds": 5.0, **options}
    return OpenAIEmbedder("e5", **given)


class TestOpenAI:
    async def test_one_question_for_a_batch_and_none_for_empty_texts(self, server: EmbeddingServer) -> None:
        embedder = openai_embedder(server)
        vectors = await embedder.embed(["abc", " ", "d"])
        assert vectors == [of_length_one([3.0, 1.0]), [0.0, 0.0], of_length_one([1.0, 1.0])]
        assert await embedder.embed([""], is_query=True) == [[0.0, 0.0]]
        [question] = server.questions
        assert (question.path, question.headers["authorization"]) == ("/v1/embeddings", f"Bearer {KEY}")
        assert question.body == {"model": "e5", "input": ["abc", "d"], "encoding_format": "float"}
        assert (embedder.name, embedder.dimensions) == ("e5-2", 2)
        await embedder.aclose()

    async def test_a_server_without_keys_gets_none(self, server: EmbeddingServer) -> None:
        embedder = openai_embedder(server, api_key=None)
        await embedder.embed(["abc"])
        assert "authorization" not in server.questions[0].headers
        await embedder.aclose()

    async def test_answers_too_long_to_read_are_requested_in_parts(self, server: EmbeddingServer) -> None:
        embedder = openai_embedder(server, dimensions=70_000)
        with pytest.raises(EmbeddingError):
            await embedder.embed(["one", "two", "three"])
        assert [len(question.body["input"]) for question in server.questions] == [2]
        await embedder.aclose()

    async def test_a_wrong_number_of_dimensions_names_the_right_one(self, server: EmbeddingServer) -> None:
        embedder = openai_embedder(server, dimensions=3)
        with pytest.raises(EmbeddingError, match=r"2 numbers: set its dimensions in models") as caught:
            await embedder.embed(["abc"])
        assert (caught.value.reason, caught.value.retryable) == ("rejected", False)
        await embedder.aclose()

    @pytest.mark.parametrize(
        ("answer", "reason", "retryable"),
        [
            (complains(f"Incorrect API key: {KEY}", status=401), "rejected", False),
            (complains("slow down", status=429), "rate_limited", True),
            (complains("You exceeded your quota", status=429, code="insufficient_quota"), "rejected", False),
            (complains("maximum context length is 512 tokens"), "too_long", False),
            (replies({}, status=500), "unavailable", True),
            (replies({}, status=307, headers={"Location": "/elsewhere"}), "rejected", False),
            (replies_text("<html>secret text"), "malformed", True),
            (replies({"data": []}), "malformed", True),
            (replies({"data": [{"index": 1, "embedding": [1.0, 1.0]}]}), "malformed", True),
            (replies({"data": [{"index": 0, "embedding": ["secret text"]}]}), "malformed", True),
            (replies_text("x" * (5 * 1024 * 1024)), "malformed", True),
        ],
    )
    async def test_failures_have_a_reason_and_no_content(
        self, server: EmbeddingServer, answer: Answer, reason: str, retryable: bool
    ) -> None:
        server.script(answer)
        embedder = openai_embedder(server)
        with pytest.raises(EmbeddingError) as caught:
            await embedder.embed(["secret text"])
        assert (caught.value.reason, caught.value.retryable) == (reason, retryable)
        assert "secret" not in str(caught.value)
        assert KEY not in str(caught.value)
        assert caught.value.__cause__ is caught.value.__context__ is None
        assert len(server.questions) == 1
        await embedder.aclose()

    async def test_a_deadline(self, server: EmbeddingServer) -> None:
        server.script(hangs())
        embedder = openai_embedder(server, timeout_seconds=0.2)
        with pytest.raises(EmbeddingError) as caught:
            await embedder.embed(["text"])
        assert caught.value.reason == "timeout"
        await embedder.aclose()

    async def test_the_settings_name_it(self, server: EmbeddingServer) -> None:
        models = {"here": {"provider": "openai", "embedding_model": "e5", "dimensions": 2, "base_url": server.base_url}}
        container = Container(settings=Settings(search={"embedder": "here"}, models=models))
        embedder = container.embedder()
        assert embedder is not None
        assert await embedder.embed(["abc"]) == [of_length_one([3.0, 1.0])]
        await embedder.aclose()

    @pytest.mark.parametrize(
        ("asked", "key"),
        [
            ({"base_url": "https://example.com/v1"}, "models.openai.embedding_model"),
            ({}, "models.openai.api_key"),
            ({"base_url": "http://example.com/v1", "embedding_model": "e5"}, "models.openai.base_url"),
        ],
    )
    def test_what_is_missing_is_named(
        self, asked: dict[str, object], key: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.delenv("OPENAI_API_KEY", raising=False)
        with pytest.raises(ConfigurationError, match=key.replace(".", r"\.")):
            Container(settings=Settings(search={"embedder": "openai"}, models={"openai": asked})).embedder()

    def test_the_key_of_openai_goes_to_openai_alone(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("OPENAI_API_KEY", KEY)
        monkeypatch.setenv("GEMINI_API_KEY", "another-key")
        key = Settings().model("openai").api_key
        assert key is not None
        assert key.get_secret_value() == KEY
        elsewhere = {"embedding_model": "e5", "base_url": "http://localhost:1/v1"}
        assert Settings(models={"openai": elsewhere}).model("openai").api_key is None


class TestSettings:
    def container(self, models: dict[str, object] | None = None, **search: object) -> Container:
        return Container(settings=Settings(search=search, models=models or {}))

    def test_nobody_is_asked_unless_the_settings_say_so(self) -> None:
        assert self.container().embedder() is None

    def test_gemini_needs_a_key(self, monkeypatch: pytest.MonkeyPatch) -> None:
        for name in ("GEMINI_API_KEY", "GOOGLE_API_KEY"):
            monkeypatch.delenv(name, raising=False)
        with pytest.raises(ConfigurationError, match=r"models\.gemini\.api_key"):
            self.container(embedder="gemini").embedder()

    def test_the_usual_variables_count_for_gemini_alone(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("GEMINI_API_KEY", KEY)
        embedder = self.container({"gemini": {"dimensions": 8}}, embedder="gemini").embedder()
        assert embedder is not None
        assert (embedder.name, embedder.dimensions) == ("gemini-embedding-001-8", 8)
        assert Settings().model("openai").api_key is None
        assert KEY not in str(Settings(search={"embedder": "gemini"}).origins())

    def test_no_text_goes_out_in_the_clear(self) -> None:
        with pytest.raises(ConfigurationError, match="https://"):
            Settings(models={"gemini": {"base_url": "http://example.com"}})

    def test_an_unknown_embedder_is_named(self) -> None:
        with pytest.raises(ConfigurationError, match=r"search\.embedder"):
            self.container(embedder="psychic").embedder()
