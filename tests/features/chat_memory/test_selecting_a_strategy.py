"""The strategy of a chat memory, and its summarizer, by the names in the settings."""

from __future__ import annotations

import pytest
from dependency_injector import providers

from reactor_memory import ConfigurationError, Container, Settings
from reactor_memory.features.chat_memory import NoopStrategy, SummarizationStrategy
from reactor_memory.wiring.own_parts import OWN_PARTS
from reactor_memory.wiring.plugins import Plugin, evaluate


class Own(NoopStrategy):
    """That of a plug-in."""


PLUGIN = Plugin(name="sample", provides={"memory_management": {"own": lambda settings: Own()}})


def chosen(strategy: str) -> object:
    settings = Settings(store={"url": "memory://"}, chat_memory={"strategy": strategy})
    container = Container(settings=settings)
    container.conditions.override(providers.Object(evaluate([OWN_PARTS, PLUGIN], settings)))
    return container.memory_management()


@pytest.mark.parametrize(
    ("name", "kind"),
    [("noop", NoopStrategy), ("none", NoopStrategy), ("summarize", SummarizationStrategy), ("own", Own)],
)
def test_by_name(name: str, kind: type[object]) -> None:
    assert type(chosen(name)) is kind


def test_an_unknown_name_is_told_with_those_that_there_are() -> None:
    with pytest.raises(ConfigurationError, match=r"chat_memory\.strategy.*other.*noop, own, summarize"):
        chosen("other")
