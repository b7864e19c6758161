"""LlamaIndex: the chat store for SQL databases, and `Memory`, whose queue is what fits into its limit of tokens."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

from llama_index.core.base.llms.types import ChatMessage
from llama_index.core.memory import Memory
from llama_index.core.storage.chat_store.base_db import MessageStatus
from llama_index.core.storage.chat_store.sql import SQLAlchemyChatStore
from sqlalchemy.ext.asyncio import AsyncEngine, create_async_engine

from benchmarks.peers.addresses import sqlalchemy_url
from benchmarks.peers.contender import EVERYTHING, Ability, MakeContender, Said, Store, Turn
from benchmarks.peers.trimming import count_tokens, newest_that_fit

TABLE = "chat"
BATCH = 500
"""A statement takes 32,766 parameters at most, and a row has five."""

LIMIT = 4000


def contenders(store: Store) -> list[MakeContender]:
    return [partial(ChatStore, store=store), partial(Queue, store=store)]


class ChatStore:
    """The store object is kept, so that its table is looked for once."""

    name = "LlamaIndex SQLAlchemyChatStore"
    setting = "one engine; all messages loaded; trimmed by hand with tiktoken"
    abilities: frozenset[Ability] = EVERYTHING

    def __init__(self, place: str, store: Store) -> None:
        self.durability = "rollback journal, synchronous=FULL" if store == "sqlite" else "synchronous_commit=on"
        self._engine: AsyncEngine = create_async_engine(sqlalchemy_url(place, store), pool_size=16)
        self._store = SQLAlchemyChatStore(TABLE, async_database_uri=None, async_engine=self._engine)

    async def prepare(self) -> None:
        await self._store.get_messages("first")

    async def open(self) -> None:
        """The engine connects when it is first used."""

    async def close(self) -> None:
        await self._engine.dispose()

    async def fill(self, session: str, messages: Sequence[Said]) -> None:
        await self._add(session, messages, MessageStatus.ACTIVE)

    async def _add(self, session: str, messages: Sequence[Said], status: MessageStatus) -> None:
        for start in range(0, len(messages), BATCH):
            batch = [_message(said) for said in messages[start : start + BATCH]]
            await self._store.add_messages(session, batch, status=status)

    async def append_turn(self, session: str, turn: Turn) -> None:
        await self._store.add_messages(session, [_message(said) for said in turn])

    async def load_last(self, session: str, count: int) -> Sequence[Any]:
        return (await self._store.get_messages(session))[-count:]

    async def load_trimmed(self, session: str, count: int, budget: int) -> Sequence[Any]:
        return newest_that_fit(await self.load_last(session, count), self.text_of, budget)

    def text_of(self, message: Any) -> str:
        return message.content


class Queue(ChatStore):
    """What no longer fits is archived at the append. There is no way to ask it for a number of messages."""

    name = "LlamaIndex Memory"
    setting = "token_limit 4,000, all of it for the history, flushed by 10 %, tiktoken; no memory blocks"
    abilities: frozenset[Ability] = frozenset({"append", "trimmed"})

    def __init__(self, place: str, store: Store) -> None:
        super().__init__(place, store)
        self._memories: dict[str, Memory] = {}

    def _memory(self, session: str) -> Memory:
        memory = self._memories.get(session)
        if memory is None:
            memory = self._memories[session] = Memory.from_defaults(
                session_id=session,
                token_limit=LIMIT,
                chat_history_token_ratio=1.0,
                token_flush_size=LIMIT // 10,
                tokenizer_fn=_tokens,
                chat_store=self._store,
            )
        return memory

    async def fill(self, session: str, messages: Sequence[Said]) -> None:
        active = newest_that_fit(messages, lambda said: said.text, LIMIT)
        await self._add(session, messages[: -len(active)], MessageStatus.ARCHIVED)
        await self._add(session, active, MessageStatus.ACTIVE)

    async def append_turn(self, session: str, turn: Turn) -> None:
        await self._memory(session).aput_messages([_message(said) for said in turn])

    async def load_trimmed(self, session: str, count: int, budget: int) -> Sequence[Any]:
        assert budget == LIMIT, "the limit is a property of the memory"
        return await self._memory(session).aget()


def _tokens(text: str) -> Any:
    """It wants a list of tokens, and takes nothing but its length."""
    return range(count_tokens(text))


def _message(said: Said) -> ChatMessage:
    return ChatMessage(role=said.role, content=said.text)
