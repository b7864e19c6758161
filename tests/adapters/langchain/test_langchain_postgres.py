"""Tables of langchain-postgres on a real PostgreSQL: what it reads is what we read, and what we import."""

from __future__ import annotations

import asyncio
import re
import time
import uuid
from contextlib import closing
from typing import Any
from zoneinfo import ZoneInfo

import asyncpg
import pytest
from langchain_core.chat_history import InMemoryChatMessageHistory
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage, ToolMessage

from reactor_memory import InvalidInputError, Memory, StoreError
from reactor_memory.adapters.langchain import from_messages
from reactor_memory.adapters.langchain_postgres import (
    ImportedSession,
    import_chat_history,
    read_chat_history,
    read_turns,
)
from reactor_memory.errors import ImportFormatError
from tests.scenes.postgres_server import execute

pytestmark = [pytest.mark.anyio, pytest.mark.postgres, pytest.mark.filterwarnings("ignore")]

TABLE = "chat_message_history"
SESSION = str(uuid.UUID(int=7))
TURN: list[BaseMessage] = [
    SystemMessage("rules"),
    HumanMessage([{"type": "text", "text": "see"}, {"type": "image_url", "image_url": {"url": "x"}}], id="h1"),
    AIMessage("", tool_calls=[{"name": "look", "args": {"n": n}, "id": f"c{n}", "type": "tool_call"} for n in (1, 2)]),
    ToolMessage("found 1", tool_call_id="c1"),
    ToolMessage("found 2", tool_call_id="c2", status="error"),
    AIMessage(
        "done",
        response_metadata={"model": "m"},
        usage_metadata={"input_tokens": 1, "output_tokens": 2, "total_tokens": 3},
    ),
]


def talk(count: int) -> list[BaseMessage]:
    return [HumanMessage(f"q{n}") if n % 2 == 0 else AIMessage(f"a{n}") for n in range(count)]


@pytest.fixture
def dsn(empty_postgres_dsn: str) -> str:
    """A database in which langchain-postgres made its table."""
    import psycopg
    from langchain_postgres import PostgresChatMessageHistory

    with closing(psycopg.connect(empty_postgres_dsn)) as connection:
        PostgresChatMessageHistory.create_tables(connection, TABLE)
    return empty_postgres_dsn


def theirs(dsn: str, session_id: str, *messages: BaseMessage) -> list[BaseMessage]:
    """What langchain-postgres reads, after it stored the messages."""
    import psycopg
    from langchain_postgres import PostgresChatMessageHistory

    with closing(psycopg.connect(dsn)) as connection:
        history = PostgresChatMessageHistory(TABLE, session_id, sync_connection=connection)
        history.add_messages(messages)
        return history.get_messages()


async def ours(memory: Memory, session_id: str, user_id: str | None = None) -> list[BaseMessage]:
    return from_messages([message async for message in memory.stream_messages(session_id, user_id=user_id)])


async def imported(memory: Memory, dsn: str, **options: Any) -> list[ImportedSession]:
    return [session async for session in import_chat_history(memory, dsn, **options)]


async def test_we_read_and_import_what_it_reads(dsn: str, memory: Memory) -> None:
    expected = await asyncio.to_thread(theirs, dsn, SESSION, *TURN)
    assert expected == TURN
    assert await read_chat_history(dsn, SESSION) == expected
    assert await imported(memory, dsn) == [ImportedSession(session_id=SESSION, messages=6, stored=6)]
    assert await ours(memory, SESSION) == expected


async def test_the_time_and_the_order_of_the_rows_are_kept(dsn: str, memory: Memory) -> None:
    await asyncio.to_thread(theirs, dsn, SESSION, *talk(4))
    execute_later = f"UPDATE {TABLE} SET created_at = timestamptz '2025-05-21 10:00:00.123456+00' - id * interval '1 s'"
    await asyncio.to_thread(execute, dsn, execute_later)
    await imported(memory, dsn)
    messages = await memory.read_messages(SESSION, last=10)
    assert [message.content for message in messages] == ["q0", "a1", "q2", "a3"]
    assert [message.created_at for message in messages] == [1747821600123456 - n * 1_000_000 for n in (1, 2, 3, 4)]


async def test_importing_again_stores_nothing_and_later_rows_follow(dsn: str, memory: Memory) -> None:
    await asyncio.to_thread(theirs, dsn, SESSION, *talk(3))
    await imported(memory, dsn)
    assert await imported(memory, dsn) == [ImportedSession(session_id=SESSION, messages=3, stored=0)]
    expected = await asyncio.to_thread(theirs, dsn, SESSION, *talk(2))
    assert await imported(memory, dsn) == [ImportedSession(session_id=SESSION, messages=5, stored=2)]
    assert await ours(memory, SESSION) == expected


async def test_an_import_that_was_interrupted_goes_on(
    dsn: str, memory: Memory, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = await asyncio.to_thread(theirs, dsn, SESSION, *talk(1203))
    save, calls = memory.save_history, list[int]()

    async def stops(*arguments: Any, **fields: Any) -> Any:
        calls.append(len(arguments[1]))
        if len(calls) == 2:
            raise ConnectionError
        return await save(*arguments, **fields)

    monkeypatch.setattr(memory, "save_history", stops)
    with pytest.raises(ConnectionError):
        await imported(memory, dsn)
    assert await imported(memory, dsn) == [ImportedSession(session_id=SESSION, messages=1203, stored=703)]
    assert calls == [500, 500, 500, 203]
    assert await ours(memory, SESSION) == expected


async def test_what_was_erased_does_not_come_back(dsn: str, memory: Memory) -> None:
    await asyncio.to_thread(theirs, dsn, SESSION, *talk(3))
    await imported(memory, dsn)
    await memory.erasure.erase(SESSION, seq=3)
    await asyncio.to_thread(theirs, dsn, SESSION, HumanMessage("later"))
    assert await imported(memory, dsn) == [ImportedSession(session_id=SESSION, messages=3, stored=1)]
    assert [message.text for message in await ours(memory, SESSION) if message.text] == ["q0", "a1", "later"]


async def test_two_imports_at_once_store_everything_once(dsn: str, memory: Memory) -> None:
    expected = await asyncio.to_thread(theirs, dsn, SESSION, *talk(700))
    both = await asyncio.gather(imported(memory, dsn), imported(memory, dsn))
    assert sum(session.stored for result in both for session in result) == 700
    assert await ours(memory, SESSION) == expected


async def test_text_ids_and_tables_without_times(empty_postgres_dsn: str, memory: Memory) -> None:
    """As agents made them by hand, and as langchain-community did."""
    await asyncio.to_thread(
        execute,
        empty_postgres_dsn,
        "CREATE SCHEMA app",
        "CREATE TABLE app.history (id serial PRIMARY KEY, session_id text NOT NULL, message jsonb NOT NULL)",
        """INSERT INTO app.history (session_id, message) VALUES
           ('ann''s talk', '{"type": "human", "data": {"content": "hi"}}'),
           ('bob', '{"type": "human", "data": {"content": "ho"}}'),
           ('ann''s talk', '{"type": "ai", "data": {"content": "hello", "type": "ai", "example": false}}')""",
    )
    done = await imported(memory, empty_postgres_dsn, table="app.history", user_of=lambda session_id: session_id[:3])
    assert [(session.session_id, session.stored) for session in done] == [("ann's talk", 2), ("bob", 1)]
    assert [message.text for message in await ours(memory, "ann's talk", "ann")] == ["hi", "hello"]
    only = await imported(memory, empty_postgres_dsn, table="app.history", session_ids=["bob"], user_of=lambda _: "bob")
    assert [session.session_id for session in only] == ["bob"]


@pytest.mark.parametrize("zone", ["UTC", "Asia/Tokyo", "America/New_York"])
async def test_times_without_a_zone_are_those_of_the_caller(
    empty_postgres_dsn: str, memory: Memory, zone: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    await asyncio.to_thread(
        execute,
        empty_postgres_dsn,
        f"CREATE TABLE {TABLE} (id serial PRIMARY KEY, session_id text, message jsonb, created_at timestamp)",
        f"""INSERT INTO {TABLE} (session_id, message, created_at)
            SELECT each, '{{"type": "human", "data": {{"content": "hi"}}}}', '2025-05-21 10:00:00.123456'
            FROM unnest(ARRAY['a', 'b']) AS each""",
    )
    monkeypatch.setenv("TZ", zone)
    time.tzset()
    try:
        await imported(memory, empty_postgres_dsn, session_ids=["a"])
        await imported(memory, empty_postgres_dsn, session_ids=["b"], timezone=ZoneInfo("Europe/Berlin"))
    finally:
        monkeypatch.undo()
        time.tzset()
    (plain,), (told,) = [await memory.read_messages(session_id, last=9) for session_id in ("a", "b")]
    assert plain.created_at == 1747821600123456
    assert told.created_at == 1747821600123456 - 2 * 3_600_000_000


@pytest.mark.parametrize(
    "other",
    [
        '{"type": "remove", "data": {"content": "", "id": "x", "type": "remove"}}',
        '{"type": "parrot", "data": {"content": "x"}}',
        '{"type": "human"}',
        '{"kind": "human", "content": "x"}',
        "[1, 2]",
    ],
)
async def test_a_message_of_another_type_is_left_out_and_named(dsn: str, memory: Memory, other: str) -> None:
    put = f"INSERT INTO {TABLE} (session_id, message) VALUES ('{SESSION}', '{other}')"
    await asyncio.to_thread(theirs, dsn, SESSION, *talk(2))
    await asyncio.to_thread(execute, dsn, put)
    with pytest.raises(ImportFormatError, match=r"row 3.*(type|holds no message)"):
        await imported(memory, dsn, strict=True)
    await asyncio.to_thread(execute, dsn, *[put] * 600)
    await asyncio.to_thread(add_later, dsn)
    (done,) = await imported(memory, dsn)
    assert (done.stored, len(done.left_out)) == (3, 601)
    assert re.fullmatch("row 3: (remove|parrot|holds no message of LangChain)", done.left_out[0])
    assert [message.text for message in await ours(memory, SESSION)] == ["q0", "a1", "later"]
    (again,) = await imported(memory, dsn)
    assert (again.messages, again.stored) == (3, 0)


def add_later(dsn: str) -> None:
    execute(
        dsn,
        f"""INSERT INTO {TABLE} (session_id, message) VALUES
        ('{SESSION}', '{{"type": "human", "data": {{"content": "later", "type": "human"}}}}')""",
    )


@pytest.mark.parametrize("broken", ['{"type": "human"}', '{"type": "human", "data": {"content": 7}}', "[]", "7"])
async def test_a_row_without_a_message_is_named(dsn: str, memory: Memory, broken: str) -> None:
    await asyncio.to_thread(theirs, dsn, SESSION, *talk(2))
    await asyncio.to_thread(execute, dsn, f"INSERT INTO {TABLE} (session_id, message) VALUES ('{SESSION}', '{broken}')")
    with pytest.raises(ImportFormatError, match="row 3"):
        await imported(memory, dsn, strict=True)
    assert await ours(memory, SESSION) == []


async def test_what_cannot_be_read(dsn: str, memory: Memory) -> None:
    with pytest.raises(InvalidInputError, match="uuid"):
        await read_chat_history(dsn, "no uuid")
    with pytest.raises(InvalidInputError, match="table"):
        await imported(memory, dsn, table="x; DROP TABLE y")
    with pytest.raises(StoreError, match="cannot be read"):
        await imported(memory, dsn, table="missing")
    with pytest.raises(StoreError, match="cannot be reached"):
        await imported(memory, "postgresql://nobody@127.0.0.1:1/none")


async def test_the_table_stays_as_it_was(dsn: str, memory: Memory) -> None:
    async def rows() -> Any:
        connection = await asyncpg.connect(dsn)
        try:
            return [tuple(row) for row in await connection.fetch(f"SELECT * FROM {TABLE} ORDER BY id")]
        finally:
            await connection.close()

    await asyncio.to_thread(theirs, dsn, SESSION, *TURN)
    before = await rows()
    await imported(memory, dsn)
    assert await rows() == before


@pytest.mark.parametrize("length", [0, 1, 5, 12])
async def test_the_window_is_that_of_the_buffer_window_memory(dsn: str, memory: Memory, length: int) -> None:
    from langchain_classic.memory import ConversationBufferWindowMemory

    expected = await asyncio.to_thread(theirs, dsn, SESSION, *talk(length))
    await imported(memory, dsn)
    for k in (-1, 0, 1, 2, 3, 50):
        window = ConversationBufferWindowMemory(
            k=k,
            return_messages=True,
            memory_key="chat_history",
            chat_memory=InMemoryChatMessageHistory(messages=expected),
        )
        assert await read_turns(memory, SESSION, k=k) == window.load_memory_variables({})["chat_history"]
