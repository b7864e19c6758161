"""The reference on PostgreSQL: each operation one prepared statement on a held connection, rows not decoded."""

from typing import Any

import asyncpg

KEY = "group_id = $1 AND conversation_id = $1"
COLUMNS = (
    "seq, message_id, role, visibility, author_id, content, parts, tool_calls, tool_call_id, name, metadata, "
    "token_count, tokenizer, created_at"
)
NULLS = "NULL, NULL, NULL, NULL, NULL, NULL, NULL"
SESSION = (
    f"SELECT last_seq, owner_id, path, {NULLS}, NULL, deleted_at, NULL, NULL FROM conversations WHERE {KEY} "
    f"UNION ALL SELECT place, text, {NULLS}, NULL, NULL, NULL, NULL, NULL FROM entries "
    f"WHERE {KEY} AND kind = 'pin'"
)
LAST = f"(SELECT {COLUMNS} FROM messages WHERE {KEY} AND state IS NULL ORDER BY seq DESC LIMIT $2) UNION ALL {SESSION}"
LAYOUT = f"FROM context_layouts WHERE {KEY} AND budget = $2"
MEMORY = (
    f"(SELECT {COLUMNS} FROM messages WHERE {KEY} AND state IS NULL "
    f"AND seq >= COALESCE((SELECT window_start_seq {LAYOUT}), 1)) "
    f"UNION ALL {SESSION} "
    f"UNION ALL SELECT seq, fact_lines, narrative, {NULLS}, NULL, covered_seq, NULL, window_start_seq {LAYOUT} "
    f"UNION ALL SELECT covered_seq, stale_ranges, {NULLS}, NULL, NULL, version, NULL, truncated "
    f"FROM conversation_summaries WHERE {KEY}"
)
INSERT = (
    f"INSERT INTO messages (group_id, conversation_id, batch_key, batch_fingerprint, batch_size, {COLUMNS}) "
    "SELECT * FROM unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::bigint[], $6::bigint[], $7::text[], "
    "$8::text[], $9::text[], $10::text[], $11::text[], $12::text[], $13::text[], $14::text[], $15::text[], "
    "$16::text[], $17::bigint[], $18::text[], $19::bigint[])"
)


async def append(insert: Any, rows: list[Any]) -> Any:
    return await insert.fetch(*map(list, zip(*rows, strict=True)))


async def cold(url: str, session: str, count: int) -> Any:
    driver: Any = asyncpg
    connection = await driver.connect(url)
    rows = await connection.fetch(LAST, session, count)
    await connection.close()
    return rows
