"""Sessions move between stores of all kinds."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import TypeAlias

import pytest

from tests.conformance.suites.transfer import TransferRules
from tests.scenes.postgres_server import PostgresServer
from tests.scenes.stores import SqlStore as Store
from tests.scenes.stores import memory_store, postgres_store, sqlite_store

Make: TypeAlias = Callable[[str, str], Store]

PAIRS = [
    ("memory", "sqlite"),
    pytest.param(("sqlite", "sqlite"), marks=pytest.mark.slow),
    pytest.param(("sqlite", "postgres"), marks=pytest.mark.postgres),
    pytest.param(("postgres", "memory"), marks=[pytest.mark.postgres, pytest.mark.slow]),
]
"""The fast suite writes both kinds of database; what is read from PostgreSQL is what its own suite reads."""


@pytest.fixture(params=PAIRS, ids=" to ".join)
def kinds(request: pytest.FixtureRequest) -> tuple[str, str]:
    return request.param


@pytest.fixture
def make(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Make]:
    with ExitStack() as databases:

        def make(name: str, kind: str) -> Store:
            if kind == "memory":
                return memory_store()
            if kind == "sqlite":
                return sqlite_store(tmp_path / f"{name}.db")
            server: PostgresServer = request.getfixturevalue("postgres_server")
            return postgres_store(databases.enter_context(server.database(migrated=True)))

        yield make


@pytest.fixture
def closed_store(kinds: tuple[str, str], make: Make) -> Store:
    return make("store", kinds[0])


@pytest.fixture
def closed_target(kinds: tuple[str, str], make: Make) -> Store:
    return make("target", kinds[1])


@pytest.fixture
def closed_back(kinds: tuple[str, str], make: Make) -> Store:
    return make("back", kinds[0])


async def opened(store: Store) -> AsyncIterator[Store]:
    await store.open()
    yield store
    await store.close()


@pytest.fixture
async def store(closed_store: Store) -> AsyncIterator[Store]:
    async for store in opened(closed_store):
        yield store


@pytest.fixture
async def target(closed_target: Store) -> AsyncIterator[Store]:
    async for store in opened(closed_target):
        yield store


@pytest.fixture
async def back(closed_back: Store) -> AsyncIterator[Store]:
    async for store in opened(closed_back):
        yield store


class TestTransfer(TransferRules):
    pass
