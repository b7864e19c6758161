"""A plug-in whose store keeps the log and summaries, and is no database: ``plain://``."""

from __future__ import annotations

import pytest

from reactor_memory.core.log.message_store import SqlMessageStore
from reactor_memory.core.log.summary_store import SqlSummaryStore
from reactor_memory.features.facts.wiring import sql_summary_store
from reactor_memory.settings.settings import Settings
from reactor_memory.wiring import stores
from reactor_memory.wiring.plugins import Plugin
from tests.doubles.dict_records import DictRecords
from tests.scenes.stores import memory_database

PLAIN = "plain://"
RECORDS = "records://"


def plug_in_plain_store(monkeypatch: pytest.MonkeyPatch) -> None:
    database = memory_database()

    def messages(settings: Settings) -> SqlMessageStore:
        return SqlMessageStore(database)

    def summaries(settings: Settings) -> SqlSummaryStore:
        return sql_summary_store(database)

    plugin = Plugin(
        name="plain", provides={"message_store": {"plain": messages}, "summary_store": {"plain": summaries}}
    )
    monkeypatch.setattr(stores, "discover", lambda: (plugin,))


def plug_in_records(monkeypatch: pytest.MonkeyPatch) -> DictRecords:
    """A plug-in whose store keeps records: ``records://``. The records."""
    records = DictRecords()
    plugin = Plugin(name="records", provides={"record_store": {"records": lambda settings: records}})
    monkeypatch.setattr(stores, "discover", lambda: (plugin,))
    return records
