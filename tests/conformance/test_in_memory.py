"""The store in memory keeps the promises of every store."""

from collections.abc import AsyncIterator

import pytest

from reactor_memory.storage.in_memory import InMemoryStore
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


@pytest.fixture
async def store() -> AsyncIterator[InMemoryStore]:
    store = InMemoryStore()
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
