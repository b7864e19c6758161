"""What an adapter says when its framework is not installed."""

from __future__ import annotations

from importlib.util import find_spec

from reactor_memory.errors import MissingExtraError


def require(module: str, *, adapter: str, package: str, extra: str) -> None:
    """Raises `MissingExtraError` if `module`, of the distribution `package`, is not installed.

    A framework that is installed and broken raises its own error when it is imported.
    """
    if find_spec(module) is None:
        raise MissingExtraError(adapter, package=package, extra=extra)
