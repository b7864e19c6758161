"""A store of a plug-in, without a database, keeps the promises of every store by the suites that the library ships."""

from collections.abc import AsyncIterator

import pytest
from sample_plugin.state import State
from sample_plugin.store import SampleStore

from reactor_memory.testing import MessageStoreConformance, SummaryStoreConformance


@pytest.fixture
async def store() -> AsyncIterator[SampleStore]:
    store = SampleStore(State())
    await store.open()
    yield store
    await store.close()


class TestSampleLog(MessageStoreConformance):
    pass


class TestSampleSummaries(SummaryStoreConformance):
    pass
