#!/usr/bin/env python3
"""Install the packages of a lock into the environment of this Python, hashes checked, and say what is being done.

    python .ci/install_locked.py requirements.lock [--editable]

With --editable also the package itself, as it lies here. With uv where it is found (UV names another one; that of the
environment comes next), else with pip, and with pip if uv fails. Needs nothing but Python. The
log is shown only when the installation failed: a newcomer is told how far it is, at least every five seconds.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import threading
import time
from pathlib import Path

# A lock names all that is needed, so nothing is resolved: with extras in the metadata (`google-auth[requests]`) some
# versions of pip now and then take the newest version, which has no hash.
LOCKED = ["--no-deps", "--require-hashes", "-r"]
EDITABLE = ["--no-deps", "--no-build-isolation", "--editable", "."]
PACKAGE = re.compile(r"^[A-Za-z0-9][A-Za-z0-9._-]*==", re.MULTILINE)
FOUND = re.compile(r"^(?:Collecting|Processing|Requirement already satisfied:) ")
UNPACKING = re.compile(r"^Installing collected packages")
SECONDS_BETWEEN_LINES = 5.0
SECONDS_BETWEEN_LOOKS = 0.2


def installers() -> list[tuple[str, list[str]]]:
    """The names and commands to try, in this order."""
    of_environment = shutil.which("uv", path=str(Path(sys.executable).parent))
    uv = shutil.which(os.environ["UV"]) if os.environ.get("UV") else shutil.which("uv") or of_environment
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--no-input", "install", "--no-compile"]
    with_pip = [("pip", pip)]
    return [("uv", [uv, "pip", "install", "--python", sys.executable]), *with_pip] if uv else with_pip


class Progress:
    """How far the installer is, by the lines that it writes."""

    def __init__(self, packages: int) -> None:
        self._packages = packages
        self.found = 0
        self.unpacks = False

    def read(self, line: str) -> None:
        self.found += bool(FOUND.match(line))
        self.unpacks = self.unpacks or bool(UNPACKING.match(line))

    def __str__(self) -> str:
        if self.unpacks:
            return "all packages are here, unpacking them"
        return f"{min(self.found, self._packages)} of {self._packages} packages" if self.found else "fetching packages"


def run(command: list[str], progress: Progress, log: list[str]) -> bool:
    """Whether the installer succeeded. What it wrote is in the `log`."""
    started = time.monotonic()
    both = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT}
    process = subprocess.Popen(command, text=True, errors="replace", **both)  # noqa: S603 - the command is our own

    def read() -> None:
        with process.stdout as lines:
            for line in lines:
                log.append(line)
                progress.read(line)

    reader = threading.Thread(target=read)
    reader.start()
    shows, said = sys.stdout.isatty(), started
    while reader.is_alive():
        reader.join(SECONDS_BETWEEN_LOOKS)
        now = time.monotonic()
        if shows or now - said >= SECONDS_BETWEEN_LINES:
            line = f"  {progress} ({now - started:.0f} s)"
            print(f"\r\x1b[K{line}" if shows else line, end="" if shows else "\n", flush=True)
            said = now
    if shows:
        print("\r\x1b[K", end="", flush=True)
    return process.wait() == 0


def main() -> int:
    lock, wanted = Path(sys.argv[1]), sys.argv[2:]
    also = [EDITABLE] if wanted == ["--editable"] else []
    packages = len(PACKAGE.findall(lock.read_text()))
    for name, command in installers():
        counted = f"{packages} package{'s' * (packages != 1)}"
        print(f"Installing {counted} into {Path(sys.prefix).name} with {name}, hashes checked", flush=True)
        started, log = time.monotonic(), list[str]()
        steps = [[*LOCKED, str(lock)], *also]
        if all(run([*command, *step], Progress(packages), log) for step in steps):
            print(f"Installed in {time.monotonic() - started:.0f} s", flush=True)
            return 0
        print("".join(log), end="", file=sys.stderr, flush=True)
        print(f"{name} could not install {lock}", file=sys.stderr, flush=True)
    return 1


if __name__ == "__main__":
    sys.exit(main())
