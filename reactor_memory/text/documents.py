"""Where the pages of the documentation lie that messages point to."""

from __future__ import annotations

from pathlib import Path
from typing import Literal, TypeAlias

_PACKAGE = Path(__file__).parents[1]

Page: TypeAlias = Literal["evaluation", "formats", "http-service", "performance", "stores"]


def page(name: Page) -> str:
    """The path of a page: in the installed package, or in the folder of the sources."""
    folder = _PACKAGE / "_docs"
    return str((folder if folder.is_dir() else _PACKAGE.parent / "docs") / f"{name}.md")
