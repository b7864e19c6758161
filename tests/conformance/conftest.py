"""What suites ask for beside the store that each module makes."""

import asyncio
import shutil
from pathlib import Path

import pytest

from reactor_memory.database.database import Database
from tests.scenes.stores import SqlStore, sqlite_store


@pytest.fixture
def database(store: SqlStore) -> Database:
    return store.database


@pytest.fixture(scope="session")
def migrated(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A file with the schema and nothing else: a copy of it is made ten times as fast."""

    async def make(path: Path) -> None:
        store = sqlite_store(path)
        await store.open()
        await store.close()

    path = tmp_path_factory.mktemp("migrated") / "memory.db"
    asyncio.run(make(path))
    return path


@pytest.fixture
def new_file(migrated: Path, tmp_path: Path) -> Path:
    return shutil.copy(migrated, tmp_path / "memory.db")
