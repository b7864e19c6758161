"""Chat histories that langchain-postgres, or an agent of its kind, left in a table of PostgreSQL.

The table has a row a message: ``id``, ``session_id`` (text or uuid), ``message`` (``{"type": ..., "data": ...}``) and
perhaps ``created_at``. It is read in the order of ``id`` and never written.
"""

from __future__ import annotations

import json
import re
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from datetime import UTC, tzinfo
from functools import partial
from typing import Any, NamedTuple, cast

import asyncpg
from msgspec.structs import replace

from reactor_memory.adapters.extras import require
from reactor_memory.adapters.loop_bridge import Crossing
from reactor_memory.database.postgres_errors import unconnected
from reactor_memory.errors import ImportFormatError, InvalidInputError, StoreUnavailableError
from reactor_memory.memory import Memory
from reactor_memory.models import Message, Value
from reactor_memory.text.moments import microseconds_of

require("langchain_core", adapter=__name__, package="langchain-core", extra="langchain")

from langchain_core.messages import BaseMessage, messages_from_dict  # noqa: E402 - after the check

from reactor_memory.adapters.langchain.message_conversion import from_messages, to_message  # noqa: E402

TABLE = "chat_message_history"
ROW = "langchain_postgres_row"
"""The key of `Message.metadata` that holds the id of the row that a message was imported from."""

UNTIL = "langchain_postgres_until"
"""And the id of the last row that was imported with it: known also when that message was erased."""

NO_MESSAGE = "holds no message of LangChain"
BATCH = 500

_KNOWN_TYPES = frozenset({"human", "ai", "system", "tool", "function", "chat"})
"""Types of messages that are kept: one that cannot be read is damaged."""

CONNECT_SECONDS = 10.0

_DRIVER = re.compile(r"^(postgres(?:ql)?)\+\w+://")
"""SQLAlchemy names a driver behind a plus, as langchain-postgres wants it."""

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_$]{0,62}(\.[A-Za-z_][A-Za-z0-9_$]{0,62})?")


class ImportedSession(Value, frozen=True, kw_only=True):
    """What became of a session: `stored` of its messages were not in the log before. `left_out` names the rows that
    hold no message, or one of a type that no log keeps, each with its type.
    """

    session_id: str
    messages: int
    stored: int
    left_out: tuple[str, ...] = ()


class _Rows(NamedTuple):
    messages: list[Message]
    left_out: list[str]


async def import_chat_history(
    memory: Memory,
    url: str,
    *,
    table: str = TABLE,
    session_ids: Sequence[str] | None = None,
    user_of: Callable[[str], str | None] | None = None,
    timezone: tzinfo = UTC,
    strict: bool = False,
) -> AsyncGenerator[ImportedSession]:
    """Append the rows of a table to the sessions of the same ids; one answer for each session when it is done.

    All sessions of the table, or those in `session_ids`. The table does not say whose they are: `user_of` does, given
    the id (else they belong to nobody). Times are kept; those of a column without a time zone are in `timezone`. A row
    that holds no message, or one of another type, such as RemoveMessage, is left out and named; with `strict` all rows
    are read first, and such a row ends the import before anything is stored. Whatever interrupted it, run it again: it
    goes on behind the last row that was stored, and rows that were added since follow. What was erased from the log
    stays erased; if all of a session was, delete its rows of the table, too.

    Raises `ImportFormatError` for such a row with `strict`, naming its id, `StoreUnavailableError` if the database
    cannot be read, and what `save_history` raises.
    """
    crossing = Crossing(memory.loop)
    async with _connected(url) as connection:
        ids = session_ids if session_ids is not None else await _session_ids(connection, table)
        if strict:
            await _check(connection, table, ids)
        for session_id in ids:
            user_id = user_of(session_id) if user_of is not None else None
            present, last_row = await crossing.acall(partial(_present, memory, session_id, user_id))
            stored, left_out = 0, list[str]()
            async for rows in _batches(connection, table, session_id, after=last_row, timezone=timezone, strict=strict):
                left_out += rows.left_out
                if rows.messages:
                    stored += await crossing.acall(partial(_save, memory, session_id, user_id, rows.messages))
            yield ImportedSession(
                session_id=session_id, messages=present + stored, stored=stored, left_out=tuple(left_out)
            )


async def read_chat_history(url: str, session_id: str, *, table: str = TABLE) -> list[BaseMessage]:
    """The messages of a session as the table holds them, oldest first. Raises what `import_chat_history` raises."""
    async with _connected(url) as connection:
        messages = [
            message
            async for rows in _batches(connection, table, session_id, after=0, timezone=UTC, strict=True)
            for message in rows.messages
        ]
    return from_messages(messages)


async def read_turns(memory: Memory, session_id: str, *, k: int, user_id: str | None = None) -> list[BaseMessage]:
    """The newest `k` turns as `ConversationBufferWindowMemory` counts them: 2 `k` messages, none of them if `k` < 1."""
    if k < 1:
        return []
    crossing = Crossing(memory.loop)
    messages = await crossing.acall(lambda: memory.read_messages(session_id, user_id=user_id, last=2 * k))
    return from_messages(messages)


# -- the log ----------------------------------------------------------------------------------------------------------


async def _present(memory: Memory, session_id: str, user_id: str | None) -> tuple[int, int]:
    """How many rows the session shows already, and which was imported last."""
    until = [
        message.metadata[UNTIL]
        async for message in memory.stream_messages(session_id, user_id=user_id)
        if UNTIL in message.metadata
    ]
    return len(until), max(until, default=0)


async def _save(memory: Memory, session_id: str, user_id: str | None, batch: Sequence[Message]) -> int:
    """The key names the rows: when two import at once, the second finds the batch stored."""
    first, last = batch[0].metadata[ROW], batch[-1].metadata[ROW]
    messages = [replace(message, metadata=message.metadata | {UNTIL: last}) for message in batch]
    appended = await memory.save_history(
        session_id, messages, user_id=user_id, idempotency_key=f"langchain-postgres:{first}-{last}"
    )
    return 0 if appended.replayed else len(batch)


# -- the table --------------------------------------------------------------------------------------------------------
# It is no table of the stores, and its name is the caller's, so its SQL stands here.


@asynccontextmanager
async def _connected(url: str) -> AsyncGenerator[Any]:
    """A connection on which nothing can be written."""
    dsn = _DRIVER.sub(r"\1://", url)
    try:
        connection = await cast("Any", asyncpg).connect(
            dsn, timeout=CONNECT_SECONDS, server_settings={"default_transaction_read_only": "on"}
        )
    except (OSError, asyncpg.PostgresError, asyncpg.InterfaceError, ValueError) as error:
        if isinstance(error, ValueError) and not isinstance(error, OSError):  # as a certificate that is refused is
            raise InvalidInputError("url", "is not an address of a PostgreSQL database") from None
        raise unconnected(
            error, dsn, CONNECT_SECONDS, what="the database of the table", address="its address"
        ) from error
    try:
        yield connection
    except asyncpg.PostgresError as error:
        raise StoreUnavailableError(f"the table cannot be read ({type(error).__name__})") from error
    finally:
        await connection.close()


async def _session_ids(connection: Any, table: str) -> list[str]:
    """In the order in which the sessions began."""
    rows = await connection.fetch(
        f"SELECT session_id::text FROM {_quoted(table)} GROUP BY session_id ORDER BY min(id)"  # noqa: S608
    )
    return [row[0] for row in rows]


async def _check(connection: Any, table: str, session_ids: Sequence[str]) -> None:
    """Raises for the first row that would be left out, or holds no message."""
    for session_id in session_ids:
        async for _ in _batches(connection, table, session_id, after=0, timezone=UTC, strict=True):
            pass


async def _batches(
    connection: Any, table: str, session_id: str, *, after: int, timezone: tzinfo, strict: bool
) -> AsyncIterator[_Rows]:
    query = f"SELECT * FROM {_quoted(table)} WHERE session_id = $1 AND id > $2 ORDER BY id LIMIT {BATCH}"  # noqa: S608
    while rows := await _fetch_session(connection, query, session_id, after):
        yield _read(rows, timezone, strict)
        after = rows[-1]["id"]


def _read(rows: Sequence[Any], timezone: tzinfo, strict: bool) -> _Rows:
    read = _Rows([], [])
    for row in rows:
        try:
            read.messages.append(_message_of(row, timezone))
        except ImportFormatError as error:
            if strict:
                raise
            read.left_out.append(f"row {row['id']}: {error.type if isinstance(error, _OtherTypeError) else NO_MESSAGE}")
    return read


async def _fetch_session(connection: Any, query: str, session_id: str, after: int) -> Any:
    try:
        return await connection.fetch(query, session_id, after)
    except asyncpg.DataError as error:
        raise InvalidInputError("session_id", "is no uuid, as the ids of this table are") from error


class _OtherTypeError(ImportFormatError):
    """A message that no log keeps."""

    def __init__(self, row: int, type_: str) -> None:
        self.type = type_[:40]
        super().__init__(f"row {row}", f"holds a message of the type {self.type!r}, which no log keeps")


def _message_of(row: Any, timezone: tzinfo) -> Message:
    at = row.get("created_at")
    try:
        stored = row["message"]
        content = json.loads(stored) if isinstance(stored, str) else stored
    except (KeyError, TypeError, ValueError) as error:
        raise _no_message(row) from error
    try:
        message = to_message(messages_from_dict([content])[0])
    except (KeyError, TypeError, ValueError, InvalidInputError) as error:
        match content:
            case {"type": str(type_), "data": {}} if type_ not in _KNOWN_TYPES:
                raise _OtherTypeError(row["id"], type_) from error
            case _:
                raise _no_message(row) from error
    created_at = None if at is None else microseconds_of(at, timezone)
    return replace(message, created_at=created_at, metadata=message.metadata | {ROW: row["id"]})


def _no_message(row: Any) -> ImportFormatError:
    return ImportFormatError(f"row {row['id']}", NO_MESSAGE)


def _quoted(table: str) -> str:
    if not _NAME.fullmatch(table):
        raise InvalidInputError("table", "must be the name of a table, with its schema or without")
    return ".".join(f'"{part}"' for part in table.split("."))
