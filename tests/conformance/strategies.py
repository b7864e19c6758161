"""The strategies of the library and the one of the sample plug-in, each to be proven on every store."""

from __future__ import annotations

from dependency_injector import providers

from reactor_memory import Container
from reactor_memory.testing import StrategyConformance
from tests.sample_plugin.sample_plugin.strategy import Storyteller

SUMMARIES = {"enabled": True}


class TakeLastRules(StrategyConformance):
    sections = {"history": {"strategy": "take_last"}}


class HierarchicalRules(StrategyConformance):
    sections = {"history": {"strategy": "hierarchical"}, "summary": SUMMARIES}


class AutomaticRules(StrategyConformance):
    sections = {"summary": SUMMARIES}


class ProgressiveRules(StrategyConformance):
    sections = {
        "history": {"strategy": "progressive"},
        "tiers": {"recent_count": 8, "condensed_count": 12, "auto_threshold": 20},
    }


class PluginRules(StrategyConformance):
    sections = {"summary": SUMMARIES}

    def configure(self, container: Container) -> None:
        container.strategy.override(providers.Singleton(Storyteller, container.settings))
