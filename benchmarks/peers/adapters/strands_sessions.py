"""Strands Agents: session managers over files; it has none over a database, and none counts tokens."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from strands import Agent
from strands.agent.conversation_manager import NullConversationManager
from strands.models import Model
from strands.session import SnapshotSessionManager
from strands.session.file_session_manager import FileSessionManager
from strands.storage import LocalFileStorage
from strands.types.session import SessionAgent, SessionMessage

from benchmarks.peers.contender import EVERYTHING, MakeContender, Said, Store, Turn
from benchmarks.peers.trimming import newest_that_fit

AGENT = "benchmark"


def contenders(store: Store) -> list[MakeContender]:
    return [Files, Snapshots] if store == "sqlite" else []


class _Folders:
    """A folder of files for all sessions, none of which is synced to the disk."""

    durability = "files renamed into place, not synced: a loss of power may take the newest turns"
    abilities = EVERYTHING

    def __init__(self, place: str) -> None:
        self._folder = str(Path(place).with_suffix(""))

    async def prepare(self) -> None:
        """A session makes its folder when it is first used."""

    async def open(self) -> None:
        """Nothing is held open."""

    async def close(self) -> None: ...

    async def load_last(self, session: str, count: int) -> Sequence[Any]:
        raise NotImplementedError

    async def load_trimmed(self, session: str, count: int, budget: int) -> Sequence[Any]:
        return newest_that_fit(await self.load_last(session, count), self.text_of, budget)

    def text_of(self, message: Any) -> str:
        return message["content"][0]["text"]


class Files(_Folders):
    """A file for each message, written and read as a manager does for its agent."""

    name = "Strands FileSessionManager, files"
    setting = "a manager per conversation, create_message, list_messages(offset); trimmed by hand with tiktoken"

    def __init__(self, place: str) -> None:
        super().__init__(place)
        self._managers: dict[str, FileSessionManager] = {}
        self._counts: dict[str, int] = {}

    def _manager(self, session: str) -> FileSessionManager:
        manager = self._managers.get(session)
        if manager is None:
            manager = self._managers[session] = FileSessionManager(session, storage_dir=self._folder)
        return manager

    async def fill(self, session: str, messages: Sequence[Said]) -> None:
        agent = SessionAgent(AGENT, state={}, conversation_manager_state={})
        self._manager(session).create_agent(session, agent)
        self._add(session, messages)

    def _add(self, session: str, messages: Sequence[Said]) -> None:
        manager, begin = self._manager(session), self._counts.get(session, 0)
        for index, said in enumerate(messages, begin):
            manager.create_message(session, AGENT, SessionMessage.from_message(_message(said), index))
        self._counts[session] = begin + len(messages)

    async def append_turn(self, session: str, turn: Turn) -> None:
        self._add(session, turn)

    async def load_last(self, session: str, count: int) -> Sequence[Any]:
        """How many lie before them, an agent is told by its conversation manager, whose state is one more file."""
        manager = self._manager(session)
        manager.read_agent(session, AGENT)
        known = self._counts.get(session) or len(manager.list_messages(session, AGENT))
        found = manager.list_messages(session, AGENT, offset=known - count)
        return [each.to_message() for each in found]


class Snapshots(_Folders):
    """The whole agent is a file, written anew after each turn: what its documentation recommends for new agents."""

    name = "Strands SnapshotSessionManager, files"
    setting = "an agent per conversation that drops nothing, save_snapshot, restore_snapshot; trimmed with tiktoken"

    def __init__(self, place: str) -> None:
        super().__init__(place)
        self._agents: dict[str, tuple[SnapshotSessionManager, Agent]] = {}

    def _agent(self, session: str) -> tuple[SnapshotSessionManager, Agent]:
        known = self._agents.get(session)
        if known is None:
            manager = SnapshotSessionManager(session, storage=LocalFileStorage(self._folder))
            agent = Agent(_Silent(), agent_id=AGENT, conversation_manager=NullConversationManager())
            known = self._agents[session] = manager, agent
        return known

    async def fill(self, session: str, messages: Sequence[Said]) -> None:
        await self._add(session, messages)

    async def append_turn(self, session: str, turn: Turn) -> None:
        await self._add(session, turn)

    async def _add(self, session: str, messages: Sequence[Said]) -> None:
        manager, agent = self._agent(session)
        agent.messages.extend(map(_message, messages))
        await manager.save_snapshot(agent, is_latest=True)

    async def load_last(self, session: str, count: int) -> Sequence[Any]:
        manager, agent = self._agent(session)
        await manager.restore_snapshot(agent)
        return agent.messages[-count:]


class _Silent(Model):
    """An agent cannot be made without a model; this one is never asked."""

    def update_config(self, **model_config: Any) -> None: ...

    def get_config(self) -> Any:
        return {}

    def structured_output(self, *args: Any, **options: Any) -> Any:
        raise NotImplementedError

    def stream(self, *args: Any, **options: Any) -> Any:
        raise NotImplementedError


def _message(said: Said) -> Any:
    return {"role": said.role, "content": [{"text": said.text}]}
