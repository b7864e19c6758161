"""The README as the package index shows it: a page beside which no other file lies, so that no link leads nowhere.

Hatchling calls the hook when it builds the metadata.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from hatchling.metadata.plugin.interface import MetadataHookInterface

_IMAGE = re.compile(r"!\[[^\]]*\]\((?!https?://)[^)]*\)\n*")
_LINK = re.compile(r"\[([^\]]*)\]\((?!https?://|mailto:)([^)#]*)(?:#[^)]*)?\)")


def without_relative_links(text: str) -> str:
    """Pictures of the repository are left out, and its files are named in place of links to them."""
    return _LINK.sub(_named, _IMAGE.sub("", text))


def _named(link: re.Match[str]) -> str:
    label, target = link.groups()
    return label if not target or target in label else f"{label} (`{target}`)"


class IndexDescription(MetadataHookInterface):
    """Gives `project.readme`."""

    def update(self, metadata: dict[str, Any]) -> None:
        text = Path(self.root, "README.md").read_text(encoding="utf-8")
        metadata["readme"] = {"content-type": "text/markdown", "text": without_relative_links(text)}
