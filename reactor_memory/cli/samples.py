"""The sessions that come with the package."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from importlib import resources
from pathlib import Path

SAMPLE = resources.files("reactor_memory") / "data" / "orders.jsonl.gz"


@contextmanager
def sample_or(file: Path | None) -> Generator[Path]:
    """`file`, or without one the file that comes with the package."""
    if file is not None:
        yield file
    else:
        with resources.as_file(SAMPLE) as sample:
            yield sample
