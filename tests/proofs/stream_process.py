"""A process that serves responses on a store: ``python -m tests.proofs.stream_process <store.url>``.

It writes ``serving <address>``, and serves until it is killed. Callers are whom the headers name; all other settings
are those of the environment.
"""

from __future__ import annotations

import asyncio
import sys

from reactor_memory.server.app import create_app
from reactor_memory.settings.service_settings import ServiceSettings
from reactor_memory.wiring.service_container import open_service_container
from tests.server.sse import serving, who_says_so


async def main(store_url: str) -> None:
    async with (
        open_service_container(ServiceSettings(store={"url": store_url})) as container,
        serving(create_app(container, authenticator=who_says_so)) as url,
    ):
        print(f"serving {url}", flush=True)
        await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1]))
