"""What suites ask for beside the store that each module makes."""

import pytest

from reactor_memory.database.database import Database
from tests.scenes.stores import SqlStore


@pytest.fixture
def database(store: SqlStore) -> Database:
    return store.database
