"""Reading a response while it is generated, over lost connections."""

from __future__ import annotations

import random
from collections.abc import AsyncGenerator
from contextlib import aclosing

import anyio
import httpx2
import msgspec

from reactor_memory.client.calls import Call, Caller
from reactor_memory.client.failures import Failure, unreachable
from reactor_memory.errors import SessionNotFoundError
from reactor_memory.features.sharing.bodies import Response, ResponsePiece

_READ_SECONDS = 60.0
"""Longer than the service keeps silent on a stream that lives."""

_REVOKED, _PIECE = "revoked", "piece"
_TOLD = ("state", "end")


class FollowedResponse:
    """The pieces of a response, each exactly once::

        following = client.follow_response(conversation_id, response_id)
        async for piece in following:
            print(piece.text, end="")
        print(following.response.state)

    A lost connection is opened again where it was lost, after a wait. It ends when the response does. Raises what
    `MemoryServiceClient` raises, and `SessionNotFoundError` when access is taken away meanwhile. `response` is how it
    stood when that was told last, `last_event` the number of the last piece: to go on later, follow `after` it.
    """

    def __init__(self, caller: Caller, path: str, *, conversation_id: str, after: int = 0) -> None:
        self.response: Response | None = None
        self.last_event = after
        self._caller = caller
        self._path = path
        self._conversation_id = conversation_id
        self._event_id = ""
        self._reconnect_seconds = 0.0
        self._repetition = 0
        self._failure: Failure | None = None

    async def __aiter__(self) -> AsyncGenerator[ResponsePiece]:
        while True:
            async with aclosing(self._connection()) as pieces:
                async for piece in pieces:
                    yield piece
            if self._failure is None:
                return
            await self._wait(self._failure)

    async def _wait(self, failure: Failure) -> None:
        """Raises the failure if there is nothing to wait for."""
        self._repetition += 1
        asked = failure.asked_seconds or self._reconnect_seconds
        wait = self._caller.retries.wait(self._repetition, asked, random.random) if failure.passing else None
        if wait is None:
            raise failure.error
        await anyio.sleep(wait)

    async def _connection(self) -> AsyncGenerator[ResponsePiece]:
        """What comes over one connection. Why there may be more is `_failure` then."""
        call = Call(method="GET", path=self._path, params={"after": self.last_event or None})
        async with self._caller.opened(call, self._position(), read_seconds=_READ_SECONDS) as outcome:
            if isinstance(outcome, Failure):
                self._failure = outcome
            elif outcome.status_code == 204:
                self._failure = None
            else:
                async with aclosing(self._pieces(outcome)) as pieces:
                    async for piece in pieces:
                        yield piece

    def _position(self) -> dict[bytes, bytes]:
        seen = {b"Last-Event-ID": self._event_id.encode()} if self._event_id else {}
        return {b"Accept": b"text/event-stream", **seen}

    async def _pieces(self, stream: httpx2.Response) -> AsyncGenerator[ResponsePiece]:
        self._failure = unreachable(EOFError())
        try:
            async for event in httpx2.EventSource(stream):
                piece = self._heard(event)
                if piece is not None:
                    yield piece
        except httpx2.TransportError as error:
            self._failure = unreachable(error)

    def _heard(self, event: httpx2.ServerSentEvent) -> ResponsePiece | None:
        self._repetition = 0
        self._event_id = event.id or self._event_id
        if event.retry is not None:
            self._reconnect_seconds = event.retry / 1000
        if event.event == _PIECE:
            piece = msgspec.json.decode(event.data, type=ResponsePiece)
            self.last_event = piece.event
            return piece
        if event.event in _TOLD:
            self.response = msgspec.json.decode(event.data, type=Response)
            if self.response.state != "running":
                self._failure = None
        elif event.event == _REVOKED:
            self._failure = Failure(error=SessionNotFoundError(self._conversation_id))
        return None
