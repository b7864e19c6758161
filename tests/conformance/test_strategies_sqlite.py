"""Every strategy keeps its promises on SQLite."""

from pathlib import Path

import pytest

from tests.conformance.strategies import (
    AutomaticRules,
    HierarchicalRules,
    PluginRules,
    ProgressiveRules,
    TakeLastRules,
)


@pytest.fixture
def store_url(new_file: Path) -> str:
    return f"sqlite:///{new_file}"


@pytest.mark.slow  # the fast suite has the store in memory
class TestTakeLast(TakeLastRules):
    pass


@pytest.mark.slow  # the fast suite has the store in memory
class TestHierarchical(HierarchicalRules):
    pass


class TestAutomatic(AutomaticRules):
    pass


@pytest.mark.slow  # the fast suite has the store in memory
class TestProgressive(ProgressiveRules):
    pass


@pytest.mark.slow  # the fast suite has the store in memory
class TestPlugin(PluginRules):
    pass
