"""A process of its own that erases, to be killed.

``user URL USER`` erases all there is of a user, ``messages URL SESSION USER FIRST LAST`` a range of messages. Each says
when it begins.
"""

from __future__ import annotations

import asyncio
import sys

from reactor_memory import open_container
from tests.acceptance.scenes import settings


async def erase_user(url: str, user_id: str) -> None:
    async with open_container(settings(url, background={"enabled": False})) as container:
        print("begin", flush=True)
        await container.erasure().erase_user(user_id)
        print("done", flush=True)


async def erase_messages(url: str, session_id: str, user_id: str, first: str, last: str) -> None:
    async with open_container(settings(url, background={"enabled": False})) as container:
        print("begin", flush=True)
        await container.erasure().erase(session_id, seq=range(int(first), int(last) + 1), user_id=user_id)
        print("done", flush=True)


if __name__ == "__main__":
    task = {"user": erase_user, "messages": erase_messages}[sys.argv[1]]
    asyncio.run(task(*sys.argv[2:]))
