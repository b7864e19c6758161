"""`chat`: a conversation in a terminal, or through a pipe.

The main thread reads the keyboard and gets the signals; the library runs in an event loop of its own thread, so that
background work goes on while a person types.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import aclosing, asynccontextmanager
from functools import partial
from typing import TYPE_CHECKING, TypeVar

import click

from reactor_memory.cli.budgets import budget_of
from reactor_memory.cli.invocation import Invocation, with_invocation
from reactor_memory.cli.session_names import SessionCommand, generated_alone
from reactor_memory.errors import ReactorMemoryError

if TYPE_CHECKING:
    import anyio
    from anyio.from_thread import BlockingPortal

    from reactor_memory.cli.chat_view import Screen
    from reactor_memory.features.chat import Chat

T = TypeVar("T")


@click.command(cls=SessionCommand)
@click.option(
    "--budget",
    type=click.IntRange(min=1),
    metavar="TOKENS",
    help="How large a context may be; else as in the last load of the session, or context.max_tokens.",
)
@with_invocation
def chat(invocation: Invocation, budget: int | None) -> int:
    """Talk with a model in a session, new or old; of an id that was generated the beginning is enough.

    Every turn is stored before the next one begins. /help lists the commands: summaries, statistics, the context,
    facts, pins, forks. Ctrl-C stops an answer, which is then not stored, and at the prompt leaves, as Ctrl-D does.

    The model is the one that chat.provider names, or summary.provider; without any an echo answers, offline. Lines may
    come through a pipe, too: one message or command each. Exit code 1 if one of those failed.
    """
    from anyio.from_thread import start_blocking_portal

    from reactor_memory.cli.chat_view import Screen
    from reactor_memory.cli.tables import difference

    invocation.counts, given = generated_alone, invocation.session
    screen = Screen()
    with (
        start_blocking_portal() as portal,
        portal.wrap_async_context_manager(_opened(invocation, budget)) as (opened, budget_told),
    ):
        if given not in (None, invocation.session_id):
            screen.note(f"session {invocation.session_id}")
        if budget_told:
            screen.note(budget_told)
        for each in invocation.differences:
            screen.note(f"unlike the agent's settings: {difference(each)}")
        failures = _Talk(_Loop(portal), opened, screen).run()
    return 1 if failures and not screen.is_interactive else 0


@asynccontextmanager
async def _opened(invocation: Invocation, budget: int | None) -> AsyncGenerator[tuple[Chat, str]]:
    opened = invocation.memory_of_agent(creates=True, background={"enabled": True})
    async with opened as memory, aclosing(memory.container.chat_model()):
        found = await budget_of(memory, invocation.session_id, budget, default=None)
        chat = memory.container.chat(session_id=invocation.session_id, user_id=invocation.user_id, budget=found.tokens)
        yield chat, found.told() if found.origin == "last_load" and found.tokens else ""


class _StoppedError(Exception):
    """Ctrl-C came before the end."""


class _Loop:
    """Runs coroutines in the thread of the library while this one waits for Ctrl-C."""

    def __init__(self, portal: BlockingPortal) -> None:
        self._portal = portal

    def run(self, body: Callable[[], Awaitable[T]]) -> T:
        """What `body` returns. Ctrl-C cancels it; when it has ended `_StoppedError` is raised."""
        import anyio

        scope = self._portal.call(anyio.CancelScope)
        running = self._portal.start_task_soon(_within, scope, body)
        try:
            return running.result()
        except KeyboardInterrupt:
            self._portal.call(scope.cancel)
            return running.result()


async def _within(scope: anyio.CancelScope, body: Callable[[], Awaitable[T]]) -> T:
    with scope:
        return await body()
    raise _StoppedError


class _Talk:
    """Line after line until there is no more."""

    def __init__(self, loop: _Loop, chat: Chat, screen: Screen) -> None:
        self._loop = loop
        self._chat = chat
        self._screen = screen
        self._asks = False
        self._failures = 0

    def run(self) -> int:
        """Until the end. How many lines failed."""
        try:
            self._screen.greet(self._loop.run(self._chat.begin))
        except _StoppedError:
            raise KeyboardInterrupt from None
        while (line := self._screen.read(self._asks)) is not None:
            try:
                if (line.strip() or self._asks) and self._is_last(line):
                    break
            except _StoppedError:
                self._screen.note("stopped; what you said is kept, what was not complete is not")
            except ReactorMemoryError as error:
                self._fail(str(error))
        return self._failures

    def _is_last(self, line: str) -> bool:
        """Do what `line` says; whether it ends the chat."""
        if not self._asks:
            self._tell_news()
        self._asks = False
        with self._screen.progress() as progress:
            reply = self._loop.run(partial(self._chat.handle, line, progress))
        if reply is None:
            self._say(line)
            return False
        self._asks = reply.asks
        if reply.failed:
            self._fail(reply.text)
        else:
            self._screen.show(reply)
        return reply.ends

    def _say(self, line: str) -> None:
        with self._screen.answer() as show:
            self._loop.run(partial(self._chat.say, line, show))
        self._tell_news()

    def _tell_news(self) -> None:
        if news := self._loop.run(self._chat.news):
            self._screen.note(news)

    def _fail(self, problem: str) -> None:
        self._failures += 1
        self._screen.fail(problem)
