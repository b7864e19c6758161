"""What is kept of sessions is given again only while nothing changed that a load reads, whoever changed it and how."""

from __future__ import annotations

import sqlite3
from collections.abc import AsyncGenerator, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, closing, contextmanager
from pathlib import Path
from time import monotonic
from typing import Any

import pytest
from msgspec.structs import astuple

from reactor_memory import Memory, Message, ToolCall, open_memory
from reactor_memory.core.context.context import Context
from reactor_memory.core.log.hot_heads import HotHeads, Newest
from reactor_memory.core.log.rows import key_of
from reactor_memory.database.schema import prepared_schema
from reactor_memory.database.statements import SqliteQuery
from reactor_memory.errors import SessionDeletedError, SessionOwnershipError
from reactor_memory.wiring.queries import QUERIES
from tests.acceptance.scenes import USER, scripted, settings, summarized_by, talk

pytestmark = pytest.mark.anyio

SUMMARY = {"trigger_message_count": 8, "recent_message_count": 4, "segment_message_count": 4}
BUDGET = 600


NEWEST_ONLY: dict[str, Any] = {"history": {"strategy": "take_last"}, "background": {"enabled": False}}


@asynccontextmanager
async def opened(file: Path, *, hot: int = 1_000_000, **sections: Any) -> AsyncGenerator[Memory]:
    url = f"sqlite:///{file}"
    chosen = settings(url, summary=SUMMARY, store={"url": url, "hot_bytes": hot}, **sections)
    async with open_memory(chosen, configure=summarized_by(scripted())) as memory:
        yield memory


@asynccontextmanager
async def hot_and_cold(file: Path, **sections: Any) -> AsyncGenerator[tuple[Memory, Memory]]:
    """Two memories over one file: one that keeps heads, one that does not, in the place of another process."""
    async with AsyncExitStack() as stack:
        hot = await stack.enter_async_context(opened(file, **sections))
        yield hot, await stack.enter_async_context(opened(file, hot=0, **sections))


async def filled(memory: Memory, *, messages: int = 30) -> None:
    await memory.save_history("s", talk(messages), user_id=USER)
    await memory.drain()
    await memory.pins.add("s", seq=3, user_id=USER)
    for budget in (None, BUDGET):
        await memory.load_history("s", user_id=USER, budget=budget)
    await memory.drain()


def heads_of(memory: Memory) -> HotHeads:
    heads = memory.container.hot_heads()
    assert heads is not None
    return heads


def exact(context: Context) -> tuple[object, ...]:
    return [astuple(each) for each in context.messages], context.report, context.system


async def answer(memory: Memory, **arguments: Any) -> object:
    try:
        return exact(await memory.load_history("s", user_id=USER, **arguments))
    except Exception as error:
        return type(error)


@contextmanager
def connected(file: Path) -> Iterator[sqlite3.Connection]:
    with closing(sqlite3.connect(file, isolation_level=None)) as connection:
        yield connection


# What proves it


READ = ("conversations", "messages", "entries", "conversation_summaries", "context_layouts")


async def tables_of_loads(file: Path) -> dict[str, set[str]]:
    """The tables that loads of every kind read from the file, and which columns."""
    read: dict[str, set[str]] = {}

    def authorize(action: int, table: str | None, column: str | None, *_: object) -> int:
        if action == sqlite3.SQLITE_READ and table and not table.startswith(("sqlite_", "json_")):
            read.setdefault(table, set()).add(column or "")
        return sqlite3.SQLITE_OK

    async with opened(file, hot=0) as memory:
        await filled(memory)
        session: Any = memory.container.database()
        session._inline.connection.set_authorizer(authorize)
        for arguments in ({}, {"budget": BUDGET}, {"before_seq": 9}):
            session._inline.connection.execute("PRAGMA query_only = ON")
            await memory.load_history("s", user_id=USER, **arguments)
    return read


MOVES_WITH_MESSAGES = {"view_from"}
"""It tells where messages that went out of view end, and these are counted."""


def counted(connection: sqlite3.Connection) -> set[tuple[str, str]]:
    rows = connection.execute("SELECT sql FROM sqlite_master WHERE type = 'trigger'").fetchall()
    return {(words[6], words[4]) for words in (sql.split() for (sql,) in rows)}


async def test_every_table_that_loads_read_is_counted(tmp_path: Path) -> None:
    read = await tables_of_loads(tmp_path / "s.db")
    proof = QUERIES.sqlite["proof"].text
    with connected(tmp_path / "s.db") as connection:
        triggers = counted(connection)
    assert set(READ) == set(read)
    for table, columns in read.items():
        if table == "conversations":
            assert all(column in proof for column in columns - MOVES_WITH_MESSAGES), columns
            continue
        kinds = {"UPDATE", "DELETE"} if table == "messages" else {"INSERT", "UPDATE", "DELETE"}
        assert {kind for name, kind in triggers if name == table} == kinds, table


def proof_in(connection: sqlite3.Connection) -> object:
    text, values, _ = QUERIES.sqlite["proof"]
    return connection.execute(text, values(key_of("s"))).fetchall()


async def test_a_change_of_any_column_is_another_proof(tmp_path: Path) -> None:
    file = tmp_path / "s.db"
    async with opened(file) as memory:
        await filled(memory)
    of_session = "WHERE conversation_id = 's'"
    with connected(file) as connection:
        for table in READ:
            columns = [row[1] for row in connection.execute(f"PRAGMA table_info({table})")]
            assert connection.execute(f"SELECT COUNT(*) FROM {table} {of_session}").fetchone()[0], table
            for column in columns:
                if table == "conversations" and column not in QUERIES.sqlite["proof"].text:
                    continue
                connection.execute("BEGIN")
                before = proof_in(connection)
                text = f"COALESCE({column}, '') || hex(randomblob(4))"
                other = f"CASE typeof({column}) WHEN 'integer' THEN -1 - {column} ELSE {text} END"
                connection.execute(f"UPDATE {table} SET {column} = {other} {of_session}")
                assert proof_in(connection) != before, (table, column)
                connection.execute("ROLLBACK")
            if table != "conversations":
                connection.execute("BEGIN")
                before = proof_in(connection)
                connection.execute(f"DELETE FROM {table} {of_session}")
                assert proof_in(connection) != before, table
                connection.execute("ROLLBACK")


def changed_by(connection: sqlite3.Connection, query: SqliteQuery) -> set[str]:
    """The tables whose rows the statement takes away or changes by itself, not by a trigger."""
    changed: set[str] = set()

    def authorize(action: int, table: str | None, _: object, __: object, by: str | None) -> int:
        if action in (sqlite3.SQLITE_UPDATE, sqlite3.SQLITE_DELETE) and table and by is None:
            changed.add(table)
        return sqlite3.SQLITE_OK

    connection.set_authorizer(authorize)
    try:
        connection.execute(f"EXPLAIN {query.text}", [1] * query.text.count("?"))
    finally:
        connection.set_authorizer(None)
    return changed


def test_statements_that_overwrite_what_loads_read_are_known() -> None:
    """Those that put a row in the place of another say the same of the same messages, and newer; the counter of a
    session moves with what is appended.
    """
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as connection:
        connection.executescript(prepared_schema())
        for name, query in QUERIES.sqlite.items():
            is_append = query.text.startswith("INSERT") or name == "advance"
            overwrites = bool(changed_by(connection, query) & set(READ)) and not is_append
            assert query.overwrites == overwrites, name


# What is given


async def test_a_kept_context_is_what_a_load_gives(tmp_path: Path) -> None:
    async with hot_and_cold(tmp_path / "s.db") as (hot, cold):
        call = ToolCall(id="c", name="look", arguments={"number": 1})
        said = [Message.user("Look.", metadata={"a": [1]}), Message.assistant("", tool_calls=[call])]
        await hot.save_history("s", [*said, Message.tool("found", tool_call_id="c")], user_id=USER)
        for arguments in ({}, {"budget": BUDGET}, {"budget": BUDGET, "query": ""}, {"before_seq": 2}):
            answers = [await answer(each, **arguments) for each in (cold, hot, hot, hot)]
            assert all(each == answers[0] for each in answers), arguments
            assert await again(hot, arguments)


async def again(memory: Memory, arguments: Any) -> bool:
    given = {"user_id": USER, **arguments}
    return await memory.container.context_loader().again("s", given) is not None


async def test_who_changes_what_was_given_changes_nothing_kept(tmp_path: Path) -> None:
    async with hot_and_cold(tmp_path / "s.db") as (hot, cold):
        call = ToolCall(id="c", name="look", arguments={"number": 1})
        said = [Message.user("Look."), Message.assistant("", tool_calls=[call])]
        for batch in (talk(2), [*said, Message.tool("found", tool_call_id="c")]):
            await hot.save_history("s", batch, user_id=USER)
            before = await answer(cold)
            for _ in range(5):
                context = await hot.load_history("s", user_id=USER)
                assert exact(context) == before
                for message in context.messages:
                    message.metadata["seen"] = True
                    for each in message.tool_calls:
                        assert isinstance(each.arguments, dict)
                        each.arguments["number"] = 2
                context.messages.clear()


async def test_own_appends_are_put_to_what_is_kept(tmp_path: Path) -> None:
    async with hot_and_cold(tmp_path / "s.db", **NEWEST_ONLY) as (hot, cold):
        await hot.save_history("s", talk(4), user_id=USER)
        for number in range(30):
            await hot.load_history("s", user_id=USER)
            batch = talk(number % 3 + 1, start=100 + number)
            await hot.save_history("s", batch, user_id=USER, idempotency_key=str(number))
            proof = await heads_of(hot).proof("s")
            assert proof is not None
            assert heads_of(hot)._head("s", proof) is not None, "the row is the one that was foreseen"
            assert await answer(hot) == await answer(cold)


async def test_another_process_between_is_seen(tmp_path: Path) -> None:
    async with hot_and_cold(tmp_path / "s.db", **NEWEST_ONLY) as (hot, cold):
        await hot.save_history("s", talk(4), user_id=USER)
        for writers in ([cold], [hot, cold], [cold, hot], [hot, cold, hot]):
            assert await answer(hot) == await answer(cold)
            for writer in writers:
                await writer.save_history("s", talk(2), user_id=USER)
            proof = await heads_of(hot).proof("s")
            assert proof is not None
            assert heads_of(hot)._head("s", proof) is None
            assert await answer(hot) == await answer(cold)
            await cold.withdraw("s", user_id=USER)
            assert await answer(hot) == await answer(cold)
            assert await answer(hot) == await answer(cold)


async def test_the_owner_is_asked_for_at_each_load(tmp_path: Path) -> None:
    async with hot_and_cold(tmp_path / "s.db") as (hot, cold):
        await filled(hot)
        assert await answer(hot) == await answer(hot)
        with pytest.raises(SessionOwnershipError):
            await hot.load_history("s", user_id="somebody else")
        await cold.delete("s", user_id=USER)
        with pytest.raises(SessionDeletedError):
            await hot.load_history("s", user_id=USER)


# What it takes


async def test_what_this_process_erases_is_nowhere_in_memory(tmp_path: Path) -> None:
    async def erase(memory: Memory) -> None:
        await memory.erasure.erase("s", seq=5, user_id=USER)

    async def clear(memory: Memory) -> None:
        await memory.archive("s", user_id=USER, clear=True)

    for number, act in enumerate(
        (
            erase,
            clear,
            lambda memory: memory.withdraw("s", user_id=USER),
            lambda memory: memory.delete("s", user_id=USER),
            lambda memory: memory.erasure.erase_user(USER),
            lambda memory: memory.pins.remove("s", seq=3, user_id=USER),
        )
    ):
        async with opened(tmp_path / f"{number}.db") as memory:
            await filled(memory)
            await memory.load_history("s", user_id=USER)
            assert heads_of(memory).size
            await act(memory)
            assert heads_of(memory).size == 0, number


async def test_what_was_read_before_an_erasure_is_not_kept(tmp_path: Path) -> None:
    async with opened(tmp_path / "s.db", **NEWEST_ONLY) as memory:
        await memory.save_history("s", talk(30), user_id=USER)
        heads = heads_of(memory)
        read = heads._database.read

        async def read_slowly(operation: Any, *arguments: Any) -> Any:
            rows = await read(operation, *arguments)
            heads._database.read = read  # type: ignore[method-assign]
            await memory.erasure.erase("s", seq=5, user_id=USER)
            return rows

        heads._database.read = read_slowly  # type: ignore[method-assign]
        await memory.load_history("s", user_id=USER)
        assert heads.size == 0


async def test_memory_is_bounded_and_what_was_used_last_stays(tmp_path: Path) -> None:
    most = 100_000
    async with opened(tmp_path / "s.db", hot=most) as memory:
        heads = heads_of(memory)
        for number in range(40):
            await memory.save_history(f"s{number}", talk(6), user_id=USER)
            await memory.load_history(f"s{number}", user_id=USER)
            await memory.load_history("s0", user_id=USER)
            for budget in range(500, 510):
                await memory.load_history("s0", user_id=USER, budget=budget)
            assert heads.size <= most
        kept = list(heads._groups)
        assert kept[-1] == "s0"
        assert 2 < len(kept) < 40
        heads.forget(None)
        assert heads.size == 0


async def test_what_nobody_used_for_long_leaves_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with opened(tmp_path / "s.db") as memory:
        await filled(memory)
        await memory.load_history("s", user_id=USER)
        now = monotonic()
        monkeypatch.setattr("reactor_memory.core.log.hot_heads.monotonic", lambda: now + 301)
        await memory.save_history("other", talk(2), user_id=USER)
        await memory.load_history("other", user_id=USER)
        assert list(heads_of(memory)._groups) == ["other"]


def rows_of(*seqs: int) -> list[tuple[object, ...]]:
    return [(seq, *[""] * 15) for seq in seqs]


def test_the_newest_rows_answer_for_what_they_hold_only() -> None:
    values = {"conversation_id": "s", "start_seq": 1, "end_seq": 99, "hidden_until": 99, "limit": 4}
    part, whole = Newest(values, rows_of(9, 8, 6, 5), False), Newest(values, rows_of(9, 8, 6), True)
    for kept, asked, rows in (
        (part, {"limit": 4}, rows_of(9, 8, 6, 5)),
        (part, {"limit": 2}, rows_of(9, 8)),
        (part, {"limit": 5}, None),
        (part, {"limit": 9, "start_seq": 6}, rows_of(9, 8, 6)),
        (part, {"limit": 9, "start_seq": 5}, None),
        (whole, {"limit": 9}, rows_of(9, 8, 6)),
        (whole, {"limit": 9, "start_seq": 0}, None),
        (whole, {"limit": 2, "start_seq": 0}, rows_of(9, 8)),
        (part, {"conversation_id": "t", "limit": 2}, None),
        (part, {"hidden_until": 5, "limit": 2}, None),
        (part.with_batch(rows_of(11, 10)), {"limit": 4}, rows_of(11, 10, 9, 8)),
        (whole.with_batch(rows_of(10)), {"limit": 9}, None),
        (
            Newest({**values, "limit": 5}, rows_of(9, 8, 6), True).with_batch(rows_of(10)),
            {"limit": 9},
            rows_of(10, 9, 8, 6),
        ),
    ):
        assert kept.answer({**values, **asked}) == rows, (kept, asked)
