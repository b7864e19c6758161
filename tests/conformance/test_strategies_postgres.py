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


@pytest.mark.slow  # the fast suite has the store in memory
class TestTakeLast(TakeLastRules):
    pass


@pytest.mark.slow  # the fast suite has the store in memory
class TestHierarchical(HierarchicalRules):
    pass


@pytest.mark.slow  # the fast suite has the store in memory
class TestAutomatic(AutomaticRules):
    pass


@pytest.mark.slow  # the fast suite has the store in memory
class TestProgressive(ProgressiveRules):
    pass


@pytest.mark.slow  # the fast suite has the store in memory
class TestPlugin(PluginRules):
    pass
