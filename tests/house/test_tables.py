"""Each statement names tables of the log and of its own feature. What it names beyond that stands here, each a hook to
come."""

from __future__ import annotations

import re
from pathlib import Path

from reactor_memory.database.schema import prepared_schema
from reactor_memory.database.statements import parse
from tests.house.picture import PACKAGE

LOG = {"conversations", "messages", "context_layouts", "background_work", "reactor_memory_revision"}
OWNED = {
    "active_sessions": {"active_sessions"},
    "entries": {"entries"},
    "facts": {"segments", "facts", "fact_anchors", "conversation_summaries", "summary_spending", "fact_corrections"},
    "items": {"items"},
    "overview": {"agent_settings"},
    "recall": {"recall_ranges", "recall_passages", "recall_terms", "recall_postings"},
    "replay": {"load_records"},
    "responses": {"responses", "response_pieces"},
    "search": {"search_progress", "search_entries", "embeddings"},
    "sharing": {
        "memberships",
        "ownership_transfers",
        "audit_records",
        "api_keys",
        "answered_requests",
        "service_secrets",
    },
}
ARROWS = {
    "posted_summaries": {"entries"},
    "recall": {"facts"},
    "responses": {"sharing"},
    "search": {"recall", "sharing"},
    "tiers": {"entries", "facts"},
}
"""Which features may know the tables of which others."""

ONE_ROUND_TRIP = {"entries", "conversation_summaries"}
"""A load reads the session, its pins and its summary at once, so the statements of the log know their tables."""

BEYOND = {
    ("list_users", "active_sessions"),
    ("list_users", "entries"),
    ("list_users", "items"),
}

_TABLE = re.compile(r"\b(?:FROM|JOIN|INTO|UPDATE)\s+(\w+)")


def test_every_table_has_an_owner() -> None:
    created = set(re.findall(r"CREATE (?:VIRTUAL )?TABLE (\w+)", prepared_schema()))
    assert created == LOG.union(*OWNED.values())


def test_statements_name_what_they_may_know() -> None:
    tables = LOG.union(*OWNED.values())
    found = set[tuple[str, str]]()
    for path in (PACKAGE / "core" / "log" / "queries.sql", *sorted((PACKAGE / "features").glob("*/queries.sql"))):
        known = known_in(path)
        for block in parse(path.read_text(encoding="utf-8")):
            found |= {(block.name, table) for table in _TABLE.findall(block.statement) if table in tables - known}
    assert found == BEYOND


def known_in(path: Path) -> set[str]:
    room = path.parent.name
    if room == "log":
        return LOG | ONE_ROUND_TRIP
    return LOG.union(*(OWNED.get(each, set[str]()) for each in (room, *ARROWS.get(room, ()))))
