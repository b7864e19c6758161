"""Sessions that nobody uses: found by age, deleted only while they are still idle."""

from __future__ import annotations

import pytest

from reactor_memory.core.ports import MessageStore
from reactor_memory.errors import SessionDeletedError
from reactor_memory.features.retention import operations
from reactor_memory.features.retention.operations import IdleGroup
from reactor_memory.testing.branching import fork
from reactor_memory.testing.builders import append_messages, numbered, wall_clock
from reactor_memory.testing.log import seqs


class IdleGroups:
    """A group is as old as the last activity of any of its sessions."""

    async def aged(self, store: MessageStore) -> None:
        """a, b and c, used last at 100, 200 and 300, of two users and nobody; c has a fork that was used just now."""
        await append_messages(store, "a", numbered(2), user_id="u", now=100)
        await append_messages(store, "b", numbered(3), user_id="v", now=200)
        await append_messages(store, "c", numbered(4), now=300)
        await fork(store, "c", "c~f", 3, own=["c3"])

    async def test_they_are_found_in_pages_whoever_owns_them(self, store: MessageStore) -> None:
        await self.aged(store)
        a, b = (
            IdleGroup(session_id="a", session_count=1, message_count=2, updated_at=100),
            IdleGroup(session_id="b", session_count=1, message_count=3, updated_at=200),
        )
        assert await store.database.read(operations.idle_groups, before=1_000) == ((a, b), None)
        assert await store.database.read(operations.idle_groups, before=200) == ((a,), None)
        assert await store.database.read(operations.idle_groups, before=1_000, limit=1) == ((a,), "a")
        assert await store.database.read(operations.idle_groups, before=1_000, after="a") == ((b,), None)
        assert await store.database.read(operations.idle_groups, before=150, after="a", limit=1) == ((), "b")
        ((_, _, c), _) = await store.database.read(operations.idle_groups, before=wall_clock() + 60_000_000)
        assert (c.session_id, c.session_count, c.message_count) == ("c", 2, 5)

    @pytest.mark.parametrize("purge_them", [True, False])
    async def test_an_idle_one_is_deleted_with_its_forks(self, store: MessageStore, purge_them: bool) -> None:
        await self.aged(store)
        later = wall_clock() + 60_000_000
        assert await store.database.write(operations.delete_idle, "a", before=1_000, now=5, purge=purge_them) == ("a",)
        assert set(await store.database.write(operations.delete_idle, "c", before=later, now=5, purge=purge_them)) == {
            "c",
            "c~f",
        }
        for session_id in ("c", "c~f"):
            with pytest.raises(SessionDeletedError):
                await store.read(session_id, None)
        assert await store.purge_deleted(before=10) == (0 if purge_them else 3)
        found, _ = await store.database.read(operations.idle_groups, before=later)
        assert [group.session_id for group in found] == ["b"]

    async def test_one_that_was_used_meanwhile_stays(self, store: MessageStore) -> None:
        await self.aged(store)
        await append_messages(store, "a", numbered(1), user_id="u", now=2_000)
        assert await store.database.write(operations.delete_idle, "a", before=1_000, now=5, purge=True) == ()
        assert await store.database.write(operations.delete_idle, "c", before=1_000, now=5, purge=True) == ()
        assert seqs(await store.read("a", "u")) == [1, 2, 3]
        assert await store.database.write(operations.delete_idle, "unknown", before=1_000, now=5, purge=True) == ()
