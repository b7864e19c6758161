"""Google Agent Development Kit: the session service for SQL databases. It counts no tokens."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

from google.adk.events import Event
from google.adk.sessions import DatabaseSessionService, Session
from google.adk.sessions.base_session_service import GetSessionConfig
from google.adk.sessions.schemas.v1 import StorageEvent
from google.genai.types import Content, Part
from sqlalchemy.ext.asyncio import AsyncSession

from benchmarks.peers.addresses import sqlalchemy_url
from benchmarks.peers.contender import EVERYTHING, MakeContender, Said, Store, Turn
from benchmarks.peers.trimming import newest_that_fit

NAMES = {"app_name": "benchmark", "user_id": "benchmark"}
LONG_AGO = 1_767_225_600.0
"""1 January 2026. Events are told apart by their times, so each of a filled conversation gets its own second."""


def contenders(store: Store) -> list[MakeContender]:
    return [partial(Adk, store=store)]


class Adk:
    name = "Google ADK DatabaseSessionService"
    setting = "get_session(num_recent_events), the session object kept for the append; trimmed by hand with tiktoken"
    abilities = EVERYTHING

    def __init__(self, place: str, store: Store) -> None:
        self.durability = "rollback journal, synchronous=FULL" if store == "sqlite" else "synchronous_commit=on"
        self._service = DatabaseSessionService(sqlalchemy_url(place, store), pool_size=16)
        self._sessions: dict[str, Session] = {}

    async def prepare(self) -> None:
        await self._service.prepare_tables()

    async def open(self) -> None:
        await self._service.prepare_tables()

    async def close(self) -> None:
        await self._service.close()

    async def fill(self, session: str, messages: Sequence[Said]) -> None:
        """Through its own mapping, in one transaction: an event at a time would take minutes."""
        made = await self._service.create_session(session_id=session, **NAMES)
        events = [_event(said, timestamp=LONG_AGO + number) for number, said in enumerate(messages)]
        async with AsyncSession(self._service.db_engine) as database:
            database.add_all(StorageEvent.from_event(made, event) for event in events)
            await database.commit()
        await self.load_last(session, 1)

    async def append_turn(self, session: str, turn: Turn) -> None:
        for said in turn:
            await self._service.append_event(self._sessions[session], _event(said))

    async def load_last(self, session: str, count: int) -> Sequence[Any]:
        recent = GetSessionConfig(num_recent_events=count)
        found = await self._service.get_session(session_id=session, config=recent, **NAMES)
        assert found is not None
        self._sessions[session] = found
        return found.events

    async def load_trimmed(self, session: str, count: int, budget: int) -> Sequence[Any]:
        return newest_that_fit(await self.load_last(session, count), self.text_of, budget)

    def text_of(self, message: Any) -> str:
        return message.content.parts[0].text


def _event(said: Said, **fields: Any) -> Event:
    role, author = ("user", "user") if said.role == "user" else ("model", "agent")
    return Event(author=author, content=Content(role=role, parts=[Part(text=said.text)]), **fields)
