"""Agno: sessions in an SQL database. What it keeps is runs: a turn with its messages. It counts no tokens."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any
from uuid import uuid4

from agno.db.postgres import AsyncPostgresDb
from agno.db.sqlite import AsyncSqliteDb
from agno.db.utils import build_single_run_row, json_serializer
from agno.models.message import Message
from agno.run.agent import RunOutput
from agno.run.base import RunStatus
from agno.session import AgentSession
from sqlalchemy import insert
from sqlalchemy.ext.asyncio import AsyncEngine, create_async_engine

from benchmarks.peers.addresses import sqlalchemy_url
from benchmarks.peers.contender import EVERYTHING, MakeContender, Said, Store, Turn
from benchmarks.peers.trimming import newest_that_fit

AGENT, USER = "benchmark", "benchmark"
LONG_AGO = 1_767_225_600
"""1 January 2026."""


def contenders(store: Store) -> list[MakeContender]:
    return [partial(Runs, store=store)]


class Runs:
    """What an agent of Agno does at the end of a turn: it writes the row of the session, then that of the run."""

    setting = "one engine; get_session(runs_limit) with its runs; upsert_session and upsert_run; trimmed by hand"
    abilities = EVERYTHING

    def __init__(self, place: str, store: Store) -> None:
        kind = AsyncSqliteDb if store == "sqlite" else AsyncPostgresDb
        self.name = f"Agno {kind.__name__}"
        self.durability = "WAL, synchronous=FULL" if store == "sqlite" else "synchronous_commit=on"
        url = sqlalchemy_url(place, store)
        self._engine: AsyncEngine = create_async_engine(url, pool_size=16, json_serializer=json_serializer)
        self._database: Any = kind(db_engine=self._engine)
        self._sessions: dict[str, AgentSession] = {}
        self._runs: dict[str, int] = {}

    async def prepare(self) -> None:
        await self.append_turn("first", (Said("user", "Hello"), Said("assistant", "Hello")))

    async def open(self) -> None:
        """The engine connects when it is first used."""

    async def close(self) -> None:
        await self._engine.dispose()

    async def fill(self, session: str, messages: Sequence[Said]) -> None:
        """Through its own rows, in one transaction: a run at a time would take a minute."""
        runs = [_run(messages[start : start + 2], start) for start in range(0, len(messages), 2)]
        rows = [build_single_run_row(run, session, USER, index) for index, run in enumerate(runs)]
        await self._database.upsert_session(self._session(session))
        table = await self._database._get_table("runs")
        async with self._engine.begin() as connection:
            await connection.execute(insert(table), rows)
        self._runs[session] = len(rows)

    async def append_turn(self, session: str, turn: Turn) -> None:
        index = self._runs.get(session, 0)
        self._runs[session] = index + 1
        await self._database.upsert_session(self._session(session))
        await self._database.upsert_run(_run(turn), session, user_id=USER, run_index=index)

    def _session(self, session: str) -> AgentSession:
        """An agent keeps the object that it has loaded."""
        known = self._sessions.get(session)
        if known is None:
            known = AgentSession(session, agent_id=AGENT, user_id=USER, session_data={}, created_at=LONG_AGO)
            self._sessions[session] = known
        return known

    async def load_last(self, session: str, count: int) -> Sequence[Any]:
        found = await self._database.get_session(session, user_id=USER, runs_limit=count // 2)
        return found.get_messages(agent_id=AGENT, limit=count)

    async def load_trimmed(self, session: str, count: int, budget: int) -> Sequence[Any]:
        return newest_that_fit(await self.load_last(session, count), self.text_of, budget)

    def text_of(self, message: Any) -> str:
        return message.content


def _run(said: Sequence[Said], second: int | None = None) -> RunOutput:
    when = {} if second is None else {"created_at": LONG_AGO + second}
    messages = [Message(role=each.role, content=each.text) for each in said]
    return RunOutput(
        run_id=str(uuid4()),
        agent_id=AGENT,
        user_id=USER,
        content=said[-1].text,
        messages=messages,
        status=RunStatus.completed,
        **when,
    )
