"""The PostgreSQL store keeps the promises of every store."""

from collections.abc import AsyncIterator

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
from tests.scenes.stores import SqlStore, postgres_store

pytestmark = pytest.mark.postgres


@pytest.fixture
async def store(postgres_dsn: str) -> AsyncIterator[SqlStore]:
    store = postgres_store(postgres_dsn)
    await store.open()
    yield store
    await store.close()


class TestPostgresLog(MessageStoreConformance):
    pass


class TestPostgresSummaries(SummaryStoreConformance):
    pass


class TestPostgresRecall(RecallIndexConformance):
    @pytest.fixture
    def index(self, store: SqlStore) -> SqlRecallIndex:
        return store.index


class TestPostgresAsIndex(IndexInDatabase):
    pass


@pytest.mark.slow  # each statement is run on SQLite in the fast suite
class TestPostgresRanges(RangeSummaryRules):
    pass


@pytest.mark.slow  # each statement is run on SQLite in the fast suite
class TestPostgresArchive(ArchiveRules):
    pass


class TestPostgresActiveSessions(ActiveSessionRules):
    pass


class TestPostgresNotes(NotesRules):
    pass


class TestPostgresItems(ItemsRules):
    pass


class TestPostgresFeatures(FeatureRules):
    pass


class TestPostgresErasure(ErasureConformance):
    pass


class TestPostgresApiKeys(ApiKeyConformance):
    pass


class TestPostgresAnsweredRequests(AnsweredRequestConformance):
    pass


@pytest.mark.slow  # each statement is run on SQLite in the fast suite
class TestPostgresResponses(StoredResponsesConformance, ResponseStoreConformance):
    @pytest.fixture
    def responses(self, store: SqlStore) -> SqlResponseStore:
        return SqlResponseStore(store.database)


@pytest.mark.slow  # each statement is run on SQLite in the fast suite
class TestPostgresSharing(SharingConformance):
    pass


@pytest.mark.slow  # each statement is run on SQLite in the fast suite
class TestPostgresSearch(SearchConformance):
    pass
