"""What background work costs in processor time: a session of the packaged orders, saved turn by turn or in batches.

``python -m benchmarks.background_costs [--messages N] [--rounds N]``

Each round saves the session with summaries and without, by turns; told is the least difference, a message: microseconds
of processor time of the process. Turn by turn each save is waited for, with what it
brings; in batches of 100 all is waited for at the end.
"""

from __future__ import annotations

import argparse
import asyncio
from collections.abc import Sequence
from importlib import resources
from pathlib import Path
from tempfile import TemporaryDirectory
from time import process_time

from reactor_memory import Message, Settings, open_memory
from reactor_memory.evaluation.bench.bench_sessions import session_of
from reactor_memory.evaluation.transcripts import read_lines
from reactor_memory.text.caches import forget_texts

SESSION, USER = "orders", "bench"
BATCHES = {"turn by turn": 2, "in batches": 100}


async def used(messages: Sequence[Message], *, batch: int, enabled: bool) -> float:
    """Seconds. What other rounds read is forgotten: it would be remembered."""
    forget_texts()
    with TemporaryDirectory() as folder:
        store = {"url": f"sqlite:///{Path(folder, 'background.db')}", "timeout_seconds": 60}
        async with open_memory(Settings(store=store, summary={"enabled": enabled})) as memory:
            began = process_time()
            for start in range(0, len(messages), batch):
                await memory.save_history(SESSION, messages[start : start + batch], user_id=USER)
                if batch == BATCHES["turn by turn"]:
                    await memory.drain()
            await memory.drain()
            return process_time() - began


async def run(messages: Sequence[Message], rounds: int) -> None:
    await used(messages[:60], batch=100, enabled=True)
    for name, batch in BATCHES.items():
        taken = {False: float("inf"), True: float("inf")}
        for _ in range(rounds):
            for enabled in taken:
                taken[enabled] = min(taken[enabled], await used(messages, batch=batch, enabled=enabled))
        each = (taken[True] - taken[False]) / len(messages)
        print(f"{name:14} {1e6 * each:8.0f} us a message {1 / each:8.0f} messages a second of a core", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--messages", type=int, default=400)
    parser.add_argument("--rounds", type=int, default=3)
    asked = parser.parse_args()
    with resources.as_file(resources.files("reactor_memory") / "data" / "orders.jsonl.gz") as sample:
        said = [message for line in read_lines(sample) for message in line.messages]
    asyncio.run(run(list(session_of(said, asked.messages, seed=1)), asked.rounds))


if __name__ == "__main__":
    main()
