"""Whether the service can serve now: each part is asked something small, and has little time to answer."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Literal

import anyio

from reactor_memory.features.sharing.bodies import Readiness

log = logging.getLogger(__name__)

Probe = Callable[[], Awaitable[Any]]
"""Asks a part something. It can serve if that returns."""

OK = "ok"


READY_SECONDS = 2.0
"""How long the database and the other parts may take to answer."""


class Probes:
    """Asks all parts at once."""

    def __init__(self, probes: Mapping[str, Probe], *, timeout_seconds: float) -> None:
        self._probes = probes
        self._timeout_seconds = timeout_seconds
        self._is_stopping = False

    def stop(self) -> None:
        """From now on the service is `stopping`, whatever its parts say."""
        self._is_stopping = True

    async def ask(self) -> Readiness:
        """How each part is. Of a failure only its kind is told: its text may name addresses."""
        found: dict[str, str] = {}
        async with anyio.create_task_group() as group:
            for name, probe in self._probes.items():
                group.start_soon(self._ask_one, name, probe, found)
        return Readiness(status=self._status(found), checks={name: found[name] for name in self._probes})

    def _status(self, found: Mapping[str, str]) -> Literal["ready", "unavailable", "stopping"]:
        if self._is_stopping:
            return "stopping"
        return "ready" if all(answer == OK for answer in found.values()) else "unavailable"

    async def _ask_one(self, name: str, probe: Probe, found: dict[str, str]) -> None:
        found[name] = "no answer in time"
        try:
            with anyio.move_on_after(self._timeout_seconds):
                await probe()
                found[name] = OK
        except Exception as error:
            found[name] = "unavailable"
            log.warning("not ready", extra={"check": name, "reason": type(error).__name__})


NO_PROBES = Probes({}, timeout_seconds=1)
