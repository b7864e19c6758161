"""A lease that is claimed while a message is being erased: PostgreSQL has no row yet that the erasure could lock."""

from __future__ import annotations

from typing import Any

import anyio
import asyncpg
import pytest

from reactor_memory.features.erasure import operations as erasure
from reactor_memory.models.ledger import Segment, Summary
from reactor_memory.models.requests import SUMMARIZE
from reactor_memory.testing import append_messages, numbered, wall_clock
from reactor_memory.testing.log import nothing_left
from tests.scenes.stores import postgres_store

pytestmark = [pytest.mark.anyio, pytest.mark.postgres]


async def test_it_is_taken_away(postgres_dsn: str) -> None:
    """The erasure waits with its last change (of a summary that somebody locks) while a worker claims and reads."""
    store = postgres_store(postgres_dsn)
    await store.open()
    locker: Any = await asyncpg.connect(postgres_dsn)
    watcher: Any = await asyncpg.connect(postgres_dsn)
    try:
        await append_messages(store, "s", numbered(4))
        lease = await store.summaries.claim("s", SUMMARIZE, now=wall_clock(), lease_microseconds=60_000_000)
        assert lease is not None
        assert await store.summaries.put_summary(lease, Summary(covered_seq=4, version=1))
        await locker.execute("DELETE FROM background_work")
        transaction = locker.transaction()
        await transaction.start()
        await locker.execute("SELECT 1 FROM conversation_summaries FOR UPDATE")
        claimed: list[Any] = []
        read: list[int] = []

        async def claim_and_read() -> None:
            claimed.append(await store.summaries.claim("s", SUMMARIZE, now=wall_clock(), lease_microseconds=60_000_000))
            read.append(len((await store.read_background("s")).messages))

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(
                lambda: store.database.write(
                    erasure.erase, "s", None, ranges=[(2, 2)], now=wall_clock(), refold=nothing_left
                )
            )
            while not await waiting(watcher, 1):  # noqa: ASYNC110 (what is waited for is a lock in another process)
                await anyio.sleep(0.01)
            tasks.start_soon(claim_and_read)
            while not read and not await waiting(watcher, 2):  # noqa: ASYNC110
                await anyio.sleep(0.01)
            await transaction.rollback()
        segment = Segment(
            conversation_id="s", start_seq=1, end_seq=4, source_hash="h", summarizer="s", prompt_version="1"
        )
        before = await store.summaries.get_summary("s") or Summary()
        late = Summary(covered_seq=4, version=before.version + 1, epoch=before.epoch)
        stored = await store.summaries.record_segment(claimed[0], segment, (), late)
        assert stored == (read == [3]), "only who reads after the erasure may write"
    finally:
        await locker.close()
        await watcher.close()
        await store.close()


async def waiting(connection: Any, count: int) -> bool:
    found = await connection.fetchval(
        "SELECT COUNT(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()"
    )
    return found >= count
