"""Where things are kept under given settings: in the database, in a plug-in's store, elsewhere, nowhere."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from reactor_memory.core.context.strategy import Strategy
from reactor_memory.core.log.message_store import SqlMessageStore
from reactor_memory.database.database import Database
from reactor_memory.features.recall.wiring import no_recall_index, sql_recall_index
from reactor_memory.features.record_store import wiring as record_store_wiring
from reactor_memory.features.responses.wiring import sql_stream_store
from reactor_memory.features.tiers.wiring import ranged
from reactor_memory.settings.setting_values import canonical_name
from reactor_memory.settings.settings import Settings
from reactor_memory.wiring.own_parts import OWN_PARTS
from reactor_memory.wiring.plugins import ConditionReport, discover, evaluate
from reactor_memory.wiring.selection import (
    is_in_database,
    is_plugged,
    named_by,
    provider_of,
    scheme_of,
    selected,
)

if TYPE_CHECKING:
    from reactor_memory.core.log.hot_heads import HotHeads
    from reactor_memory.core.ports import (
        ContextSource,
        KeptElsewhere,
        MessageStore,
        RecallIndex,
        RecordStore,
        Summarizer,
        SummaryStore,
    )
    from reactor_memory.features.record_store.families import Families
    from reactor_memory.features.responses.models import ResponseStore


def conditions_of(settings: Settings) -> ConditionReport:
    """What is available under these settings, and why."""
    return evaluate([OWN_PARTS, *discover()], settings)


def database_of(report: ConditionReport, url: str, settings: Settings) -> Database:
    """The database that the address of the store names; none if that is a plug-in's store."""
    scheme = scheme_of(url)
    if is_plugged(report, scheme):
        from reactor_memory.database.absent import AbsentDatabase

        return AbsentDatabase(scheme)
    return selected(report, "database", scheme, "store.url", settings)


def hot_heads_of(in_database: str, database: Database, settings: Settings) -> HotHeads | None:
    """None where nothing is kept of what loads read: only SQLite counts what proves it."""
    if not settings.store.hot_bytes or in_database != "on" or database.engine != "sqlite":
        return None
    from reactor_memory.core.log.hot_heads import HotHeads

    return HotHeads(database, settings.store.hot_bytes)


def message_store_of(
    report: ConditionReport,
    families: Families | None,
    database: Database,
    forget_in: int | None,
    heads: HotHeads | None,
    settings: Settings,
) -> MessageStore:
    """A plug-in's store of the log for this scheme, else the log in the database."""
    if families is not None:
        return record_store_wiring.message_store(families)
    scheme = scheme_of(settings.store.url)
    if scheme in report.factories["message_store"]:
        return selected(report, "message_store", scheme, "store.url", settings)
    return SqlMessageStore(database, forget_in=forget_in, heads=heads)


def record_store_of(report: ConditionReport, settings: Settings) -> RecordStore | None:
    """The records of a plug-in that the address of the store names, if it names some."""
    scheme = scheme_of(settings.store.url)
    if scheme not in report.factories["record_store"] or scheme in report.factories["message_store"]:
        return None
    return selected(report, "record_store", scheme, "store.url", settings)


def plugged_summary_store(report: ConditionReport, families: Families | None, settings: Settings) -> SummaryStore:
    """What a plug-in supplies beside its store of the log."""
    if families is not None:
        return record_store_wiring.summary_store(families)
    return selected(report, "summary_store", scheme_of(settings.store.url), "store.url", settings)


def chat_summarizer_of(report: ConditionReport, settings: Settings) -> Summarizer:
    """The summarizer of the chat memory alone."""
    key = "chat_memory.summarizer"
    name = settings.chat_memory.summarizer
    return selected(report, "summarizer", provider_of(settings, key), key, settings.asking(name))


STORE_INDEX = "store"
"""The name, among recall indexes, of the one in the database of the log; a store that is none is searched directly."""


def where_index_is(report: ConditionReport, settings: Settings) -> str:
    name = canonical_name(settings.recall.index)
    if name != STORE_INDEX or STORE_INDEX in report.factories["recall_index"]:
        return "elsewhere"
    return "database" if is_in_database(report, settings) == "on" else "nowhere"


def recall_index_of(where: str, database: Database, report: ConditionReport, settings: Settings) -> RecallIndex:
    if where == "elsewhere":
        return named_by(report, "recall_index", "recall.index", settings)
    return sql_recall_index(database) if where == "database" else no_recall_index(settings)


IN_DATABASE = "database"
"""The name, among backends of streams, of the database of the log; a store that is none streams nothing."""


def where_responses_are(report: ConditionReport, settings: Settings) -> str:
    name = canonical_name(settings.streams.backend)
    if name == "none":
        return "nowhere"
    if name != IN_DATABASE or IN_DATABASE in report.factories["stream_store"]:
        return "elsewhere"
    return "database" if is_in_database(report, settings) == "on" else "nowhere"


def response_store_of(
    where: str, database: Database, report: ConditionReport, settings: Settings
) -> ResponseStore | None:
    if where == "elsewhere":
        return named_by(report, "stream_store", "streams.backend", settings)
    if where == "nowhere":
        return None
    return sql_stream_store(database)


def forget_in_of(elsewhere: Sequence[KeptElsewhere], in_database: str, settings: Settings) -> int | None:
    """In how many microseconds anybody may do what a deletion leaves to do elsewhere: not while the process may live
    that began it. None where there is nothing to do, or no database to note it in.
    """
    return settings.background.lease_microseconds if elsewhere and in_database == "on" else None


def context_source_of(
    message_store: MessageStore,
    summary_store: SummaryStore,
    families: Families | None,
    in_database: str,
    strategy: Strategy,
    needed_database: Callable[[], Database],
) -> ContextSource:
    """A database answers a load in one round trip, and so do records; two stores are joined."""
    is_one = in_database == "on" or (
        families is not None and record_store_wiring.are_records(message_store, summary_store)
    )
    source = message_store if is_one else _joined(message_store, summary_store)
    return ranged(source, strategy, needed_database)


def _joined(message_store: MessageStore, summary_store: SummaryStore) -> ContextSource:
    from reactor_memory.core.joined_context_source import JoinedContextSource

    return JoinedContextSource(message_store, summary_store)
