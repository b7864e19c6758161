"""Whether the service lives and whether it can serve."""

from __future__ import annotations

from litestar import Controller, Response, get

from reactor_memory.http.guards import PUBLIC
from reactor_memory.http.models import Health, Readiness
from reactor_memory.http.readiness import Probes


class SystemController(Controller):
    path = "/v1"
    tags = ["system"]
    opt = {PUBLIC: True}

    probes: Probes

    @get("/health", operation_id="getHealth", security=[])
    async def get_health(self) -> Health:
        """The process answers; it says nothing about the database."""
        return Health()

    @get("/ready", operation_id="getReadiness", security=[])
    async def get_readiness(self) -> Response[Readiness]:
        """200 when every part that requests need answers, else 503."""
        readiness = await self.probes.ask()
        return Response(readiness, status_code=200 if readiness.status == "ready" else 503)
