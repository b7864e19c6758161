"""The operation on secrets that the service makes once, and all its processes share."""

from __future__ import annotations

from reactor_memory.database.operations import Query, Steps


def service_secret(name: str, candidate: str) -> Steps[str]:
    """The secret of this name: `candidate` if there was none, or no text. All who ask at once get the same one."""
    yield Query("insert_service_secret", {"name": name, "secret": candidate})
    [(found,)] = yield Query("service_secret", {"name": name})
    if isinstance(found, str):
        return found
    yield Query("replace_service_secret", {"name": name, "secret": candidate})
    return candidate
