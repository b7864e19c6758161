"""What the documents show, runs."""

from __future__ import annotations

import logging
import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest
from hatchling.metadata.core import ProjectMetadata
from hatchling.plugin.manager import PluginManager
from sybil import Sybil
from sybil.parsers.markdown import PythonCodeBlockParser

from reactor_memory.cli import main
from reactor_memory.wiring.plugins import PLUG_POINTS

ROOT = Path(__file__).parents[2]
DOCUMENTS = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
CONSOLE = re.compile(r"```console\n(.*?)```", re.DOTALL)


@pytest.fixture
def log_as_before() -> Iterator[None]:
    log = logging.getLogger("reactor_memory")
    before = list(log.handlers), log.level
    yield
    log.handlers[:], log.level = before


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: path.name)
@pytest.mark.usefixtures("log_as_before")
def test_the_snippets_of_a_document_run(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    for example in Sybil(parsers=[PythonCodeBlockParser()]).parse(path).examples():
        example.evaluate()
    for command in _commands(path.read_text()):
        with pytest.raises(SystemExit) as ended:
            main(command)
        assert ended.value.code == 0, (command, capsys.readouterr().err)


def test_the_first_example_prints_what_stands_below_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    path = ROOT / "README.md"
    next(iter(Sybil(parsers=[PythonCodeBlockParser()]).parse(path).examples())).evaluate()
    shown = re.search(r"```python\n.*?```\n\n```text\n(.*?)```", path.read_text(), re.DOTALL)
    assert shown is not None
    day = re.compile(r"^\d+ [A-Z][a-z]+:$", re.MULTILINE)
    assert day.sub("DAY:", capsys.readouterr().out) == day.sub("DAY:", shown[1])


def test_the_comparison_is_what_the_demo_prints(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["demo"])
    printed = capsys.readouterr().out
    table = (ROOT / "README.md").read_text().partition("the same question:")[2].partition("`make demo`")[0]
    rows = {
        "total": re.findall(r"[\d,]+", table.splitlines()[7]),
        "goes back to message": re.findall(r"\d+", table.splitlines()[4]),
        "details kept": re.findall(r"\d+ of \d+", table),
    }
    for name, (theirs, ours) in rows.items():
        line = next(line for line in printed.splitlines() if line.startswith(name))
        assert re.findall(r"\d+ of \d+|[\d,]+", line) == [ours, theirs], name
    assert "+ Latte; hot-or-iced=Iced; Milk=Almond Milk; Hazelnut=ADD -> 13087" in printed
    assert "536" in printed
    assert "15,364 tokens of conversation" in printed


def _commands(text: str) -> list[list[str]]:
    """The calls of `reactor-memory` in console blocks."""
    lines = [line for block in CONSOLE.findall(text) for line in block.splitlines()]
    return [shlex.split(line)[2:] for line in lines if line.startswith("$ reactor-memory ")]


def test_links_between_documents_lead_somewhere() -> None:
    for path in (*DOCUMENTS, *(ROOT / "docs" / "adapters").glob("*.md"), *(ROOT / "benchmarks").rglob("README.md")):
        for target, anchor in re.findall(r"\]\((?!https?://|mailto:)([^)#]*)#?([^)]*)\)", path.read_text()):
            page = path.parent / target if target else path
            assert page.exists(), f"{path.name}: {target}"
            assert not anchor or anchor in _anchors(page.read_text()), f"{path.name}: {target}#{anchor}"


def _anchors(text: str) -> list[str]:
    """What the headings of a page are linked by."""
    headings = re.findall(r"^#+ (.*)$", re.sub(r"```.*?```", "", text, flags=re.DOTALL), re.MULTILINE)
    return [re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings]


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


def test_the_package_index_gets_no_link_into_the_repository() -> None:
    metadata = ProjectMetadata(str(ROOT), PluginManager()).core
    text = metadata.readme
    assert metadata.readme_content_type == "text/markdown"
    assert re.findall(r"\]\((?!https?://)[^)]*\)", text) == []
    assert text.startswith("# Reactor Memory")
    for kept in ("quickstart (`docs/quickstart.md`)", "config/reactor-memory.yaml", "Apache License 2.0 (`LICENSE`)"):
        assert kept in text
    for name in re.findall(r"\(`([\w./-]+)`\)", text):
        assert (ROOT / name).exists(), name


def test_the_readme_says_each_share_once_and_as_measured() -> None:
    readme, measured = (ROOT / "README.md").read_text(), (ROOT / "docs" / "evaluation.md").read_text()
    told = [line for line in readme.splitlines() if not line.startswith(("|", "\u00b9"))]
    shares = re.findall(r"\b0\.\d{3}\b", "\n".join(told))
    assert len(shares) == len(set(shares))
    for share in re.findall(r"\b[01]\.\d{3}\b", readme):
        assert share in measured, share
