"""Sources of plug-ins: their blocks stand in contexts, counted and in order, and one that fails is left out."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from reactor_memory import Memory, Message, open_memory
from reactor_memory.core.context.verification import verify
from reactor_memory.errors import PluginError, StoreUnavailableError
from reactor_memory.extend import (
    Asked,
    Block,
    BlockLine,
    ContextRows,
    Draft,
    Frame,
    LoadRequest,
    Plugin,
    Settings,
    Source,
    with_block,
)
from reactor_memory.wiring import stores
from reactor_memory.wiring.plugins import evaluate
from tests.scenes.tables import each_row
from tests.wiring.test_plugin_parts import announced

pytestmark = pytest.mark.anyio


def frame(part: str, **more: Any) -> Frame:
    return Frame(part=part, header=f"{part}:", **{"place": "first", **more})


class Lines(Source):
    """Brings these lines."""

    def __init__(self, part: str, *texts: str, error: Exception | None = None, **more: Any) -> None:
        self._block = Block(frame=frame(part, **more), lines=[BlockLine(text=text) for text in texts])
        self._error = error

    async def before_window(self, request: LoadRequest, rows: ContextRows) -> Block:
        if self._error is not None:
            raise self._error
        return self._block


class Answering(Source):
    """Answers a question."""

    async def for_question(self, draft: Draft, asked: Asked) -> Draft:
        if asked.request.query == "fail":
            raise ZeroDivisionError
        if not asked.request.query:
            return draft
        line = BlockLine(text=f"asked for {asked.request.query}", tokens=20)
        return with_block(draft, Block(frame=frame("answer", place="last"), lines=[line]))


@asynccontextmanager
async def opened(monkeypatch: pytest.MonkeyPatch, **sources: Source) -> AsyncGenerator[Memory]:
    plugins = tuple(
        Plugin(name=name, order=order, provides={"source": {name: lambda settings, source=source: source}})
        for order, (name, source) in enumerate(sources.items())
    )
    monkeypatch.setattr(stores, "discover", lambda: plugins)
    async with open_memory(Settings(store={"url": "memory://"})) as memory:  # type: ignore[arg-type]
        for number in range(3):
            await memory.save_history("s", [Message.user(f"text {number}"), Message.assistant("well")])
        yield memory


async def shown(memory: Memory, **arguments: Any) -> list[str]:
    context = await memory.load_history("s", **arguments)
    assert verify(context, count=memory.container.message_counter().counted) == []
    return [message.content for message in context.messages]


async def test_what_they_bring_stands_in_their_order(monkeypatch: pytest.MonkeyPatch) -> None:
    async with opened(monkeypatch, one=Lines("one", "first line", "second"), two=Lines("two", "other")) as memory:
        first, second, *window = await shown(memory)
    assert first.splitlines()[0] == "one:"
    assert first.splitlines()[2:] == ["first line", "second"]
    assert second.splitlines()[2:] == ["other"]
    assert len(window) == 6


async def test_blocks_without_lines_are_none(monkeypatch: pytest.MonkeyPatch) -> None:
    async with opened(monkeypatch, one=Lines("one")) as memory:
        assert len(await shown(memory)) == 6


async def test_lines_are_given_up_within_the_budget(monkeypatch: pytest.MonkeyPatch) -> None:
    async with opened(monkeypatch, one=Lines("one", *(f"line {number} of many" for number in range(400)))) as memory:
        context = await memory.load_history("s", budget=300)
        assert context.report.total_tokens <= 300
        assert "text 2" in [message.content for message in context.messages]
        assert verify(context, count=memory.container.message_counter().counted) == []


@each_row("error", [ZeroDivisionError("s3cret"), KeyError("x"), OSError("x"), TypeError("x"), RuntimeError("x")])
async def test_one_that_fails_is_left_out_and_told(monkeypatch: pytest.MonkeyPatch, error: Exception) -> None:
    async with opened(monkeypatch, one=Lines("one", error=error), two=Lines("two", "other")) as memory:
        context = await memory.load_history("s")
        assert context.messages[0].content.splitlines()[0] == "two:"
        assert len(context.messages) == 7
        assert "damaged, left out: one" in context.report.remarks


async def test_store_that_is_away_is_told_as_such(monkeypatch: pytest.MonkeyPatch) -> None:
    async with opened(monkeypatch, one=Lines("one", error=StoreUnavailableError("store: away"))) as memory:
        with pytest.raises(StoreUnavailableError, match="store: away"):
            await memory.load_history("s")


async def test_questions_are_answered(monkeypatch: pytest.MonkeyPatch) -> None:
    async with opened(monkeypatch, one=Answering()) as memory:
        assert (await shown(memory, query="walrus"))[-1].splitlines()[-1] == "asked for walrus"
        assert len(await shown(memory, query="")) == 6
        context = await memory.load_history("s", query="fail")
        assert context.report.remarks[-1].endswith(": one")


def test_a_source_of_the_wrong_shape_is_refused() -> None:
    class Odd:
        def before_window(self, request: LoadRequest) -> None: ...

    report = announced(Plugin(name="odd", provides={"source": {"odd": lambda settings: Odd()}}))
    with pytest.raises(PluginError, match="its source odd does not fit: before_window"):
        report.factories["source"]["odd"](Settings())


def test_wrapping_sources_is_refused() -> None:
    with pytest.raises(PluginError, match="wraps source, of which all are in force"):
        announced(Plugin(name="odd", wraps={"source": Lines}))
    assert evaluate([Plugin(name="fine")], Settings()).factories["source"] == {}
