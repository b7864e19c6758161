"""`chat_message_history` over our log: langchain-postgres reads our turns, and we read its."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import AsyncIterator
from contextlib import closing
from typing import Any

import asyncpg
import pytest
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage, ToolMessage

from reactor_memory import Memory, Message, open_memory
from reactor_memory.adapters.langchain import from_messages, to_message
from reactor_memory.adapters.langchain_postgres import read_chat_history, read_turns
from reactor_memory.database.supabase import supabase_tables
from reactor_memory.models import ToolCall
from tests.scenes.supabase import AUTH

pytestmark = [pytest.mark.anyio, pytest.mark.postgres, pytest.mark.filterwarnings("ignore")]

TABLE = "chat_message_history"
SESSION = str(uuid.UUID(int=7))
TURN: list[BaseMessage] = [
    SystemMessage("rules"),
    HumanMessage(["plain", {"type": "text", "text": "sée"}, {"type": "image_url", "image_url": {"url": "x"}}], id="h1"),
    AIMessage(
        [{"type": "text", "text": "a look", "index": 0}],
        tool_calls=[{"name": "look", "args": {"n": n}, "id": f"c{n}", "type": "tool_call"} for n in (1, 2)],
        invalid_tool_calls=[
            {"name": "look", "args": "{", "id": "c3", "error": None, "type": "invalid_tool_call"},
        ],
    ),
    ToolMessage("found 1", tool_call_id="c1"),
    ToolMessage("found 2", tool_call_id="c2", status="error"),
    AIMessage(
        "done",
        name="helper",
        response_metadata={"model": "m"},
        usage_metadata={"input_tokens": 1, "output_tokens": 2, "total_tokens": 3},
    ),
]


@pytest.fixture
async def dsn(postgres_dsn: str) -> str:
    connection = await asyncpg.connect(postgres_dsn)
    await connection.execute(AUTH)
    await connection.execute(f"BEGIN; {supabase_tables()}; COMMIT")
    await connection.close()
    return postgres_dsn


@pytest.fixture
async def stored(dsn: str) -> AsyncIterator[Memory]:
    async with open_memory(dsn) as memory:
        yield memory


def theirs(dsn: str, *messages: BaseMessage) -> list[BaseMessage]:
    """What langchain-postgres reads, after it stored the messages."""
    import psycopg
    from langchain_postgres import PostgresChatMessageHistory

    with closing(psycopg.connect(dsn)) as connection:
        history = PostgresChatMessageHistory(TABLE, SESSION, sync_connection=connection)
        history.add_messages(messages)
        return history.get_messages()


async def ours(memory: Memory) -> list[BaseMessage]:
    return from_messages([message async for message in memory.stream_messages(SESSION)])


async def test_its_turns_are_ours(dsn: str, stored: Memory) -> None:
    assert await asyncio.to_thread(theirs, dsn, *TURN) == TURN
    assert await ours(stored) == TURN
    assert await read_chat_history(dsn, SESSION) == TURN


async def test_our_turns_are_its(dsn: str, stored: Memory) -> None:
    await stored.save_history(SESSION, [to_message(message) for message in TURN])
    assert await asyncio.to_thread(theirs, dsn) == TURN


async def test_what_other_frameworks_saved_reads_alike(dsn: str, stored: Memory) -> None:
    call = ToolCall(id="c1", name="look", arguments='{"n": 1}')
    broken = ToolCall(id="c2", name="look", arguments="{")
    messages: list[Any] = [
        Message.user("see", parts=({"type": "image_url", "image_url": {"url": "x"}},)),
        Message.assistant("", tool_calls=(call, broken)),
        Message.tool("found", tool_call_id="c1"),
        {"role": "user", "content": [{"type": "text", "text": "and"}, {"type": "text", "text": "more"}]},
        Message.assistant("done"),
    ]
    await stored.save_history(SESSION, messages)
    assert await asyncio.to_thread(theirs, dsn) == await ours(stored)


async def test_both_take_turns_in_a_session(dsn: str, stored: Memory) -> None:
    for number in range(12):
        await stored.save_history(SESSION, Message.user(f"q{number}"))
        await asyncio.to_thread(theirs, dsn, AIMessage(f"a{number}"))
    expected = [text for number in range(12) for text in (f"q{number}", f"a{number}")]
    assert [message.content for message in await asyncio.to_thread(theirs, dsn)] == expected
    context = await stored.load_history(SESSION, budget=4000)
    assert [message.content for message in context.messages][-2:] == ["q11", "a11"]


@pytest.mark.parametrize("k", [1, 2, 20])
async def test_window_holds_the_same_messages_on_both_sides(dsn: str, stored: Memory, k: int) -> None:
    for number in range(5):
        await stored.save_history(SESSION, [Message.user(f"q{number}"), Message.assistant(f"a{number}")])

    def window() -> list[BaseMessage]:
        import psycopg
        from langchain_classic.memory import ConversationBufferWindowMemory
        from langchain_postgres import PostgresChatMessageHistory

        with closing(psycopg.connect(dsn)) as connection:
            history = PostgresChatMessageHistory(TABLE, SESSION, sync_connection=connection)
            memory = ConversationBufferWindowMemory(chat_memory=history, k=k, return_messages=True)
            return memory.load_memory_variables({})["history"]

    assert await asyncio.to_thread(window) == await read_turns(stored, SESSION, k=k)
