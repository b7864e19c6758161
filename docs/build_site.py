"""Puts together the source of the site, for `make docs`: the pages as they stand in the repository, with links that
hold in a site, and the reference, made from the code.
"""

from __future__ import annotations

import re
import shutil
import sys
from pathlib import Path

import reference

ROOT = Path(__file__).parents[1]
ELSEWHERE = {
    "README.md": "index.md",
    "CONTRIBUTING.md": "CONTRIBUTING.md",
    "reactor_memory/data/ATTRIBUTION.md": "reactor_memory/data/ATTRIBUTION.md",
    "benchmarks/README.md": "benchmarks/README.md",
    "benchmarks/peers/README.md": "benchmarks/peers/README.md",
}


def main(target: Path) -> None:
    shutil.rmtree(target, ignore_errors=True)
    shutil.copytree(ROOT / "docs", target, ignore=shutil.ignore_patterns("*.py", "__pycache__"))
    for source, place in ELSEWHERE.items():
        (target / place).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / source, target / place)
    for page in target.rglob("*.md"):
        page.write_text(in_site(page.read_text(encoding="utf-8"), page.relative_to(target)), encoding="utf-8")
    for name, text in reference.pages().items():
        (target / name).write_text(text, encoding="utf-8")


def in_site(text: str, page: Path) -> str:
    """The text of a page with links to where files lie in the site."""
    up = "../" * (len(page.parts) - 1)
    text = re.sub(r"\]\((?:\.\./)*config/reactor-memory\.yaml\)", f"]({up}settings.md)", text)
    if page.name in ("index.md", "CONTRIBUTING.md"):
        return re.sub(r"\]\((?:docs/)", "](", text)
    if page.parts[0] == "benchmarks":
        return re.sub(r"\]\((?:\.\./)+docs/", f"]({up}", text)
    text = re.sub(r"\]\((?:\.\./)+README\.md", f"]({up}index.md", text)
    return re.sub(r"\]\(\.\./(benchmarks/)", rf"]({up}\1", text)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
