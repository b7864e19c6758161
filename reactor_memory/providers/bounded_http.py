"""Answers over HTTP of a bounded size. What reads an answer holds the event loop for as long as that takes."""

from __future__ import annotations

from collections.abc import AsyncIterator
from functools import cache
from typing import TYPE_CHECKING, Any

from reactor_memory.errors import SummarizationError

if TYPE_CHECKING:
    import httpx2

MAX_ANSWER_BYTES = 4 * 1024 * 1024
"""Several times what the longest answer that is read takes; more of JSON would hold the event loop noticeably."""


@cache
def bounded_client(http: Any) -> Any:
    """The class `AsyncClient` of `http` (httpx2, or httpx, which is like it), for a library that reads answers by
    itself: one of more than `MAX_ANSWER_BYTES`, unpacked, is refused.
    """

    class BoundedStream(http.AsyncByteStream):
        """Pieces of an answer as they arrive. What reads them may wait for the end of a line that never comes."""

        def __init__(self, stream: Any) -> None:
            self._stream = stream

        async def __aiter__(self) -> AsyncIterator[bytes]:
            size = 0
            async for chunk in self._stream:
                size += len(chunk)
                if size > MAX_ANSWER_BYTES:
                    raise _too_long()
                yield chunk

        async def aclose(self) -> None:
            await self._stream.aclose()

    class BoundedClient(http.AsyncClient):
        async def send(self, request: Any, *, stream: bool = False, **options: Any) -> Any:
            plain: Any = super()
            response = await plain.send(request, stream=True, **options)
            if stream:
                response.stream = BoundedStream(response.stream)
                return response
            try:
                body = await bounded(response)
            finally:
                await response.aclose()
            headers = [(name, value) for name, value in response.headers.multi_items() if name != "content-encoding"]
            return http.Response(response.status_code, headers=headers, content=body, request=request)

    return BoundedClient


async def bounded(response: httpx2.Response) -> bytes:
    """The body of `response`, unpacked. Raises `SummarizationError` as soon as it is too long."""
    body = bytearray()
    async for chunk in response.aiter_bytes():
        body += chunk
        if len(body) > MAX_ANSWER_BYTES:
            raise _too_long()
    return bytes(body)


def _too_long() -> SummarizationError:
    return SummarizationError("malformed", f"the answer has more than {MAX_ANSWER_BYTES} bytes")
