"""Four workers on one PostgreSQL share what is due; two of them are killed."""

from __future__ import annotations

from collections import Counter
from contextlib import ExitStack
from pathlib import Path

import anyio
import anyio.to_thread
import asyncpg
import pytest

from benchmarks.fleet import MESSAGES, count_due, fill, until_due, wait_until_ready, worker
from tests.scenes.counts import count as count_proven

pytestmark = [pytest.mark.anyio, pytest.mark.postgres, pytest.mark.slow, pytest.mark.timeout(1800)]

SESSIONS = 2_000
WORKERS = 4
AT_ONCE = 4
"""Sessions that a worker has at a time."""

LEFT = """
SELECT count(*), count(*) FILTER (WHERE lease_until > 0 OR attempts > 0 OR parked > 0) FROM background_work
WHERE kind = 'summarize'
"""
SEALED = "SELECT conversation_id, count(*), min(start_seq), max(end_seq) FROM segments GROUP BY conversation_id"


async def test_workers_share_what_is_due(postgres_dsn: str, tmp_path: Path) -> None:
    await fill(postgres_dsn, SESSIONS)
    assert await count_due(postgres_dsn) == SESSIONS
    calls = tmp_path / "calls"
    with ExitStack() as stack:
        processes = [stack.enter_context(worker(postgres_dsn, 0.01, calls, lease_seconds=20)) for _ in range(WORKERS)]
        for process in processes:
            await anyio.to_thread.run_sync(wait_until_ready, process)
        await until_due(postgres_dsn, SESSIONS * 6 // 10)
        for process in processes[:2]:
            process.kill()
        await until_due(postgres_dsn, 0)
    connection = await asyncpg.connect(postgres_dsn)
    sealed = {row[0]: tuple(row)[1:] for row in await connection.fetch(SEALED)}
    rows, unfinished = await connection.fetchrow(LEFT)
    await connection.close()
    assert len(sealed) == SESSIONS
    assert {(first, last) for _, first, last in sealed.values()} == {(1, MESSAGES)}
    assert (rows, unfinished) == (SESSIONS, 0)
    done = [line.split() for line in calls.read_text().splitlines()]
    times = Counter((session, first, last) for _, session, first, last in done)
    again = {session for (session, _, _), number in times.items() if number > 1}
    assert max(times.values()) <= 2, "no call is made more than twice"
    assert len(again) <= 2 * AT_ONCE, "only sessions that the killed ones held are done again"
    by_process = Counter(each[0] for each in done)
    assert len(by_process) == WORKERS
    assert min(by_process.values()) > len(done) / 40, by_process
    count_proven("sessions shared by 4 workers of which 2 were killed; 0 lost", SESSIONS)
