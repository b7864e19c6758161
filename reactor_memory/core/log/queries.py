"""The SQL of the log and of everything derived from it."""

from __future__ import annotations

from pathlib import Path

from reactor_memory.database.statements import Statements

QUERIES = Statements(Path(__file__).with_name("queries.sql"))
