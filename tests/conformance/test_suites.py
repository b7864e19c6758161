"""The suites themselves: no rule may hide another."""

import inspect
from collections import Counter

from reactor_memory.testing import (
    MessageStoreConformance,
    RecallIndexConformance,
    StrategyConformance,
    SummaryStoreConformance,
)
from tests.conformance.suites.active_sessions import ActiveSessionRules
from tests.conformance.suites.answered_requests import AnsweredRequestConformance
from tests.conformance.suites.api_keys import ApiKeyConformance
from tests.conformance.suites.erasing import ErasureConformance
from tests.conformance.suites.features import FeatureRules
from tests.conformance.suites.index_in_database import IndexInDatabase
from tests.conformance.suites.items import ItemsRules
from tests.conformance.suites.notes import NotesRules
from tests.conformance.suites.range_summaries import RangeSummaryRules
from tests.conformance.suites.responses import ResponseStoreConformance, StoredResponsesConformance
from tests.conformance.suites.searching import SearchConformance
from tests.conformance.suites.sharing import SharingConformance

SUITES = (
    MessageStoreConformance,
    SummaryStoreConformance,
    RangeSummaryRules,
    RecallIndexConformance,
    SearchConformance,
    StrategyConformance,
    AnsweredRequestConformance,
    ApiKeyConformance,
    SharingConformance,
    ActiveSessionRules,
    NotesRules,
    ItemsRules,
    ResponseStoreConformance,
    StoredResponsesConformance,
    ErasureConformance,
    FeatureRules,
    IndexInDatabase,
)


def test_no_rule_hides_another_of_the_same_name() -> None:
    parts = {part for suite in SUITES for part in suite.__mro__}
    names = Counter(name for part in parts for name in vars(part) if name.startswith("test_"))
    assert [name for name, count in names.items() if count > 1] == []


def test_every_rule_is_a_coroutine_that_pytest_awaits() -> None:
    for suite in SUITES:
        rules = [getattr(suite, name) for name in dir(suite) if name.startswith("test_")]
        assert all(inspect.iscoroutinefunction(rule) for rule in rules)
        assert "anyio" in {mark.name for mark in suite.pytestmark}  # pyright: ignore
