"""What users and models send never holds the event loop, and with it everybody else, for long."""

from __future__ import annotations

import json
import threading
from collections.abc import AsyncIterator, Callable, Generator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from reactor_memory.container import Container, open_container
from reactor_memory.errors import SummarizationError
from reactor_memory.models import Message
from reactor_memory.searching import MessageSearch
from reactor_memory.settings import Settings
from reactor_memory.summarizers.bounded_http import MAX_ANSWER_BYTES
from reactor_memory.summarizers.gemini import GeminiSummarizer
from reactor_memory.summarizers.language_model import LanguageModelSummarizer
from reactor_memory.summarizers.openai import OpenAISummarizer
from reactor_memory.tokens.tiktoken_counter import TiktokenCounter
from tests.loop_watch import free_loop
from tests.tables import each_row

pytestmark = pytest.mark.anyio

LONGEST = 1_000_000


@pytest.fixture(params=["memory", "sqlite"])
async def container(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Container]:
    url = "memory://" if request.param == "memory" else f"sqlite:///{tmp_path}/memory.db"
    async with open_container(Settings(store={"url": url}, search={"enabled": True})) as container:
        yield container


async def test_a_search_that_marks_thousands_of_words(container: Container) -> None:
    manager = container.conversation_manager()
    for _ in range(10):
        await manager.save_history("s", [Message.user("zz1." * 5000)], user_id="ann")
    await container.background_work().run_once()
    search = container.message_search()
    async with free_loop():
        found = await search.search(MessageSearch(text="zz1", user_id="ann"))
    assert len(found.hits) == 10
    assert all("⟦zz1⟧" in hit.highlight for hit in found.hits)


async def test_thirty_long_messages(container: Container) -> None:
    long = "Words, A b (c) 漢字 zz1." * 9_000
    said = [Message.user(long) if index % 2 == 0 else Message.assistant(long) for index in range(30)]
    manager = container.conversation_manager()
    await manager.save_history("first", [Message.user("Hello")])  # the tokenizer loads
    async with free_loop():
        for message in said:
            await manager.save_history("s", [message])
        loaded = await manager.load_history("s", message=long, query="zz1 words", budget=1_000_000)
        given = await manager.load_history("s", history=said, budget=100_000)
    assert len(loaded.messages) > 1
    assert given.messages


@each_row("word", ["word ", "a", "zz1.", "\n", "1-", "漢"])
async def test_a_message_of_repeated_words_of_a_megabyte(container: Container, word: str) -> None:
    manager = container.conversation_manager()
    await manager.save_history("first", [Message.user("Hello")])
    async with free_loop():
        await manager.save_history("s", [Message.user("x" + word * (LONGEST // len(word.encode())))])
        await container.background_work().drain()


# -- answers of models ------------------------------------------------------------------------------------------------

FACT = {"key": "k", "value": "v " * 400, "source_seq": 1}


def openai_form(text: str) -> object:
    return {"choices": [{"message": {"content": text}, "finish_reason": "stop"}]}


def gemini_form(text: str) -> object:
    return {"candidates": [{"content": {"role": "model", "parts": [{"text": text}]}, "finishReason": "STOP"}]}


def openai_at(url: str) -> LanguageModelSummarizer:
    return OpenAISummarizer("m", None, counter=TiktokenCounter(), base_url=url)


def gemini_at(url: str) -> LanguageModelSummarizer:
    return GeminiSummarizer("m", "key", counter=TiktokenCounter(), base_url=url)


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
