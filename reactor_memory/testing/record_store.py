"""The suite for a `RecordStore`, and what makes the suites of a log run on one."""

from __future__ import annotations

import anyio
import pytest

from reactor_memory.core.ports import RecordStore
from reactor_memory.features.record_store.families import Families
from reactor_memory.features.record_store.record_log import RecordMessageStore
from reactor_memory.features.record_store.record_summaries import RecordSummaryStore


class StoreOfRecords(RecordMessageStore):
    """The log in records, with the summaries beside it: what `MessageStoreConformance` and `SummaryStoreConformance`
    take as their `store`.
    """

    def __init__(self, records: RecordStore) -> None:
        families = Families(records)
        super().__init__(families)
        self.summaries = RecordSummaryStore(families)


@pytest.mark.anyio
class RecordStoreConformance:
    """What every `RecordStore` promises. The fixture `records` gives an opened, empty one."""

    async def test_what_is_not_there_is_not_read(self, records: RecordStore) -> None:
        assert dict(await records.read(["a", "b"])) == {}
        assert dict(await records.read([])) == {}

    async def test_what_was_written_is_read(self, records: RecordStore) -> None:
        assert await records.write({"a": b"1", "b/%C3%A4": '"\u00e4\U0001f600"'.encode(), "c": b""}, expected={})
        assert await records.write({"a": b"2"}, expected={})
        found = await records.read(["c", "a", "b/%C3%A4", "a", "d"])
        assert dict(found) == {"a": b"2", "b/%C3%A4": '"\u00e4\U0001f600"'.encode(), "c": b""}

    async def test_what_is_taken_away_is_gone(self, records: RecordStore) -> None:
        await records.write({"a": b"1", "b": b"1"}, expected={})
        assert await records.write({"a": None, "never": None}, expected={"a": b"1"})
        assert dict(await records.read(["a", "b", "never"])) == {"b": b"1"}
        assert list(await records.names("", after="", limit=10)) == ["b"]

    @pytest.mark.parametrize("expected", [{"a": b"2"}, {"a": None}, {"b": b""}, {"a": b"1", "b": b"1"}])
    async def test_nothing_is_written_unless_all_is_as_expected(
        self, records: RecordStore, expected: dict[str, bytes | None]
    ) -> None:
        await records.write({"a": b"1"}, expected={})
        assert not await records.write({"a": b"9", "c": b"9"}, expected=expected)
        assert dict(await records.read(["a", "c"])) == {"a": b"1"}

    async def test_what_is_as_expected_may_be_written(self, records: RecordStore) -> None:
        assert await records.write({"a": b"1"}, expected={"a": None, "b": None})
        assert await records.write({"b": b"1"}, expected={"a": b"1"})
        assert await records.write({"a": b"2", "b": None}, expected={"a": b"1", "b": b"1"})
        assert dict(await records.read(["a", "b"])) == {"a": b"2"}

    async def test_names_come_in_order_page_by_page(self, records: RecordStore) -> None:
        names = ["log/a", "log/a%20b", "log/a-b", "log/a/b", "log/b", "made/a", "lo", "log"]
        await records.write(dict.fromkeys(names, b""), expected={})
        wanted = sorted(name for name in names if name.startswith("log/"))
        assert list(await records.names("log/", after="", limit=100)) == wanted
        assert list(await records.names("log/", after=wanted[1], limit=2)) == wanted[2:4]
        assert list(await records.names("log/", after=wanted[-1], limit=2)) == []
        assert list(await records.names("x", after="", limit=2)) == []

    async def test_of_writers_at_once_one_succeeds(self, records: RecordStore) -> None:
        outcomes: list[bool] = []

        async def write(number: int) -> None:
            outcomes.append(await records.write({"a": b"%d" % number}, expected={"a": None}))

        async with anyio.create_task_group() as writers:
            for number in range(10):
                writers.start_soon(write, number)
        assert outcomes.count(True) == 1
