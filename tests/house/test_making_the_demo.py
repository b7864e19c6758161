"""`make demo` in a fresh copy of the checkout: what a newcomer types first."""

from __future__ import annotations

import os
import resource
import shutil
import subprocess
import sys
from pathlib import Path
from time import monotonic

import pytest

from tests.scenes.counts import count

ROOT = Path(__file__).resolve().parents[2]
MOST_SECONDS = 60
"""Of processors, by all that is started: on a quiet machine it takes no longer, but for the network. Other load changes
nothing of it.
"""
MOST_SILENT_SECONDS = 30
"""A line is promised every five; a busy machine may be late."""


@pytest.fixture
def fresh(tmp_path: Path) -> Path:
    """What a clone has, with the changes that are not committed yet."""
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True)
    for name in filter(None, listed.stdout.split("\0")):
        if (ROOT / name).is_file():
            (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, tmp_path / name)
    return tmp_path


def seconds_of_children() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.skipif(not (ROOT / ".git").exists(), reason="only a checkout knows which files are its own")
@pytest.mark.parametrize("installer", ["uv", "pip"])
def test_a_newcomer_sees_the_demo_within_a_minute(fresh: Path, installer: str) -> None:
    beside = Path(sys.executable).with_name("uv")
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("MAKE", "MFLAGS"))}
    environment["UV"] = str(beside if installer == "uv" else fresh / "none")
    command = ["make", "--no-print-directory", "demo", f"PYTHON={sys.executable}"]
    before, begun = seconds_of_children(), monotonic()
    lines: list[str] = []
    longest, last = 0.0, begun
    with subprocess.Popen(
        command, cwd=fresh, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    ) as making:
        assert making.stdout is not None
        for line in making.stdout:
            longest, last = max(longest, monotonic() - last), monotonic()
            lines.append(line)
    told = "".join(lines)
    assert making.returncode == 0, told
    assert f" with {installer}, hashes checked" in told
    assert "uv could not" not in told
    assert "reactor-memory" in lines[-1]
    used = seconds_of_children() - before
    count(f"seconds of processors that `make demo` took with {installer}", round(used))
    assert used < MOST_SECONDS
    assert longest < MOST_SILENT_SECONDS
