"""What is installed to serve is what is tested."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[2]
_PINNED = re.compile(r"^([a-z0-9._-]+)==(\S+)", re.MULTILINE)


def pinned(lock: str) -> set[tuple[str, str]]:
    return set(_PINNED.findall((ROOT / lock).read_text()))


def test_lock_of_service_holds_what_it_needs_in_tested_versions() -> None:
    serve = pinned("requirements-serve.lock")
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    needed = [*project["dependencies"], *project["optional-dependencies"]["http"]]
    names = {re.split(r"[^A-Za-z0-9._-]", each)[0].lower() for each in needed}
    assert names <= {name for name, _ in serve}
    assert serve <= pinned("requirements-dev.lock")


def test_every_package_of_the_lock_of_the_service_has_hashes() -> None:
    blocks = re.split(r"\n(?=\S)", (ROOT / "requirements-serve.lock").read_text().strip())
    assert all("--hash=sha256:" in block for block in blocks)
