"""Reactor Memory itself."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from typing import Any

from benchmarks.peers.contender import EVERYTHING, Said, Store, Turn
from reactor_memory import Container, ConversationManager, Message, Settings, open_container

OWNER = "benchmark"
BATCH = 1000


class ReactorMemory:
    """Take-last and hierarchical memory over one database. Owners are checked at every call.

    How many messages are kept verbatim is a setting of a process, so each kind of load has its own container, opened
    when it is first used.
    """

    name = "reactor-memory"
    setting = "defaults; recall off"
    abilities = EVERYTHING

    def __init__(self, place: str, store: Store) -> None:
        self._url = f"sqlite:////{place.lstrip('/')}" if store == "sqlite" else place
        self.durability = "WAL, synchronous=FULL" if store == "sqlite" else "synchronous_commit=on"
        self._opened = AsyncExitStack()
        self._managers: dict[str, ConversationManager] = {}

    async def prepare(self) -> None:
        async with open_container(Settings(store={"url": self._url, "auto_migrate": True})):
            pass

    async def open(self) -> None:
        await self._manager("take_last 20")

    async def close(self) -> None:
        await self._opened.aclose()
        self._managers.clear()

    async def _manager(self, kind: str) -> ConversationManager:
        manager = self._managers.get(kind)
        if manager is None:
            container = await self._opened.enter_async_context(self._memory(**_SETTINGS[kind]))
            manager = self._managers[kind] = container.conversation_manager()
        return manager

    def _memory(self, **settings: Any) -> AbstractAsyncContextManager[Container]:
        return open_container(Settings(store={"url": self._url}, **settings))

    async def fill(self, session: str, messages: Sequence[Said]) -> None:
        manager = await self._manager("take_last 20")
        for start in range(0, len(messages), BATCH):
            batch = map(_message, messages[start : start + BATCH])
            await manager.save_history(session, batch, user_id=OWNER)

    async def summarize(self, session: str) -> None:
        """Facts and narrative of everything that may be summarized; in large segments, so that it takes seconds."""
        async with self._memory(summary={"enabled": True, "segment_message_count": 500}) as container:
            await container.conversation_manager().summarize(session, user_id=OWNER)
        await (await self._manager("hierarchical")).summarize(session, user_id=OWNER)

    async def append_turn(self, session: str, turn: Turn) -> None:
        manager = await self._manager("take_last 20")
        await manager.save_history(session, map(_message, turn), user_id=OWNER)

    async def load_last(self, session: str, count: int) -> Sequence[Any]:
        manager = await self._manager(f"take_last {count}")
        return (await manager.load_history(session, user_id=OWNER, query="")).messages

    async def load_trimmed(self, session: str, count: int, budget: int) -> Sequence[Any]:
        manager = await self._manager(f"take_last {count}")
        return (await manager.load_history(session, user_id=OWNER, query="", budget=budget)).messages

    async def load_hierarchical(self, session: str, budget: int) -> Sequence[Any]:
        """Facts, narrative and window within `budget` tokens."""
        manager = await self._manager("hierarchical")
        return (await manager.load_history(session, user_id=OWNER, query="", budget=budget)).messages

    def text_of(self, message: Any) -> str:
        return message.content


def _take_last(messages: int) -> dict[str, Any]:
    history = {"strategy": "take_last", "max_conversation_turns": messages // 2}
    return {"summary": {"enabled": False}, "history": history}


_SETTINGS: dict[str, dict[str, Any]] = {
    "take_last 20": _take_last(20),
    "take_last 200": _take_last(200),
    "hierarchical": {"summary": {"enabled": True}},
}


def _message(said: Said) -> Message:
    return Message.user(said.text) if said.role == "user" else Message.assistant(said.text)
