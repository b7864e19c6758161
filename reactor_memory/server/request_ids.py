"""Every request has an id: the caller's own, if it is a sane one, else a new one. Answers and logs name it."""

from __future__ import annotations

import re
import secrets
from typing import Any

HEADER = "X-Request-ID"

_SANE = re.compile(rb"[A-Za-z0-9._-]{1,128}")


def request_id_of(scope: Any) -> str:
    """The id of the request of this ASGI scope, the same one whenever it is asked for."""
    state: dict[str, Any] = scope["state"]
    known = state.get("request_id")
    if known is None:
        known = state["request_id"] = _given(scope["headers"]) or secrets.token_hex(16)
    return known


def _given(headers: list[tuple[bytes, bytes]]) -> str | None:
    for name, value in headers:
        if name == b"x-request-id" and _SANE.fullmatch(value):
            return value.decode("ascii")
    return None
