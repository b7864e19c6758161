"""OpenAI Agents SDK: sessions, which keep items and load the last of them. None of them counts tokens."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

from agents.extensions.memory import AsyncSQLiteSession, SQLAlchemySession
from agents.memory import SQLiteSession
from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncEngine, create_async_engine

from benchmarks.peers.addresses import sqlalchemy_url
from benchmarks.peers.contender import EVERYTHING, MakeContender, Said, Store, Turn
from benchmarks.peers.trimming import newest_that_fit


def contenders(store: Store) -> list[MakeContender]:
    on_sqlalchemy = partial(SqlAlchemy, store=store)
    return [Sqlite, AsyncSqlite, on_sqlalchemy] if store == "sqlite" else [on_sqlalchemy]


class _Sessions:
    """One session object for each conversation, kept as long as the process lives."""

    abilities = EVERYTHING

    def __init__(self) -> None:
        self._sessions: dict[str, Any] = {}

    def _make(self, session: str) -> Any:
        raise NotImplementedError

    def _session(self, session: str) -> Any:
        found = self._sessions.get(session)
        if found is None:
            found = self._sessions[session] = self._make(session)
        return found

    async def prepare(self) -> None:
        await self._session("first").get_items(limit=1)

    async def open(self) -> None:
        """A session connects when it is first used."""

    async def fill(self, session: str, messages: Sequence[Said]) -> None:
        await self._session(session).add_items([_item(said) for said in messages])

    async def append_turn(self, session: str, turn: Turn) -> None:
        await self._session(session).add_items([_item(said) for said in turn])

    async def load_last(self, session: str, count: int) -> Sequence[Any]:
        return await self._session(session).get_items(limit=count)

    async def load_trimmed(self, session: str, count: int, budget: int) -> Sequence[Any]:
        return newest_that_fit(await self._session(session).get_items(limit=count), self.text_of, budget)

    def text_of(self, message: Any) -> str:
        return message["content"]


class Sqlite(_Sessions):
    name = "openai-agents SQLiteSession"
    setting = "one session object per conversation, get_items(limit); trimmed by hand with tiktoken"
    durability = "WAL, synchronous=FULL"

    def __init__(self, place: str) -> None:
        super().__init__()
        self._place = place

    def _make(self, session: str) -> Any:
        return SQLiteSession(session, self._place)

    async def close(self) -> None:
        for session in self._sessions.values():
            session.close()
        self._sessions.clear()


class AsyncSqlite(Sqlite):
    name = "openai-agents AsyncSQLiteSession"

    def _make(self, session: str) -> Any:
        return AsyncSQLiteSession(session, self._place)

    async def close(self) -> None:
        for session in self._sessions.values():
            await session.close()
        self._sessions.clear()


class SqlAlchemy(_Sessions):
    name = "openai-agents SQLAlchemySession"
    setting = "one engine for all sessions, tables made beforehand, get_items(limit); trimmed by hand with tiktoken"

    def __init__(self, place: str, store: Store) -> None:
        super().__init__()
        self.durability = "WAL, synchronous=FULL" if store == "sqlite" else "synchronous_commit=on"
        self._engine: AsyncEngine = create_async_engine(sqlalchemy_url(place, store), pool_size=16)
        self._spread = _SPREAD[store]

    def _make(self, session: str) -> Any:
        return SQLAlchemySession(session, engine=self._engine)

    async def prepare(self) -> None:
        await SQLAlchemySession("first", engine=self._engine, create_tables=True).get_items(limit=1)

    async def fill(self, session: str, messages: Sequence[Said]) -> None:
        """In one transaction all rows get one time, and loading would sort them all: give each a second of its own."""
        await super().fill(session, messages)
        async with self._engine.begin() as connection:
            await connection.execute(text(self._spread), {"session": session})

    async def close(self) -> None:
        self._sessions.clear()
        await self._engine.dispose()


_SPREAD = {
    "sqlite": "UPDATE agent_messages SET created_at = datetime('2026-01-01', '+' || id || ' seconds')"
    " WHERE session_id = :session",
    "postgres": "UPDATE agent_messages SET created_at = timestamp '2026-01-01' + id * interval '1 second'"
    " WHERE session_id = :session",
}


def _item(said: Said) -> Any:
    return {"role": said.role, "content": said.text}
