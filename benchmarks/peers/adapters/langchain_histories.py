"""LangChain: chat message histories, which load everything, and `trim_messages`."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any, Literal

from langchain_community.chat_message_histories import SQLChatMessageHistory
from langchain_postgres import PostgresChatMessageHistory
from psycopg import AsyncConnection
from sqlalchemy.ext.asyncio import AsyncEngine, create_async_engine

from benchmarks.peers.adapters.langchain_messages import count_messages, message_of, trimmed
from benchmarks.peers.addresses import sqlalchemy_url
from benchmarks.peers.contender import EVERYTHING, Ability, MakeContender, Said, Store, Turn

TABLE = "message_store"


def contenders(store: Store) -> list[MakeContender]:
    history = SqlHistory if store == "sqlite" else PostgresHistory
    return [history, partial(history, counter="approximate")]


class _Histories:
    """Nothing but trimming depends on how tokens are counted."""

    kind: str

    def __init__(self, counter: Literal["tiktoken", "approximate"]) -> None:
        self._counter: Any = count_messages if counter == "tiktoken" else counter
        self.name = self.kind
        self.setting = f"async; trim_messages(strategy='last') with {counter} counts"
        self.abilities: frozenset[Ability] = EVERYTHING
        if counter == "approximate":
            self.name += ", approximate counts"
            self.abilities = frozenset({"trimmed"})

    async def _history(self, session: str) -> Any:
        raise NotImplementedError

    async def fill(self, session: str, messages: Sequence[Said]) -> None:
        await (await self._history(session)).aadd_messages([message_of(said) for said in messages])

    async def append_turn(self, session: str, turn: Turn) -> None:
        await (await self._history(session)).aadd_messages([message_of(said) for said in turn])

    async def load_last(self, session: str, count: int) -> Sequence[Any]:
        return (await (await self._history(session)).aget_messages())[-count:]

    async def load_trimmed(self, session: str, count: int, budget: int) -> Sequence[Any]:
        return trimmed(await self.load_last(session, count), budget, self._counter)

    def text_of(self, message: Any) -> str:
        return message.text


class SqlHistory(_Histories):
    """The history object is kept, so that its table is looked for once."""

    kind = "LangChain SQLChatMessageHistory"
    durability = "rollback journal, synchronous=FULL"

    def __init__(self, place: str, counter: Literal["tiktoken", "approximate"] = "tiktoken") -> None:
        super().__init__(counter)
        self._engine: AsyncEngine = create_async_engine(sqlalchemy_url(place, "sqlite"), pool_size=16)
        self._kept: dict[str, SQLChatMessageHistory] = {}

    async def prepare(self) -> None:
        await (await self._history("first")).aget_messages()

    async def open(self) -> None:
        """The engine connects when it is first used."""

    async def close(self) -> None:
        self._kept.clear()
        await self._engine.dispose()

    async def _history(self, session: str) -> Any:
        history = self._kept.get(session)
        if history is None:
            history = self._kept[session] = SQLChatMessageHistory(session, connection=self._engine)
        return history


class PostgresHistory(_Histories):
    """A held connection for each conversation: the least that it can cost."""

    kind = "LangChain PostgresChatMessageHistory"
    durability = "synchronous_commit=on"

    def __init__(self, place: str, counter: Literal["tiktoken", "approximate"] = "tiktoken") -> None:
        super().__init__(counter)
        self._place = place
        self._kept: dict[str, tuple[PostgresChatMessageHistory, AsyncConnection]] = {}

    async def prepare(self) -> None:
        async with await self._connect() as connection:
            await PostgresChatMessageHistory.acreate_tables(connection, TABLE)

    async def open(self) -> None:
        """A conversation connects when it is first used."""

    async def close(self) -> None:
        for _, connection in self._kept.values():
            await connection.close()
        self._kept.clear()

    async def _connect(self) -> AsyncConnection:
        return await AsyncConnection.connect(self._place, autocommit=True)

    async def _history(self, session: str) -> Any:
        kept = self._kept.get(session)
        if kept is None:
            connection = await self._connect()
            history = PostgresChatMessageHistory(TABLE, session, async_connection=connection)
            kept = self._kept[session] = history, connection
        return kept[0]
