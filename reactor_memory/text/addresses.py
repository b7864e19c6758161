"""Where a model is asked: what the address of a server says about the way there."""

from __future__ import annotations

import re
from ipaddress import ip_address
from urllib.parse import urlsplit

_LOCALHOST = re.compile(r"([a-z0-9_-]+\.)*localhost")
"""Nothing but names: what another reader of addresses takes for the end of a host could hide the real one before it."""


def is_loopback(url: str) -> bool:
    """Whether the host of `url` can only be this machine."""
    host = (urlsplit(url).hostname or "").rstrip(".")
    if _LOCALHOST.fullmatch(host):
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False
