"""Reading a response while it is generated, over lost connections."""

from __future__ import annotations

import random
from collections.abc import AsyncGenerator
from contextlib import aclosing

import anyio
import httpx2

from reactor_memory.http.client.calling import Call, Caller
from reactor_memory.http.client.failures import Failure, unreachable
from reactor_memory.responses import Piece

_READ_SECONDS = 60.0
"""Longer than the service keeps silent on a stream that lives."""


class FollowedResponse:
    """The pieces of a response, each exactly once::

        following = client.follow_response(conversation_id, response_id)
        async for piece in following:
            print(piece.text, end="")
        print(following.state)

    A lost connection is opened again where it was lost, after a wait. It ends when the response does; `state` then
    tells how. Raises what `MemoryServiceClient` raises, also when access is taken away meanwhile. `last_event` is the
    number of the last piece: to go on later, follow `after` it.
    """

    def __init__(self, caller: Caller, call: Call, *, after: int = 0) -> None:
        self.last_event = after
        self._caller = caller
        self._call = call
        self._failure: Failure | None = None
        self._asked_seconds = 0.0

    async def __aiter__(self) -> AsyncGenerator[Piece]:
        repetition = 0
        while True:
            seen = self.last_event
            async with aclosing(self._connection()) as pieces:
                async for piece in pieces:
                    yield piece
            if self._failure is None:
                return
            repetition = 1 if self.last_event > seen else repetition + 1
            await self._wait(repetition, self._failure)

    async def _wait(self, repetition: int, failure: Failure) -> None:
        """Raises the failure if there is nothing to wait for."""
        asked = max(failure.asked_seconds or 0.0, self._asked_seconds)
        wait = self._caller.retries.wait(repetition, asked, random.random) if failure.passing else None
        if wait is None:
            raise failure.error
        await anyio.sleep(wait)

    async def _connection(self) -> AsyncGenerator[Piece]:
        """The pieces that come over one connection. Why there may be more is `_failure` then."""
        position = {"Last-Event-ID": str(self.last_event), "Accept": "text/event-stream"}
        async with self._caller.opened(self._call, position, read_seconds=_READ_SECONDS) as outcome:
            if isinstance(outcome, Failure):
                self._failure = outcome
            elif outcome.status_code == 204:
                self._failure = None
            else:
                async with aclosing(self._pieces(outcome)) as pieces:
                    async for piece in pieces:
                        yield piece

    async def _pieces(self, stream: httpx2.Response) -> AsyncGenerator[Piece]:
        self._failure = unreachable(EOFError())
        try:
            async for event in httpx2.EventSource(stream):
                ...
        except httpx2.TransportError as error:
            self._failure = unreachable(error)
