"""How what a handler returns goes out as JSON."""

from __future__ import annotations

import sys
from typing import Any

import msgspec
from litestar.response import Response
from litestar.types import ASGIApp, Receive, Scope, Send

from reactor_memory.features.sharing.bodies import Answer

_encode = msgspec.json.Encoder().encode


class Encoded:
    """A body that is encoded already, and may be sent again and again."""

    __slots__ = ("body",)

    def __init__(self, content: Answer) -> None:
        self.body = _encode(content)

    def __sizeof__(self) -> int:
        return object.__sizeof__(self) + sys.getsizeof(self.body)


class JsonAnswer(Response[Any]):
    """The framework's response, but for our own bodies: these are encoded by what they are, and sent with two headers.

    For each answer the framework would look for what encodes types that our bodies do not have, and fold headers and
    cookies of several places, which our handlers do not set.
    """

    def to_asgi_response(self, *args: Any, **parts: Any) -> ASGIApp:  # type: ignore[override]
        content = self.content
        if isinstance(content, Answer | Encoded) and not (self.headers or self.cookies or self.background):
            return _sending(content.body if isinstance(content, Encoded) else _encode(content), self.status_code)
        return super().to_asgi_response(*args, **parts)  # pyright: ignore


def _sending(body: bytes, status: int | None) -> ASGIApp:
    headers = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode("ascii"))]

    async def send_all(scope: Scope, receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": status or 200, "headers": headers})
        await send({"type": "http.response.body", "body": body, "more_body": False})

    return send_all
