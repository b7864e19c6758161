"""How a service ends: one deadline from the first signal, met by everything that still runs.

Requests and background work may finish until `RESERVED_SECONDS` before the deadline; then connections are aborted, and
what is left of the time is for closing the memory. The deadline itself is kept by a thread, so that neither a blocked
event loop nor a thread that hangs in a database outlives it.
"""

from __future__ import annotations

import asyncio
import logging
import math
import os
import signal
import socket
import time
from collections.abc import Generator
from contextlib import contextmanager
from threading import Thread, Timer

import anyio
import uvicorn
from litestar.types import ASGIApp, Receive, Scope, Send

from reactor_memory.errors import ConfigurationError
from reactor_memory.settings.service_settings import ServiceSettings

log = logging.getLogger(__name__)

SIGNALS = (signal.SIGTERM, signal.SIGINT)
CUT_OFF = 1
"""The exit code of a process that could not finish everything in its time."""

RESERVED_SECONDS = 2.0
"""Of the grace time, for closing the memory after the last request was answered or cut off."""

_LAST_WORDS_SECONDS = 0.5


def check_grace(settings: ServiceSettings) -> None:
    """Raises `ConfigurationError` if what has to end takes longer than it may."""
    http, background = settings.http, settings.background
    least = max(http.drain_delay_seconds + 1, background.close_grace_seconds) + RESERVED_SECONDS
    if http.shutdown_grace_seconds < least:
        problem = f"must be at least {least:g}, because of http.drain_delay_seconds and background.close_grace_seconds"
        raise ConfigurationError("http.shutdown_grace_seconds", problem)


class Stop:
    """Tells the parts of a service that it ends, and how long each of them may go on."""

    def __init__(self, grace_seconds: float) -> None:
        self._grace_seconds = grace_seconds
        self._is_set = anyio.Event()
        self._cut_off_at = math.inf
        self.exit_code = 0
        """What the process is to end with, unless it is ended."""

    def set(self) -> None:
        """Begin the end."""
        self.begin_grace()
        self._is_set.set()

    def begin_grace(self) -> None:
        """Let the time run; a signal handler may call this."""
        self._cut_off_at = min(self._cut_off_at, time.monotonic() + self._grace_seconds - RESERVED_SECONDS)

    async def wait(self) -> None:
        """Until the end begins."""
        await self._is_set.wait()

    async def cut_off(self) -> None:
        """Until requests have had their time."""
        await self.wait()
        await anyio.sleep(self._cut_off_at - time.monotonic())


@contextmanager
def stopping(grace_seconds: float) -> Generator[Stop]:
    """A `Stop` that the first SIGTERM or SIGINT sets. The next one ends the process at once, and so does the end of the
    grace time, whatever the process does then: the deadline holds beyond this block.
    """
    loop = asyncio.get_running_loop()
    stop = Stop(grace_seconds)

    def begin(*_: object) -> None:
        for each in SIGNALS:
            signal.signal(each, signal.SIG_DFL)
        deadline = Timer(grace_seconds, _give_up)
        deadline.daemon = True
        deadline.start()
        stop.begin_grace()
        loop.call_soon_threadsafe(stop.set)

    # Handlers of the loop would wait for its turn, and the time would begin that much later.
    before = [signal.signal(each, begin) for each in SIGNALS]
    try:
        yield stop
    finally:
        for each, handler in zip(SIGNALS, before, strict=True):
            if signal.getsignal(each) is begin:
                signal.signal(each, handler)


def _give_up() -> None:
    """End the process. The log may be what hangs, so it is not waited for."""
    last_words = Thread(target=log.error, args=("could not end in time",), daemon=True)
    last_words.start()
    last_words.join(_LAST_WORDS_SECONDS)
    os._exit(CUT_OFF)


class Requests:
    """The application, with the requests that run in it: they can be cancelled without a word from the server."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app
        self._running: set[anyio.CancelScope] = set()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return await self._app(scope, receive, send)
        with anyio.CancelScope() as running:
            self._running.add(running)
            try:
                await self._app(scope, receive, send)
            finally:
                self._running.discard(running)

    def cancel(self) -> int:
        """Cancel what runs; how many requests that are."""
        for each in self._running:
            each.cancel()
        return len(self._running)


class Server(uvicorn.Server):
    """Answers until `should_exit` is set, and cuts off what is not answered when `stop` says so.

    uvicorn would raise the signals again before the memory is closed, and log an error for each request it cancels.
    """

    def __init__(self, config: uvicorn.Config, requests: Requests, stop: Stop) -> None:
        super().__init__(config)
        self._requests = requests
        self._stop = stop

    @contextmanager
    def capture_signals(self) -> Generator[None]:
        yield

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        async with anyio.create_task_group() as group:
            group.start_soon(self._cut_off_in_time)
            await super().shutdown(sockets)
            group.cancel_scope.cancel()

    async def _cut_off_in_time(self) -> None:
        await self._stop.cut_off()
        connections = list(self.server_state.connections)
        for connection in connections:
            connection.transport.abort()
        requests = self._requests.cancel()
        self._stop.exit_code = CUT_OFF
        log.warning("cut off", extra={"connections": len(connections), "requests": requests})
