"""The PostgreSQL store keeps its promises over tables that are distributed: here over hash partitions, not shards."""

from collections.abc import AsyncIterator, Iterator

import pytest

from reactor_memory.features.recall.database_index import SqlRecallIndex
from reactor_memory.features.responses.database_store import SqlResponseStore
from reactor_memory.testing import MessageStoreConformance, RecallIndexConformance, SummaryStoreConformance
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
from tests.scenes.postgres_server import PostgresServer
from tests.scenes.stores import SqlStore, postgres_store

pytestmark = [pytest.mark.postgres, pytest.mark.slow]


@pytest.fixture
def fenced_dsn(sharded_server: PostgresServer, sharded_postgres_dsn: str) -> Iterator[str]:
    """As a role that the fences bind, so that what is not named in a transaction is not seen."""
    with sharded_server.ordinary_role(sharded_postgres_dsn) as dsn:
        yield dsn


@pytest.fixture
async def store(fenced_dsn: str) -> AsyncIterator[SqlStore]:
    store = postgres_store(fenced_dsn, pool_size=4)
    await store.open()
    yield store
    await store.close()


class TestShardedLog(MessageStoreConformance):
    pass


class TestShardedSummaries(SummaryStoreConformance):
    pass


class TestShardedRecall(RecallIndexConformance):
    @pytest.fixture
    def index(self, store: SqlStore) -> SqlRecallIndex:
        return store.index


class TestShardedAsIndex(IndexInDatabase):
    pass


class TestShardedRanges(RangeSummaryRules):
    pass


class TestShardedArchive(ArchiveRules):
    pass


class TestShardedActiveSessions(ActiveSessionRules):
    pass


class TestShardedNotes(NotesRules):
    pass


class TestShardedItems(ItemsRules):
    pass


class TestShardedFeatures(FeatureRules):
    pass


class TestShardedErasure(ErasureConformance):
    pass


class TestShardedApiKeys(ApiKeyConformance):
    pass


class TestShardedAnsweredRequests(AnsweredRequestConformance):
    pass


class TestShardedResponses(StoredResponsesConformance, ResponseStoreConformance):
    @pytest.fixture
    def responses(self, store: SqlStore) -> SqlResponseStore:
        return SqlResponseStore(store.database)


class TestShardedSharing(SharingConformance):
    pass


class TestShardedSearch(SearchConformance):
    pass
