"""Sources of plug-ins: what they bring is counted here, and where one fails a context does without it."""

from __future__ import annotations

from collections.abc import Awaitable
from typing import TypeVar

from msgspec.structs import replace

from reactor_memory.core.context.blocks import Block, Verbatim, block_text
from reactor_memory.core.context.draft import Draft
from reactor_memory.core.context.message_counter import MessageCounter
from reactor_memory.core.load_requests import LoadRequest
from reactor_memory.core.sources import Asked, Source
from reactor_memory.errors import ReactorMemoryError, StoreCorruptError
from reactor_memory.models.requests import ContextRows
from reactor_memory.settings.settings import Settings
from reactor_memory.wiring.plugins import ConditionReport

T = TypeVar("T")


class PluggedSource(Source):
    """Brings what `source` brings before the window."""

    def __init__(self, name: str, source: Source, counter: MessageCounter, overhead: int) -> None:
        self._own_name = name
        self._source = source
        self._counter = counter
        self._overhead = overhead

    @property
    def name(self) -> str:  # type: ignore[override]  # pyright: ignore[reportIncompatibleVariableOverride]
        return self._own_name

    async def before_window(self, request: LoadRequest, rows: ContextRows) -> Block | Verbatim | None:
        brought = await self._asked(self._source.before_window(request, rows))
        return self._counted(brought) if isinstance(brought, Block) else brought

    def _counted(self, block: Block) -> Block | None:
        if not block.lines or block.tokens is not None:
            return block if block.lines else None
        count = self._counter.of_text
        lines = tuple(replace(line, tokens=line.tokens or count(f"\n{line.text}")) for line in block.lines)
        text = block_text(block.frame, [line.text for line in lines])
        return replace(block, lines=lines, tokens=count(text) + self._overhead)

    async def _asked(self, answer: Awaitable[T]) -> T:
        try:
            return await answer
        except ReactorMemoryError:
            raise
        except Exception as error:  # it is anybody's code: a context tells that the source is left out
            raise StoreCorruptError(f"source {self._own_name} fails with a {type(error).__name__}") from error


class AnsweringSource(PluggedSource):
    """As `PluggedSource`, and answers the question of a load."""

    async def for_question(self, draft: Draft, asked: Asked) -> Draft:
        return await self._asked(self._source.for_question(draft, asked))


def plugged_sources(report: ConditionReport, counter: MessageCounter, settings: Settings) -> tuple[Source, ...]:
    """Those of all plug-ins that take part, in their order."""
    return tuple(
        _plugged(name, make(settings), counter, settings.tokens.overhead_per_message)
        for name, make in report.factories["source"].items()
    )


def _plugged(name: str, source: Source, counter: MessageCounter, overhead: int) -> Source:
    answers = type(source).for_question is not Source.for_question
    return (AnsweringSource if answers else PluggedSource)(name, source, counter, overhead)
