"""How much a summarizer is given to read and writes, whatever it reports itself."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, cast

from dependency_injector import providers

from reactor_memory.core.context.message_counter import MessageCounter
from reactor_memory.models import Message
from reactor_memory.models.ledger import NOTHING_KNOWN, Extraction, Fact, Known, Usage
from reactor_memory.wiring.container import Container

if TYPE_CHECKING:
    from reactor_memory.core.ports import Condenser, Summarizer


class MeteredSummarizer:
    """Another summarizer, and its tokens.

    Read is every message and fact that it was given, an earlier summary among them, failed calls included.
    Names that it is told are, like its instruction, no part of the conversation. Written is what it reports, or if it
    reports nothing, the text of what it found.
    """

    def __init__(self, summarizer: Summarizer, counter: MessageCounter) -> None:
        self._summarizer = summarizer
        self._counter = counter
        self.usage = Usage()

    @property
    def condenser(self) -> Condenser | None:
        return self._summarizer.condenser

    @property
    def name(self) -> str:
        return self._summarizer.name

    @property
    def prompt_version(self) -> str:
        return self._summarizer.prompt_version

    async def summarize(self, messages: Sequence[Message], *, known: Known = NOTHING_KNOWN) -> Extraction:
        self._add(read=sum(map(self._counter.of, messages)) + self._of_facts(known.facts))
        extraction = await self._summarizer.summarize(messages, known=known)
        self._add(written=extraction.usage.tokens_written or self._of_extraction(extraction))
        return extraction

    async def aclose(self) -> None:
        await self._summarizer.aclose()

    def _add(self, *, read: int = 0, written: int = 0) -> None:
        self.usage = Usage(
            tokens_read=self.usage.tokens_read + read, tokens_written=self.usage.tokens_written + written
        )

    def _of_extraction(self, extraction: Extraction) -> int:
        prose = self._counter.of_text(extraction.narrative) + self._counter.of_text(extraction.headline)
        return prose + self._of_facts(extraction.facts)

    def _of_facts(self, facts: Sequence[Fact]) -> int:
        return sum(self._counter.of_text(f"{fact.anchor} {fact.key} {fact.value}") for fact in facts)


def meter(container: Container) -> None:
    """Make the container count what its summarizer reads and writes; call it before anything is made."""
    if container.settings().summary.enabled:
        metered = MeteredSummarizer(container.summarizer(), container.message_counter())
        cast("Any", container.summarizer).override(providers.Object(metered))


def usage_of(container: Container) -> Usage:
    """What the summarizer of a metered container read and wrote so far; nothing where nothing is summarized."""
    if not container.settings().summary.enabled:
        return Usage()
    summarizer = container.summarizer()
    assert isinstance(summarizer, MeteredSummarizer)
    return summarizer.usage
