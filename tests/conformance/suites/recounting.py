"""Counting tokens again with another tokenizer."""

from __future__ import annotations

from msgspec.structs import replace

from reactor_memory.features.recounting.recounting import recount
from reactor_memory.models import Message, ToolCall
from reactor_memory.models.requests import ContextQuery
from reactor_memory.testing.branching import fork
from reactor_memory.testing.builders import append_messages, numbered, wall_clock
from reactor_memory.testing.log import nothing_left
from tests.scenes.stores import SqlStore as Store

MANY = 1_200
"""More than a store may be expected to rewrite at once."""


def twice_the_length(message: Message) -> int:
    return 2 * len(message.content)


class Recounting:
    """Counts are rewritten where another tokenizer made them; nothing else changes."""

    async def test_every_message_is_counted_again(self, store: Store) -> None:
        await append_messages(store, "s", numbered(3))
        await fork(store, "s", "s~a", 3, own=["three", "four"])
        await append_messages(store, "owned", numbered(2), user_id="ann")
        assert await recount(store.database, "doubling", twice_the_length) == 7
        for session_id, user_id in (("s", None), ("s~a", None), ("owned", "ann")):
            for message in await store.read(session_id, user_id):
                assert (message.token_count, message.tokenizer) == (twice_the_length(message), "doubling")

    async def test_nothing_else_of_a_message_changes(self, store: Store) -> None:
        call = ToolCall(id="c", name="book", arguments={"seats": [1, None, 2.5]}, metadata={"signature": "x"})
        rich = Message.assistant("two 🦊", tool_calls=[call], name="a", metadata={"k": 1}, parts=({"type": "image"},))
        await append_messages(store, "s", [rich, Message.tool("", tool_call_id="c", visibility="agent")])
        before = await store.read("s", None)
        await recount(store.database, "doubling", twice_the_length)
        assert await store.read("s", None) == tuple(
            replace(message, token_count=twice_the_length(message), tokenizer="doubling") for message in before
        )

    async def test_what_the_tokenizer_counted_itself_is_left_alone(self, store: Store) -> None:
        own = replace(Message.user("counted"), token_count=77, tokenizer="doubling")
        await append_messages(store, "s", [own, Message.assistant("not yet")])
        assert await recount(store.database, "doubling", twice_the_length) == 1
        assert [message.token_count for message in await store.read("s", None)] == [77, 14]
        assert await recount(store.database, "doubling", twice_the_length) == 0

    async def test_many_messages_are_counted_again(self, store: Store) -> None:
        await append_messages(store, "many", numbered(MANY))
        await append_messages(store, "more", numbered(3))
        assert await recount(store.database, "doubling", twice_the_length) == MANY + 3
        assert {message.tokenizer for message in await store.read("many", None)} == {"doubling"}

    async def test_a_withdrawn_message_stays_withdrawn(self, store: Store) -> None:
        await append_messages(store, "s", numbered(3))
        await store.withdraw("s", None, seq=3, now=wall_clock(), refold=nothing_left)
        await recount(store.database, "doubling", twice_the_length)
        assert [message.seq for message in await store.read("s", None)] == [1, 2]

    async def test_loads_use_the_new_counts(self, store: Store) -> None:
        await append_messages(store, "s", numbered(30))
        await recount(store.database, "thousand", lambda message: 1_000)
        query = ContextQuery(
            session_id="s",
            user_id=None,
            last_count=5,
            trigger_message_count=10,
            max_messages=100,
            max_tokens=3_500,
            overhead=0,
        )
        assert [message.seq for message in (await store.read_context(query)).messages] == [27, 28, 29, 30]
