"""What only the SQLite store promises: its connections, its group commit, its transactions."""

import asyncio
import random
import sqlite3
import sys
import threading
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from itertools import count
from pathlib import Path
from queue import SimpleQueue
from time import monotonic
from typing import Any, TypeVar, cast

import aiosqlite
import anyio
import pytest
from msgspec.structs import replace

from reactor_memory.core.log.message_store import APPENDS
from reactor_memory.database.deadlines import within
from reactor_memory.database.grouped_writes import GroupedWrites, Waiting
from reactor_memory.database.sqlite import SqliteDatabase
from reactor_memory.database.sqlite_thread import SqliteThread
from reactor_memory.errors import (
    SchemaError,
    SessionOwnershipError,
    StoreClosedError,
    StoreCorruptError,
    StoreError,
    StoreFullError,
    StoreUnavailableError,
)
from reactor_memory.models import Message
from reactor_memory.models.block_lines import Layout
from reactor_memory.models.index_requests import IndexPart
from reactor_memory.models.ledger import Summary
from reactor_memory.models.requests import SUMMARIZE, Appended, AppendRequest, ContextQuery
from reactor_memory.testing import append_messages, numbered, stored_form
from reactor_memory.testing.summary_recording import fact, layout, segment
from tests.scenes.interruption import cancelled_at
from tests.scenes.stores import SqlStore, sqlite_store

pytestmark = pytest.mark.anyio

T = TypeVar("T")

APPENDER = """
import sys, anyio
from reactor_memory.testing import append_messages, numbered
from tests.scenes.stores import sqlite_store

async def main(path, name, count):
    store = sqlite_store(path, timeout_seconds=60)
    await store.open()
    for number in range(count):
        await append_messages(store, "s", numbered(2), idempotency_key=f"{name} {number}")
        print(f"{name} {number}", flush=True)
    await store.close()

anyio.run(main, sys.argv[1], sys.argv[2], int(sys.argv[3]))
"""


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[SqlStore]:
    store = sqlite_store(tmp_path / "memory.db")
    await store.open()
    yield store
    await store.close()


def levels_of_commits(store: SqlStore) -> list[str]:
    """How each commit from now on waits for the disk."""
    level, levels = "FULL", list[str]()

    def take_note(statement: str) -> None:
        nonlocal level
        if statement.startswith("PRAGMA synchronous = "):
            level = statement.rpartition(" ")[2]
        elif statement == "COMMIT":
            levels.append(level)

    writer_of(store).session.connection.set_trace_callback(take_note)
    return levels


def database_of(store: SqlStore) -> SqliteDatabase:
    assert isinstance(store.database, SqliteDatabase)
    return store.database


def writer_of(store: SqlStore) -> SqliteThread:
    writer = database_of(store)._writer
    assert writer is not None
    return writer


def reader_of(store: SqlStore) -> SqliteThread:
    reader = database_of(store)._reader
    assert reader is not None
    return reader


async def run_on_thread(thread: SqliteThread, work: Callable[[sqlite3.Connection], T]) -> T:
    return await thread.run(lambda: work(thread.session.connection), monotonic() + 60, writes=True)


async def ask(thread: SqliteThread, sql: str) -> object:
    return await run_on_thread(thread, lambda raw: raw.execute(sql).fetchone()[0])


def rows_in(path: Path, sql: str) -> list[tuple[object, ...]]:
    connection = sqlite3.connect(path)
    try:
        return connection.execute(sql).fetchall()
    finally:
        connection.close()


async def eventually_closed(connection: sqlite3.Connection) -> None:
    """Returns when it is; what closes it goes on after whoever asked for it has left."""
    with anyio.fail_after(30):
        while not is_closed(connection):  # noqa: ASYNC110 - what sets it is no task
            await asyncio.sleep(0.001)


def is_closed(connection: sqlite3.Connection) -> bool:
    try:
        return connection.total_changes < 0
    except sqlite3.ProgrammingError:
        return True


class TestConnections:
    async def test_commits_are_durable(self, store: SqlStore) -> None:
        assert await ask(writer_of(store), "PRAGMA journal_mode") == "wal"
        assert await ask(writer_of(store), "PRAGMA synchronous") == 2

    async def test_appends_and_segments_wait_for_disk_and_leases_do_not(self, store: SqlStore) -> None:
        levels = levels_of_commits(store)
        await append_messages(store, "s", numbered(10))
        lease = await store.summaries.claim("s", SUMMARIZE, now=0, lease_microseconds=10**9)
        assert lease is not None
        assert await store.summaries.record_segment(
            lease, segment("s", 1, 4), [fact(2)], Summary(covered_seq=4, version=1)
        )
        assert await store.index.extend(lease, IndexPart(conversation_id="s", start_seq=1, end_seq=4, passages=()))
        await store.summaries.put_layout("s", layout(4), budget=0, settings_fingerprint="")
        await store.summaries.renew(lease, now=0, lease_microseconds=10**9)
        await store.summaries.release(lease, due_at=None)
        await store.withdraw("s", None, seq=None, now=0, refold=lambda ledger: Summary())
        await store.delete("s", None, now=0, purge=True)
        assert levels == ["FULL", "NORMAL", "FULL", *["NORMAL"] * 4, "FULL", "FULL"]

    async def test_a_failed_lease_leaves_the_next_append_durable(self, store: SqlStore) -> None:
        await append_messages(store, "s", numbered(2))
        levels = levels_of_commits(store)
        with pytest.raises(StoreError):
            await store.summaries.claim("s", SUMMARIZE, now=0, lease_microseconds=2**70)
        await append_messages(store, "s", numbered(2))
        assert levels == ["FULL"]

    async def test_the_reader_cannot_write(self, store: SqlStore) -> None:
        with pytest.raises(sqlite3.OperationalError, match="readonly"):
            await ask(reader_of(store), "DELETE FROM messages RETURNING seq")

    async def test_private_call_that_we_rely_on_runs_function_on_thread(self, store: SqlStore) -> None:
        assert isinstance(aiosqlite.Connection(lambda: sqlite3.connect(":memory:"), 1)._tx, SimpleQueue)
        threads = [
            await run_on_thread(each, lambda _: threading.get_ident()) for each in (writer_of(store), reader_of(store))
        ]
        assert len({*threads, threading.get_ident()}) == 3

    async def test_a_path_that_names_no_file_is_told(self, tmp_path: Path) -> None:
        (tmp_path / "notes.txt").write_text("no database " * 100)
        told = {"no folder/memory.db": "no folder does not exist; make it", ".": "is a folder; name a file in it"}
        for path, reason in told.items():
            with pytest.raises(StoreUnavailableError, match=reason):
                await sqlite_store(tmp_path / path).open()
        with pytest.raises(StoreCorruptError, match="is no SQLite database, or its header is damaged"):
            await sqlite_store(tmp_path / "notes.txt").open()

    async def test_opened_in_one_task_and_closed_in_another(self, tmp_path: Path) -> None:
        store = sqlite_store(tmp_path / "memory.db")
        await asyncio.create_task(store.open())
        await asyncio.create_task(append_messages(store, "s", numbered(2)))
        await asyncio.create_task(store.close())
        with pytest.raises(StoreClosedError):
            await store.get_session("s", None)
        with pytest.raises(StoreClosedError):
            await append_messages(store, "s", numbered(1))

    async def test_closing_finishes_what_was_begun(self, tmp_path: Path) -> None:
        store = sqlite_store(tmp_path / "memory.db")
        await store.open()
        appends = [asyncio.create_task(append_messages(store, "s", numbered(1))) for _ in range(100)]
        await asyncio.sleep(0)
        await store.close()
        assert sorted([(await each).first_seq for each in appends]) == list(range(1, 101))

    async def test_a_cancelled_close_leaves_no_connection_open(self, tmp_path: Path) -> None:
        for at in count():
            store = sqlite_store(tmp_path / "memory.db")
            await store.open()
            opened = [each.session.connection for each in (writer_of(store), reader_of(store))]
            cancelled = await cancelled_at(store.close(), at, "task")
            for connection in opened:
                await eventually_closed(connection)
            if not cancelled:
                break
        assert at > 1

    def test_a_loop_closed_during_calls_leaves_no_connection_open(self, tmp_path: Path) -> None:
        store = sqlite_store(tmp_path / "memory.db")
        opened: list[sqlite3.Connection] = []
        begun, go_on = threading.Event(), threading.Event()

        def wait(_: sqlite3.Connection) -> None:
            begun.set()
            go_on.wait(60)

        async def leave_a_call_running_and_a_close_behind_it() -> None:
            await store.open()
            opened.extend(each.session.connection for each in (writer_of(store), reader_of(store)))
            call = asyncio.create_task(run_on_thread(writer_of(store), wait))
            assert await asyncio.to_thread(begun.wait, 60)
            closing = asyncio.create_task(store.close())
            await asyncio.sleep(0.01)
            call.cancel()
            closing.cancel()

        asyncio.run(leave_a_call_running_and_a_close_behind_it())
        go_on.set()
        for connection in opened:
            asyncio.run(eventually_closed(connection))

    async def test_a_program_that_forgets_to_close_ends(self, tmp_path: Path) -> None:
        program = "import sys, anyio\nfrom tests.scenes.stores import sqlite_store\n"
        program += "store = sqlite_store(sys.argv[1])\nanyio.run(store.open)"
        with anyio.fail_after(60):
            await anyio.run_process([sys.executable, "-c", program, str(tmp_path / "memory.db")])


class TestFaults:
    async def test_a_file_of_another_kind(self, tmp_path: Path) -> None:
        path = tmp_path / "memory.db"
        path.write_bytes(b"no database at all " * 100)
        with pytest.raises(StoreCorruptError):
            await sqlite_store(path).open()

    async def test_a_database_of_another_program(self, tmp_path: Path) -> None:
        path = tmp_path / "memory.db"
        rows_in(path, "CREATE TABLE messages (id INTEGER)")
        with pytest.raises(SchemaError, match="another program"):
            await sqlite_store(path).open()

    async def test_a_locked_file_and_after(self, store: SqlStore, tmp_path: Path) -> None:
        other = sqlite3.connect(tmp_path / "memory.db", isolation_level=None)
        other.execute("BEGIN IMMEDIATE")
        for refused in (append_messages(store, "s", numbered(1)), store.summaries.forget(["s"])):
            with pytest.raises(StoreUnavailableError, match=r"locked|in time"), within(0.2):
                await refused
        assert await store.get_session("s", None) is None
        other.execute("ROLLBACK")
        other.close()
        assert await append_messages(store, "s", numbered(1)) == Appended(first_seq=1, last_seq=1)

    async def test_a_full_disk_and_after(self, store: SqlStore) -> None:
        await append_messages(store, "s", numbered(2))
        pages = await ask(writer_of(store), "PRAGMA page_count")
        await ask(writer_of(store), f"PRAGMA max_page_count = {pages}")
        with pytest.raises(StoreFullError):
            await append_messages(store, "s", [Message.user("x" * 100_000)])
        assert len(await store.read("s", None)) == 2
        await ask(writer_of(store), "PRAGMA max_page_count = 1000000")
        assert (await append_messages(store, "s", numbered(1))).first_seq == 3

    async def test_a_row_that_cannot_be_read(self, store: SqlStore, tmp_path: Path) -> None:
        await append_messages(store, "s", [Message.user("x", metadata={"a": 1})])
        await run_on_thread(writer_of(store), lambda raw: raw.execute("UPDATE messages SET metadata = '{'").rowcount)
        with pytest.raises(StoreCorruptError):
            await store.read("s", None)

    async def test_what_cannot_be_stored_is_not_repeated(self, store: SqlStore) -> None:
        with pytest.raises(StoreError) as caught:
            await append_messages(store, "s", [Message.user("canary \ud800")])
        assert "canary" not in repr(caught.value)
        assert caught.value.__cause__ is None
        assert await store.get_session("s", None) is None

    async def test_a_gap_is_found(self, store: SqlStore) -> None:
        await append_messages(store, "s", numbered(3))
        await run_on_thread(writer_of(store), lambda raw: raw.execute("DELETE FROM messages WHERE seq = 2").rowcount)
        assert (await store.check()).problems == ("session 's': its counter and its messages disagree",)


@pytest.mark.parametrize("outcome", ["written", StoreUnavailableError("store: gone")])
async def test_ctrl_c_cancels_between_any_two_lines(outcome: object) -> None:
    for wanted in range(5):
        waiting = Waiting(APPENDS, request("s"), float("inf"))
        lines = count()

        def trace(
            frame: Any, event: str, _: object, future: Any = waiting.future, lines: Any = lines, at: int = wanted
        ) -> Any:
            if frame.f_code.co_name == "settle" and event == "line" and next(lines) == at:
                future.cancel()
            return trace

        sys.settrace(trace)
        try:
            waiting.settle(outcome)
        finally:
            sys.settrace(None)
        assert waiting.future.done()
        assert waiting.future.cancelled() or waiting.future.exception() or waiting.future.result() == "written"


class TestGroupCommit:
    async def test_waiting_appends_share_a_commit(self) -> None:
        batches: list[int] = []
        appends = GroupedWrites(recorded(batches))
        await asyncio.gather(*(put(appends, request(f"s{number}")) for number in range(100)))
        assert batches == [64, 36]

    async def test_the_first_goes_out_at_once(self) -> None:
        batches: list[int] = []
        appends = GroupedWrites(recorded(batches))
        first = asyncio.create_task(put(appends, request("s")))
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        await asyncio.gather(first, *(put(appends, request(f"s{number}")) for number in range(5)))
        assert batches == [1, 5]

    async def test_one_that_left_is_left_out(self) -> None:
        batches: list[int] = []
        appends = GroupedWrites(recorded(batches))
        tasks = [asyncio.create_task(put(appends, request(f"s{number}"))) for number in range(3)]
        await asyncio.sleep(0)
        tasks[1].cancel()
        await asyncio.wait(tasks)
        await appends.finish()
        assert sum(batches) == 2

    async def test_a_fault_of_the_commit_reaches_everyone(self) -> None:
        async def fail(batch: Sequence[Waiting]) -> Sequence[object]:
            raise StoreUnavailableError("store: gone")

        appends = GroupedWrites(fail)
        results = await asyncio.gather(
            *(put(appends, request(f"s{number}")) for number in range(3)), return_exceptions=True
        )
        assert [type(result) for result in results] == [StoreUnavailableError] * 3

    async def test_what_is_kept_apart_is_written_one_after_the_other(self) -> None:
        batches: list[list[str]] = []

        async def write(batch: Sequence[Waiting]) -> Sequence[object]:
            batches.append([each.request.session_id for each in batch])
            await asyncio.sleep(0)
            return [Appended(first_seq=1, last_seq=1)] * len(batch)

        appends = GroupedWrites(write, writers=2, apart=True)
        names = ("a", "a~2", "b", "a~3", "b~2", "c")
        await asyncio.gather(*(put(appends, request(name)) for name in names))
        assert batches == [["a", "b", "c"], ["a~2", "b~2"], ["a~3"]]

    async def test_several_batches_are_written_at_once(self) -> None:
        begun: list[int] = []
        both = asyncio.Event()

        async def write(batch: Sequence[Waiting]) -> Sequence[object]:
            begun.append(len(batch))
            if len(begun) == 2:
                both.set()
            await both.wait()
            return [Appended(first_seq=1, last_seq=1)] * len(batch)

        appends = GroupedWrites(write, writers=2)
        async with asyncio.timeout(5):
            await asyncio.gather(*(put(appends, request(f"s{number}")) for number in range(70)))
        assert begun == [64, 6]

    async def test_a_writer_that_is_cancelled_strands_nobody(self) -> None:
        async def write(batch: Sequence[Waiting]) -> Sequence[object]:
            raise asyncio.CancelledError

        appends = GroupedWrites(write)
        results = await asyncio.gather(
            *(put(appends, request(f"s{number}")) for number in range(70)), return_exceptions=True
        )
        assert [type(result) for result in results] == [asyncio.CancelledError] * 70

    async def test_a_writer_that_is_cancelled_before_it_begins_strands_nobody(self) -> None:
        appends = GroupedWrites(recorded([]))
        others = asyncio.all_tasks()
        waiting = asyncio.create_task(put(appends, request("s")))
        await asyncio.sleep(0)
        (writer,) = asyncio.all_tasks() - others - {waiting}
        writer.cancel()
        async with asyncio.timeout(5):
            assert isinstance((await asyncio.gather(waiting, return_exceptions=True))[0], asyncio.CancelledError)
            await appends.finish()
            assert await put(appends, request("s")) == Appended(first_seq=1, last_seq=1)

    async def test_one_that_is_refused_does_not_hurt_its_neighbours(self, store: SqlStore) -> None:
        await append_messages(store, "owned", numbered(1), user_id="u")
        results = await asyncio.gather(
            append_messages(store, "a", numbered(2)),
            append_messages(store, "owned", numbered(2), user_id="somebody else"),
            append_messages(store, "b", numbered(2)),
            return_exceptions=True,
        )
        assert [type(result) for result in results] == [Appended, SessionOwnershipError, Appended]

    async def test_one_that_the_database_refuses_does_not_hurt_its_neighbours(self, store: SqlStore) -> None:
        results = await asyncio.gather(
            append_messages(store, "a", numbered(2)),
            append_messages(store, "broken", [Message.user("fine"), Message.user("\ud800")]),
            append_messages(store, "b", numbered(2)),
            return_exceptions=True,
        )
        assert [type(result) for result in results] == [Appended, StoreError, Appended]
        assert await store.get_session("broken", None) is None
        assert len(await store.read("a", None)) == len(await store.read("b", None)) == 2

    async def test_the_same_batch_twice_at_once_is_stored_once(self, store: SqlStore) -> None:
        results = await asyncio.gather(
            *(append_messages(store, "s", numbered(2), idempotency_key="k") for _ in range(8))
        )
        assert {(each.first_seq, each.last_seq) for each in results} == {(1, 2)}
        assert sorted(each.replayed for each in results) == [False] + [True] * 7


class TestCancellation:
    async def test_a_storm_leaves_no_transaction_open(self, store: SqlStore) -> None:
        dice = random.Random(7)
        acknowledged: list[str] = []

        async def save(number: int) -> None:
            await append_messages(store, f"s{number % 5}", numbered(2), idempotency_key=f"k{number}")
            acknowledged.append(f"k{number}")

        for wave in range(20):
            tasks = [asyncio.create_task(save(wave * 10 + number)) for number in range(10)]
            for task in tasks:
                if dice.random() < 0.5:
                    await anyio.sleep(dice.random() / 2000)
                    task.cancel()
            await asyncio.wait(tasks)
        assert not await run_on_thread(writer_of(store), lambda raw: raw.in_transaction)
        assert (await store.check()).problems == ()
        stored = await run_on_thread(
            writer_of(store),
            lambda raw: raw.execute("SELECT batch_key FROM messages WHERE batch_key IS NOT NULL").fetchall(),
        )
        assert {key for (key,) in stored} >= set(acknowledged)

    async def test_a_cancelled_change_is_whole_or_not_at_all(self, store: SqlStore) -> None:
        await append_messages(store, "s", numbered(4))
        for number in range(30):
            task = asyncio.create_task(store.fork("s", None, at_seq=3, fork_id=f"s~{number}", now=number))
            await asyncio.sleep(0)
            task.cancel()
            await asyncio.wait([task])
        assert not await run_on_thread(writer_of(store), lambda raw: raw.in_transaction)
        await append_messages(store, "s", numbered(1))
        assert (await store.check()).problems == ()


class TestTwoProcesses:
    async def test_they_append_to_one_session_without_gaps(self, tmp_path: Path) -> None:
        """Both also create and migrate the file at the same time."""
        path = tmp_path / "memory.db"
        command = [sys.executable, "-c", APPENDER, str(path)]
        async with anyio.create_task_group() as tasks:
            for name in ("one", "two"):
                tasks.start_soon(anyio.run_process, [*command, name, "60"])
        assert rows_in(path, "SELECT COUNT(*), MIN(seq), MAX(seq) FROM messages") == [(240, 1, 240)]
        assert rows_in(path, "SELECT last_seq FROM conversations") == [(240,)]

    @pytest.mark.slow
    async def test_what_was_acknowledged_survives_a_kill(self, tmp_path: Path) -> None:
        path = tmp_path / "memory.db"
        acknowledged: set[str] = set()
        for round_number in range(3):
            command = [sys.executable, "-c", APPENDER, str(path), f"round {round_number}", "100000"]
            output = b""
            async with await anyio.open_process(command) as process:
                assert process.stdout is not None
                async for chunk in process.stdout:
                    output += chunk
                    if output.count(b"\n") > 20:
                        process.kill()
            acknowledged |= set(output.decode().split("\n")[:-1])
        assert len(acknowledged) > 60
        stored = {key for (key,) in rows_in(path, "SELECT batch_key FROM messages WHERE batch_key IS NOT NULL")}
        assert stored >= acknowledged
        store = sqlite_store(path)
        await store.open()
        assert (await store.check()).problems == ()
        await store.close()


def request(session_id: str) -> AppendRequest:
    return AppendRequest(session_id=session_id, user_id=None, messages=(stored_form(Message.user("x"), now=1),), now=1)


async def put(writes: GroupedWrites, request: AppendRequest) -> Appended:
    return await writes.put(APPENDS, request, monotonic() + 60)


def recorded(batches: list[int]):
    async def commit(batch: Sequence[Waiting]) -> Sequence[object]:
        batches.append(len(batch))
        await asyncio.sleep(0)
        return [Appended(first_seq=1, last_seq=1) for _ in batch]

    return commit


class TestReadingTheWindow:
    """Until the window moves, a load reads no more than it shows."""

    QUERY = ContextQuery(
        session_id="s", user_id=None, last_count=3, trigger_message_count=4, max_messages=9, max_tokens=1000
    )

    async def seqs(self, store: SqlStore, **changes: Any) -> list[int | None]:
        return [message.seq for message in (await store.read_context(replace(self.QUERY, **changes))).messages]

    async def put(self, store: SqlStore, start: int, session_id: str = "s") -> None:
        await store.summaries.put_layout(
            session_id, Layout(seq=10, window_start_seq=start), budget=self.QUERY.budget, settings_fingerprint=""
        )

    async def test_from_where_the_layout_says(self, store: SqlStore) -> None:
        await append_messages(store, "s", numbered(10))
        await self.put(store, 8)
        assert await self.seqs(store) == [8, 9, 10]
        assert await self.seqs(store, facts=True) == [2, 3, 4, 5, 6, 7, 8, 9, 10]
        assert await self.seqs(store, trigger_message_count=10, last_count=5) == [6, 7, 8, 9, 10]
        assert await self.seqs(store, max_messages=2) == [9, 10]

    async def test_everything_without_a_layout(self, store: SqlStore) -> None:
        await append_messages(store, "s", numbered(10))
        assert await self.seqs(store) == await self.seqs(store, facts=True)

    async def test_messages_before_where_none_is_of_the_user(self, store: SqlStore) -> None:
        said = [Message.user("a"), Message.assistant("b"), Message.user("c"), *[Message.assistant("d")] * 4]
        await append_messages(store, "s", said)
        newest = {"trigger_message_count": None, "before_count": 2}
        assert await self.seqs(store, last_count=4, **newest) == [2, 3, 4, 5, 6, 7]
        assert await self.seqs(store, last_count=5, **newest) == [3, 4, 5, 6, 7]
        assert await self.seqs(store, last_count=6, **newest) == [2, 3, 4, 5, 6, 7]

    async def test_messages_before_where_turns_may_run_at_once(self, store: SqlStore) -> None:
        await append_messages(store, "s", [Message.assistant("b"), Message.user("c"), Message.user("d")])
        assert await self.seqs(store, last_count=2, trigger_message_count=None, before_count=9) == [1, 2, 3]

    async def test_one_more_if_the_first_message_was_withdrawn(self, store: SqlStore) -> None:
        await append_messages(store, "s", numbered(8))
        await store.withdraw("s", None, seq=8, now=1, refold=lambda _: Summary())
        await append_messages(store, "s", numbered(2))
        await self.put(store, 8)
        assert await self.seqs(store) == [7, 9, 10]

    async def test_along_the_path_of_a_fork(self, store: SqlStore) -> None:
        await append_messages(store, "s", numbered(10))
        await store.fork("s", None, at_seq=8, fork_id="s~f", now=1)
        await append_messages(store, "s~f", numbered(2))
        for start, seqs in ((6, [6, 7, 8, 9]), (8, [8, 9])):
            await store.summaries.put_layout(
                "s~f", Layout(seq=start, window_start_seq=start), budget=0, settings_fingerprint=""
            )
            assert await self.seqs(store, session_id="s~f") == seqs


class TestInlineLoads:
    async def test_context_is_read_on_the_thread_of_the_event_loop(self, tmp_path: Path) -> None:
        async with inline_store(tmp_path) as store:
            await append_messages(store, "s", numbered(3))
            threads: list[int] = []
            inline = database_of(store)._inline
            assert inline is not None
            inline.connection.set_trace_callback(lambda _: threads.append(threading.get_ident()))
            rows = await store.read_context(ContextQuery(session_id="s", user_id="u1", last_count=2))
            assert [message.seq for message in rows.messages] == [2, 3]
            assert set(threads) == {threading.get_ident()}

    async def test_what_is_locked_is_waited_for_on_the_other_thread(self, tmp_path: Path) -> None:
        async with inline_store(tmp_path) as store:
            await append_messages(store, "s", numbered(3))
            inline = database_of(store)._inline
            assert inline is not None
            inline.connection.close()
            inline.connection = cast(sqlite3.Connection, Locked())
            rows = await store.read_context(ContextQuery(session_id="s", user_id="u1", last_count=2))
            assert [message.seq for message in rows.messages] == [2, 3]

    async def test_a_closed_store_says_so(self, tmp_path: Path) -> None:
        async with inline_store(tmp_path) as store:
            pass
        with pytest.raises(StoreClosedError):
            await store.read_context(ContextQuery(session_id="s", user_id="u1", last_count=2))


class Locked:
    """A connection that another process keeps from reading."""

    in_transaction = False

    def execute(self, statement: str) -> None:
        error = sqlite3.OperationalError("database is locked")
        error.sqlite_errorcode = sqlite3.SQLITE_BUSY
        raise error

    def close(self) -> None:
        pass


@asynccontextmanager
async def inline_store(folder: Path) -> AsyncGenerator[SqlStore]:
    store = sqlite_store(folder / "memory.db", inline_reads="always")
    await store.open()
    try:
        yield store
    finally:
        await store.close()
