"""Two conversations may share the key of their terms: their rows are told apart all the same."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from reactor_memory.features.recall import operations as recall
from reactor_memory.testing import append_messages
from reactor_memory.testing.branching import fork
from reactor_memory.testing.recall import indexed, seqs, talk
from tests.scenes.stores import SqlStore, postgres_store, sqlite_store

pytestmark = pytest.mark.anyio


@asynccontextmanager
async def opened(store: SqlStore) -> AsyncGenerator[SqlStore]:
    await store.open()
    yield store
    await store.close()


async def test_on_sqlite(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with opened(sqlite_store(tmp_path / "memory.db")) as store:
        await a_shared_key_shares_no_entries(store, monkeypatch)


@pytest.mark.postgres
async def test_on_postgres(postgres_dsn: str, monkeypatch: pytest.MonkeyPatch) -> None:
    async with opened(postgres_store(postgres_dsn)) as store:
        await a_shared_key_shares_no_entries(store, monkeypatch)


def one_key(conversation_id: str) -> str:
    return "k" * 8


async def a_shared_key_shares_no_entries(store: SqlStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recall, "term_key", one_key)
    await indexed(store, store.index, "one", talk("walrus", "one"))
    await indexed(store, store.index, "two", talk("carpenter", "two"))
    await fork(store, "one", at_seq=3, fork_id="one~a")
    await append_messages(store, "one~a", talk("walrus of the fork", "yes", start=3))
    await indexed(store, store.index, "one~a", talk("walrus of the fork", "yes", start=3))
    assert await seqs(store, store.index, "two", "walrus") == []
    assert await seqs(store, store.index, "one", "walrus") == [1]
    assert sorted(await seqs(store, store.index, "one~a", "walrus")) == [1, 3]
    await store.summaries.forget(["one"])
    assert await seqs(store, store.index, "two", "carpenter") == [1]
