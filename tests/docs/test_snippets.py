"""What the documents show, runs."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from sybil import Sybil
from sybil.parsers.markdown import PythonCodeBlockParser

from reactor_memory.plugins import PLUG_POINTS

ROOT = Path(__file__).parents[2]
DOCUMENTS = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
CONSOLE = re.compile(r"```console\n(.*?)```", re.DOTALL)


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: path.name)
def test_the_snippets_of_a_document_run(path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for example in Sybil(parsers=[PythonCodeBlockParser()]).parse(path).examples():
        example.evaluate()
    for command in _commands(path.read_text()):
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False)
        assert done.returncode == 0, (command, done.stderr)


def _commands(text: str) -> list[list[str]]:
    """The calls of `reactor-memory` in console blocks."""
    lines = [line for block in CONSOLE.findall(text) for line in block.splitlines()]
    return [
        [sys.executable, "-m", "reactor_memory", *shlex.split(line)[2:]]
        for line in lines
        if line.startswith("$ reactor-memory ")
    ]


def test_links_between_documents_lead_somewhere() -> None:
    for path in (*DOCUMENTS, *(ROOT / "docs" / "adapters").glob("*.md")):
        for target in re.findall(r"\]\((?!https?://|#|mailto:)([^)#]+)", path.read_text()):
            assert (path.parent / target).exists(), f"{path.name}: {target}"


def test_every_plug_point_is_listed() -> None:
    listed = re.findall(r"^\| `(\w+)` \|", (ROOT / "docs" / "extending.md").read_text(), re.MULTILINE)
    assert sorted(listed) == sorted(PLUG_POINTS)


def test_the_readme_leads_to_every_page_and_every_adapter() -> None:
    readme = (ROOT / "README.md").read_text()
    for page in (ROOT / "docs").rglob("*.md"):
        assert f"({page.relative_to(ROOT)})" in readme
    frameworks = readme.partition("## Frameworks")[2].partition("\n## ")[0]
    for page in (ROOT / "docs" / "adapters").glob("*.md"):
        assert f"({page.relative_to(ROOT)})" in frameworks
