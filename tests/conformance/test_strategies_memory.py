"""Every strategy keeps its promises on the store in memory."""

import pytest

from tests.conformance.strategies import (
    AutomaticRules,
    HierarchicalRules,
    PluginRules,
    ProgressiveRules,
    TakeLastRules,
)


@pytest.fixture
def store_url() -> str:
    return "memory://"


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
