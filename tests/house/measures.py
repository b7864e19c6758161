"""What the house measures, for whoever wants it smaller: ``make house``. No test has an opinion on these numbers."""

from __future__ import annotations

import asyncio
import sys
import threading
from collections import Counter
from collections.abc import Awaitable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

from reactor_memory import Settings, open_memory
from tests.house.picture import PACKAGE, arrows, floor_of, imports, room_of, rooms

APART = (
    "server",
    "client",
    "features.sharing",
    "features.responses",
    "cli",
    "studio",
    "adapters",
    "evaluation",
    "testing",
)
"""Packages beside the library."""


def lines_by_room() -> Counter[str]:
    lines = Counter[str]()
    for name in imports():
        path = PACKAGE.joinpath(*name.split(".")).with_suffix(".py")
        lines[room_of(name)] += len(path.read_text(encoding="utf-8").splitlines())
    return lines


def circles() -> int:
    """Rooms that lie in a circle of arrows."""
    return sum(1 for room in rooms() if room in _below(room))


def _below(start: str) -> set[str]:
    found, waiting = set[str](), [start]
    while waiting:
        room = waiting.pop()
        new = {other for here, other in arrows() if here == room} - found
        found |= new
        waiting += new
    return found


@contextmanager
def running_modules() -> Iterator[set[str]]:
    """The modules of the package of which a function runs in the block, in whatever thread."""
    ran = set[str]()
    folder = str(PACKAGE)

    def see(frame: FrameType, event: str, _: Any) -> None:
        if event == "call" and frame.f_code.co_name != "<module>" and frame.f_code.co_filename.startswith(folder):
            ran.add(Path(frame.f_code.co_filename).relative_to(PACKAGE).as_posix())

    threading.setprofile(see)
    sys.setprofile(see)
    try:
        yield ran
    finally:
        sys.setprofile(None)
        threading.setprofile(None)


async def ways_through() -> dict[str, int]:
    """How many modules run, once everything is imported and warm."""
    counts: dict[str, int] = {}

    async def counted(name: str, *calls: Awaitable[Any]) -> None:
        with running_modules() as ran:
            for call in calls:
                await call
        counts[name] = len(ran)

    talk = [f"I booked room {number} in Graz for May {1 + number % 28}, 2026." for number in range(30)]
    async with open_memory(Settings(store={"url": "memory://"}, background={"enabled": False})) as memory:
        for session in ("warm", "s"):
            await memory.save_history(session, talk[:-1])
            await counted("a save", memory.save_history(session, talk[-1:]))
            await counted("a load", memory.load_history(session, message="Thank you."))
            question = memory.load_history(session, message="Which room did I book for May 3?", query="room May 3")
            await counted("a load with a question", question)
            await counted("a message to a line", memory.summarize(session), memory.load_history(session, budget=800))
    return counts


def main() -> None:
    lines = lines_by_room()
    library = sum(count for room, count in lines.items() if room not in APART)
    print(f"rooms {len(rooms())}, floors {len({floor_of(room) for room in rooms()})}, in circles {circles()}")
    print(f"lines {sum(lines.values())}, of the library {library}")
    for room, count in lines.most_common():
        print(f"  {count:6} {room}")
    for way, modules in asyncio.run(ways_through()).items():
        print(f"modules that run on {way}: {modules}")


if __name__ == "__main__":
    main()
