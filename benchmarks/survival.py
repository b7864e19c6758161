"""How many details of a long conversation a context still holds, next to take-last under the same budget.

    python benchmarks/survival.py FILE... [--budgets 1000,2000] [--sessions N]

The files are in the format of docs/formats.md, with probes. Every session is saved into a store in memory through the
manager, summarized offline in the background, and loaded at each budget; no message to come, no query. A detail
counts as kept if one line of memory or one message holds what it is about and its value.
"""

from __future__ import annotations

import argparse
import asyncio
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from reactor_memory import Container, Settings, open_memory
from reactor_memory.cli.importing import Importer
from reactor_memory.cli.transcripts import Line, read_lines
from reactor_memory.evaluation.probes import Probe, context_units, find

HIERARCHICAL = {"store": {"url": "memory://"}, "summary": {"enabled": True}}
TAKE_LAST = {"store": {"url": "memory://"}, "history": {"strategy": "take_last", "max_conversation_turns": 10_000}}


async def measure(path: Path, budgets: list[int], sessions: int | None) -> Iterator[str]:
    found: Counter[tuple[str, int]] = Counter()
    asked = 0
    for line in list(read_lines(path))[:sessions]:
        probes = line.probes()
        asked += len(probes)
        for name, values in (("reactor-memory", HIERARCHICAL), ("take-last", TAKE_LAST)):
            async with open_memory(Settings(**values)) as container:
                await save(container, line)
                for budget in budgets:
                    found[name, budget] += await kept(container, line, probes, budget)
    return rows(path.name, asked, found, budgets)


async def save(container: Container, line: Line) -> None:
    manager = container.conversation_manager()
    await Importer(manager, user_id=None).store_line(line, lambda count: None)
    await manager.drain()


async def kept(container: Container, line: Line, probes: tuple[Probe, ...], budget: int) -> int:
    context = await container.conversation_manager().load_history(line.session_id, budget=budget)
    assert context.report.total_tokens <= budget
    units = context_units(context)
    return sum(find(probe, units) is not None for probe in probes)


def rows(name: str, asked: int, found: Counter[tuple[str, int]], budgets: list[int]) -> Iterator[str]:
    for strategy in ("take-last", "reactor-memory"):
        shares = " | ".join(f"{found[strategy, budget] / asked:.3f}" for budget in budgets)
        yield f"| {name} ({asked} details) | {strategy} | {shares} |"


async def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("files", nargs="+", type=Path)
    parser.add_argument("--budgets", default="1000,2000,4000,8000")
    parser.add_argument("--sessions", type=int, help="only the first N sessions of each file")
    arguments = parser.parse_args()
    budgets = [int(budget) for budget in arguments.budgets.split(",")]
    print("| file | strategy | " + " | ".join(f"{budget:,} tokens" for budget in budgets) + " |")
    print("|---" * (2 + len(budgets)) + "|")
    for path in arguments.files:
        for row in await measure(path, budgets, arguments.sessions):
            print(row, flush=True)


if __name__ == "__main__":
    asyncio.run(main())
