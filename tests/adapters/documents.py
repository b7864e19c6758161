"""What the how-tos of adapters show, runs; so do the examples."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from sybil import Sybil
from sybil.parsers.markdown import PythonCodeBlockParser

ROOT = Path(__file__).parents[2]


def run_snippets(document: str) -> int:
    """Run the Python of a page of `docs/adapters`, in the working folder; how many pieces there were."""
    examples = list(Sybil(parsers=[PythonCodeBlockParser()]).parse(ROOT / "docs" / "adapters" / document).examples())
    for example in examples:
        example.evaluate()
    return len(examples)


def run_example(name: str, folder: Path) -> str:
    """What an example prints."""
    done = subprocess.run(
        [sys.executable, str(ROOT / "examples" / name)],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout
