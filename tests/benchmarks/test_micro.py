"""Each micro-benchmark runs once, untimed, so that none of them rots."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

CHECKOUT = Path(__file__).parents[2]


@pytest.mark.slow
def test_every_micro_benchmark_runs() -> None:
    """In a process of its own: in one of several workers, pytest-benchmark complains."""
    options = ["-q", "--benchmark-disable", "-p", "no:cacheprovider", "-p", "no:xdist"]
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    run = subprocess.run(
        [sys.executable, "-m", "pytest", "benchmarks/micro", *options],
        cwd=CHECKOUT,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 0, run.stdout + run.stderr
    assert " passed" in run.stdout
