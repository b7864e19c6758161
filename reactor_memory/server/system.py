"""Whether the service lives and whether it can serve."""

from __future__ import annotations

from collections.abc import Callable

from litestar import Controller, Response, get
from litestar.openapi.datastructures import ResponseSpec

from reactor_memory.features.sharing.bodies import Health, Readiness
from reactor_memory.server.guards import PUBLIC
from reactor_memory.server.readiness import Probes


class SystemController(Controller):
    opt = {PUBLIC: True}

    probes: Probes
    description: Callable[[], bytes]

    @get("/health", operation_id="getHealth", security=[])
    async def get_health(self) -> Health:
        """The process answers; it says nothing about the database."""
        return Health()

    @get(
        "/ready",
        operation_id="getReadiness",
        security=[],
        responses={503: ResponseSpec(Readiness, description="Not now, or not any more", generate_examples=False)},
    )
    async def get_readiness(self) -> Response[Readiness]:
        """200 when every part that requests need answers, else 503 with the parts that do not."""
        readiness = await self.probes.ask()
        return Response(readiness, status_code=200 if readiness.status == "ready" else 503)

    @get("/openapi.json", include_in_schema=False)
    async def get_description(self) -> Response[bytes]:
        return Response(self.description(), media_type="application/json")
