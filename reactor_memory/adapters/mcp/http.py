"""The server over streamable HTTP, until a signal ends it."""

from __future__ import annotations

import signal
import socket
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import Any

import anyio
import uvicorn

from reactor_memory.adapters.mcp.server_class import MCPServer, web_application
from reactor_memory.errors import InvalidInputError

PATH = "/mcp"


def address_of(host: str, port: int) -> str:
    name = f"[{host}]" if ":" in host else host
    return f"http://{name}:{port}{PATH}"


async def serve_http(server: MCPServer[Any], *, host: str, port: int, listening: Callable[[str], None]) -> None:
    """Serve until SIGTERM or SIGINT. `listening` is called with the address; port 0 takes a free one.

    Every request stands for itself. On a loopback host, requests that a web page of another name makes are refused.
    Raises `InvalidInputError` if the address cannot be had.
    """
    config = uvicorn.Config(web_application(server, path=PATH, host=host), log_config=None, access_log=False)
    with _listening(host, port) as listener:
        listening(address_of(host, listener.getsockname()[1]))
        await _until_stopped(_Server(config), listener)


@contextmanager
def _listening(host: str, port: int) -> Generator[socket.socket]:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        listener = socket.create_server((host, port), family=family)
    except OSError as error:
        raise InvalidInputError("host, port", f"cannot be listened on: {error.strerror}") from None
    with listener:
        yield listener


class _Server(uvicorn.Server):
    """Leaves the signals alone: uvicorn would raise them again before the memory is closed."""

    @contextmanager
    def capture_signals(self) -> Generator[None]:
        yield


async def _until_stopped(server: uvicorn.Server, listener: socket.socket) -> None:
    async with anyio.create_task_group() as tasks:

        async def stop() -> None:
            with anyio.open_signal_receiver(signal.SIGTERM, signal.SIGINT) as signals:
                async for _ in signals:
                    server.should_exit = True

        tasks.start_soon(stop)
        await server.serve(sockets=[listener])
        tasks.cancel_scope.cancel()
