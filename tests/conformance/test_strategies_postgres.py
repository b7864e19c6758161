"""Every strategy keeps its promises on PostgreSQL."""

import pytest

from tests.conformance.strategies import (
    AutomaticRules,
    HierarchicalRules,
    PluginRules,
    ProgressiveRules,
    TakeLastRules,
)

pytestmark = pytest.mark.postgres


@pytest.fixture
def store_url(postgres_dsn: str) -> str:
    return postgres_dsn


class TestTakeLast(TakeLastRules):
    pass


class TestHierarchical(HierarchicalRules):
    pass


class TestAutomatic(AutomaticRules):
    pass


class TestProgressive(ProgressiveRules):
    pass


class TestPlugin(PluginRules):
    pass
