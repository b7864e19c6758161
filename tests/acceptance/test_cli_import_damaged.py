"""Damaged files through the command itself: one line and exit code 2, or they are read."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.acceptance.conftest import Run
from tests.imports.samples import SAMPLES
from tests.imports.test_damaged_files import damaged_files


def check(run: Run, folder: Path, name: str, count: int) -> None:
    for number, (case, content) in enumerate(damaged_files(name, count).items()):
        (folder / "file").write_bytes(content)
        done = run("import", "file", "--store", "memory://", "--session-prefix", f"{number} ")
        assert done.code in (0, 2), case
        assert done.code == 0 or done.err.count("\n") == 1, case


def test_the_command_refuses_a_damaged_file_in_one_line(run: Run, folder: Path) -> None:
    check(run, folder, "chatgpt", 8)


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize("name", SAMPLES)
def test_the_command_refuses_damaged_files_in_one_line(run: Run, folder: Path, name: str) -> None:
    check(run, folder, name, 20)
