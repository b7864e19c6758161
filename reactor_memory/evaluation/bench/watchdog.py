"""Waits for the end of the process that started it, however that ends, and stops what runs in a folder.

It is run by its path, apart from the package. The name of the folder comes through a pipe, which ends with the process.
"""

from __future__ import annotations

import shutil
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import psutil

PATIENCE_SECONDS = 5
ATTEMPTS = 100


def running_in(folder: str) -> Iterator[psutil.Process]:
    """Processes whose working folder it is, or that were told of it, as those are that make a database."""
    for process in psutil.process_iter():
        with suppress(psutil.Error):
            if process.cwd() == folder or folder in process.cmdline():
                yield process


def stop(folder: str) -> None:
    running = list(running_in(folder))
    for process in running:
        with suppress(psutil.Error):
            process.terminate()
    for process in psutil.wait_procs(running, timeout=PATIENCE_SECONDS)[1]:
        with suppress(psutil.Error):
            process.kill()


def main() -> None:
    folder = sys.stdin.read()
    for _ in range(ATTEMPTS):  # a server that was just about to start writes there once more
        if not Path(folder).exists():
            return
        stop(folder)
        shutil.rmtree(folder, ignore_errors=True)
        time.sleep(0.1)  # noqa: TID251 - nothing else runs here


if __name__ == "__main__":
    main()
