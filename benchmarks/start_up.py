"""What a process pays before its first turn, and what opening a memory costs once everything is imported.

``python -m benchmarks.start_up [--runs N]``

Cold: from the start of a new process until it has saved and loaded one turn on a new SQLite file. Warm: one process
opens an existing file, loads once and closes. Both run in an empty folder, without a configuration file.

Milliseconds of the clock and of the processor (user and system, threads included, until the process has ended), the
least and the median of N runs. On a busy machine only the least says much, and only beside another version measured by
turns. What else is installed is imported, too: measure where nothing but the package is.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import resource
import subprocess
import sys
import time
from collections.abc import Callable, Generator
from contextlib import AbstractContextManager, chdir, contextmanager, nullcontext
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory

from reactor_memory import Message, open_memory

ROOT = Path(__file__).parents[1]
QUESTION = Message(role="user", content="What was my order number?")
ANSWER = Message(role="assistant", content="It is 4711.")


async def load_once(file: Path, *, save: bool) -> None:
    async with open_memory(file) as memory:
        if save:
            await memory.save_history("session", [QUESTION, ANSWER], user_id="user")
        await memory.load_history("session", user_id="user", message=QUESTION)


@contextmanager
def cold(folder: Path, run: int) -> Generator[None]:
    """Enters when the turn was loaded, leaves when the process has ended."""
    command = [sys.executable, "-m", "benchmarks.start_up", "--first-turn", f"{run}.db"]
    path = os.pathsep.join([str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])])
    # an installed package has its bytecode, which the environment of a developer may forbid to be written
    environment = {**os.environ, "PYTHONPATH": path, "PYTHONPYCACHEPREFIX": str(folder / "bytecode")}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    with subprocess.Popen(command, cwd=folder, env=environment, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline(), "the first turn failed"
        yield
    assert process.returncode == 0


def processor_of_children() -> float:
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def measured(work: Callable[[int], AbstractContextManager[None]], runs: int, processor: Callable[[], float]) -> str:
    clocks: list[float] = []
    processors: list[float] = []
    for run in range(runs):
        clock, used = time.perf_counter(), processor()
        with work(run):
            clocks.append((time.perf_counter() - clock) * 1e3)
        processors.append((processor() - used) * 1e3)
    return f"{min(clocks):8.1f} {median(clocks):8.1f} {min(processors):10.1f} {median(processors):8.1f}"


def least(work: Callable[[int], AbstractContextManager[None]], runs: int, processor: Callable[[], float]) -> float:
    """Milliseconds of the processor."""
    taken: list[float] = []
    for run in range(runs):
        used = processor()
        with work(run):
            pass
        taken.append((processor() - used) * 1e3)
    return min(taken)


def compare(folder: Path, runs: int) -> None:
    file = folder / "warm.db"
    asyncio.run(load_once(file, save=True))
    print(f"{'ms':34}   clock   median  processor   median")
    turns = measured(lambda run: cold(folder, run), runs, processor_of_children)
    print(f"{'cold: first turn, new file':34}", turns)
    with asyncio.Runner() as runner:
        once = measured(lambda _: nullcontext(runner.run(load_once(file, save=False))), runs, time.process_time)
    print(f"{'warm: open, load, close':34}", once)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=10)
    parser.add_argument("--first-turn", type=Path, help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.first_turn:
        asyncio.run(load_once(asked.first_turn, save=True))
        print("loaded", flush=True)
        return
    with TemporaryDirectory() as folder, chdir(folder):
        compare(Path(folder), asked.runs)


if __name__ == "__main__":
    main()
