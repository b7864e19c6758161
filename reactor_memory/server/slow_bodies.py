"""A caller that sends its body drop by drop is not waited for: the server in front of us has no such limit."""

from __future__ import annotations

from time import monotonic
from typing import Any

import anyio
from litestar.types import ASGIApp, Receive, Scope, Send

from reactor_memory.server.problems import REQUEST_TIMEOUT, ProblemError


class BoundedBodies:
    """The application, where a body must have arrived `timeout_seconds` after its request began (408)."""

    def __init__(self, app: ASGIApp, timeout_seconds: float) -> None:
        self._app = app
        self._timeout_seconds = timeout_seconds

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            receive = _within(receive, monotonic() + self._timeout_seconds)
        await self._app(scope, receive, send)


def _within(receive: Receive, deadline: float) -> Receive:
    """Bounds the wait for the body, not the one for the caller to leave that follows."""
    is_complete = False

    async def bounded() -> Any:
        nonlocal is_complete
        if is_complete:
            return await receive()
        with anyio.move_on_after(deadline - monotonic()):
            message = await receive()
            is_complete = not message.get("more_body", False)
            return message
        raise ProblemError(REQUEST_TIMEOUT, "the body did not arrive in time", headers={"Connection": "close"})

    return bounded
