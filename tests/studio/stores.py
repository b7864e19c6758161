"""Databases for the Studio to look at, made by the library."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from reactor_memory import Settings, open_memory
from reactor_memory.models import Message, ToolCall

HOSTILE = "<script>alert(1)</script><img src=x onerror=alert(2)> \N{RIGHT-TO-LEFT OVERRIDE}gnp.exe {{ 7*7 }}"
LONG_LINE = "x" * 1_000_000


def settings_of(path: Path, *, background: bool = True) -> Settings:
    return Settings(store={"url": f"sqlite:///{path}"}, context={"record": "turns"}, background={"enabled": background})


def _run(work: Coroutine[Any, Any, None]) -> None:
    """In a thread: Playwright has an event loop of its own in this one."""
    with ThreadPoolExecutor(1) as thread:
        thread.submit(asyncio.run, work).result()


def fill(path: Path) -> Path:
    """One session of everything that pages show: tools, corrections, forks, archives, erasures, hostile text."""
    _run(_fill(path))
    return path


async def _fill(path: Path) -> None:
    async with open_memory(settings_of(path)) as memory:
        for number in range(30):
            said = f"Book a table for {number + 2} at Luigi's on May {number % 28 + 1}. My order is QX-{1000 + number}."
            async with memory.turn("trip", said, user_id="ann", budget=1200) as turn:
                call = ToolCall(id=f"c{number}", name="book", arguments={"guests": number + 2, "place": "Luigi's"})
                turn.add(Message.assistant(tool_calls=[call]))
                turn.add(Message.tool(f'{{"reference": "AB-{number}"}}', tool_call_id=call.id))
                turn.answer(f"Done, the reference is AB-{number}.")
        await memory.save_history("hostile", [HOSTILE, Message.assistant(HOSTILE), LONG_LINE], user_id=HOSTILE[:40])
        await memory.drain()
        fork = await memory.fork("trip", at_seq=21, user_id="ann")
        await memory.save_history(fork.session_id, ["Another way: the order is QX-77."], user_id="ann")


def fill_large(path: Path, *, messages: int, others: int = 0) -> Path:
    """A session of many messages, and others beside it."""
    _run(_fill_large(path, messages, others))
    return path


async def _fill_large(path: Path, messages: int, others: int) -> None:
    async with open_memory(settings_of(path)) as memory:
        for start in range(0, messages, 500):
            batch = [_remark(number) for number in range(start, min(start + 500, messages))]
            await memory.save_history("large", batch, user_id="ann")
        await memory.drain()
    async with open_memory(settings_of(path, background=False)) as memory:
        for session in range(others):
            await memory.save_history(f"s{session}", [_remark(number) for number in range(200)], user_id=f"u{session}")


def _remark(number: int) -> Message:
    if number % 2:
        return Message.assistant(f"Noted: invoice INV-{number} of {number * 3} euros.")
    return Message.user(f"The delivery {number} to Harbour Street {number % 90} costs {number * 3} euros.")
