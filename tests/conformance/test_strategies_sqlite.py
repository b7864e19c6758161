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
