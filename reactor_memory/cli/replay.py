"""A session of a file, saved and summarized as behind an agent, then loaded in two ways."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

import anyio

from reactor_memory.cli.demo_run import Demonstration, Pace, demonstrate
from reactor_memory.cli.invocation import Invocation
from reactor_memory.cli.terminal import progress
from reactor_memory.core.context.context import Context
from reactor_memory.evaluation.transcripts import Line
from reactor_memory.imports.importer import Advance, Importer, check_line
from reactor_memory.models import Message
from reactor_memory.wiring.container import Container
from reactor_memory.wiring.options import manager_options

if TYPE_CHECKING:
    from reactor_memory.core.ports import Clock

BATCH = 20
"""Messages that are saved at once: about what one visit of a user leaves."""

LOOK_SECONDS = 0.05

ON = {"summary": {"enabled": True, "provider": "extractive"}, "background": {"enabled": True}}
OFF = {"summary": {"enabled": False}, "background": {"enabled": False}}


async def replay(invocation: Invocation, line: Line, budget: int) -> Demonstration:
    """Save the session, wait for the background work, and compare its context with take-last's."""
    settings = invocation.settings(history={"strategy": "auto"}, **ON)
    probes = line.probes()
    check_line(line, manager_options(settings).limits, {})
    async with invocation.container(settings, creates=True) as container:
        behind = _Behind(container, line, invocation.user_id)
        saving = await _timed(container.clock(), behind.save)
        catching_up = await _timed(container.clock(), behind.catch_up)
        loading = await _timed(container.clock(), lambda: behind.load(budget))
        pace = await behind.pace(saving=saving, catching_up=catching_up, loading=loading)
        messages = await behind.messages()
    take_last = await _take_last(invocation, line.session_id, len(messages), budget)
    return demonstrate(messages, probes, pace, ours=behind.context, take_last=take_last)


async def _take_last(invocation: Invocation, session_id: str, length: int, budget: int) -> Context:
    """The newest messages that fit, as many as the budget allows."""
    settings = invocation.settings(history={"strategy": "take_last", "max_conversation_turns": length}, **OFF)
    async with invocation.memory(settings) as memory:
        return await memory.load_history(session_id, user_id=invocation.user_id, budget=budget)


async def _timed(clock: Clock, work: Callable[[], Awaitable[None]]) -> int:
    start = clock()
    await work()
    return clock() - start


class _Behind:
    """What happens behind an agent, with progress."""

    context: Context

    def __init__(self, container: Container, line: Line, user_id: str | None) -> None:
        self._manager = container.conversation_manager()
        self._facts = container.facts()
        self._line = line
        self._user_id = user_id

    async def save(self) -> None:
        importer = Importer(self._manager, user_id=self._user_id, batch=BATCH)
        with progress() as bar:
            task = bar.add_task("saving", total=len(self._line.messages))
            await importer.store_lines([self._line], lambda count: bar.advance(task, count))

    async def catch_up(self) -> None:
        with progress() as bar:
            task = bar.add_task("summarizing in the background", total=len(self._line.messages))
            await self._watch(lambda covered: bar.update(task, completed=covered))

    async def _watch(self, report: Advance) -> None:
        """Report how far the summary reaches until there is nothing left to do."""
        done = False
        while not done:
            with anyio.move_on_after(LOOK_SECONDS) as look:
                await self._manager.drain()
            done = not look.cancelled_caught
            summary = await self._manager.get_summary(self._line.session_id, user_id=self._user_id)
            report(summary.covered_seq if summary else 0)

    async def load(self, budget: int) -> None:
        self.context = await self._manager.load_history(self._line.session_id, user_id=self._user_id, budget=budget)

    async def pace(self, *, saving: int, catching_up: int, loading: int) -> Pace:
        session_id, user_id = self._line.session_id, self._user_id
        segments = await self._facts.segments(session_id, user_id=user_id)
        facts = await self._facts.list(session_id, user_id=user_id)
        return Pace(saving=saving, catching_up=catching_up, loading=loading, segments=len(segments), facts=len(facts))

    async def messages(self) -> tuple[Message, ...]:
        stored = self._manager.stream_messages(self._line.session_id, user_id=self._user_id)
        return tuple([message async for message in stored])
