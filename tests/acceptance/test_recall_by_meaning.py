"""What means the same comes back for a query that shares no word with it, and nothing depends on that."""

from __future__ import annotations

import logging
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest
from dependency_injector import providers

from reactor_memory import Container, Context, Memory, Message, open_memory
from reactor_memory.core.context.verification import verify
from reactor_memory.errors import EmbeddingError
from reactor_memory.providers.asked_models import FAILURES
from reactor_memory.text.analyzer import terms
from tests.acceptance.scenes import USER, agent_memory, save, scripted, settings, talk
from tests.doubles.fake_embedder import FakeEmbedder

pytestmark = pytest.mark.anyio

SAID = [Message.user("We adopted a puppy from the shelter"), Message.assistant("How lovely!")]
QUERY = "which dog lives at home"
BUDGET = 300


@pytest.fixture
def sqlite_url(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path / 'memory.db'}"


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.postgres)])
def url(request: pytest.FixtureRequest) -> str:
    return request.getfixturevalue("sqlite_url" if request.param == "sqlite" else "postgres_dsn")


async def fill(memory: Memory, session_id: str = "s", said: Sequence[Message] = SAID) -> None:
    """What was said, then talk that pushes it out of the window; everything sealed, indexed and embedded."""
    await save(memory, session_id, said)
    await save(memory, session_id, talk(80, start=3))
    await memory.drain()
    await memory.container.background_work().run_once()


async def load(memory: Memory, query: str = QUERY, session_id: str = "s") -> Context:
    context = await memory.load_history(
        session_id, user_id=USER, message=Message.user("Well?"), budget=BUDGET, query=query
    )
    assert verify(context, count=memory.container.message_counter().of) == []
    return context


def recalled(context: Context) -> str:
    pairs = zip(context.messages, context.report.parts, strict=True)
    return "\n".join(message.content for message, part in pairs if part == "recalled")


@asynccontextmanager
async def knowing(embedder: FakeEmbedder, url: str, **search: Any) -> AsyncGenerator[Memory]:
    """A container with this embedder."""
    chosen = settings(url, search={"enabled": True, **search})

    def configure(container: Container) -> None:
        container.embedder.override(providers.Object(embedder))  # pyright: ignore[reportUnknownMemberType]

    async with open_memory(chosen, configure=configure) as memory:
        yield memory


async def test_what_shares_no_word_comes_back_only_with_an_embedder(url: str) -> None:
    assert not set(terms("dog lives at home")) & {term for each in SAID for term in terms(each.content)}
    for embedder, is_found in (("wordllama", True), ("none", False)):
        async with agent_memory(scripted(), url, search={"enabled": True, "embedder": embedder}) as memory:
            await fill(memory, embedder)
            first, second = await load(memory, session_id=embedder), await load(memory, session_id=embedder)
            assert (SAID[0].content in recalled(first)) == is_found
            assert first.messages == second.messages


async def test_another_process_recalls_the_same(sqlite_url: str) -> None:
    async with knowing(FakeEmbedder(), sqlite_url) as memory:
        await fill(memory, said=[Message.user("a kitten came"), Message.assistant("ok")])
        before = await load(memory, "cat")
    async with knowing(FakeEmbedder(), sqlite_url) as memory:
        after = await load(memory, "cat")
    assert "a kitten came" in recalled(after)
    assert after.messages == before.messages


async def test_a_fork_knows_its_shared_part_but_nothing_later_elsewhere(sqlite_url: str) -> None:
    async with knowing(FakeEmbedder(), sqlite_url) as memory:
        await save(memory, "s", [Message.user("a kitten came"), Message.assistant("ok")])
        await save(memory, "s", talk(80, start=3))
        fork = await memory.fork("s", at_seq=81, user_id=USER)
        await save(memory, "s", [Message.user("the pet ran off"), Message.assistant("oh"), *talk(60)])
        await save(memory, fork.session_id, talk(60))
        await memory.drain()
        await memory.container.background_work().run_once()
        found = recalled(await load(memory, "cat", fork.session_id))
        assert ("a kitten came" in found, "the pet ran off" in found) == (True, False)
        assert "the pet ran off" in recalled(await load(memory, "cat"))


async def test_an_erased_message_means_nothing(sqlite_url: str) -> None:
    async with knowing(FakeEmbedder(), sqlite_url) as memory:
        said = [Message.user("a kitten came"), Message.assistant("ok"), Message.user("my pet eats"), SAID[1]]
        await fill(memory, said=said)
        assert "a kitten came" in recalled(await load(memory, "cat"))
        await memory.erasure.erase("s", seq=1, user_id=USER)
        found = recalled(await load(memory, "cat"))
        assert "a kitten came" not in found
        await memory.drain()
        found = recalled(await load(memory, "cat"))
        assert ("a kitten came" in found, "my pet eats" in found) == (False, True)


async def test_query_is_embedded_once_and_ordinary_load_asks_for_nothing(sqlite_url: str) -> None:
    embedder = FakeEmbedder()
    async with knowing(embedder, sqlite_url) as memory:
        await fill(memory, said=[Message.user("a kitten came"), Message.assistant("ok")])
        embedder.asked.clear()
        await memory.load_history("s", user_id=USER, message=Message.user("Yes please"))
        assert embedder.asked == []
        await load(memory, "cat")
        assert embedder.asked == [["cat"]]


async def test_while_the_embedder_fails_words_alone_tell(sqlite_url: str, caplog: pytest.LogCaptureFixture) -> None:
    embedder = FakeEmbedder()
    async with knowing(embedder, sqlite_url) as memory:
        await fill(memory, said=[Message.user("a kitten came"), Message.assistant("ok")])
        embedder.failure = EmbeddingError("unavailable", "no answer")
        with caplog.at_level(logging.WARNING):
            assert recalled(await load(memory, "cat")) == ""
            assert "a kitten came" in recalled(await load(memory, "kitten"))
    assert "recalled by words alone" in caplog.text
    assert "kitten" not in " ".join(str(vars(record)) for record in caplog.records)


class Hanging(FakeEmbedder):
    """Never tells what a query means."""

    async def embed(self, texts: Sequence[str], *, is_query: bool = False) -> Sequence[Sequence[float]]:
        vectors = await super().embed(texts, is_query=is_query)
        if is_query:
            await anyio.sleep_forever()
        return vectors


async def test_an_embedder_that_hangs_costs_its_finds_and_rests(sqlite_url: str) -> None:
    embedder = Hanging()
    chosen = settings(sqlite_url, search={"enabled": True}, models={"none": {"timeout_seconds": 0.05}})
    parts = {"configure": lambda container: container.embedder.override(providers.Object(embedder))}
    async with open_memory(chosen, **parts) as memory:
        await fill(memory, said=[Message.user("a kitten came"), Message.assistant("ok")])
        asked = 0
        for _ in range(FAILURES + 2):
            assert "a kitten came" in recalled(await load(memory, "kitten"))
            asked = embedder.asked.count(["kitten"])
        assert asked == FAILURES
