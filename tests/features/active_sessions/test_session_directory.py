"""Many callers, in one process and in several, agree on one active session and one row."""

import asyncio
import subprocess
import sys

import anyio
import pytest

from reactor_memory import Settings, open_container
from tests.scenes.fixtures_stores import shared_by_processes

pytestmark = pytest.mark.anyio

USER, AGENT = "ann", "travel"
CALLERS = 50

RESOLVE_MANY = f"""
import sys
import anyio
from reactor_memory import Settings, open_container

async def main():
    found = set()
    async with open_container(Settings(store={{"url": sys.argv[1]}})) as container:
        directory = container.session_directory()
        print("ready", flush=True)
        sys.stdin.readline()

        async def resolve():
            found.add((await directory.resolve({USER!r}, {AGENT!r})).session_id)

        async with anyio.create_task_group() as tasks:
            for _ in range({CALLERS // 2}):
                tasks.start_soon(resolve)
    print(*found, flush=True)

anyio.run(main)
"""

url = shared_by_processes


async def test_fifty_callers_at_once_agree(url: str) -> None:
    found: set[str] = set()
    async with open_container(Settings(store={"url": url})) as container:
        directory = container.session_directory()

        async def resolve() -> None:
            found.add((await directory.resolve(USER, AGENT)).session_id)

        async with anyio.create_task_group() as tasks:
            for _ in range(CALLERS):
                tasks.start_soon(resolve)
        assert [active.session_id for active in await directory.list(USER)] == list(found)


@pytest.mark.slow
async def test_so_do_the_callers_of_two_processes(url: str) -> None:
    async with open_container(Settings(store={"url": url})) as container:
        output = await asyncio.to_thread(_output_of_two, url)
        (active,) = await container.session_directory().list(USER)
    assert output == [active.session_id, active.session_id]


def _output_of_two(url: str) -> list[str]:
    """They begin when both are ready."""
    command = [sys.executable, "-c", RESOLVE_MANY, url]
    processes = [subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) for _ in range(2)]
    for process in processes:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
    for process in processes:
        assert process.stdin is not None
        process.stdin.write("go\n")
        process.stdin.flush()
    return [process.communicate()[0].strip() for process in processes]
