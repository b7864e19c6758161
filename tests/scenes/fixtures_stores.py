"""Empty stores: one in memory, and addresses of every kind, with which a test is run once each.

A module whose tests need fewer kinds says so: ``url = memory_or_sqlite``.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.scenes.stores import SqlStore, memory_store

POSTGRES = pytest.param("postgres", marks=pytest.mark.postgres)


@pytest.fixture
async def store() -> AsyncIterator[SqlStore]:
    store = memory_store()
    await store.open()
    yield store
    await store.close()


@pytest.fixture(params=["memory", "sqlite", POSTGRES])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    return _empty(request, tmp_path)


@pytest.fixture(params=["memory", "sqlite"])
def memory_or_sqlite(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    return _empty(request, tmp_path)


@pytest.fixture(params=["sqlite", POSTGRES])
def shared_by_processes(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    return _empty(request, tmp_path)


def _empty(request: pytest.FixtureRequest, folder: Path) -> str:
    if request.param == "postgres":
        return request.getfixturevalue("postgres_dsn")
    return "memory://" if request.param == "memory" else f"sqlite:///{folder / 'memory.db'}"
