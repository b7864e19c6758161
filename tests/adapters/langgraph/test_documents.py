"""The how-to and the example."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.adapters.documents import run_example, run_snippets


def test_the_how_to_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.chdir(tmp_path)
    assert run_snippets("langgraph.md") == 3
    memories, alone, facts, notes = capsys.readouterr().out.splitlines()
    assert memories == "['likes tea', 'lives in Ulm']"
    assert alone == "{'is': 'German'}"
    assert "'My order number is A-1042.', 1)" in facts
    assert notes == "Prefers short answers."


def test_the_example_runs(tmp_path: Path) -> None:
    assert (
        run_example("langgraph_store.py", tmp_path) == "Known: eats vegetarian food only; My order number is A-1042.\n"
    )
