"""Saves turns in a process of its own, and says of each that it was acknowledged: ``path turns [NORMAL]``.

With NORMAL, SQLite does not wait for the disk at a commit: the proof must notice that.
"""

from __future__ import annotations

import asyncio
import os
import sys

from reactor_memory import Message, open_memory
from reactor_memory.database import sqlite
from reactor_memory.database.sqlite_transactions import SqliteSession


def do_not_wait_for_the_disk() -> None:
    pragma = SqliteSession.pragma
    SqliteSession.pragma = lambda self, text: pragma(self, text.replace("FULL", "NORMAL"))
    sqlite._FULL = 1


async def main(path: str, turns: int) -> None:
    async with open_memory(path) as memory:
        for number in range(1, turns + 1):
            turn = [Message.user(f"{number} {'x' * (number * 37 % 900)}"), Message.assistant(f"{number}")]
            await memory.save_history(f"session {number % 3}", turn, idempotency_key=str(number))
            os.write(1, b"acknowledged %d\n" % number)
        os.write(1, b"done\n")
        await asyncio.sleep(0.2)  # background work goes on for a while


if __name__ == "__main__":
    if sys.argv[3:] == ["NORMAL"]:
        do_not_wait_for_the_disk()
    asyncio.run(main(sys.argv[1], int(sys.argv[2])))
