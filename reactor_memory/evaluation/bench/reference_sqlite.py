"""The reference on SQLite: each operation one closure through aiosqlite, rows not decoded, nothing checked.

`last` and `memory` are also called without aiosqlite, for the figure of the synchronous driver.
"""

from functools import partial
from sqlite3 import Connection
from typing import Any

import aiosqlite

KEY = "group_id = ? AND conversation_id = ?"
COLUMNS = (
    "seq, message_id, role, visibility, author_id, content, parts, tool_calls, tool_call_id, name, metadata, "
    "token_count, tokenizer, created_at"
)
PINS = "LEFT JOIN (SELECT * FROM entries WHERE kind = 'pin') USING (group_id, conversation_id)"
SESSION = f"SELECT owner_id, last_seq, path, deleted_at, text FROM conversations {PINS} WHERE {KEY}"
NEWEST = f"SELECT {COLUMNS} FROM messages WHERE {KEY} AND state IS NULL ORDER BY seq DESC LIMIT ?"
SUMMARY = f"SELECT covered_seq, version, epoch, truncated, stale_ranges FROM conversation_summaries WHERE {KEY}"
LINES = "window_start_seq, seq, covered_seq, epoch, fact_lines, narrative"
LAYOUT = f"SELECT {LINES} FROM context_layouts WHERE {KEY} AND budget = ?"
WINDOW = f"SELECT {COLUMNS} FROM messages WHERE {KEY} AND seq >= ? AND state IS NULL ORDER BY seq DESC"
ADVANCE = f"UPDATE conversations SET last_seq = last_seq + ?, updated_at = ? WHERE {KEY}"
INSERT = (
    f"INSERT INTO messages (group_id, conversation_id, batch_key, batch_fingerprint, batch_size, {COLUMNS}) "
    f"VALUES ({', '.join('?' * 19)})"
)


def last(db: Connection, session: str, count: int) -> list[Any]:
    key = (session, session)
    return db.execute(SESSION, key).fetchall() + db.execute(NEWEST, (*key, count)).fetchall()


def memory(db: Connection, session: str, budget: int) -> list[Any]:
    key = (session, session)
    layout = db.execute(LAYOUT, (*key, budget)).fetchall()
    rows = layout + db.execute(SESSION, key).fetchall() + db.execute(SUMMARY, key).fetchall()
    return rows + db.execute(WINDOW, (*key, layout[0][0] if layout else 1)).fetchall()


def append(db: Connection, rows: list[Any]) -> None:
    db.execute("BEGIN IMMEDIATE").execute(ADVANCE, (len(rows), rows[0][-1], *rows[0][:2]))
    db.executemany(INSERT, rows).execute("COMMIT")


def insert(db: Connection, rows: list[Any]) -> None:
    db.execute("BEGIN IMMEDIATE").executemany(INSERT, rows).execute("COMMIT")


async def run(connection: aiosqlite.Connection, work: Any, *arguments: Any) -> Any:
    return await connection._execute(partial(work, connection._conn, *arguments))  # pyright: ignore


async def cold(path: str, session: str, count: int) -> Any:
    async with aiosqlite.connect(path) as connection:
        return await run(connection, last, session, count)
