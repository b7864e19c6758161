"""Sessions in a store of records: writers at once, faults of the store, names of every kind."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import anyio
import pytest

from reactor_memory.core.ports import RecordStore
from reactor_memory.errors import StoreClosedError, StoreCorruptError, StoreUnavailableError
from reactor_memory.models import Message
from reactor_memory.testing import StoreOfRecords, append_messages, wall_clock
from tests.doubles.dict_records import DictRecords

pytestmark = pytest.mark.anyio


async def opened(records: RecordStore) -> StoreOfRecords:
    store = StoreOfRecords(records)
    await store.open()
    return store


async def test_processes_that_append_at_once_leave_no_gap() -> None:
    records = DictRecords(waits=True)
    stores = [await opened(records) for _ in range(4)]

    async def append(store: StoreOfRecords, name: int) -> None:
        for number in range(5):
            said = [Message.user(f"{name} {number}")]
            await append_messages(store, "s", said, idempotency_key=f"{name} {number}", work_every=2)

    async with anyio.create_task_group() as writers:
        for name, store in enumerate(stores):
            writers.start_soon(append, store, name)
    messages = await stores[0].read("s", None)
    assert [each.seq for each in messages] == list(range(1, 21))
    assert sorted(each.content for each in messages) == sorted(f"{name} {n}" for name in range(4) for n in range(5))


async def test_a_read_asks_for_its_messages_alone() -> None:
    records = DictRecords()
    store = await opened(records)
    await append_messages(store, "s", [Message.user(f"text {number}") for number in range(300)])
    records.asked.clear()
    await store.read("s", None, last=10)
    assert sum(name.startswith("message/") for name in records.asked) == 10


class Failing(DictRecords):
    async def read(self, names: Sequence[str]) -> Mapping[str, bytes]:
        raise OSError("the password is s3cret")


async def test_a_fault_of_the_store_is_a_typed_error() -> None:
    store = await opened(Failing())
    with pytest.raises(StoreUnavailableError, match="store: Failing fails with a OSError") as raised:
        await store.get_session("s", None)
    assert "s3cret" not in str(raised.value)


class Refusing(DictRecords):
    async def write(self, records: Mapping[str, bytes | None], *, expected: Mapping[str, bytes | None]) -> bool:
        return False


async def test_a_store_that_always_refuses_is_given_up() -> None:
    store = await opened(Refusing())
    with pytest.raises(StoreUnavailableError, match="found no quiet moment for a write in 100 tries"):
        await append_messages(store, "s", [Message.user("hello")])


@pytest.mark.parametrize("name", ["log/s", "message/s/1"])
async def test_damaged_records_are_named_as_such(name: str) -> None:
    records = DictRecords()
    store = await opened(records)
    await append_messages(store, "s", [Message.user("hello")])
    records.kept[name] = b'{"'
    with pytest.raises(StoreCorruptError, match="store: a record is damaged"):
        await store.read("s", None)


async def test_a_message_whose_record_is_missing_is_told() -> None:
    records = DictRecords()
    store = await opened(records)
    await append_messages(store, "s", [Message.user("hello")])
    del records.kept["message/s/1"]
    with pytest.raises(StoreCorruptError, match="the record of a message is missing"):
        await store.read("s", None)


async def test_before_opening_and_after_closing_nothing_is_asked() -> None:
    store = StoreOfRecords(DictRecords())
    with pytest.raises(StoreClosedError):
        await store.read("s", None)
    await store.open()
    await store.close()
    with pytest.raises(StoreClosedError):
        await store.summaries.get_summary("s")


@pytest.mark.parametrize("name", ["a/b", "ä b", "owned/", "%2F", "日本"])
async def test_ids_of_every_kind_stay_apart(name: str) -> None:
    store = await opened(DictRecords())
    for user_id in (name, f"{name}/x", None):
        await append_messages(store, f"{name}-{user_id}", [Message.user(f"of {user_id}")], user_id=user_id)
    for user_id in (name, f"{name}/x", None):
        page = await store.list_sessions(user_id)
        assert [each.session_id for each in page.sessions] == [f"{name}-{user_id}"]


async def test_of_a_purged_session_nothing_is_left() -> None:
    records = DictRecords()
    store = await opened(records)
    await append_messages(store, "s", [Message.user("canary")], user_id="canary-user", idempotency_key="canary-key")
    await store.fork("s", "canary-user", at_seq=2, fork_id="s~f", now=wall_clock())
    await append_messages(store, "s~f", [Message.user("canary")], user_id="canary-user", idempotency_key="canary-key")
    await store.delete("s", "canary-user", now=wall_clock(), purge=False)
    assert await store.purge_deleted(before=wall_clock() + 10**9) == 2
    assert sorted(records.kept) == ["log/s", "made/s"]
    assert b'"canary"' not in b"".join(records.kept.values())
    assert await store.purge_deleted(before=wall_clock() + 10**9) == 0
