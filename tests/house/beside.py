"""Resolves this package together with each framework that people use it beside, and names those that would get an
older release than alone: `python -m tests.house.beside`. Nothing is installed; what uv has read once it keeps.
"""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[2]


class Pair(NamedTuple):
    """A framework, and what of this package is installed next to it."""

    framework: str
    package: str = "."


PAIRS = (
    Pair("ag2"),
    Pair("agno"),
    Pair("chainlit", ".[mcp]"),
    Pair("chainlit", ".[openai-agents]"),
    Pair("claude-agent-sdk", ".[mcp]"),
    Pair("crewai", ".[mcp]"),
    Pair("crewai", ".[openai-agents]"),
    Pair("dspy"),
    Pair("google-adk", ".[mcp]"),
    Pair("haystack-ai"),
    Pair("langchain", ".[langchain]"),
    Pair("langgraph", ".[langgraph]"),
    Pair("llama-index", ".[openai-agents]"),
    Pair("mem0ai"),
    Pair("openai-agents", ".[openai-agents]"),
    Pair("pydantic-ai", ".[mcp]"),
    Pair("smolagents"),
    Pair("strands-agents", ".[mcp]"),
)


class NotResolvedError(Exception):
    """No set of versions fits; says why in uv's words."""


class Resolver:
    """The versions that uv picks for requirements, on the oldest supported Python."""

    def __init__(self, *options: str, python: str = "3.11") -> None:
        command = [sys.executable, "-m", "uv", "pip", "compile", "-q", "--no-header", "--no-annotate"]
        self._command = [*command, "--color", "never", "--python-version", python, *options, "-"]

    def versions(self, *requirements: str) -> dict[str, str]:
        asked = "\n".join(requirements)
        done = subprocess.run(self._command, input=asked, cwd=ROOT, capture_output=True, text=True, check=False)
        if done.returncode:
            raise NotResolvedError(done.stderr.strip())
        return dict(re.findall(r"^([\w.-]+)==(\S+)", done.stdout, re.MULTILINE))


def held_back(pair: Pair, resolver: Resolver) -> str | None:
    """Which release the framework would get, and who keeps it from the newest; None if nobody does."""
    newest = resolver.versions(pair.framework)[pair.framework]
    try:
        beside = resolver.versions(pair.framework, pair.package)[pair.framework]
    except NotResolvedError as error:
        beside, why = "no release", str(error)
    else:
        if beside == newest:
            return None
        why = _reason(f"{pair.framework}=={newest}", pair.package, resolver)
    return f"{pair.framework} gets {beside} beside {pair.package}, alone {newest}:\n{why}"


def _reason(newest: str, package: str, resolver: Resolver) -> str:
    try:
        resolver.versions(newest, package)
    except NotResolvedError as error:
        return str(error)
    return f"nothing excludes {newest}, but uv finds an older one first: raise or drop a lower bound"


def main(pairs: Sequence[Pair] = PAIRS) -> int:
    resolver = Resolver()
    with ThreadPoolExecutor(4) as threads:
        problems = [problem for problem in threads.map(lambda pair: held_back(pair, resolver), pairs) if problem]
    print("\n\n".join(problems) or f"{len(pairs)} pairs: each framework keeps its newest release")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
