"""Without what is in the folder of a feature, but how it is wired, what is left saves and loads.

The container refers to the wiring of each feature, which imports what it makes when it makes it.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.house.picture import CHECKOUT, PACKAGE
from tests.house.test_structure import SAVE_AND_LOAD

WITHOUT_SUMMARIES = {"REACTOR_MEMORY_SUMMARY__ENABLED": "false"}
"""Summaries are made of facts, which entries quote, and the index of recall follows the summaries."""

SWITCHES = {
    "entries": WITHOUT_SUMMARIES,
    "facts": WITHOUT_SUMMARIES,
    "recall": WITHOUT_SUMMARIES,
    "overview": {"REACTOR_MEMORY_STORE__KEEP_SETTINGS": "false"},
}
"""What is on by default and in the way of every save."""


EVER_DELETED = {"facts"}
"""Deleted in every run of the tests: what stands in the way of most turns."""


def features() -> list[Any]:
    names = sorted(path.name for path in (PACKAGE / "features").iterdir() if (path / "__init__.py").exists())
    return [name if name in EVER_DELETED else pytest.param(name, marks=pytest.mark.slow) for name in names]


@pytest.mark.parametrize("feature", features())
@pytest.mark.slow
def test_the_rest_saves_and_loads(feature: str, tmp_path: Path) -> None:
    for folder in ("reactor_memory", "migrations"):
        shutil.copytree(CHECKOUT / folder, tmp_path / folder)  # with what is compiled, which takes longer than the rest
    folder = tmp_path / "reactor_memory" / "features" / feature
    wiring = (folder / "wiring.py").read_bytes() if (folder / "wiring.py").exists() else None
    shutil.rmtree(folder)
    if wiring is not None:
        folder.mkdir()
        (folder / "wiring.py").write_bytes(wiring)
    command = [sys.executable, "-c", SAVE_AND_LOAD, f"sqlite:///{tmp_path / 'memory.db'}"]
    environment = {"PYTHONPATH": str(tmp_path)} | SWITCHES.get(feature, {})
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, timeout=60)
    assert done.returncode == 0, done.stderr.decode()[-800:]
    assert str(tmp_path) in done.stdout.decode()
