"""Do the tests bite? Every guard that is named in `mutants.toml` is removed in turn, and its tests must fail then.

Run it with ``make mutants``, or ``python -m tests.house.mutants WORD`` for the guards that have the word in their name.
It works on copies of the checkout. A guard that is removed unnoticed, one whose place is not found or not the only one,
and tests that fail or are missing without any change make it fail.
"""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from queue import SimpleQueue
from typing import NamedTuple, TypeVar

from tests.house.mutation import Mutant, PlaceError, mutated, read

ROOT = Path(__file__).parents[2]
TABLE = ROOT / "tests" / "house" / "mutants.toml"
NOT_COPIED = shutil.ignore_patterns(".*", "build", "dist", "__pycache__", "docs")
COMMAND = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", "--hypothesis-profile=mutants"]
HANGING = ["--timeout=60", "--timeout-method=thread"]  # ends the process, whatever hangs
TIMEOUT_SECONDS = 300
PASSED, FAILED = 0, 1

T = TypeVar("T")
R = TypeVar("R")


class Verdict(NamedTuple):
    mutant: Mutant
    outcome: str
    seconds: float

    @property
    def is_good(self) -> bool:
        return self.outcome == "noticed"


def run_tests(folder: Path, arguments: list[str]) -> tuple[int, str]:
    """The exit code of pytest, and what it printed."""
    try:
        done = subprocess.run(
            [*COMMAND, *HANGING, *arguments],
            cwd=folder,
            env={**os.environ, "PYTHONPATH": str(folder), "PYTHONDONTWRITEBYTECODE": ""},  # most files never change
            capture_output=True,
            text=True,
            timeout=TIMEOUT_SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return -1, "took too long"
    return done.returncode, done.stdout


def judge(mutant: Mutant, folder: Path) -> Verdict:
    """Try a mutant in a copy of the checkout."""
    begun = time.monotonic()
    try:
        file, text = mutated(mutant, folder)
    except PlaceError as error:
        return Verdict(mutant, str(error), 0.0)
    original = file.read_text(encoding="utf-8")
    file.write_text(text, encoding="utf-8")
    code, _ = run_tests(folder, shlex.split(mutant.tests))
    file.write_text(original, encoding="utf-8")
    outcome = {PASSED: "SURVIVED", FAILED: "noticed"}.get(code, f"tests did not run (exit code {code})")
    return Verdict(mutant, outcome, time.monotonic() - begun)


class Copies:
    """Copies of the checkout, as many as there are processors; one job at a time uses each."""

    def __init__(self, folder: Path) -> None:
        self._free: SimpleQueue[Path] = SimpleQueue()
        self._pool = ThreadPoolExecutor(os.cpu_count() or 1)
        for number in range(os.cpu_count() or 1):
            self._free.put(Path(shutil.copytree(ROOT, folder / str(number), ignore=NOT_COPIED)))

    def map(self, job: Callable[[T, Path], R], items: Iterable[T]) -> list[R]:
        def with_a_copy(item: T) -> R:
            copy = self._free.get()
            result = job(item, copy)
            self._free.put(copy)
            return result

        return list(self._pool.map(with_a_copy, items))


def judged(mutant: Mutant, copy: Path) -> Verdict:
    verdict = judge(mutant, copy)
    print(f"{verdict.outcome:12} {verdict.seconds:5.1f} s  {mutant.guard}", flush=True)
    return verdict


def fault_of(tests: str, copy: Path) -> str:
    """What is wrong with tests while every guard stands: such tests would prove nothing. Empty: nothing."""
    code, output = run_tests(copy, shlex.split(tests))
    return "" if code == PASSED else f"{tests}\n{output}"


def main(words: list[str]) -> int:
    chosen = [mutant for mutant in read(TABLE) if all(word in mutant.guard for word in words)]
    with tempfile.TemporaryDirectory(prefix="reactor-memory-mutants-") as folder:
        copies = Copies(Path(folder))
        verdicts = copies.map(judged, chosen)
        noticing = dict.fromkeys(verdict.mutant.tests for verdict in verdicts if verdict.is_good)
        unusable = [fault for fault in copies.map(fault_of, noticing) if fault]
    bad = [verdict for verdict in verdicts if not verdict.is_good]
    print(f"\n{len(verdicts)} guards removed, {len(verdicts) - len(bad)} noticed")
    for verdict in bad:
        print(f"{verdict.outcome}: {verdict.mutant.guard} ({verdict.mutant.at})\n    {verdict.mutant.tests}")
    for text in unusable:
        print(f"fails without any change: {text}")
    return 1 if bad or unusable or not verdicts else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
