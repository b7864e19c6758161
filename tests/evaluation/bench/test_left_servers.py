"""A run that is killed leaves no server behind, and no folder of one."""

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from reactor_memory.evaluation.bench.watchdog import running_in

ON_VALKEY = """
import sys, time
from pathlib import Path
from tests.scenes.valkey_server import valkey_server
with valkey_server(Path("valkey").resolve()) as server:
    Path("where").write_text(str(server.data_dir))
    time.sleep(600)
"""
ON_POSTGRES = """
import asyncio, time
from pathlib import Path
import asyncpg
pytest_plugins = ["tests.scenes.fixtures_postgres"]
async def folder_of(dsn):
    connection = await asyncpg.connect(dsn)
    Path("where").write_text(await connection.fetchval("SHOW data_directory"))
    await connection.close()
def test(empty_postgres_dsn):
    asyncio.run(folder_of(empty_postgres_dsn))
    time.sleep(600)
"""
RUN = "import sys, pytest; sys.exit(pytest.main(['-q', '-p', 'no:cacheprovider', '--rootdir=.', *sys.argv[1:]]))"


def assert_nothing_is_left_by(folder: Path, *arguments: str) -> None:
    """The process is killed as soon as it has written where its server keeps its files."""
    where = folder / "where"
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[3])}
    command = [sys.executable, "-c", *arguments]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, cwd=folder, env=environment) as process:
        while not (where.exists() and where.read_text()):
            assert process.poll() is None
            _wait()
        kept = where.read_text()
        assert list(running_in(kept))
        process.kill()
    while Path(kept).exists():
        _wait()
    assert not list(running_in(kept))


def _wait() -> None:
    time.sleep(0.05)  # noqa: TID251 - another process does it


@pytest.mark.slow
def test_no_valkey_is_left(tmp_path: Path) -> None:
    assert_nothing_is_left_by(tmp_path, ON_VALKEY)


@pytest.mark.slow
@pytest.mark.postgres
@pytest.mark.skipif("TEST_POSTGRES_URL" in os.environ, reason="no server is started then")
@pytest.mark.parametrize("workers", ["0", "1"])
def test_no_postgres_is_left(tmp_path: Path, workers: str) -> None:
    """With a worker, the one that starts the servers, it is the other process that is killed."""
    (tmp_path / "test_it.py").write_text(ON_POSTGRES)
    assert_nothing_is_left_by(tmp_path, RUN, "-n", workers, "test_it.py")
