"""Whether the service lives and whether it can serve."""

from __future__ import annotations

from litestar import Controller, get

from reactor_memory.http.guards import PUBLIC
from reactor_memory.http.models import Health


class SystemController(Controller):
    path = "/v1"
    tags = ["system"]
    opt = {PUBLIC: True}

    @get("/health", operation_id="getHealth", security=[])
    async def get_health(self) -> Health:
        """The process answers; it says nothing about the database."""
        return Health()
