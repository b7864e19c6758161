"""What a connection may ask of the server before there is a request: a bounded head, within a bounded time.

uvicorn bounds neither; the body is bounded where it is read (`request_bodies`, `slow_bodies`).
"""

from __future__ import annotations

import asyncio
from typing import Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

MAX_HEAD_BYTES = 64 * 1024
"""Beside what arrived with the beginning of the head, which is one read from the socket."""


def patient(head_timeout_seconds: float) -> type[HttpToolsProtocol]:
    """The protocol of connections that have this long to send a head."""
    return type("PatientProtocol", (BoundedProtocol,), {"head_timeout_seconds": head_timeout_seconds})


class BoundedProtocol(HttpToolsProtocol):
    """Closes a connection whose head is too long (400 first), or too long on its way."""

    head_timeout_seconds: float = 10

    def __init__(self, *args: Any, **parts: Any) -> None:
        super().__init__(*args, **parts)
        self._deadline: asyncio.TimerHandle | None = None
        self._head_bytes = 0
        self._in_head = False

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._expect_head()

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_waiting()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        if self._in_head:
            self._head_bytes += len(data)
        super().data_received(data)
        if self._in_head and self._head_bytes > MAX_HEAD_BYTES and not self.transport.is_closing():
            self.send_400_response("The head of the request is too long.")

    def on_message_begin(self) -> None:
        self._in_head = True
        self._head_bytes = 0
        self._expect_head()
        super().on_message_begin()

    def on_headers_complete(self) -> None:
        self._in_head = False
        self._stop_waiting()
        super().on_headers_complete()

    def on_response_complete(self) -> None:
        """An answer may come before its body has: then the next head is not waited for without end."""
        super().on_response_complete()
        if self.cycle.more_body and not self.transport.is_closing():
            self._expect_head()

    def _expect_head(self) -> None:
        if self._deadline is None:
            self._deadline = self.loop.call_later(self.head_timeout_seconds, self.transport.close)

    def _stop_waiting(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None
