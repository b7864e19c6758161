"""The service on a real socket, in the process of the test."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio

from reactor_memory.server.admission import admission_of
from reactor_memory.server.development import DevelopmentIssuer
from reactor_memory.server.process import address_listened_on, listening, metrics_listening, serve
from reactor_memory.server.routes import Routes
from reactor_memory.server.shutdown import Stop
from reactor_memory.settings.service_settings import ServiceSettings
from reactor_memory.wiring.service_container import ServiceContainer, open_service_container


class Listening:
    """A service that answers at `address` until `stop` is set, or the block ends."""

    def __init__(self, container: ServiceContainer, address: str, issuer: DevelopmentIssuer, stop: Stop) -> None:
        self.container = container
        self.address = address
        self.stop = stop
        self.ended = anyio.Event()
        self._issuer = issuer

    @property
    def port(self) -> int:
        return int(self.address.rpartition(":")[2])

    def user(self, user_id: str) -> dict[str, str]:
        return {"Authorization": f"Bearer {self._issuer.token(user_id, now=self.container.clock()())}"}


@asynccontextmanager
async def listening_service(
    folder: Path,
    *,
    configure: Callable[[ServiceContainer], None] | None = None,
    routes: Routes | None = None,
    **sections: dict[str, Any],
) -> AsyncIterator[Listening]:
    url = f"sqlite:///{folder}/memory.db"
    settings = ServiceSettings(
        **{"store": {"url": url}, "background": {"enabled": False}, "tokens": {"counter": "estimate"}, **sections}
    )
    issuer, stop = DevelopmentIssuer(), Stop(settings.http.shutdown_grace_seconds)
    with listening("127.0.0.1", 0) as listener, metrics_listening(settings.http) as metrics:
        async with (
            open_service_container(settings, configure=configure) as container,
            anyio.create_task_group() as tasks,
        ):
            admission = admission_of(
                settings.auth, database=container.database(), clock=container.clock(), development=issuer
            )
            running = Listening(container, address_listened_on(listener), issuer, stop)

            async def until_stopped() -> None:
                await serve(container, admission, listener, stop, metrics=metrics, routes=routes)
                running.ended.set()

            tasks.start_soon(until_stopped)
            yield running
            stop.set()
