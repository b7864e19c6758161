"""What proves that a part keeps its promises: conformance suites, and stand-ins for the clock and the summarizer.

For the tests of plug-ins and applications. It needs pytest (and its anyio plug-in, which comes with anyio). A store
is proven with one fixture::

    import pytest
    from reactor_memory.testing import MessageStoreConformance, SummaryStoreConformance

    @pytest.fixture
    async def store():
        store = MyStore(...)
        await store.open()
        yield store
        await store.close()

    class TestMyLog(MessageStoreConformance):
        pass

    class TestMySummaries(SummaryStoreConformance):
        pass

A store that keeps named records is proven by `RecordStoreConformance` with a fixture `records`, and its log by the
suites above with ``StoreOfRecords(records)`` as `store`.

`store` gives an opened, empty store. `MessageStoreConformance` needs a `MessageStore`; `SummaryStoreConformance` needs
one whose attribute `summaries` is a `SummaryStore`; `RecallIndexConformance` needs such a store, too, and a fixture
`index`. `StrategyConformance` needs a fixture `store_url` and the settings that select the strategy. The suites run
under asyncio, or whatever the fixture `anyio_backend` says.
"""

import pytest

pytest.register_assert_rewrite(
    *(
        f"reactor_memory.testing.{name}"
        for name in (
            "branching",
            "lifecycle",
            "log",
            "recall",
            "record_store",
            "summaries",
            "work",
        )
    )
)

from reactor_memory.testing.builders import (  # noqa: E402
    append_messages,
    numbered,
    stored_form,
    wall_clock,
)
from reactor_memory.testing.doubles import FakeClock, ScriptedCondenser, ScriptedSummarizer  # noqa: E402
from reactor_memory.testing.message_store import MessageStoreConformance  # noqa: E402
from reactor_memory.testing.recall import RecallIndexConformance  # noqa: E402
from reactor_memory.testing.record_store import RecordStoreConformance, StoreOfRecords  # noqa: E402
from reactor_memory.testing.strategies import StrategyConformance  # noqa: E402
from reactor_memory.testing.summary_store import SummaryStoreConformance  # noqa: E402

__all__ = [
    "FakeClock",
    "MessageStoreConformance",
    "RecallIndexConformance",
    "RecordStoreConformance",
    "ScriptedCondenser",
    "ScriptedSummarizer",
    "StoreOfRecords",
    "StrategyConformance",
    "SummaryStoreConformance",
    "append_messages",
    "numbered",
    "stored_form",
    "wall_clock",
]
