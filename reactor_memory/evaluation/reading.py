"""How much a summarizer is given to read, whatever it reports itself."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

from dependency_injector import providers

from reactor_memory.container import Container
from reactor_memory.models import Extraction, Fact, Message
from reactor_memory.protocols import Summarizer
from reactor_memory.tokens.messages import MessageCounter


class MeteredSummarizer:
    """Another summarizer, and the tokens of all messages and facts that it was given, failed calls included."""

    def __init__(self, summarizer: Summarizer, counter: MessageCounter) -> None:
        self._summarizer = summarizer
        self._counter = counter
        self.tokens_read = 0

    @property
    def name(self) -> str:
        return self._summarizer.name

    @property
    def prompt_version(self) -> str:
        return self._summarizer.prompt_version

    async def summarize(self, messages: Sequence[Message], *, existing_facts: Sequence[Fact] = ()) -> Extraction:
        self.tokens_read += sum(map(self._counter.of, messages))
        for fact in existing_facts:
            self.tokens_read += self._counter.of_text(f"{fact.anchor} {fact.key} {fact.value}")
        return await self._summarizer.summarize(messages, existing_facts=existing_facts)

    async def aclose(self) -> None:
        await self._summarizer.aclose()


def meter(container: Container) -> None:
    """Make the container count what its summarizer reads; call it before anything is made."""
    if container.settings().summary.enabled:
        metered = MeteredSummarizer(container.summarizer(), container.message_counter())
        cast("Any", container.summarizer).override(providers.Object(metered))


def tokens_read(container: Container) -> int:
    """What the summarizer of a metered container was given so far; 0 where nothing is summarized."""
    if not container.settings().summary.enabled:
        return 0
    summarizer = container.summarizer()
    assert isinstance(summarizer, MeteredSummarizer)
    return summarizer.tokens_read
