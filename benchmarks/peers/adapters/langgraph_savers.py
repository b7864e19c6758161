"""LangGraph: savers, which keep the whole state of a thread at every step, and `trim_messages`."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AsyncExitStack
from typing import Any

from langchain_core.messages import BaseMessage
from langgraph.checkpoint.base import create_checkpoint, empty_checkpoint
from langgraph.checkpoint.postgres.aio import AsyncPostgresSaver
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver

from benchmarks.peers.adapters.langchain_messages import message_of, trimmed
from benchmarks.peers.contender import EVERYTHING, MakeContender, Said, Store, Turn


def contenders(store: Store) -> list[MakeContender]:
    return [SqliteSaver if store == "sqlite" else PostgresSaver]


class _Saver:
    """A turn is one `aput` of the checkpoint, with the state at hand as it is in a running graph; no `aput_writes`."""

    abilities = EVERYTHING
    setting = "one aput of the state per turn, aget_tuple per load; trim_messages(strategy='last') with tiktoken"

    def __init__(self, place: str) -> None:
        self._place = place
        self._opened = AsyncExitStack()
        self._saver: Any = None
        self._states: dict[str, tuple[Any, Any]] = {}

    def _connected(self) -> Any:
        raise NotImplementedError

    async def prepare(self) -> None:
        async with self._connected() as saver:
            await saver.setup()

    async def open(self) -> None:
        self._saver = await self._opened.enter_async_context(self._connected())

    async def close(self) -> None:
        await self._opened.aclose()

    async def fill(self, session: str, messages: Sequence[Said]) -> None:
        await self._put(session, _config(session), empty_checkpoint(), [message_of(said) for said in messages])

    async def append_turn(self, session: str, turn: Turn) -> None:
        config, checkpoint = self._states[session]
        messages = [*checkpoint["channel_values"]["messages"], *map(message_of, turn)]
        await self._put(session, config, checkpoint, messages)

    async def _put(self, session: str, config: Any, checkpoint: Any, messages: list[BaseMessage]) -> None:
        step = int(checkpoint["channel_versions"].get("messages", 0)) + 1
        versions = {"messages": step}
        following = create_checkpoint(checkpoint, None, step)
        following |= {"channel_values": {"messages": messages}, "channel_versions": versions}
        metadata = {"source": "loop", "step": step, "parents": {}}
        saved = await self._saver.aput(config, following, metadata, versions)
        self._states[session] = saved, following

    async def load_last(self, session: str, count: int) -> Sequence[Any]:
        found = await self._saver.aget_tuple(_config(session))
        return found.checkpoint["channel_values"]["messages"][-count:]

    async def load_trimmed(self, session: str, count: int, budget: int) -> Sequence[Any]:
        return trimmed(await self.load_last(session, count), budget)

    def text_of(self, message: Any) -> str:
        return message.text


class SqliteSaver(_Saver):
    name = "LangGraph AsyncSqliteSaver"
    durability = "WAL, synchronous=FULL"

    def _connected(self) -> Any:
        return AsyncSqliteSaver.from_conn_string(self._place)


class PostgresSaver(_Saver):
    name = "LangGraph AsyncPostgresSaver"
    durability = "synchronous_commit=on"

    def _connected(self) -> Any:
        return AsyncPostgresSaver.from_conn_string(self._place)


def _config(session: str) -> Any:
    return {"configurable": {"thread_id": session, "checkpoint_ns": ""}}
