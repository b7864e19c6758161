"""A store in a file of JSON lines, each of which is a write. It is for one process, and its writes block the loop."""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Mapping, Sequence
from pathlib import Path

from reactor_memory.extend import Settings

logger = logging.getLogger("sample_plugin.store")


class LinesStore:
    def __init__(self, settings: Settings) -> None:
        self._path = Path(settings.store.url.partition(":///")[2])
        self._kept: dict[str, bytes] = {}

    async def open(self) -> None:
        logger.info("open")
        self._file = self._path.open("a+b")
        self._file.seek(0)
        whole = 0
        for line in self._file.readlines():
            if line.endswith(b"\n"):  # else the process ended while it wrote, and nobody was told that it had
                whole += len(line)
                self._keep({name: text and text.encode() for name, text in json.loads(line).items()})
        self._file.truncate(whole)

    async def close(self) -> None:
        self._file.close()
        logger.info("close")

    async def read(self, names: Sequence[str]) -> Mapping[str, bytes]:
        return {name: self._kept[name] for name in names if name in self._kept}

    async def names(self, prefix: str, *, after: str, limit: int) -> Sequence[str]:
        return sorted(name for name in self._kept if name.startswith(prefix) and name > after)[:limit]

    async def write(self, records: Mapping[str, bytes | None], *, expected: Mapping[str, bytes | None]) -> bool:
        if any(self._kept.get(name) != record for name, record in expected.items()):
            return False
        line = json.dumps({name: None if record is None else record.decode() for name, record in records.items()})
        whole = self._file.seek(0, os.SEEK_END)
        try:
            self._file.write(f"{line}\n".encode())
            self._file.flush()
            os.fsync(self._file.fileno())
        except OSError:
            self._file.truncate(whole)
            raise
        self._keep(records)
        return True

    def _keep(self, records: Mapping[str, bytes | None]) -> None:
        for name, record in records.items():
            if record is None:
                self._kept.pop(name, None)
            else:
                self._kept[name] = record
