"""Answers over HTTP of a bounded size. What reads an answer holds the event loop for as long as that takes."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import httpx2

from reactor_memory.errors import SummarizationError

MAX_ANSWER_BYTES = 4 * 1024 * 1024
"""Several times what the longest answer that is read takes; more of JSON would hold the event loop noticeably."""


class _BoundedStream(httpx2.AsyncByteStream):
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


class BoundedClient(httpx2.AsyncClient):
    """For a library that reads answers by itself: one of more than `MAX_ANSWER_BYTES`, unpacked, is refused."""

    async def send(self, request: httpx2.Request, *, stream: bool = False, **options: Any) -> httpx2.Response:
        response = await super().send(request, stream=True, **options)
        if stream:
            response.stream = _BoundedStream(response.stream)
            return response
        try:
            body = await bounded(response)
        finally:
            await response.aclose()
        headers = [(name, value) for name, value in response.headers.multi_items() if name != "content-encoding"]
        return httpx2.Response(response.status_code, headers=headers, content=body, request=request)


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
