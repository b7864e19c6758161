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

from reactor_memory import Container, Context, Message, open_container
from reactor_memory.context.verification import verify
from reactor_memory.errors import EmbeddingError
from reactor_memory.terms import FUNCTION_WORDS, terms
from tests.acceptance.scenes import USER, memory, save, scripted, settings, talk
from tests.service.searching import FakeEmbedder

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


async def fill(container: Container, session_id: str = "s", said: Sequence[Message] = SAID) -> None:
    """What was said, then talk that pushes it out of the window; everything sealed, indexed and embedded."""
    manager = container.conversation_manager()
    await save(manager, session_id, said)
    await save(manager, session_id, talk(80, start=3))
    await manager.drain()
    await container.background_work().run_once()


async def load(container: Container, query: str = QUERY, session_id: str = "s") -> Context:
    context = await container.conversation_manager().load_history(
        session_id, user_id=USER, message=Message.user("Well?"), budget=BUDGET, query=query
    )
    assert verify(context, count=container.message_counter().of) == []
    return context


def recalled(context: Context) -> list[str]:
    pairs = zip(context.messages, context.report.parts, strict=True)
    return [message.content for message, part in pairs if part == "recalled"]


@asynccontextmanager
async def knowing(embedder: FakeEmbedder, url: str, **search: Any) -> AsyncGenerator[Container]:
    """A container with this embedder."""
    chosen = settings(url, search={"enabled": True, **search})

    def configure(container: Container) -> None:
        container.embedder.override(providers.Object(embedder))  # pyright: ignore[reportUnknownMemberType]

    async with open_container(chosen, configure=configure) as container:
        yield container


async def test_what_shares_no_word_comes_back_with_an_embedder_and_not_without(url: str) -> None:
    assert not set(terms(QUERY, without=FUNCTION_WORDS)) & {term for each in SAID for term in terms(each.content)}
    for embedder, expected in (("wordllama", [each.content for each in SAID]), ("none", [])):
        async with memory(scripted(), url, search={"enabled": True, "embedder": embedder}) as container:
            await fill(container, embedder)
            first, second = await load(container, session_id=embedder), await load(container, session_id=embedder)
            assert recalled(first) == expected
            assert first.messages == second.messages


async def test_another_process_recalls_the_same(sqlite_url: str) -> None:
    async with knowing(FakeEmbedder(), sqlite_url) as container:
        await fill(container, said=[Message.user("a kitten came"), Message.assistant("ok")])
        before = await load(container, "cat")
    async with knowing(FakeEmbedder(), sqlite_url) as container:
        after = await load(container, "cat")
    assert (recalled(after), after.messages) == (["a kitten came", "ok"], before.messages)


async def test_a_fork_knows_what_it_shares_and_not_what_came_later_elsewhere(sqlite_url: str) -> None:
    async with knowing(FakeEmbedder(), sqlite_url) as container:
        manager = container.conversation_manager()
        await save(manager, "s", [Message.user("a kitten came"), Message.assistant("ok")])
        await save(manager, "s", talk(80, start=3))
        fork = await manager.fork("s", at_seq=81, user_id=USER)
        await save(manager, "s", [Message.user("the pet ran off"), Message.assistant("oh"), *talk(60)])
        await save(manager, fork.session_id, talk(60))
        await manager.drain()
        await container.background_work().run_once()
        assert recalled(await load(container, "cat", fork.session_id)) == ["a kitten came", "ok"]
        assert "the pet ran off" in recalled(await load(container, "cat"))


async def test_an_erased_message_means_nothing(sqlite_url: str) -> None:
    async with knowing(FakeEmbedder(), sqlite_url) as container:
        said = [Message.user("a kitten came"), Message.assistant("ok"), Message.user("my pet eats"), SAID[1]]
        await fill(container, said=said)
        assert "a kitten came" in recalled(await load(container, "cat"))
        await container.conversation_manager().erase("s", seq=1, user_id=USER)
        found = recalled(await load(container, "cat"))
        assert "a kitten came" not in found
        await container.conversation_manager().drain()
        found = recalled(await load(container, "cat"))
        assert ("a kitten came" in found, "my pet eats" in found) == (False, True)


async def test_a_query_is_embedded_once_and_an_ordinary_load_asks_for_nothing(sqlite_url: str) -> None:
    embedder = FakeEmbedder()
    async with knowing(embedder, sqlite_url) as container:
        await fill(container, said=[Message.user("a kitten came"), Message.assistant("ok")])
        embedder.asked.clear()
        await container.conversation_manager().load_history("s", user_id=USER, message=Message.user("Yes please"))
        assert embedder.asked == []
        await load(container, "cat")
        assert embedder.asked == [["cat"]]


async def test_while_the_embedder_fails_words_alone_tell(sqlite_url: str, caplog: pytest.LogCaptureFixture) -> None:
    embedder = FakeEmbedder()
    async with knowing(embedder, sqlite_url) as container:
        await fill(container, said=[Message.user("a kitten came"), Message.assistant("ok")])
        embedder.failure = EmbeddingError("unavailable", "no answer")
        with caplog.at_level(logging.WARNING):
            assert recalled(await load(container, "cat")) == []
            assert recalled(await load(container, "kitten")) == ["a kitten came", "ok"]
    assert "recalled by words alone" in caplog.text
    assert "kitten" not in " ".join(str(vars(record)) for record in caplog.records)


class Hanging(FakeEmbedder):
    """Never tells what a query means."""

    async def embed(self, texts: Sequence[str], *, is_query: bool = False) -> Sequence[Sequence[float]]:
        vectors = await super().embed(texts, is_query=is_query)
        if is_query:
            await anyio.sleep_forever()
        return vectors


async def test_an_embedder_that_hangs_costs_what_it_would_have_found_and_is_not_asked_for_ever(
    sqlite_url: str,
) -> None:
    embedder = Hanging()
    async with knowing(embedder, sqlite_url, timeout_seconds=0.05) as container:
        await fill(container, said=[Message.user("a kitten came"), Message.assistant("ok")])
        failures = container.settings().summary.breaker_failures
        asked = 0
        for _ in range(failures + 2):
            assert recalled(await load(container, "kitten")) == ["a kitten came", "ok"]
            asked = embedder.asked.count(["kitten"])
        assert asked == failures
