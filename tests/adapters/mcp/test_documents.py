"""The how-to and the example."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.adapters.documents import run_example, run_snippets


def test_the_how_to_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.chdir(tmp_path)
    assert run_snippets("mcp.md") == 1
    assert capsys.readouterr().out == "My order number is A-1042.\n"


def test_the_example_runs(tmp_path: Path) -> None:
    assert "A-1042" in run_example("mcp_client.py", tmp_path)
