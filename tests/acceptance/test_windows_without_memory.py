"""Where no memory tells what was said, the budget decides how much of it is shown, and no count of messages."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from dependency_injector import providers

from reactor_memory import Container, Memory, Message, Settings, open_memory
from reactor_memory.core.context.verification import verify
from reactor_memory.errors import SummarizationError
from reactor_memory.models.ledger import Extraction

pytestmark = pytest.mark.anyio


class Unreachable:
    """A `Summarizer` that fails, as one does whose provider is down."""

    name = "unreachable"
    prompt_version = "1"

    async def summarize(self, messages: Sequence[Message], **_: Any) -> Extraction:
        raise SummarizationError("unavailable", "the provider is down")


class Failing(Unreachable):
    """A `Summarizer` that makes some segments, and then fails."""

    condenser = None

    def __init__(self, inner: Any, made: int) -> None:
        self._inner, self._left = inner, made

    async def aclose(self) -> None:
        await self._inner.aclose()

    async def summarize(self, messages: Sequence[Message], **given: Any) -> Extraction:
        self._left -= 1
        return await (self._inner if self._left >= 0 else super()).summarize(messages, **given)


def fail_after(container: Container, made: int) -> None:
    container.summarizer.override(providers.Object(Failing(container.summarizer(), made)))


def settings(strategy: str, **sections: Any) -> Settings:
    return Settings(store={"url": "memory://"}, history={"strategy": strategy}, **sections)


async def shown(memory: Memory, count: int, budget: int | None = None) -> list[int]:
    for first in range(0, count, 2):
        said = [Message.user(f"How is {first}?"), Message.assistant(f"Well, says {first}.")]
        await memory.save_history("s", said)
    context = await memory.load_history("s", budget=budget)
    assert verify(context, count=memory.container.message_counter().counted) == []
    return [
        message.seq or 0
        for part, message in zip(context.report.parts, context.messages, strict=True)
        if part == "window"
    ]


async def test_tiers_that_are_off_show_what_the_budget_holds() -> None:
    async with open_memory(settings("progressive", tiers={"auto_summarize": False})) as memory:
        assert await shown(memory, 400) == list(range(1, 401))


async def test_a_short_session_is_whole_whatever_take_last_would_keep() -> None:
    sections: dict[str, Any] = {"summary": {"trigger_message_count": 100}}
    async with open_memory(settings("auto", **sections)) as memory:
        assert await shown(memory, 60) == list(range(1, 61))


async def test_memory_that_is_off_shows_what_the_budget_holds() -> None:
    sections: dict[str, Any] = {"summary": {"enabled": False}}
    async with open_memory(settings("auto", **sections)) as memory:
        assert await shown(memory, 400) == list(range(1, 401))


async def test_number_of_turns_that_somebody_named_holds() -> None:
    named = Settings(
        store={"url": "memory://"},
        history={"max_conversation_turns": 5},
        summary={"enabled": False},  # pyright: ignore
    )
    async with open_memory(named) as memory:
        assert await shown(memory, 60) == list(range(51, 61))


@pytest.mark.parametrize("strategy", ["auto", "hierarchical"])
@pytest.mark.parametrize("made", [0, 1, 3])
async def test_summaries_that_failed_on_the_way_leave_no_gap(strategy: str, made: int) -> None:
    async with open_memory(settings(strategy), configure=lambda parts: fail_after(parts, made)) as memory:
        found = await shown(memory, 200)
        covered = (await memory.load_history("s")).report.covered_seq
        assert found == list(range(covered + 1, 201))
        assert covered <= 10 * made


async def test_take_last_without_budget_keeps_its_count() -> None:
    async with open_memory(settings("take_last")) as memory:
        assert await shown(memory, 60) == list(range(41, 61))


async def test_take_last_with_a_budget_fills_it() -> None:
    async with open_memory(settings("take_last")) as memory:
        assert await shown(memory, 60, budget=4_000) == list(range(1, 61))


async def test_a_forced_count_holds_beside_a_budget() -> None:
    async with open_memory(settings("take_last", context={"window_growth": "messages"})) as memory:
        assert await shown(memory, 60, budget=4_000) == list(range(41, 61))


async def test_without_any_summary_the_window_grows_by_tokens() -> None:
    down = settings("hierarchical", background={"enabled": False})
    async with open_memory(down, configure=lambda parts: fail_after(parts, 0)) as memory:
        assert len(await shown(memory, 200)) > 150


OFF: dict[str, dict[str, Any]] = {
    "nothing": {},
    "summaries": {"summary": {"enabled": False}},
    "background work": {"background": {"enabled": False}},
    "tiers": {"tiers": {"enabled": False}},
    "tiers made by themselves": {"tiers": {"auto_summarize": False}},
    "recall": {"recall": {"index": "none"}},
}


CASES = [
    (strategy, off)
    for strategy in ("auto", "hierarchical", "progressive")
    for off in OFF
    if (strategy, off) != ("hierarchical", "summaries")  # which is refused
]


@pytest.mark.parametrize(("strategy", "off"), CASES)
@pytest.mark.parametrize("is_down", [False, True])
async def test_no_count_leaves_out_what_nothing_tells(strategy: str, off: str, is_down: bool) -> None:
    """Whatever is off or has failed: what memory does not tell, the window shows."""
    configure = (lambda parts: fail_after(parts, 0)) if is_down else None
    async with open_memory(settings(strategy, **OFF[off]), configure=configure) as memory:
        found = await shown(memory, 160)
        report = (await memory.load_history("s")).report
        assert found == list(range(found[0], 161))
        told = report.covered_seq if strategy != "progressive" else found[0] - 1
        assert found[0] <= told + 1
        if is_down and off != "nothing":
            assert found[0] == 1


@pytest.mark.parametrize("turns", [1, 5, 30])
@pytest.mark.parametrize("strategy", ["take_last", "auto"])
async def test_a_number_that_was_asked_for_holds(strategy: str, turns: int) -> None:
    asked = Settings(
        store={"url": "memory://"},
        history={"strategy": strategy, "max_conversation_turns": turns},
        summary={"enabled": False},  # pyright: ignore
    )
    async with open_memory(asked) as memory:
        assert await shown(memory, 80) == list(range(81 - 2 * turns, 81))
