"""What a reader says of the lines of memory: those of today's contexts among the lines that were judged by hand.

usage: python -m benchmarks.judged_lines [FILE ...] [--budgets 1000 2000] [--seed 3]

Without a FILE the packaged orders and one generated session. No question is asked. Of each session: its lines of
memory, how many of them were judged, and of these the shares. A line that was not judged counts for nothing: where few
were, judge again. "Altered" needs no judge: a quotation of which some piece stands in no message.
"""

from __future__ import annotations

import argparse
import asyncio
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from importlib.resources import files
from pathlib import Path
from typing import NamedTuple

from reactor_memory import open_memory
from reactor_memory.evaluation.legibility import memory_lines
from reactor_memory.evaluation.session_files import generated, reader
from reactor_memory.evaluation.sessions import split_turns
from reactor_memory.models import Message
from reactor_memory.text.spans import arguments_of, leaves

JUDGED = Path(__file__).parent.parent / "tests" / "evaluation" / "judged_contexts.tsv"
VERDICTS = ("useful", "marginal", "junk", "outdated", "wrong", "failed", "altered")
USER = "judge"
_QUOTED = re.compile(r'"([^"]+)"')
_SIGNS = re.compile(r"[\s<>‹›\"'`~\[\]()…]+")
"""What quotations may write otherwise: space, and signs that would pass for structure."""


class Judged(NamedTuple):
    """The lines of a session's contexts, the verdicts on those that were judged, and quotations that were altered."""

    session: str
    lines: int
    verdicts: Counter[str]
    altered: Sequence[str]


def verdicts() -> Mapping[tuple[str, str], str]:
    """The verdict on each line of a session."""
    rows = (line.split("\t", 2) for line in JUDGED.read_text("utf-8").splitlines() if not line.startswith("#"))
    return {(session, line): verdict for verdict, session, line in rows}


async def judged(session: str, messages: Sequence[Message], budgets: Sequence[int]) -> Judged:
    """One session, replayed turn by turn."""
    async with open_memory("memory://") as memory:
        for turn in split_turns(messages):
            await memory.save_history(session, list(turn), user_id=USER)
        await memory.drain()
        shown: dict[str, None] = {}
        for budget in budgets:
            context = await memory.load_history(session, user_id=USER, budget=budget, query="")
            shown.update(dict.fromkeys(unit.text for unit in memory_lines(context)))
    known = verdicts()
    told = [line for line in shown if not line.endswith(":")]
    found = Counter(known[session, line] for line in told if (session, line) in known)
    return Judged(session, len(told), found, list(altered(told, messages)))


def altered(lines: Iterable[str], messages: Sequence[Message]) -> Iterator[str]:
    """The lines with a quotation that is in no message."""
    said = _bare(" ".join(text for message in messages for text in _texts(message)))
    for line in lines:
        if any(_bare(quoted) not in said for quoted in _QUOTED.findall(line)):
            yield line


def _texts(message: Message) -> Iterator[str]:
    yield message.content
    for call in message.tool_calls:
        yield from (leaf.text for leaf in leaves(arguments_of(call.arguments)))


def _bare(text: str) -> str:
    return _SIGNS.sub("", text).casefold()


def table(rows: Sequence[Judged]) -> Iterator[str]:
    """One line a session, and one of all."""
    yield f"{'session':24} lines judged  " + " ".join(f"{verdict:>8}" for verdict in VERDICTS)
    together = Counter[str]()
    for row in rows:
        together.update(row.verdicts)
        yield _row(row.session, row.lines, row.verdicts, len(row.altered))
    yield _row("all", sum(row.lines for row in rows), together, sum(len(row.altered) for row in rows))


def _row(name: str, lines: int, found: Counter[str], number_altered: int) -> str:
    count = found.total()
    shares = [f"{found[verdict] / count:8.2f}" if count else f"{'-':>8}" for verdict in VERDICTS[:-1]]
    return f"{name:24} {lines:5} {count:6}  {' '.join([*shares, f'{number_altered:8}'])}"


async def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="*", type=Path)
    parser.add_argument("--budgets", nargs="+", type=int, default=[1000, 2000])
    parser.add_argument("--seed", type=int, default=3)
    given = parser.parse_args()
    made, generate = generated(1, given.seed)
    packaged = Path(str(files("reactor_memory") / "data" / "orders.jsonl.gz"))
    read = reader("auto")
    sources = [read(file) for file in given.files] or [read(packaged), generate(made)]
    judged_sessions = {session for session, _ in verdicts()}
    every = [line for source in sources for line in source if line.session_id in judged_sessions]
    rows = [await judged(line.session_id, line.messages, given.budgets) for line in every]
    print("\n".join(table(rows)))
    for row in rows:
        for line in row.altered:
            print("altered:", row.session, line)


if __name__ == "__main__":
    asyncio.run(main())
