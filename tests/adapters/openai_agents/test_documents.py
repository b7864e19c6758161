"""The how-to and the example."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from tests.adapters.documents import run_example, run_snippets


def test_the_how_to_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.chdir(tmp_path)
    assert run_snippets("openai-agents.md") == 2
    asyncio.get_event_loop_policy().get_event_loop().close()  # `run_sync` keeps it for the next run
    asyncio.set_event_loop(None)
    assert capsys.readouterr().out == "I was given 1 items.\nI was given 3 items.\nI was given 1 items.\n"


def test_the_example_runs(tmp_path: Path) -> None:
    assert "Your order number is A-1042." in run_example("openai_agents.py", tmp_path)
