"""Short calls that hold up the event loop on purpose, and who would take them for a mistake.

Detectors of blocking calls (blockbuster, which LangGraph's development server uses) put functions of their own in place
of the driver's; asyncio's debug mode measures each step of the loop. Beside either, short calls go to a thread, too.
"""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Callable
from types import MethodDescriptorType

import anyio.to_thread

from reactor_memory.database.operations import P, T


def may_block() -> bool:
    """Whether a call of SQLite that takes a moment may run on the thread of the running event loop."""
    return (
        type(sqlite3.Connection.execute) is MethodDescriptorType
        and type(sqlite3.Cursor.fetchall) is MethodDescriptorType
        and not asyncio.get_running_loop().get_debug()
    )


async def aside(work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """What `work` gives, which reads small files or memory: here, unless that would be taken for a mistake."""
    if may_block():
        return work(*args, **kwargs)
    return await anyio.to_thread.run_sync(lambda: work(*args, **kwargs))
