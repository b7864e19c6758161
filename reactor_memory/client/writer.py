"""Posting a response while it is generated."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from types import TracebackType
from typing import Protocol

import anyio
from anyio.abc import TaskGroup
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream

from reactor_memory.errors import ReactorMemoryError, ServiceError
from reactor_memory.features.sharing.bodies import FinalState, Response

_GATHER_SECONDS = 0.1
_SILENCE_SECONDS = 5.0
_FINISH_SECONDS = 10.0
_MOST_WAITING = 1000


class Responses(Protocol):
    """The operations of a client that a writer needs."""

    async def start_response(self, conversation_id: str, *, producer: str | None = None) -> Response: ...

    async def append_response_chunks(
        self, conversation_id: str, response_id: str, texts: Sequence[str], *, fence: int, first_event: int
    ) -> Response: ...

    async def finish_response(
        self, conversation_id: str, response_id: str, *, fence: int, state: FinalState, message_id: str | None
    ) -> Response: ...


class ResponseWriter:
    """A response while it is generated; leaving the context finishes it::

        async with client.write_response(conversation_id) as writer:
            async for token in model:
                if not await writer.write(token):
                    break  # somebody pressed stop
            writer.message_id = await store(...)  # where the whole answer is, if it is stored

    Tokens are sent in the background, those of a tenth of a second as one piece. It ends as ``stopped`` if somebody
    asked for it, as ``failed`` if the context is left with an error, else as ``completed``. `response` is how it
    stands.
    """

    def __init__(self, responses: Responses, conversation_id: str, *, producer: str | None = None) -> None:
        self.response: Response
        self.message_id: str | None = None
        self._responses = responses
        self._conversation_id = conversation_id
        self._producer = producer
        self._last = ""
        self._failure: ReactorMemoryError | None = None
        self._gathering = anyio.CancelScope()
        self._tasks: TaskGroup
        self._texts: MemoryObjectSendStream[str]

    @property
    def stop_requested(self) -> bool:
        """Whether somebody asked the producer to end, as far as is known here: within seconds, also without writing."""
        return self.response.stop_requested

    async def write(self, text: str) -> bool:
        """Add a text. False if the producer is asked to end.

        Raises what kept earlier texts from being posted, such as `ServiceError` with the code ``superseded`` when a
        newer response of the conversation has begun: then nobody reads this one any more.
        """
        try:
            await self._texts.send(text)
        except anyio.BrokenResourceError:
            if self._failure is None:
                raise
        if self._failure is not None:
            raise self._failure
        return not self.stop_requested

    async def __aenter__(self) -> ResponseWriter:
        self.response = await self._responses.start_response(self._conversation_id, producer=self._producer)
        self._tasks = await anyio.create_task_group().__aenter__()
        self._texts, waiting = anyio.create_memory_object_stream[str](_MOST_WAITING)
        self._tasks.start_soon(self._post_all, waiting)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._texts.close()
        self._gathering.cancel()
        try:
            await self._tasks.__aexit__(None, None, None)  # without the error, which would come back in a group
        finally:
            with anyio.move_on_after(_FINISH_SECONDS, shield=True):
                await self._finish(error)
        if error is None and self._failure is not None:
            raise self._failure

    async def _post_all(self, texts: MemoryObjectReceiveStream[str]) -> None:
        try:
            async with texts:
                while True:
                    await self._post(await _next(texts))
        except anyio.EndOfStream:
            return
        except ReactorMemoryError as error:
            self._failure = error

    async def _post(self, text: str | None) -> None:
        """Post a piece; with none the last one again, which keeps the response alive and tells of a wish to stop."""
        known = self.response.last_event
        if text is not None:
            self._last = text
        self.response = await self._responses.append_response_chunks(
            self._conversation_id,
            self.response.id,
            [self._last],
            fence=self.response.fence,
            first_event=known + 1 if text is not None else max(known, 1),
        )
        with self._gathering:
            await anyio.sleep(_GATHER_SECONDS)

    async def _finish(self, error: BaseException | None) -> None:
        """Tell how it ended. What is told to nobody, because it was superseded or the service is away, expires."""
        if error is None and self._failure is None:
            await self._tell("stopped" if self.stop_requested else "completed")
        elif not _is_superseded(self._failure):
            with suppress(ReactorMemoryError):
                await self._tell("failed")

    async def _tell(self, state: FinalState) -> None:
        self.response = await self._responses.finish_response(
            self._conversation_id,
            self.response.id,
            fence=self.response.fence,
            state=state,
            message_id=self.message_id,
        )


async def _next(texts: MemoryObjectReceiveStream[str]) -> str | None:
    """All texts that wait, as one; None after a silence."""
    with anyio.move_on_after(_SILENCE_SECONDS):
        waiting = [await texts.receive()]
        with suppress(anyio.WouldBlock, anyio.EndOfStream):
            while True:
                waiting.append(texts.receive_nowait())
        return "".join(waiting)
    return None


def _is_superseded(failure: ReactorMemoryError | None) -> bool:
    return isinstance(failure, ServiceError) and failure.code == "superseded"
