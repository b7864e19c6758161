"""The background work of search: what fails, what is found again, what is never lost."""

from __future__ import annotations

import random
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import TypeAlias

import anyio
import pytest

from reactor_memory.background.engine import WorkEngine
from reactor_memory.background.kinds import Kind
from reactor_memory.background.worker import WorkOptions
from reactor_memory.core.ports import Redactor
from reactor_memory.errors import EmbeddingError
from reactor_memory.features.recall.guarded_embedder import GuardedEmbedder
from reactor_memory.features.redaction import unredacted
from reactor_memory.features.search import operations, wiring, work
from reactor_memory.features.search.models import MessageSearch, SearchBacklog
from reactor_memory.features.search.operations import search_backlog
from reactor_memory.features.search.work import MeaningIndexing, UnreadMessages, WordIndexing
from reactor_memory.models import Message
from reactor_memory.models.leases import Lease
from reactor_memory.models.requests import INDEX_SEARCH
from reactor_memory.providers.breaker import CircuitBreaker
from reactor_memory.settings.settings import Settings
from reactor_memory.testing import FakeClock, append_messages
from reactor_memory.text.analyzer import ANALYZER_VERSION
from reactor_memory.wiring.container import Container
from reactor_memory.wiring.opening import open_container
from tests.doubles.fake_embedder import FakeEmbedder
from tests.scenes.stores import SqlStore, sqlite_store

pytestmark = pytest.mark.anyio

HOUR = 3600.0
LONG_LEASE = 60_000_000


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[SqlStore]:
    store = sqlite_store(tmp_path / "memory.db")
    await store.open()
    yield store
    await store.close()


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


async def say(store: SqlStore, session_id: str, *texts: str) -> None:
    await append_messages(store, session_id, [Message.user(text) for text in texts], user_id="ann")


IndexJob: TypeAlias = "WordIndexing | MeaningIndexing | Hinting"


def words(store: SqlStore, clock: FakeClock, redactor: Redactor = unredacted) -> WordIndexing:
    unread = UnreadMessages(store, clock=clock)
    return WordIndexing(database=store.database, unread=unread, redactor=redactor, clock=clock, max_attempts=3)


def meanings(store: SqlStore, clock: FakeClock, embedder: FakeEmbedder, batch: int = 50) -> MeaningIndexing:
    unread = UnreadMessages(store, clock=clock)
    return MeaningIndexing(
        database=store.database, unread=unread, embedder=embedder, clock=clock, batch_messages=batch, max_attempts=3
    )


def worker(store: SqlStore, clock: FakeClock, job: IndexJob) -> WorkEngine:
    kind = Kind(
        name=job.kind,
        step=job.step,
        find=job.find,
        every_seconds=HOUR,
        wants=lambda _, last_seq: True,
        parks=False,
    )
    breaker = CircuitBreaker(failures=5, open_seconds=30, monotonic=lambda: 0.0)
    return WorkEngine(
        [kind], leases=store.summaries, breaker=breaker, clock=clock, random=random.random, options=WorkOptions()
    )


async def caught_up(store: SqlStore, clock: FakeClock, job: IndexJob) -> None:
    """Everything that is due now was tried once."""
    running = worker(store, clock, job)
    await running.open()
    await running.run_once()
    await running.close()


async def test_what_was_saved_without_a_hint_is_found(store: SqlStore, clock: FakeClock) -> None:
    for number in range(3):
        await say(store, f"s{number}", *["a cat"] * 150)
    await caught_up(store, clock, words(store, clock))
    assert await store.database.read_long(search_backlog) == SearchBacklog()
    await say(store, "s1", "more")
    await caught_up(store, clock, words(store, clock))
    assert await store.database.read_long(search_backlog) == SearchBacklog()


async def test_words_of_another_analyzer_are_indexed_again(
    store: SqlStore, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    await say(store, "s", *["a cat"] * 150)
    await caught_up(store, clock, words(store, clock))
    for module in (operations, work):
        monkeypatch.setattr(module, "ANALYZER_VERSION", ANALYZER_VERSION + 1)
    monkeypatch.setattr(work, "terms", lambda text, language: ["newer"])
    assert await store.database.read_long(search_backlog) == SearchBacklog(words=150)
    await caught_up(store, clock, words(store, clock))
    assert await store.database.read_long(search_backlog) == SearchBacklog()
    async with opened(store, None) as search:
        assert len(await search("newer", limit=200)) == 150
        assert await search("cat") == []


async def test_what_a_redactor_takes_out_is_neither_indexed_nor_embedded(store: SqlStore, clock: FakeClock) -> None:
    embedder = FakeEmbedder()
    guarded = GuardedEmbedder(
        embedder,
        redactor=lambda text: text.replace("secret", ""),
        breaker=CircuitBreaker(failures=3, open_seconds=1, monotonic=lambda: 0.0),
        timeout_seconds=5,
    )
    await say(store, "s", "a secret cat")
    await caught_up(store, clock, words(store, clock, lambda text: text.replace("secret", "")))
    await caught_up(store, clock, meanings(store, clock, guarded))  # pyright: ignore
    assert embedder.asked == [["a  cat"]]
    async with opened(store, FakeEmbedder()) as search:
        assert await search("secret") == []
        assert await search("cat") == ["a secret cat"]


async def test_a_redactor_that_fails_holds_up_no_other_conversation(store: SqlStore, clock: FakeClock) -> None:
    def picky(text: str) -> str:
        if "poison" in text:
            raise ValueError(text)
        return text

    await say(store, "a", "a cat", "poison", "a dog")
    await say(store, "b", "a cat")
    job = words(store, clock, picky)
    await caught_up(store, clock, job)
    assert await store.database.read_long(search_backlog) == SearchBacklog(words=3)
    state = await store.summaries.work_state("a", INDEX_SEARCH)
    assert state is not None
    assert (state.attempts, state.last_error) == (1, "ValueError")
    assert state.due_at is not None
    await caught_up(store, clock, job)
    assert await store.database.read_long(search_backlog) == SearchBacklog(words=3), "it is not due again yet"
    for _ in range(2):
        clock.advance(HOUR)
        await caught_up(store, clock, job)
    assert await store.database.read_long(search_backlog) == SearchBacklog(parked=1)
    async with opened(store, None) as search:
        assert sorted(await search("cat dog poison")) == ["a cat", "a cat", "a dog"]


async def test_a_text_without_a_meaning_is_given_up_alone(store: SqlStore, clock: FakeClock) -> None:
    embedder = FakeEmbedder()
    embedder.poison = "poison"
    await say(store, "a", "a cat", "poison", "a kitten", "")
    job = meanings(store, clock, embedder)
    for _ in range(3):
        assert (await store.database.read_long(search_backlog, model=embedder.name)).meanings == 4
        await caught_up(store, clock, job)
        clock.advance(HOUR)
    assert await store.database.read_long(search_backlog, model=embedder.name) == SearchBacklog(words=4, parked=1)


async def test_nothing_is_given_up_while_the_embedder_is_away(store: SqlStore, clock: FakeClock) -> None:
    embedder = FakeEmbedder()
    await say(store, "a", "a cat")
    embedder.failure = EmbeddingError("rejected", "the key is wrong", retryable=False)
    for _ in range(6):
        await caught_up(store, clock, meanings(store, clock, embedder))
        clock.advance(HOUR)
    assert await store.database.read_long(search_backlog, model=embedder.name) == SearchBacklog(words=1, meanings=1)
    embedder.failure = None
    await caught_up(store, clock, meanings(store, clock, embedder))
    assert await store.database.read_long(search_backlog, model=embedder.name) == SearchBacklog(words=1)


async def test_another_embedder_makes_all_vectors_anew(store: SqlStore, clock: FakeClock) -> None:
    await say(store, "a", *["a cat"] * 7)
    old, new = FakeEmbedder("old"), FakeEmbedder("new")
    await caught_up(store, clock, meanings(store, clock, old, batch=2))
    assert [len(texts) for texts in old.asked] == [2, 2, 2, 1]
    await caught_up(store, clock, meanings(store, clock, new, batch=5))
    assert [len(texts) for texts in new.asked] == [5, 2]
    async with opened(store, new) as search:
        assert len(await search("kitten")) == 7


async def test_a_worker_that_died_leaves_whole_pieces(store: SqlStore, clock: FakeClock) -> None:
    """As after `kill -9`: what was committed counts, the lease runs out, and somebody goes on."""
    await say(store, "a", *["a cat"] * 250)
    lease = await store.summaries.claim("a", INDEX_SEARCH, now=clock(), lease_microseconds=LONG_LEASE)
    assert lease is not None
    assert await words(store, clock).step(lease)
    await caught_up(store, clock, words(store, clock))
    assert (await store.database.read_long(search_backlog)).words == 150, "the lease holds"
    clock.advance(2 * HOUR)
    await caught_up(store, clock, words(store, clock))
    assert await store.database.read_long(search_backlog) == SearchBacklog()
    assert not await words(store, clock).step(lease)
    async with opened(store, None) as search:
        assert len(await search("cat", limit=200)) == 200


async def test_a_hint_during_the_work_is_not_lost(store: SqlStore, clock: FakeClock) -> None:
    await say(store, "a", "a cat")
    inner = words(store, clock)
    running = worker(store, clock, Hinting(inner, lambda: running.messages_saved("a", 2)))
    await running.open()
    await running.run_once()
    assert await store.database.read_long(search_backlog) == SearchBacklog()
    await running.close()


class Hinting:
    """A job that is woken for the same conversation while it works on it, the first time."""

    kind = INDEX_SEARCH

    def __init__(self, inner: WordIndexing, hint) -> None:
        self.inner = inner
        self.hints = [hint]

    async def find(self, *, after: str, limit: int) -> Sequence[str]:
        return await self.inner.find(after=after, limit=limit)

    async def step(self, lease: Lease) -> int | None:
        more = await self.inner.step(lease)
        while self.hints:
            self.hints.pop()()
        return more


async def test_saving_wakes_the_workers_and_searching_finds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wiring, "SWEEP_SECONDS", HOUR)
    settings = Settings(store={"url": f"sqlite:///{tmp_path}/log.db"}, search={"enabled": True})
    async with open_container(settings) as container:
        await container.background_work().drain()
        await container.conversation_manager().save_history("s", [Message.user("a cat")], user_id="ann")
        await container.background_work().drain()
        hits = (await container.message_search().search(MessageSearch(text="cat", user_id="ann"))).hits
        assert [hit.message.content for hit in hits] == ["a cat"]
    async with open_container(Settings(store={"url": f"sqlite:///{tmp_path}/log.db"})) as container:
        await container.conversation_manager().save_history("s", [Message.user("a dog")], user_id="ann")
        await container.background_work().drain()
        assert await container.database().read_long(search_backlog) == SearchBacklog(words=1), "search is off"


async def test_the_guard_leaves_an_embedder_alone_that_failed_too_often() -> None:
    embedder = FakeEmbedder()
    embedder.failure = EmbeddingError("unavailable", "is away")
    guarded = GuardedEmbedder(
        embedder,
        redactor=unredacted,
        breaker=CircuitBreaker(failures=2, open_seconds=30, monotonic=lambda: 0.0),
        timeout_seconds=5,
    )
    reasons = []
    for _ in range(3):
        with pytest.raises(EmbeddingError) as caught:
            await guarded.embed(["text"])
        reasons.append(caught.value.reason)
    assert reasons == ["unavailable", "unavailable", "breaker_open"]
    assert len(embedder.asked) == 2


async def test_the_guard_tells_nothing_of_what_an_embedder_says() -> None:
    class Talkative(FakeEmbedder):
        async def embed(self, texts: Sequence[str], *, is_query: bool = False) -> Sequence[Sequence[float]]:
            raise ValueError(texts)

    class Slow(FakeEmbedder):
        async def embed(self, texts: Sequence[str], *, is_query: bool = False) -> Sequence[Sequence[float]]:
            await anyio.sleep_forever()
            raise AssertionError

    class Short(FakeEmbedder):
        async def embed(self, texts: Sequence[str], *, is_query: bool = False) -> Sequence[Sequence[float]]:
            return [[1.0]]

    for embedder, reason in ((Talkative(), "failed"), (Slow(), "timeout"), (Short(), "malformed")):
        guarded = GuardedEmbedder(
            embedder,
            redactor=unredacted,
            breaker=CircuitBreaker(failures=2, open_seconds=30, monotonic=lambda: 0.0),
            timeout_seconds=0.05,
        )
        with pytest.raises(EmbeddingError) as caught:
            await guarded.embed(["secret"])
        assert caught.value.reason == reason
        assert "secret" not in str(caught.value)
        assert caught.value.__cause__ is None
        assert caught.value.__context__ is None


class opened:  # noqa: N801 (reads as a function)
    """Searching in `store`, as ann."""

    def __init__(self, store: SqlStore, embedder: FakeEmbedder | None) -> None:
        self.store = store
        self.embedder = embedder

    async def __aenter__(self):
        container = Container(settings=Settings(store={"url": "sqlite:///unused.db"}))
        container.database.override(self.store.database)
        container.embedder.override(self.embedder)
        service = container.message_search()

        async def search(text: str, limit: int = 20) -> list[str]:
            found = await service.search(MessageSearch(text=text, user_id="ann", limit=limit))
            return [hit.message.content for hit in found.hits]

        return search

    async def __aexit__(self, *_: object) -> None:
        """Nothing was opened."""
