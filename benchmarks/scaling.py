"""What a million messages cost: bytes on disk, processor time, and money at prices that you give.

``python -m benchmarks.scaling [--sessions N] [--core-hour P] [--gigabyte-month P] [--tokens-in P] [--tokens-out P]``

Sessions of the packaged orders are saved turn by turn to a SQLite file, with facts and index made offline behind each
save, and loaded in 4,000 tokens behind each turn. Bytes and processor time are measured and scaled to a million. The
prices are inputs: a core for an hour, a gigabyte of disk for a month, a million tokens that a model reads, and writes.
What a model would be sent is estimated: each message once, and a tenth of that written.
"""

from __future__ import annotations

import argparse
import asyncio
from collections import Counter
from collections.abc import Mapping, Sequence
from importlib import resources
from itertools import product
from pathlib import Path
from tempfile import TemporaryDirectory
from time import process_time

from reactor_memory import Message, Settings, open_memory
from reactor_memory.evaluation.bench.bench_sessions import session_of
from reactor_memory.evaluation.transcripts import read_lines

MILLION = 1_000_000
USER = "bench"
WRITTEN_SHARE = 0.1
_OF_A_MESSAGE = {"text": "bytes of text", "tokens": "tokens", "bytes": "bytes of file"}


async def measure(messages: Sequence[Message], sessions: int) -> dict[str, float]:
    """Of a message: bytes of its text and of the file, tokens, and seconds to save, to read into memory, of a load."""
    await _saved(messages[:20], 1, has_memory=True)  # what a process does once
    plain, told = await _saved(messages, sessions, has_memory=False), await _saved(messages, sessions, has_memory=True)
    count = sessions * len(messages)
    return {
        "text": sum(len(message.content.encode()) for message in messages) / len(messages),
        "bytes": told["bytes"] / count,
        "tokens": told["tokens"] / count,
        "save": plain["saves"] / count,
        "memory": (told["saves"] - plain["saves"]) / count,
        "load": told["loads"] / (count / 2),
    }


async def _saved(messages: Sequence[Message], sessions: int, *, has_memory: bool) -> dict[str, float]:
    with TemporaryDirectory() as folder:
        file = Path(folder, "scaling.db")
        store = {"url": f"sqlite:///{file}", "timeout_seconds": 60}
        async with open_memory(Settings(store=store, summary={"enabled": has_memory})) as memory:
            taken: Counter[str] = Counter()
            for number, start in product(range(sessions), range(0, len(messages), 2)):
                began = process_time()
                await memory.save_history(f"s{number}", messages[start : start + 2], user_id=USER)
                await memory.drain()
                saved = process_time()
                await memory.load_history(f"s{number}", user_id=USER, query="", budget=4000)
                taken.update(saves=saved - began, loads=process_time() - saved)  # pyright: ignore[reportCallIssue]
            counted = memory.container.message_counter().counted
            tokens = sessions * sum(counted(message) for message in messages)
        size = await asyncio.to_thread(file.stat)
        return {**taken, "tokens": tokens, "bytes": size.st_size}


def told(measured: Mapping[str, float], prices: Mapping[str, float]) -> list[str]:
    gigabytes = measured["bytes"] * MILLION / 1e9
    hours = {what: measured[what] * MILLION / 3600 for what in ("save", "memory")}
    hours["load"] = measured["load"] * MILLION / 2 / 3600
    read, written = measured["tokens"], measured["tokens"] * WRITTEN_SHARE  # in millions, of a million messages
    model = read * prices["tokens_in"] + written * prices["tokens_out"]
    micro = {what: 1e6 * measured[what] for what in ("save", "memory", "load")}
    return [
        "a message: " + ", ".join(f"{measured[what]:.0f} {of}" for what, of in _OF_A_MESSAGE.items()),
        "microseconds: " + ", ".join(f"{what} {each:.0f}" for what, each in micro.items()),
        f"a million messages: {gigabytes:.2f} GB, {gigabytes * prices['gigabyte_month']:.2f} a month",
        *(f"  {what:6} {each:6.2f} core hours, {each * prices['core_hour']:.3f}" for what, each in hours.items()),
        f"  with a model: {read:.0f} M tokens read, {written:.1f} M written, {model:.2f}",
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sessions", type=int, default=5)
    parser.add_argument("--messages", type=int, default=200)
    for price, default in (("core-hour", 0.04), ("gigabyte-month", 0.1), ("tokens-in", 0.1), ("tokens-out", 0.4)):
        parser.add_argument(f"--{price}", type=float, default=default)
    asked = parser.parse_args()
    with resources.as_file(resources.files("reactor_memory") / "data" / "orders.jsonl.gz") as sample:
        said = [message for line in read_lines(sample) for message in line.messages]
    messages = list(session_of(said, asked.messages, seed=1))
    print(*told(asyncio.run(measure(messages, asked.sessions)), vars(asked)), sep="\n")


if __name__ == "__main__":
    main()
