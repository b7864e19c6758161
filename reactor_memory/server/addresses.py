"""Ids that hold a slash: a caller sends it percent-encoded, and the server decodes it before the path is taken apart.

Until then another character stands for it, which no path can hold: half of a surrogate pair.
"""

from __future__ import annotations

from typing import Any
from urllib.parse import unquote

from litestar.types import ASGIApp, Receive, Scope, Send

_SLASH = "\udc2f"


def routed_path(request: dict[str, Any]) -> str:
    """The decoded path, in which only the slashes between its parts are slashes."""
    raw: bytes = request.get("raw_path") or b""
    if b"%2f" not in raw.lower():
        return request["path"]
    path = raw.partition(b"?")[0].decode("latin-1")
    return "/".join(unquote(part).replace("/", _SLASH) for part in path.split("/"))


def with_slashes(app: ASGIApp) -> ASGIApp:
    """`app` with the ids of the path as they were sent."""

    async def restored(scope: Scope, receive: Receive, send: Send) -> None:
        request: Any = scope
        if _SLASH in request["path"]:
            request["path_params"] = {
                name: value.replace(_SLASH, "/") if isinstance(value, str) else value
                for name, value in request["path_params"].items()
            }
        await app(scope, receive, send)

    return restored
