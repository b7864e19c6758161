"""``python -m benchmarks.service.bare FILE``: a Litestar handler that gives the bytes of FILE, and does nothing else.

What serves and routes it is what our service has; who calls is not asked. The port stands on the first line.
"""

from __future__ import annotations

import socket
import sys
from pathlib import Path

import anyio
import uvicorn
from litestar import Litestar, Response, get


def bare(body: bytes) -> Litestar:
    @get("/v1/agent/conversations/{conversation:str}/context")
    async def give(conversation: str) -> Response[bytes]:
        return Response(body, media_type="application/json")

    return Litestar([give], openapi_config=None, logging_config=None)


def main() -> None:
    config = uvicorn.Config(
        bare(Path(sys.argv[1]).read_bytes()), http="httptools", ws="none", log_level="error", access_log=False
    )
    with socket.create_server(("127.0.0.1", 0)) as listener:
        print(listener.getsockname()[1], flush=True)
        anyio.run(uvicorn.Server(config).serve, [listener], backend_options={"use_uvloop": sys.platform != "win32"})


if __name__ == "__main__":
    main()
