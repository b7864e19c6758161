"""What users and models send never holds the event loop, and with it everybody else, for long."""

from __future__ import annotations

import json
import sqlite3
import threading
from collections.abc import AsyncIterator, Callable, Generator
from contextlib import closing, contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from reactor_memory.errors import ChatModelError, EmbeddingError, SummarizationError
from reactor_memory.features.chat.gemini import GeminiChatModel
from reactor_memory.features.facts.summarizers.language_model import LanguageModelSummarizer
from reactor_memory.features.search.models import MessageSearch
from reactor_memory.features.sharing.principals import Principal
from reactor_memory.models import Message
from reactor_memory.providers.bounded_http import MAX_ANSWER_BYTES
from reactor_memory.providers.gemini_embedder import GeminiEmbedder
from reactor_memory.settings.settings import Settings
from reactor_memory.tokens.tiktoken_counter import TiktokenCounter
from reactor_memory.wiring.service_container import ServiceContainer, open_service_container
from tests.doubles.asked_summarizers import gemini_summarizer, openai_summarizer
from tests.scenes import hurting_texts
from tests.scenes.loop_watch import MOST_SECONDS, free_loop
from tests.scenes.tables import each_row

pytestmark = pytest.mark.anyio

LONGEST = 1_000_000


@pytest.fixture(params=["memory", "sqlite"])
async def container(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[ServiceContainer]:
    url = "memory://" if request.param == "memory" else f"sqlite:///{tmp_path}/memory.db"
    async with open_service_container(Settings(store={"url": url}, search={"enabled": True})) as container:
        yield container


async def test_a_search_that_marks_thousands_of_words(container: ServiceContainer) -> None:
    manager = container.conversation_manager()
    for _ in range(10):
        await manager.save_history("s", [Message.user("zz1 " * 5000)], user_id="ann")
    await container.background_work().run_once()
    search = container.message_search()
    async with free_loop():
        found = await search.search(MessageSearch(text="zz1", user_id="ann"))
    assert len(found.hits) == 10
    assert all("⟦zz1⟧" in hit.highlight for hit in found.hits)


@pytest.mark.slow
async def test_thirty_long_messages(container: ServiceContainer) -> None:
    long = "Words, A b (c) 漢字 zz1." * 9_000
    said = [Message.user(long) if index % 2 == 0 else Message.assistant(long) for index in range(30)]
    manager = container.conversation_manager()
    await manager.save_history("first", [Message.user("Hello")])  # the tokenizer loads
    # A store in memory reads on the loop, and the 6 MB that are recalled here are read twice
    reads_here = container.settings().store.url == "memory://"
    async with free_loop(0.2 if reads_here else MOST_SECONDS):
        for message in said:
            await manager.save_history("s", [message])
        loaded = await manager.load_history("s", message=long, query="zz1 words", budget=1_000_000)
        given = await manager.load_history("s", history=said, budget=100_000)
    assert len(loaded.messages) > 1
    assert given.messages


@each_row("word", ["word ", "a", "zz1.", "\n", "1-", "漢"])
@pytest.mark.slow
async def test_a_message_of_repeated_words_of_a_megabyte(container: ServiceContainer, word: str) -> None:
    manager = container.conversation_manager()
    await manager.save_history("first", [Message.user("Hello")])
    async with free_loop():
        await manager.save_history("s", [Message.user("x" + word * (LONGEST // len(word.encode())))])
        await container.background_work().drain()


@each_row("word", ["word ", "a", "zz1.", "\n", "漢"])
async def test_a_system_prompt_of_repeated_words_of_a_megabyte(container: ServiceContainer, word: str) -> None:
    system = word * (LONGEST // len(word.encode()))
    manager = container.conversation_manager()
    await manager.save_history("s", [Message.user("Hello"), Message.assistant("Hello")])
    async with free_loop():
        await manager.load_history("s", message="And now?", system=system, budget=2_000_000)
        await manager.load_history("s", history=[Message.user("Hello")], system=system, budget=2_000_000)


async def every_step(container: ServiceContainer, session_id: str, text: str) -> None:
    manager = container.conversation_manager()
    said = [Message.user(text), Message.assistant("I see."), Message.user(text[:5000]), Message.assistant(text)]
    await manager.save_history(session_id, said, user_id="ann")
    await container.background_work().drain()
    await manager.load_history(session_id, message=text, user_id="ann", budget=50_000)
    await manager.load_history(session_id, message="And QX-7?", query=text[:2000], user_id="ann", budget=4000)
    await manager.load_history(session_id, message="Is it 1111 11111?", user_id="ann", budget=500_000)
    await manager.search(session_id, text[:1000], user_id="ann")
    await container.facts().list(session_id, user_id="ann")


async def test_texts_that_are_made_to_hurt(container: ServiceContainer) -> None:
    await every_step(container, "first", "Hello, it is QX-7.")  # the tokenizer loads
    for number, text in enumerate(hurting_texts.FEW[:2]):
        async with free_loop():
            await every_step(container, f"hurting-{number}", text)


@pytest.mark.slow
@each_row("kind", hurting_texts.EACH)
async def test_each_text_that_is_made_to_hurt(container: ServiceContainer, kind: str) -> None:
    await every_step(container, "first", "Hello, it is QX-7.")
    async with free_loop():
        await every_step(container, kind, hurting_texts.EACH[kind])


async def test_a_question_of_numbers_after_turns_of_digits() -> None:
    question = " ".join("1" * length for length in range(4, 20))
    settings = Settings(store={"url": "memory://"}, summary={"enabled": True})
    async with open_service_container(settings) as container:
        manager = container.conversation_manager()
        for _ in range(9):
            await manager.save_history("s", [Message.user("1" * 20_000), Message.assistant("I see.")])
        await manager.load_history("s", message="And now?", budget=500_000)
        async with free_loop():
            loaded = await manager.load_history("s", message=question, budget=500_000)
    assert len(loaded.messages) > 9


@pytest.fixture
async def filed(tmp_path: Path) -> AsyncIterator[tuple[ServiceContainer, Path]]:
    """What is stored grows by hand: nothing works in the background."""
    path = tmp_path / "memory.db"
    settings = Settings(store={"url": f"sqlite:///{path}"}, background={"enabled": False})
    async with open_service_container(settings) as container:
        await container.conversation_manager().save_history("s", [Message.user("Order A-1 is late")], user_id="ann")
        yield container, path


COPIED = """
    WITH RECURSIVE number (seq) AS (SELECT 2 UNION ALL SELECT seq + 1 FROM number WHERE seq < :last)
    INSERT INTO messages (group_id, conversation_id, seq, message_id, role, visibility, content, token_count, tokenizer,
                          created_at)
    SELECT group_id, conversation_id, number.seq, message_id || number.seq,
           CASE number.seq % 2 WHEN 0 THEN 'assistant' ELSE 'user' END, visibility, content, token_count, tokenizer,
           created_at
    FROM number, messages WHERE messages.seq = 1
"""


def lengthen(path: Path) -> None:
    """Make the session 100,000 messages long."""
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute(COPIED, {"last": 100_000})
        connection.execute("UPDATE conversations SET last_seq = 100000")


@pytest.mark.parametrize("clear", [False, True])
@pytest.mark.slow
async def test_100_000_messages_that_are_archived_and_restored(
    filed: tuple[ServiceContainer, Path], *, clear: bool
) -> None:
    container, path = filed
    lengthen(path)
    manager = container.conversation_manager()
    async with free_loop():
        archived = await container.archiver().archive("s", user_id="ann", until_seq=99_990, clear=clear)
        await manager.load_history("s", user_id="ann", message="And A-1?")
        restored = await container.archiver().restore("s", user_id="ann")
    assert (archived.message_count, restored) == (99_990, 99_990)


@pytest.mark.slow
async def test_a_session_of_100_000_messages(filed: tuple[ServiceContainer, Path]) -> None:
    container, path = filed
    lengthen(path)
    manager = container.conversation_manager()
    async with free_loop():
        await manager.load_history("s", user_id="ann", message="And A-1?", budget=4000)
        loaded = await manager.load_history("s", user_id="ann", query="A-1", budget=100_000)
        await manager.search("s", "order late", user_id="ann")
        await container.facts().list("s", user_id="ann")
        await manager.list_sessions(user_id="ann")
        count = sum([1 async for _ in manager.stream_messages("s", user_id="ann")])
    assert loaded.messages
    assert count == 100_000


@pytest.mark.slow
async def test_two_hundred_forks_of_forks(filed: tuple[ServiceContainer, Path]) -> None:
    container, _ = filed
    manager = container.conversation_manager()
    fork_id = "s"
    for number in range(200):
        await manager.save_history(
            fork_id, [Message.assistant("I see"), Message.user(f"And A-{number}?")], user_id="ann"
        )
        (last,) = await manager.read_messages(fork_id, user_id="ann", last=1)
        fork_id = (await manager.fork(fork_id, at_seq=last.seq or 1, user_id="ann")).session_id
    await manager.save_history(fork_id, [Message.user("Done")], user_id="ann")
    await manager.summarize(fork_id, user_id="ann")
    ann = Principal(user_id="ann")
    async with free_loop():
        await manager.load_history(fork_id, user_id="ann", message="And A-7?", budget=4000)
        await manager.load_history(fork_id, user_id="ann", query="A-7", budget=4000)
        await manager.search(fork_id, "order late", user_id="ann")
        await container.facts().list(fork_id, user_id="ann")
        await manager.list_sessions(user_id="ann", limit=100)
        forks = await container.conversations().forks(ann, fork_id, limit=101)
        await container.conversations().list(ann, limit=100)
    assert len(forks) == 101


# -- answers of models ------------------------------------------------------------------------------------------------

FACT = {"key": "k", "value": "v " * 400, "source_seq": 1}


def openai_form(text: str) -> object:
    return {"choices": [{"message": {"content": text}, "finish_reason": "stop"}]}


def gemini_form(text: str) -> object:
    return {"candidates": [{"content": {"role": "model", "parts": [{"text": text}]}, "finishReason": "STOP"}]}


def openai_at(url: str) -> LanguageModelSummarizer:
    return openai_summarizer("m", None, counter=TiktokenCounter(), base_url=url)


def gemini_at(url: str) -> LanguageModelSummarizer:
    return gemini_summarizer("m", "key", counter=TiktokenCounter(), base_url=url)


@contextmanager
def server_of(body: bytes) -> Generator[str]:
    """The address of a server that always answers so, in threads of its own: what it does is no step of the loop."""

    class Always(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["content-length"]))
            self.send_response(200)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            with suppress(ConnectionError):  # who is asked for less hangs up
                self.wfile.write(body)

        def log_message(self, *args: object, **kwargs: object) -> None:
            """Nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Always) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()


@pytest.mark.slow
@each_row(("form", "summarizer_at"), [(openai_form, openai_at), (gemini_form, gemini_at)])
@each_row(
    ("answer", "is_good"),
    [
        (json.dumps({"facts": [FACT] * 1000, "narrative": "So it is. " * 10_000}), True),
        (json.dumps({"facts": [], "narrative": "It is so and so on " * 45_000}), True),
        ("```json" + "\n" * 2000 + "x", False),
        ("```json" + "\n" * 900_000 + "x", False),
        ("<think>" * 100_000, False),
        ("x" * (MAX_ANSWER_BYTES - 1000), False),
        ("\n" * 12_000_000, False),
        ("x" * 12_000_000, False),
    ],
)
async def test_long_answers_of_models(
    form: Callable[[str], object], summarizer_at: Callable[[str], LanguageModelSummarizer], answer: str, is_good: bool
) -> None:
    with server_of(json.dumps(form('{"facts": [], "narrative": "n"}')).encode()) as url:
        warmed = summarizer_at(url)
        await warmed.summarize([Message.user("v", seq=1)])  # imports the client library
        await warmed.aclose()
    with server_of(json.dumps(form(answer)).encode()) as url:
        summarizer = summarizer_at(url)
        async with free_loop():
            failed = False
            try:
                await summarizer.summarize([Message.user("v " * 400, seq=1)])
            except SummarizationError as error:
                failed = error.reason == "malformed"
        await summarizer.aclose()
    assert failed is not is_good


async def test_long_answers_to_an_embedder() -> None:
    def embedder_at(url: str) -> GeminiEmbedder:
        return GeminiEmbedder("m", "key", dimensions=1, base_url=url, timeout_seconds=60)

    with server_of(json.dumps({"embeddings": [{"values": [1.0]}]}).encode()) as url:
        warmed = embedder_at(url)
        assert await warmed.embed(["text"]) == [[1.0]]
        await warmed.aclose()
    with server_of(json.dumps({"embeddings": [{"values": [0.123456789] * 1_000_000}]}).encode()) as url:
        embedder = embedder_at(url)
        async with free_loop():
            with pytest.raises(EmbeddingError) as raised:
                await embedder.embed(["text"])
        await embedder.aclose()
    assert raised.value.reason == "malformed"
    assert "bytes" in str(raised.value)


async def test_a_line_of_a_chat_model_that_never_ends() -> None:
    with server_of(b"data: " + b"x" * 12_000_000) as url:
        model = GeminiChatModel("m", "key", base_url=url)
        async with free_loop(0.5):  # the client library is imported
            with pytest.raises(ChatModelError):
                [piece async for piece in model.stream([Message.user("Hello")])]
        await model.aclose()
