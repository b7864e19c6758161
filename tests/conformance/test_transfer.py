"""Sessions move between stores of all kinds."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractContextManager, ExitStack
from itertools import count
from pathlib import Path
from typing import TypeAlias

import pytest

from reactor_memory.storage.in_memory import InMemoryStore
from reactor_memory.storage.postgres import PostgresStore
from reactor_memory.storage.sqlite import SqliteStore
from reactor_memory.testing import SessionTransferConformance
from reactor_memory.testing.transfer import Store

Make: TypeAlias = Callable[[str], Store]

PAIRS = [
    ("memory", "memory"),
    ("memory", "sqlite"),
    ("sqlite", "memory"),
    ("sqlite", "sqlite"),
    pytest.param(("sqlite", "postgres"), marks=pytest.mark.postgres),
    pytest.param(("postgres", "memory"), marks=pytest.mark.postgres),
    pytest.param(("postgres", "sqlite"), marks=pytest.mark.postgres),
    pytest.param(("postgres", "postgres"), marks=pytest.mark.postgres),
]


@pytest.fixture(params=PAIRS, ids=" to ".join)
def kinds(request: pytest.FixtureRequest) -> tuple[str, str]:
    return request.param


@pytest.fixture
def make(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Make]:
    numbers = count()
    with ExitStack() as databases:

        def make(kind: str) -> Store:
            if kind == "memory":
                return InMemoryStore()
            if kind == "sqlite":
                return SqliteStore(tmp_path / f"{next(numbers)}.db")
            database: AbstractContextManager[str] = request.getfixturevalue("postgres_server").database(migrated=True)
            return PostgresStore(databases.enter_context(database))

        yield make


async def opened(store: Store) -> AsyncIterator[Store]:
    await store.open()
    yield store
    await store.close()


@pytest.fixture
async def store(kinds: tuple[str, str], make: Make) -> AsyncIterator[Store]:
    async for store in opened(make(kinds[0])):
        yield store


@pytest.fixture
async def target(kinds: tuple[str, str], make: Make) -> AsyncIterator[Store]:
    async for store in opened(make(kinds[1])):
        yield store


@pytest.fixture
async def back(kinds: tuple[str, str], make: Make) -> AsyncIterator[Store]:
    async for store in opened(make(kinds[0])):
        yield store


class TestTransfer(SessionTransferConformance):
    pass
