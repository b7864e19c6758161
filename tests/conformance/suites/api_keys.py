"""Keys of agents: found, listed, revoked."""

from __future__ import annotations

import anyio
import pytest
from msgspec.structs import replace

from reactor_memory.features.sharing import key_operations
from reactor_memory.features.sharing.principals import ApiKey, Grant
from reactor_memory.testing.summary_recording import Store

GRANT = Grant(agent_names=("travel", "*"), operations=("read", "append"))


def api_key(prefix: str = "p1", *, client_id: str = "bot", now: int = 10, expires_at: int | None = None) -> ApiKey:
    return ApiKey(
        key_prefix=prefix,
        client_id=client_id,
        secret_hash=f"hash of {prefix}",
        grant=GRANT,
        created_at=now,
        expires_at=expires_at,
    )


@pytest.mark.anyio
class ApiKeyConformance:
    """What the operations of `features.sharing.key_operations` promise, of the database of an opened, empty `store`."""

    async def test_there_are_no_keys_at_first(self, store: Store) -> None:
        assert await store.database.read(key_operations.find_api_key, "p1") is None
        assert await store.database.read(key_operations.list_api_keys) == ()

    async def test_a_key_is_found_by_its_whole_prefix(self, store: Store) -> None:
        assert await store.database.write(key_operations.add_api_key, api_key(expires_at=99))
        assert await store.database.read(key_operations.find_api_key, "p1") == api_key(expires_at=99)
        for other in ("p", "p11", "P1", "", "%"):
            assert await store.database.read(key_operations.find_api_key, other) is None

    async def test_a_client_may_have_several_keys(self, store: Store) -> None:
        for prefix, now in (("p2", 20), ("p3", 10), ("p1", 20)):
            assert await store.database.write(key_operations.add_api_key, api_key(prefix, now=now))
        assert [key.key_prefix for key in await store.database.read(key_operations.list_api_keys)] == ["p3", "p1", "p2"]

    async def test_a_prefix_is_given_once(self, store: Store) -> None:
        assert await store.database.write(key_operations.add_api_key, api_key())
        assert not await store.database.write(key_operations.add_api_key, api_key(client_id="another"))
        assert await store.database.read(key_operations.find_api_key, "p1") == api_key()

    async def test_a_grant_may_be_empty(self, store: Store) -> None:
        powerless = replace(api_key(), grant=Grant())
        assert await store.database.write(key_operations.add_api_key, powerless)
        assert await store.database.read(key_operations.find_api_key, "p1") == powerless

    async def test_a_revoked_key_is_kept_and_says_since_when(self, store: Store) -> None:
        await store.database.write(key_operations.add_api_key, api_key())
        await store.database.write(key_operations.add_api_key, api_key("p2"))
        assert await store.database.write(key_operations.revoke_api_key, "p1", now=50)
        assert not await store.database.write(key_operations.revoke_api_key, "p1", now=60)
        assert not await store.database.write(key_operations.revoke_api_key, "unknown", now=60)
        assert await store.database.read(key_operations.find_api_key, "p1") == replace(api_key(), revoked_at=50)
        assert await store.database.read(key_operations.find_api_key, "p2") == api_key("p2")

    async def test_of_two_simultaneous_revocations_one_is_told_it_counted(self, store: Store) -> None:
        await store.database.write(key_operations.add_api_key, api_key())
        told: list[bool] = []

        async def revoke(now: int) -> None:
            told.append(await store.database.write(key_operations.revoke_api_key, "p1", now=now))

        async with anyio.create_task_group() as tasks:
            for now in range(50, 56):
                tasks.start_soon(revoke, now)
        assert sorted(told) == [False] * 5 + [True]
