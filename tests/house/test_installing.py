"""`make` installs what the locks name: hashes checked, with uv or pip, and never silently."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
INSTALLER = ROOT / ".ci" / "install_locked.py"


LOCK = f"probe==1.0 --hash=sha256:{'0' * 64}\n"
LOCKED = ["--no-deps", "--require-hashes", "-r"]


def stand_in(folder: Path, body: str) -> str:
    """A program in the place of uv, which writes what it was given into a file beside it."""
    program = folder / "uv"
    program.write_text(f'#!/bin/sh\necho "$@" >"{folder}/given"\n{body}\n')
    program.chmod(0o700)
    return str(program)


def install(folder: Path, uv: str) -> subprocess.CompletedProcess[str]:
    """The installer with these in the places of uv and pip; pip prints what it is given, and fails."""
    (folder / "requirements.lock").write_text(LOCK)
    (folder / "pip").mkdir()
    (folder / "pip" / "__main__.py").write_text("import sys\nsys.exit(' '.join(sys.argv[1:]))\n")
    environment = os.environ | {"UV": uv, "PYTHONPATH": str(folder)}
    command = [sys.executable, str(INSTALLER), "requirements.lock"]
    return subprocess.run(
        command, capture_output=True, text=True, env=environment, cwd=folder, timeout=120, check=False
    )


def test_uv_is_told_to_check_hashes(tmp_path: Path) -> None:
    done = install(tmp_path, stand_in(tmp_path, "exit 0"))
    given = (tmp_path / "given").read_text().split()
    assert done.returncode == 0
    assert given == ["pip", "install", "--python", sys.executable, *LOCKED, "requirements.lock"]
    assert "Installing 1 package into" in done.stdout


@pytest.mark.slow
def test_pip_takes_over_and_checks_hashes_too(tmp_path: Path) -> None:
    done = install(tmp_path, stand_in(tmp_path, "echo no way to the index; exit 2"))
    assert done.returncode == 1
    assert [line.partition(" with ")[2] for line in done.stdout.splitlines() if " with " in line] == [
        "uv, hashes checked",
        "pip, hashes checked",
    ]
    assert "no way to the index" in done.stderr
    assert "pip could not install requirements.lock" in done.stderr


@pytest.mark.slow
def test_pip_alone_installs_where_uv_is_missing(tmp_path: Path) -> None:
    done = install(tmp_path, str(tmp_path / "none"))
    assert done.stdout.splitlines()[0].endswith("with pip, hashes checked")
    assert "uv could not" not in done.stderr


def test_a_silent_installer_is_spoken_for(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    spec = importlib.util.spec_from_file_location("install_locked", INSTALLER)
    assert spec is not None
    assert spec.loader is not None
    installer = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(installer)
    monkeypatch.setattr(installer, "SECONDS_BETWEEN_LINES", 0.1)
    monkeypatch.setattr(installer, "SECONDS_BETWEEN_LOOKS", 0.05)
    body = "print('Collecting a', flush=True); import time; time.sleep(0.6)"
    assert installer.run([sys.executable, "-c", body], installer.Progress(3), [])
    assert "  1 of 3 packages (" in capsys.readouterr().out
