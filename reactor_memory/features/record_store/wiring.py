"""How a log and its summaries are made of the records of a plug-in."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from reactor_memory.core.ports import MessageStore, RecordStore, SummaryStore
    from reactor_memory.features.record_store.families import Families


def families_of(records: RecordStore | None) -> Families | None:
    if records is None:
        return None
    from reactor_memory.features.record_store.families import Families

    return Families(records)


def message_store(families: Families) -> MessageStore:
    from reactor_memory.features.record_store.record_log import RecordMessageStore

    return RecordMessageStore(families)


def summary_store(families: Families) -> SummaryStore:
    from reactor_memory.features.record_store.record_summaries import RecordSummaryStore

    return RecordSummaryStore(families)


def are_records(messages: MessageStore, summaries: SummaryStore) -> bool:
    """Whether both are made of records, and nobody replaced one of the two."""
    from reactor_memory.features.record_store.record_log import RecordMessageStore
    from reactor_memory.features.record_store.record_summaries import RecordSummaryStore

    return isinstance(messages, RecordMessageStore) and isinstance(summaries, RecordSummaryStore)
