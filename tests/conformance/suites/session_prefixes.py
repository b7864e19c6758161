"""Sessions whose ids begin with a text: by code point on every engine."""

from __future__ import annotations

from reactor_memory.core.log.listing import list_beginning
from reactor_memory.core.ports import MessageStore
from reactor_memory.testing.branching import fork
from reactor_memory.testing.builders import append_messages, numbered

IDS = ("ab", "ab-1", "ab_2", "abc", "aBc", "abÿ", "ab🦊", "b", "a%b")


class SessionPrefixes:
    """The command line completes what somebody typed."""

    async def beginning(self, store: MessageStore, text: str, user_id: str | None = None, limit: int = 20) -> list[str]:
        found = await store.database.read(list_beginning, text, user_id, limit=limit)
        return [each.session_id for each in found]

    async def some(self, store: MessageStore) -> None:
        for session_id in IDS:
            await append_messages(store, session_id, numbered(3))

    async def test_roots_are_found_by_their_beginning(self, store: MessageStore) -> None:
        await self.some(store)
        await fork(store, "abc", "abc~f1", 2, own=["x"])
        assert await self.beginning(store, "ab") == ["ab", "ab-1", "ab_2", "abc", "abÿ", "ab🦊"]
        assert await self.beginning(store, "ab", limit=2) == ["ab", "ab-1"]
        assert await self.beginning(store, "a%") == ["a%b"]
        assert await self.beginning(store, "zz") == []

    async def test_forks_are_found_behind_their_root(self, store: MessageStore) -> None:
        await self.some(store)
        for fork_id in ("abc~f1", "abc~f2", "abc~g"):
            await fork(store, "abc", fork_id, 2, own=["x"])
        assert await self.beginning(store, "abc~") == ["abc~f1", "abc~f2", "abc~g"]
        assert await self.beginning(store, "abc~f") == ["abc~f1", "abc~f2"]
        assert await self.beginning(store, "ab~f") == []

    async def test_a_deleted_id_is_still_itself(self, store: MessageStore) -> None:
        await self.some(store)
        await store.delete("ab", None, now=5, purge=True)
        await store.delete("abc", None, now=5, purge=True)
        assert await self.beginning(store, "ab") == ["ab", "ab-1", "ab_2", "abÿ", "ab🦊"]

    async def test_a_user_finds_what_this_user_may_open(self, store: MessageStore) -> None:
        await append_messages(store, "xa", numbered(1), user_id="u")
        await append_messages(store, "xb", numbered(1), user_id="v")
        await append_messages(store, "xc", numbered(1))
        assert await self.beginning(store, "x", "u") == ["xa", "xc"]
        assert await self.beginning(store, "x") == ["xa", "xb", "xc"]
