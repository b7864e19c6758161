"""The SQL of the log, and of each feature."""

from __future__ import annotations

from pathlib import Path

from reactor_memory.database.statements import Statements

_PACKAGE = Path(__file__).parents[1]

QUERIES = Statements(_PACKAGE / "core" / "log" / "queries.sql", *sorted((_PACKAGE / "features").glob("*/queries.sql")))
