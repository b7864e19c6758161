"""How a load reads PostgreSQL: everything in one statement, which is one round trip."""

from __future__ import annotations

from collections.abc import Sequence
from operator import itemgetter

from msgspec.structs import replace

from reactor_memory.core.log import operations as log
from reactor_memory.core.log.branches import is_fork
from reactor_memory.core.log.context_layouts import read_layout
from reactor_memory.core.log.rows import key_of, messages_from, pin_from, session_from
from reactor_memory.core.log.summaries import summary_from, summary_head_from
from reactor_memory.database.database import Database
from reactor_memory.database.operations import Row, Rows, Values
from reactor_memory.models import Message, Pin, Session
from reactor_memory.models.ledger import SummaryHead
from reactor_memory.models.requests import ContextQuery, ContextRows

_LEAN_MESSAGE_TOKENS = 32
"""Seldom has a session fewer tokens a message. While no layout tells how much to read, a longer one than this allows
takes a second statement.
"""


_HAS_STANDING = 6
"""The part of a row that says that the group has system messages behind its first message."""


async def read_context(database: Database, query: ContextQuery) -> ContextRows:
    """As `log.read_context`."""
    name = _context_query(query)
    rows = await _fetched(database, name, query)
    if name != "read_context_of_layout" or rows.session is None or rows.layout is not None:
        return rows
    return _within_tokens(rows, query) if rows.messages else await _fetched(database, "read_context", query)


async def _fetched(database: Database, name: str, query: ContextQuery) -> ContextRows:
    found = await database.one(name, _context_values(query), is_repeatable=True)
    rows = _context_from(found, query.user_id)
    if rows.session is not None and any(row[0] == _HAS_STANDING for row in found):
        standing, superseded = await database.read(log.read_standing, rows.session.branch)
        rows = replace(rows, standing=standing, superseded=superseded)
    return rows


def _context_query(query: ContextQuery) -> str:
    if is_fork(query.session_id):
        return "read_context_of_fork"
    if query.trigger_message_count is None:
        return "read_newest_context"
    return "read_context" if query.facts else "read_context_of_layout"


def _context_values(query: ContextQuery) -> Values:
    return {
        **key_of(query.session_id),
        "user_id": query.user_id,
        "trigger_message_count": query.trigger_message_count,
        "last_count": query.last_count + query.before_count,
        "max_messages": query.max_messages,
        "max_tokens": query.max_tokens,
        "max_message_tokens": query.max_message_tokens,
        "likely_count": query.max_tokens // _LEAN_MESSAGE_TOKENS,
        "overhead": query.overhead,
        "budget": query.budget,
        "settings_fingerprint": query.settings_fingerprint,
        "facts": query.facts,
        "most_leading": log.MOST_LEADING,
    }


def _context_from(rows: Rows, user_id: str | None) -> ContextRows:
    """`rows` by their first column, `part`."""
    parts: tuple[list[Row], ...] = ([], [], [], [], [], [], [])
    for row in rows:
        part: int = row[0]
        parts[part].append(row)
    sessions, summaries, layouts, messages, pins, leading, _ = parts
    if not sessions:
        return ContextRows()
    session = log.check_access(_session(sessions[0]), user_id)
    layout, damaged = read_layout(_layout_row(layouts[0])) if layouts else (None, ())
    return ContextRows(
        session=session,
        summary=_summary(summaries[0]) if summaries else None,
        layout=layout,
        messages=_messages(messages),
        steps=_steps(messages),
        pins=_pins(pins),
        leading=_leading(session, _messages(leading)),
        damaged=damaged,
    )


def _within_tokens(rows: ContextRows, query: ContextQuery) -> ContextRows:
    """`rows` of a session without a layout, which was read whole."""
    if rows.session is None or rows.session.last_seq <= (query.trigger_message_count or 0):
        return rows
    tokens = 0
    for place in range(len(rows.messages) - 1, 0, -1):
        tokens += log.counted_tokens(rows.messages[place], query)
        if tokens > query.max_tokens:
            return replace(rows, messages=rows.messages[place:])
    return rows


def _session(row: Row) -> Session:
    (
        _,
        last_seq,
        session_id,
        group_id,
        owner_id,
        path,
        title,
        forked_from,
        *_,
        created,
        _,
        updated,
        forked_at,
        deleted,
    ) = row
    return session_from(
        (session_id, group_id, owner_id, last_seq, path, created, updated, title, forked_from, forked_at, deleted)
    )


def _summary(row: Row) -> SummaryHead:
    _, covered, narrative, facts, stale_ranges, truncated, spare, lines, *rest = row
    version, _, epoch, created_at, updated_at = rest[-5:]
    head = (covered, version, epoch, truncated == "1", stale_ranges, created_at, updated_at, narrative)
    return summary_head_from(head) if facts is None else summary_from((*head, facts, spare, lines))


def _layout_row(row: Row) -> Row:
    _, seq, fact_lines, narrative, *_, window_start_seq, _, covered_seq, epoch, _ = row
    return seq, window_start_seq, covered_seq, epoch, fact_lines, narrative


def _messages(rows: list[Row]) -> tuple[Message, ...]:
    """`UNION ALL` promises no order."""
    rows.sort(key=itemgetter(1))
    return tuple(messages_from([row[1:15] for row in rows]))


def _steps(rows: Sequence[Row]) -> dict[int, int]:
    """As `log.read_steps`."""
    begun = [(row[1], row[15], row[16]) for row in rows if row[15] is not None]
    return {each: turn_seq for seq, turn_seq, size in begun for each in range(seq, seq + size)}


def _leading(session: Session, messages: Sequence[Message]) -> tuple[Message, ...]:
    """Those that the branch has of the first messages of its group."""
    first = session.branch[0]
    if first.conversation_id != session.group_id:
        return ()
    return log.leading_of([each for each in messages if first.end_seq is None or (each.seq or 0) <= first.end_seq])


def _pins(rows: Sequence[Row]) -> tuple[Pin, ...]:
    return tuple(map(_pin, sorted(rows, key=itemgetter(1))))


def _pin(row: Row) -> Pin:
    _, ordinal, role, text, details, tokenizer, *_, seq, _, token_count, created_at, _ = row
    return pin_from((ordinal, seq, role, text, details, token_count, tokenizer, created_at))
