"""The how-to and the example."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.adapters.documents import run_example, run_snippets


def test_the_how_to_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.chdir(tmp_path)
    assert run_snippets("langchain.md") == 5
    assert capsys.readouterr().out.splitlines() == [
        "Noted.",
        "A-1042.",
        "2",
        "Likes tea.",
        "['One more question.', 'Go ahead.']",
        "4",
    ]


def test_the_example_runs(tmp_path: Path) -> None:
    assert run_example("langchain_agent.py", tmp_path).splitlines() == [
        "87 messages later: Your order A-1042 is in Ulm.",
        "Noted: Asks about order A-1042.",
    ]
