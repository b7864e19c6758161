"""How the chat memory is wired."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from reactor_memory.features.chat_memory.chat_memory import ChatMemoryService
    from reactor_memory.features.chat_memory.memory_management import MemoryManagementStrategy
    from reactor_memory.features.chat_memory.summarization import SummarizationStrategy
    from reactor_memory.features.tiers.ranges import Ranges
    from reactor_memory.features.tiers.writer import TierWriter
    from reactor_memory.settings.settings import Settings

NOOP = "noop"
SUMMARIZING = "summarize"


def summarizer_kind(settings: Settings) -> Literal["usual", "own"]:
    """Whether it shares the summarizer of the section `summary`, its breaker included."""
    return "usual" if settings.chat_memory.shares_summarizer else "own"


def noop_memory_management(settings: Settings) -> MemoryManagementStrategy:
    from reactor_memory.features.chat_memory.summarization import NoopStrategy

    return NoopStrategy()


def summarizing_memory_management(settings: Settings) -> None:
    """It needs parts of the container, so the container makes it."""


def memory_management_of(
    named: MemoryManagementStrategy | None, summarizing: Callable[[], MemoryManagementStrategy]
) -> MemoryManagementStrategy:
    """The strategy that the settings name, or if its factory leaves that to the container, `summarizing`."""
    return named or summarizing()


def summarization_strategy_of(
    ranges: Callable[..., Ranges], writer: TierWriter, settings: Settings
) -> SummarizationStrategy:
    from reactor_memory.features.chat_memory.summarization import SummarizationStrategy

    memory = settings.chat_memory
    return SummarizationStrategy(
        ranges=ranges(writer=writer, retention=memory.retention), every=memory.summarize_every_n
    )


def chat_memory_of(settings: Settings, **parts: Any) -> ChatMemoryService:
    from reactor_memory.features.chat_memory.chat_memory import ChatMemoryService

    return ChatMemoryService(**parts, on_hook_error=settings.chat_memory.on_hook_error)
