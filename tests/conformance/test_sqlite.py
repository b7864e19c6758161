"""The SQLite store keeps the promises of every store."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from reactor_memory.features.recall.database_index import SqlRecallIndex
from reactor_memory.features.responses.database_store import SqlResponseStore
from reactor_memory.testing import (
    MessageStoreConformance,
    RecallIndexConformance,
    SummaryStoreConformance,
)
from tests.conformance.suites.active_sessions import ActiveSessionRules
from tests.conformance.suites.answered_requests import AnsweredRequestConformance
from tests.conformance.suites.api_keys import ApiKeyConformance
from tests.conformance.suites.archiving import ArchiveRules
from tests.conformance.suites.erasing import ErasureConformance
from tests.conformance.suites.features import FeatureRules
from tests.conformance.suites.index_in_database import IndexInDatabase
from tests.conformance.suites.items import ItemsRules
from tests.conformance.suites.notes import NotesRules
from tests.conformance.suites.range_summaries import RangeSummaryRules
from tests.conformance.suites.responses import ResponseStoreConformance, StoredResponsesConformance
from tests.conformance.suites.searching import SearchConformance
from tests.conformance.suites.sharing import SharingConformance
from tests.scenes.stores import SqlStore, sqlite_store


@pytest.fixture
async def store(new_file: Path) -> AsyncIterator[SqlStore]:
    store = sqlite_store(new_file)
    await store.open()
    yield store
    await store.close()


class TestSqliteLog(MessageStoreConformance):
    pass


class TestSqliteSummaries(SummaryStoreConformance):
    pass


class TestSqliteRecall(RecallIndexConformance):
    @pytest.fixture
    def index(self, store: SqlStore) -> SqlRecallIndex:
        return store.index


class TestSqliteAsIndex(IndexInDatabase):
    pass


class TestSqliteRanges(RangeSummaryRules):
    pass


class TestSqliteArchive(ArchiveRules):
    pass


class TestInlineLoads(MessageStoreConformance):
    """Contexts are read on the thread of the event loop."""

    @pytest.fixture
    async def store(self, new_file: Path) -> AsyncIterator[SqlStore]:
        store = sqlite_store(new_file, inline_reads="always")
        await store.open()
        yield store
        await store.close()


class TestSqliteActiveSessions(ActiveSessionRules):
    pass


class TestSqliteNotes(NotesRules):
    pass


class TestSqliteItems(ItemsRules):
    pass


class TestSqliteFeatures(FeatureRules):
    pass


class TestSqliteErasure(ErasureConformance):
    pass


class TestSqliteApiKeys(ApiKeyConformance):
    pass


class TestSqliteAnsweredRequests(AnsweredRequestConformance):
    pass


class TestSqliteResponses(StoredResponsesConformance, ResponseStoreConformance):
    @pytest.fixture
    def responses(self, store: SqlStore) -> SqlResponseStore:
        return SqlResponseStore(store.database)


class TestSqliteSharing(SharingConformance):
    pass


class TestSqliteSearch(SearchConformance):
    pass
