"""Packages as their users get them: built, installed into a folder, imported from elsewhere. Nothing is downloaded."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

CHECKOUT = Path(__file__).resolve().parents[2]

Run = Callable[..., subprocess.CompletedProcess[str]]


def _python(*arguments: str | Path) -> None:
    subprocess.run([sys.executable, "-m", *map(str, arguments)], check=True, capture_output=True, text=True)


@pytest.fixture(scope="session")
def build_wheel(tmp_path_factory: pytest.TempPathFactory) -> Callable[[Path], Path]:
    """Build the wheel of a project folder; its path."""

    def build(project: Path) -> Path:
        folder = tmp_path_factory.mktemp("wheel")
        _python("build", "--wheel", "--no-isolation", "--outdir", folder, project)
        return next(folder.glob("*.whl"))

    return build


@pytest.fixture(scope="session")
def install(tmp_path_factory: pytest.TempPathFactory) -> Callable[[Path], Path]:
    """Install a wheel without its dependencies; the folder to import from."""

    def unpack(wheel: Path) -> Path:
        folder = tmp_path_factory.mktemp("site")
        _python("uv", "pip", "install", "--quiet", "--no-deps", "--no-index", "--target", folder, wheel)
        return folder

    return unpack


@pytest.fixture(scope="session")
def wheel(build_wheel: Callable[[Path], Path]) -> Path:
    return build_wheel(CHECKOUT)


@pytest.fixture(scope="session")
def site(wheel: Path, install: Callable[[Path], Path]) -> Path:
    return install(wheel)


@pytest.fixture
def run_python(tmp_path: Path) -> Run:
    """Run Python in an empty folder with these folders first on its path; environment variables by keyword."""

    def run(path: list[Path], *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
        inherited = {name: value for name, value in os.environ.items() if not name.startswith("REACTOR_MEMORY_")}
        return subprocess.run(
            [sys.executable, *arguments],
            cwd=tmp_path,
            env={**inherited, **environment, "PYTHONPATH": os.pathsep.join(map(str, path))},
            capture_output=True,
            text=True,
            check=False,
        )

    return run
