"""No database: a plug-in's store keeps the log and the summaries, and nothing else."""

from __future__ import annotations

from typing import Any, ClassVar, NoReturn

from reactor_memory.database.database import Database, Engine
from reactor_memory.errors import ConfigurationError

NEEDS_DATABASE = (
    "pins",
    "notes",
    "corrections",
    "archives",
    "posted summaries",
    "tiers",
    "chat memory",
    "active sessions",
    "overview",
    "replay",
    "erasure",
    "search",
    "sharing",
)
"""What is refused where the log is in a plug-in's store. Passages are recalled by reading the session."""


def no_database(scheme: str) -> ConfigurationError:
    """The error for a call that needs a database where a plug-in's store is selected."""
    problem = f"{scheme}:// keeps the log and summaries only: use sqlite:///file.db or postgresql:// for this"
    return ConfigurationError("store.url", problem)


class AbsentDatabase(Database):
    """Every verb raises `ConfigurationError`: `scheme` names a store of a plug-in, and this needs a database."""

    engine: ClassVar[Engine] = "sqlite"

    def __init__(self, scheme: str) -> None:
        self._scheme = scheme

    async def open(self) -> None:
        pass

    async def close(self) -> None:
        pass

    async def _refuse(self, *_: Any, **__: Any) -> NoReturn:
        raise no_database(self._scheme)

    read = read_long = write = write_relaxed = one = write_grouped = _refuse
