"""The suites themselves: no rule may hide another."""

import inspect
from collections import Counter

from reactor_memory.testing import (
    ActiveSessionStoreConformance,
    ItemsStoreConformance,
    MessageStoreConformance,
    NotesStoreConformance,
    RangeSummaryStoreConformance,
    RecallIndexConformance,
    StrategyConformance,
    SummaryStoreConformance,
)
from tests.conformance.suites.answered_requests import AnsweredRequestConformance
from tests.conformance.suites.api_keys import ApiKeyConformance
from tests.conformance.suites.erasing import ErasureConformance
from tests.conformance.suites.features import FeatureRules
from tests.conformance.suites.index_in_database import IndexInDatabase
from tests.conformance.suites.responses import ResponseStoreConformance, StoredResponsesConformance
from tests.conformance.suites.searching import SearchConformance
from tests.conformance.suites.sharing import SharingConformance

SUITES = (
    MessageStoreConformance,
    SummaryStoreConformance,
    RangeSummaryStoreConformance,
    RecallIndexConformance,
    SearchConformance,
    StrategyConformance,
    ActiveSessionStoreConformance,
    AnsweredRequestConformance,
    ApiKeyConformance,
    NotesStoreConformance,
    ItemsStoreConformance,
    SharingConformance,
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
