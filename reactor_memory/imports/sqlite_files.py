"""Conversations in SQLite files of others: sessions of the OpenAI Agents SDK, chat histories of LangChain, checkpoints
of LangGraph. A form is known by the columns of its table, whatever the table is called. Nothing is written.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
from msgspec.structs import replace

from reactor_memory.core.context.given_messages import messages_of
from reactor_memory.errors import ImportFormatError
from reactor_memory.evaluation.transcripts import Line
from reactor_memory.forms.response_items import plain_item, to_message
from reactor_memory.imports import checkpoints
from reactor_memory.imports.conversation import LeaveOut, Row, microseconds_in_text, reading
from reactor_memory.imports.langchain_messages import in_form_of_openai
from reactor_memory.models import Message
from reactor_memory.text.bounded_files import UnreadableError
from reactor_memory.text.bounded_json import UNLIMITED, decoded, most_values, too_long

_MAGIC = b"SQLite format 3\0"
_LARGEST_VALUE = 2**30
_EXPECTED = "tables of SQLiteSession (openai-agents), SQLChatMessageHistory (LangChain) or SqliteSaver (LangGraph)"


_OBJECT: msgspec.json.Decoder[dict[str, Any]] = msgspec.json.Decoder(dict[str, Any])


def _agent_item(row: Row, max_bytes: int) -> Sequence[Message]:
    """An item of the Responses API is one message, so that an agent finds its session as it was."""
    return (to_message(plain_item(decoded(row.text(), _OBJECT, max_bytes), 0)),)


def _chat_row(row: Row, max_bytes: int) -> Sequence[Message]:
    return messages_of([in_form_of_openai(decoded(row.text(), _OBJECT, max_bytes))])


class Form(NamedTuple):
    """A form of tables: the columns by which it is known, the query of its rows, and what reads one."""

    columns: frozenset[str]
    query: str
    read: Callable[[Row, int], Sequence[Message]]


FORMS: Mapping[str, Form] = {
    "sessions of the OpenAI Agents SDK": Form(
        frozenset({"id", "session_id", "message_data", "created_at"}),
        "SELECT session_id, id, {message_data}, NULL, created_at FROM {table} ORDER BY session_id, id",
        _agent_item,
    ),
    "chat histories of LangChain": Form(
        frozenset({"id", "session_id", "message"}),
        "SELECT session_id, id, {message}, NULL, NULL FROM {table} ORDER BY session_id, id",
        _chat_row,
    ),
    "checkpoints of LangGraph": Form(
        frozenset({"thread_id", "checkpoint_ns", "checkpoint_id", "type", "checkpoint"}),
        "SELECT thread_id, checkpoint_id, {checkpoint}, type, NULL FROM {table} AS newest WHERE checkpoint_ns = '' "
        "AND checkpoint_id = (SELECT max(checkpoint_id) FROM {table} AS other "
        "WHERE other.thread_id = newest.thread_id AND other.checkpoint_ns = '') ORDER BY thread_id",
        checkpoints.messages,
    ),
}
_BRANCHES = "message_structure"
_OF_BRANCHES = (
    "SELECT CASE COALESCE(place.branch_id, 'main') WHEN 'main' THEN entry.session_id "
    "ELSE entry.session_id || '-' || place.branch_id END AS branch, entry.id, {message_data}, NULL, entry.created_at "
    "FROM {table} AS entry LEFT JOIN message_structure AS place "
    "ON place.message_id = entry.id AND place.session_id = entry.session_id "
    "ORDER BY branch, place.sequence_number, entry.id"
)
"""AdvancedSQLiteSession says in a second table which messages a branch has. Each branch becomes a session."""


def is_sqlite(path: Path) -> bool:
    try:
        with path.open("rb") as file:
            return file.read(len(_MAGIC)) == _MAGIC
    except OSError:
        return False


def read_sqlite(path: Path, *, max_bytes: int, leave_out: LeaveOut) -> Iterator[Line]:
    """The conversations of a file. `leave_out` is told of rows that cannot be read. Raises `ImportFormatError`."""
    try:
        with _opened(path, max_bytes) as connection:
            for table, form in _tables(path, connection):
                rows = map(Row._make, connection.execute(_query(connection, table, form, max_bytes)))
                for session_id, of_session in groupby(rows, itemgetter(0)):
                    where = f"{path} {table} {session_id}"
                    messages = tuple(_messages(where, of_session, form, max_bytes, leave_out))
                    if messages:
                        yield Line(where, str(session_id), messages, tuple)
    except (sqlite3.Error, OverflowError, UnicodeError) as error:
        raise ImportFormatError(str(path), f"the SQLite file cannot be read ({type(error).__name__})") from None


@contextmanager
def _opened(path: Path, max_bytes: int) -> Generator[sqlite3.Connection]:
    """A connection that writes nothing and trusts nothing that the file says of itself."""
    with closing(_connected(path)) as connection:
        connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, _LARGEST_VALUE if max_bytes == UNLIMITED else max_bytes + 4096)
        connection.execute("PRAGMA trusted_schema = OFF")
        connection.execute("PRAGMA query_only = ON")
        connection.text_factory = _readable
        yield connection


def _connected(path: Path) -> sqlite3.Connection:
    address = f"{path.resolve().as_uri()}?mode=ro"
    connection = sqlite3.connect(address, uri=True, isolation_level=None)
    try:
        connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
    except sqlite3.OperationalError:  # a log stands beside it, in a folder that cannot be written
        connection.close()
        return sqlite3.connect(f"{address}&immutable=1", uri=True, isolation_level=None)
    except sqlite3.Error:
        connection.close()
        raise
    return connection


def _readable(text: bytes) -> str:
    return text.decode(errors="replace")


def _tables(path: Path, connection: sqlite3.Connection) -> Sequence[tuple[str, Form]]:
    """The tables with messages. Raises `ImportFormatError` for a file without any."""
    names = [
        name
        for name, sql in connection.execute("SELECT name, sql FROM sqlite_master WHERE type = 'table' ORDER BY name")
        if isinstance(name, str) and str(sql).upper().startswith("CREATE TABLE")
    ]
    columns = {name: {row[1] for row in connection.execute(f"PRAGMA table_info({_quoted(name)})")} for name in names}
    if {"conversations", "messages", "segments"} <= columns.keys():
        raise ImportFormatError(str(path), "is a database of this library: take its sessions with reactor-memory copy")
    found = [(name, form) for name in names for form in FORMS.values() if form.columns <= columns[name]]
    if not found:
        raise ImportFormatError(str(path), f"is an SQLite file without conversations; expected {_EXPECTED}")
    return found


def _query(connection: sqlite3.Connection, table: str, form: Form, max_bytes: int) -> str:
    """Values that are too large are NULL: no more of them is read than their size."""
    most = _LARGEST_VALUE if max_bytes == UNLIMITED else max_bytes
    has_branches = (
        "message_data" in form.columns
        and connection.execute(
            "SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = ? AND sql LIKE '%branch_id%sequence_number%'",
            (_BRANCHES,),
        ).fetchone()
    )
    bounded = {name: f"CASE WHEN length(CAST({name} AS BLOB)) <= {most} THEN {name} END" for name in form.columns}
    return (_OF_BRANCHES if has_branches else form.query).format(**bounded, table=_quoted(table))


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _messages(where: str, rows: Iterator[Row], form: Form, max_bytes: int, leave_out: LeaveOut) -> Iterator[Message]:
    """The messages of a session. Raises `ImportFormatError` for one that is too long."""
    size = count = 0
    for row in rows:
        place = f"{where} row {row.row_id}"
        try:
            with reading(place, _EXPECTED):
                if row.content is None:
                    raise UnreadableError("is empty, or too large (limits.max_session_bytes)")
                found = form.read(row, max_bytes)
        except ImportFormatError as error:
            leave_out(error)
            continue
        size += len(row.content)
        count += len(found)
        if 0 <= max_bytes < size:
            raise ImportFormatError(where, str(too_long(max_bytes)))
        if max_bytes >= 0 and count > most_values(max_bytes) // 4:
            raise ImportFormatError(where, f"holds more than {count} messages (limits.max_session_bytes)")
        at = microseconds_in_text(row.created_at)
        yield from (replace(message, created_at=at) for message in found) if at is not None else found
