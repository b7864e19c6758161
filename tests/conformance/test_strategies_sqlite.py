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
def store_url(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path / 'memory.db'}"


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
