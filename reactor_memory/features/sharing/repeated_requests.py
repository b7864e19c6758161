"""What is made from the key of a repeated request, so that repeating it does the deed once.

Everything is bound to who calls: the keys of two callers never meet.
"""

from __future__ import annotations

from hashlib import blake2b
from uuid import UUID, uuid4

from reactor_memory.features.sharing.principals import Principal


def batch_key(principal: Principal, request_key: str | None) -> str | None:
    """The key of a batch of messages in the log; None without a key of the request."""
    return None if request_key is None else _digest(principal, request_key, "messages").hex()


def new_id(principal: Principal, request_key: str | None, *purpose: str) -> str:
    """A UUID for what a request creates: the same one for each repetition, another one for each `purpose`."""
    if request_key is None:
        return str(uuid4())
    digest = int.from_bytes(_digest(principal, request_key, *purpose))
    marked = digest & ~(0xF << 76) & ~(0b11 << 62) | 8 << 76 | 0b10 << 62  # version 8: made by an own rule (RFC 9562)
    return str(UUID(int=marked))


def _digest(principal: Principal, *parts: str) -> bytes:
    return blake2b(
        "\0".join((principal.principal_id, *parts)).encode("utf-8", "surrogatepass"), digest_size=16
    ).digest()
