"""The PostgreSQL store keeps its promises about users behind row-level security: it logs in as a role that owns
nothing, and that the fence around the rows of users binds.
"""

from collections.abc import AsyncIterator

import pytest

from reactor_memory.features.responses.database_store import SqlResponseStore
from reactor_memory.testing import (
    MessageStoreConformance,
    SummaryStoreConformance,
)
from tests.conformance.suites.active_sessions import ActiveSessionRules
from tests.conformance.suites.answered_requests import AnsweredRequestConformance
from tests.conformance.suites.erasing import ErasureConformance
from tests.conformance.suites.features import FeatureRules
from tests.conformance.suites.items import ItemsRules
from tests.conformance.suites.notes import NotesRules
from tests.conformance.suites.responses import ResponseStoreConformance, StoredResponsesConformance
from tests.conformance.suites.searching import SearchConformance
from tests.conformance.suites.sharing import SharingConformance
from tests.scenes.stores import SqlStore, postgres_store

pytestmark = pytest.mark.postgres


@pytest.fixture
async def store(fenced_postgres_dsn: str) -> AsyncIterator[SqlStore]:
    store = postgres_store(fenced_postgres_dsn, pool_size=3)
    await store.open()
    yield store
    await store.close()


class TestFencedActiveSessions(ActiveSessionRules):
    pass


class TestFencedNotes(NotesRules):
    pass


class TestFencedItems(ItemsRules):
    pass


@pytest.mark.slow
class TestFencedFeatures(FeatureRules):
    pass


@pytest.mark.slow
class TestFencedErasure(ErasureConformance):
    pass


@pytest.mark.slow
class TestFencedSharing(SharingConformance):
    pass


@pytest.mark.slow
class TestFencedAnsweredRequests(AnsweredRequestConformance):
    pass


@pytest.mark.slow
class TestFencedResponses(StoredResponsesConformance, ResponseStoreConformance):
    @pytest.fixture
    def responses(self, store: SqlStore) -> SqlResponseStore:
        return SqlResponseStore(store.database)


@pytest.mark.slow
class TestFencedLog(MessageStoreConformance):
    pass


@pytest.mark.slow
class TestFencedSummaries(SummaryStoreConformance):
    pass


@pytest.mark.slow
class TestFencedSearch(SearchConformance):
    pass
