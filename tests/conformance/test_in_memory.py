"""The store in memory keeps the promises of every store."""

from collections.abc import AsyncIterator

import pytest

from reactor_memory.storage.sql_store import SqlStore
from reactor_memory.testing import (
    ActiveSessionStoreConformance,
    ErasureConformance,
    ItemsStoreConformance,
    MessageStoreConformance,
    NotesStoreConformance,
    RangeSummaryStoreConformance,
    RecallIndexConformance,
    StoreAsIndexConformance,
    SummaryStoreConformance,
)
from tests.stores import memory_store


@pytest.fixture
async def store() -> AsyncIterator[SqlStore]:
    store = memory_store()
    await store.open()
    yield store
    await store.close()


class TestInMemoryLog(MessageStoreConformance):
    pass


class TestInMemorySummaries(SummaryStoreConformance):
    pass


class TestInMemoryRecall(RecallIndexConformance):
    pass


class TestInMemoryAsIndex(StoreAsIndexConformance):
    pass


class TestInMemoryRanges(RangeSummaryStoreConformance):
    pass


class TestInMemoryActiveSessions(ActiveSessionStoreConformance):
    pass


class TestInMemoryNotes(NotesStoreConformance):
    pass


class TestInMemoryItems(ItemsStoreConformance):
    pass


class TestInMemoryErasure(ErasureConformance):
    pass
