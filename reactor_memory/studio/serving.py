"""A process that shows the Studio, on this machine only, until Ctrl-C."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import closing

import anyio
import uvicorn

from reactor_memory.memory import open_memory
from reactor_memory.settings.settings import Settings
from reactor_memory.studio.app import create_app
from reactor_memory.studio.doorkeeper import Doorkeeper
from reactor_memory.studio.hosts import bound
from reactor_memory.studio.measuring import Evaluations
from reactor_memory.studio.rendering import Pages
from reactor_memory.studio.studio import Studio


async def run(
    settings: Settings,
    *,
    port: int,
    writes: bool,
    ready: Callable[[str], None],
    store: str,
    differences: Sequence[str],
) -> None:
    """Open the memory and show it at `port` (0: a free one). `store` says which one it is, and `differences` which
    settings are not those of the agent that saved last. `ready` is told the address that opens the Studio, once.

    Raises `ConfigurationError` if the port is taken, and `StoreError` if the database cannot be opened.
    """
    host, listener = bound(port)
    with closing(listener):
        async with open_memory(settings) as memory, anyio.create_task_group() as tasks:
            pages = Pages(store=store, writes=writes, differences=differences)
            studio = Studio(memory=memory, pages=pages, writes=writes, evaluations=Evaluations(tasks))
            name = f"{host}:{listener.getsockname()[1]}"
            doorkeeper = Doorkeeper(create_app(studio), name)
            config = uvicorn.Config(
                doorkeeper,
                ws="none",
                log_config=None,
                access_log=False,
                server_header=False,
                timeout_graceful_shutdown=2,
            )
            ready(f"http://{name}{doorkeeper.entry}")
            await uvicorn.Server(config).serve(sockets=[listener])
            tasks.cancel_scope.cancel()
