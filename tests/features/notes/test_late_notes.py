"""Notes that are stored while their user is being erased: PostgreSQL may have read already which version is newest."""

from __future__ import annotations

from typing import Any

import anyio
import asyncpg
import pytest

from reactor_memory.features.erasure import operations as erasure
from reactor_memory.features.notes import operations as note_rows
from reactor_memory.features.notes.models import Notes
from tests.features.erasure.test_late_leases import waiting
from tests.scenes.stores import postgres_store

LATE = """\
INSERT INTO entries (group_id, conversation_id, user_id, kind, name, version, place, start_seq, end_seq, author,
                     created_at, text)
VALUES ('u', '', 'u', 'notes', 'a', 2, 0, 0, 0, 'a', 1, 'secret again')"""

pytestmark = [pytest.mark.anyio, pytest.mark.postgres]


async def test_they_go_too(postgres_dsn: str) -> None:
    """The version that is to stay empty waits for one of the same number, which a writer is about to commit."""
    store = postgres_store(postgres_dsn)
    await store.open()
    writer: Any = await asyncpg.connect(postgres_dsn)
    watcher: Any = await asyncpg.connect(postgres_dsn)
    try:
        assert await store.database.write(
            note_rows.put_notes, Notes(user_id="u", agent_name="a", version=1, text="secret")
        )
        transaction = writer.transaction()
        await transaction.start()
        await writer.execute("SELECT set_config('reactor_memory.user_id', 'u', true)")
        await writer.execute(LATE)
        forgotten: list[int] = []

        async def forget() -> None:
            forgotten.append(await store.database.write(erasure.forget_user, "u", now=5))

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(forget)
            while not await waiting(watcher, 1):  # noqa: ASYNC110 (what is waited for is a lock in another process)
                await anyio.sleep(0.01)
            await transaction.commit()
        assert forgotten == [1]
        assert [
            (each.version, each.text, each.author) for each in await store.database.read(note_rows.list_notes, "u", "a")
        ] == [(2, "", None)]
    finally:
        await writer.close()
        await watcher.close()
        await store.close()
