"""A store of a plug-in, without a database, keeps the promises of every store by the suites that the library ships."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from sample_plugin.store import LinesStore

from reactor_memory.extend import Message, Settings
from reactor_memory.testing import (
    MessageStoreConformance,
    RecordStoreConformance,
    StoreOfRecords,
    SummaryStoreConformance,
    append_messages,
)


@pytest.fixture
def lines(tmp_path: Path) -> LinesStore:
    return LinesStore(Settings(store={"url": f"sample:///{tmp_path}/kept.jsonl"}))  # type: ignore[arg-type]


@pytest.fixture
async def records(lines: LinesStore) -> AsyncIterator[LinesStore]:
    await lines.open()
    yield lines
    await lines.close()


@pytest.fixture
async def store(lines: LinesStore) -> AsyncIterator[StoreOfRecords]:
    store = StoreOfRecords(lines)
    await store.open()
    yield store
    await store.close()


class TestSampleRecords(RecordStoreConformance):
    pass


class TestSampleLog(MessageStoreConformance):
    pass


class TestSampleSummaries(SummaryStoreConformance):
    pass


@pytest.mark.anyio
async def test_a_write_that_was_broken_off_is_none(lines: LinesStore, tmp_path: Path) -> None:
    store, kept = StoreOfRecords(lines), tmp_path / "kept.jsonl"
    await store.open()
    await append_messages(store, "s", [Message.user("hello")])
    await store.close()
    whole = kept.read_bytes()
    kept.write_bytes(whole + whole[:-5])
    await store.open()
    await append_messages(store, "s", [Message.user("again")])
    assert [each.content for each in await store.read("s", None)] == ["hello", "again"]
    await store.close()
    await store.open()
    assert len(await store.read("s", None)) == 2
    await store.close()
