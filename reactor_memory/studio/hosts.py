"""The host of one run: a name or an address on this machine that no other server has.

A browser sends the cookies of a host to each of its ports. A Studio at 127.0.0.1 would give its cookie to every server
on this machine that a link leads to.
"""

from __future__ import annotations

import secrets
import socket
import threading
from contextlib import suppress

from reactor_memory.errors import ConfigurationError

LOOPBACK = "127.0.0.1"
LONGEST_SECONDS = 1.0
_LEAST, _MOST = 16, 254
"""Of the parts of an address: none that something else is likely to have, such as 127.0.0.53."""


def bound(port: int) -> tuple[str, socket.socket]:
    """A host, and a socket that listens there at `port` (0: a free one).

    A random name below localhost where this machine knows such names; else a random address in 127.0.0.0/8; and where
    only 127.0.0.1 can be bound the name again, which browsers know without asking. Raises `ConfigurationError` if the
    port is taken.
    """
    name = f"studio-{secrets.token_hex(8)}.localhost"
    if not _resolves(name):
        address = ".".join(("127", *(str(_LEAST + secrets.randbelow(_MOST - _LEAST)) for _ in range(3))))
        try:
            return address, socket.create_server((address, port))
        except OSError:
            pass
    try:
        return name, socket.create_server((LOOPBACK, port))
    except OSError:
        raise ConfigurationError("--port", f"{port} is taken: name another, or 0 for a free one") from None


def _resolves(name: str) -> bool:
    """Asked in a thread that nobody waits for long: where no part of the machine knows the name, a network is asked."""
    found: list[str] = []

    def ask() -> None:
        with suppress(OSError):
            found.extend(str(each[4][0]) for each in socket.getaddrinfo(name, None, socket.AF_INET))

    asking = threading.Thread(target=ask, daemon=True)
    asking.start()
    asking.join(LONGEST_SECONDS)
    return LOOPBACK in found
