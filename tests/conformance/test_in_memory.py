"""The store in memory keeps the promises of every store."""

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
from tests.scenes.stores import SqlStore


class TestInMemoryLog(MessageStoreConformance):
    pass


class TestInMemorySummaries(SummaryStoreConformance):
    pass


class TestInMemoryRecall(RecallIndexConformance):
    @pytest.fixture
    def index(self, store: SqlStore) -> SqlRecallIndex:
        return store.index


class TestInMemoryAsIndex(IndexInDatabase):
    pass


class TestInMemoryRanges(RangeSummaryRules):
    pass


class TestInMemoryArchive(ArchiveRules):
    pass


class TestInMemoryActiveSessions(ActiveSessionRules):
    pass


class TestInMemoryNotes(NotesRules):
    pass


class TestInMemoryItems(ItemsRules):
    pass


class TestInMemoryFeatures(FeatureRules):
    pass


class TestInMemoryErasure(ErasureConformance):
    pass


class TestInMemoryApiKeys(ApiKeyConformance):
    pass


class TestInMemoryAnsweredRequests(AnsweredRequestConformance):
    pass


class TestInMemoryResponses(StoredResponsesConformance, ResponseStoreConformance):
    @pytest.fixture
    def responses(self, store: SqlStore) -> SqlResponseStore:
        return SqlResponseStore(store.database)


class TestInMemorySharing(SharingConformance):
    pass


class TestInMemorySearch(SearchConformance):
    pass
