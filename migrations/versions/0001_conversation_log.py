"""The log of conversations, and what is derived from it: segments, facts, summaries, layouts, background work, the
index of what recall finds; pins.

Keys start with the group, so that a group lives on one shard. Times are microseconds UTC. What is large or rare is
JSON text, NULL when empty.
"""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None


def upgrade() -> None:
    _conversations()
    _messages()
    _pins()
    _segments()
    _facts()
    _conversation_summaries()
    _context_layouts()
    _summary_spending()
    _background_work()
    _recall_ranges()
    _recall_entries()


def _conversations() -> None:
    op.create_table(
        "conversations",
        _id("group_id"),
        _id("conversation_id"),
        _id("owner_id", nullable=True),
        _text("agent_name", nullable=True),
        _text("title", nullable=True),
        _text("metadata", nullable=True),
        _number("last_seq"),
        _text("path", nullable=True),
        _id("forked_from_id", nullable=True),
        _number("forked_at_seq", nullable=True),
        _number("created_at"),
        _number("updated_at"),
        _number("deleted_at", nullable=True),
        _number("purged_at", nullable=True),
        _number("erase_epoch", default=0),
        sa.PrimaryKeyConstraint("group_id", "conversation_id", name="conversations_pkey"),
        sqlite_with_rowid=False,
    )
    _partial_index(
        "conversations_by_activity", "conversations", "owner_id, updated_at DESC, conversation_id", "deleted_at IS NULL"
    )
    _partial_index(
        "conversations_to_purge", "conversations", "deleted_at", "deleted_at IS NOT NULL AND purged_at IS NULL"
    )


def _messages() -> None:
    op.create_table(
        "messages",
        _id("group_id"),
        _id("conversation_id"),
        _number("seq"),
        _id("message_id"),
        _text("role"),
        _text("visibility"),
        _text("author_id", nullable=True),
        _text("client_id", nullable=True),
        _text("content"),
        _text("parts", nullable=True),
        _text("tool_calls", nullable=True),
        _text("tool_call_id", nullable=True),
        _text("name", nullable=True),
        _text("metadata", nullable=True),
        _number("token_count", nullable=True),
        _text("tokenizer", nullable=True),
        _id("batch_key", nullable=True),
        _text("batch_fingerprint", nullable=True),
        _number("batch_size", nullable=True),
        _text("state", nullable=True),
        _number("created_at"),
        sa.PrimaryKeyConstraint("group_id", "conversation_id", "seq", name="messages_pkey"),
    )
    _partial_index(
        "messages_batch_key", "messages", "group_id, conversation_id, batch_key", "batch_key IS NOT NULL", unique=True
    )


def _pins() -> None:
    op.create_table(
        "pins",
        _id("group_id"),
        _id("conversation_id"),
        _number("ordinal"),
        _number("seq"),
        _text("anchor", nullable=True),
        _text("key", nullable=True),
        _text("role"),
        _text("text"),
        _text("sha256"),
        _number("token_count"),
        _text("tokenizer"),
        _number("created_at"),
        sa.PrimaryKeyConstraint("group_id", "conversation_id", "ordinal", name="pins_pkey"),
    )


def _segments() -> None:
    op.create_table(
        "segments",
        _id("group_id"),
        _id("conversation_id"),
        _number("end_seq"),
        _number("start_seq"),
        _text("source_hash"),
        _text("summarizer"),
        _text("prompt_version"),
        _text("narrative"),
        _text("headline"),
        _number("tokens_read"),
        _number("tokens_written"),
        _number("created_at"),
        _flag("stale"),
        sa.PrimaryKeyConstraint("group_id", "conversation_id", "end_seq", name="segments_pkey"),
        sqlite_with_rowid=False,
    )


def _facts() -> None:
    op.create_table(
        "facts",
        _id("group_id"),
        _id("conversation_id"),
        _number("end_seq"),
        _number("ordinal"),
        _text("anchor"),
        _text("key"),
        _text("value"),
        _text("category"),
        _number("source_seq"),
        _number("span_start"),
        _number("span_end"),
        _text("said_by"),
        _text("act"),
        _flag("failed"),
        _flag("verified"),
        _number("salience"),
        sa.PrimaryKeyConstraint("group_id", "conversation_id", "end_seq", "ordinal", name="facts_pkey"),
        sqlite_with_rowid=False,
    )
    op.create_index("facts_by_anchor", "facts", ["group_id", "conversation_id", "anchor"])


def _conversation_summaries() -> None:
    """Large columns come last: SQLite reads those before them without reading the pages that these fill."""
    op.create_table(
        "conversation_summaries",
        _id("group_id"),
        _id("conversation_id"),
        _number("covered_seq"),
        _number("version"),
        _number("epoch"),
        _number("fence"),
        _flag("truncated"),
        _text("stale_ranges", nullable=True),
        _number("created_at"),
        _number("updated_at"),
        _text("narrative"),
        _text("facts_json"),
        _text("spare_json"),
        sa.PrimaryKeyConstraint("group_id", "conversation_id", name="conversation_summaries_pkey"),
    )


def _context_layouts() -> None:
    op.create_table(
        "context_layouts",
        _id("group_id"),
        _id("conversation_id"),
        _number("budget"),
        _text("settings_fingerprint"),
        _number("seq"),
        _number("window_start_seq"),
        _text("fact_lines"),  # JSON: [tokens, number of lines, their text, the rest of each, lines left out, ...]
        _text("narrative"),  # the same
        _number("covered_seq"),
        _number("epoch"),
        sa.PrimaryKeyConstraint(
            "group_id", "conversation_id", "budget", "settings_fingerprint", name="context_layouts_pkey"
        ),
    )


def _summary_spending() -> None:
    """Tokens that models read and wrote, by conversation and day (UTC). They stay when the conversation goes."""
    op.create_table(
        "summary_spending",
        _id("group_id"),
        _id("conversation_id"),
        _number("day"),
        _number("tokens"),
        sa.PrimaryKeyConstraint("group_id", "conversation_id", "day", name="summary_spending_pkey"),
        sqlite_with_rowid=False,
    )
    op.create_index("summary_spending_by_day", "summary_spending", ["day", "tokens"])


def _background_work() -> None:
    op.create_table(
        "background_work",
        _id("group_id"),
        _id("conversation_id"),
        _id("kind"),
        _number("due_at", nullable=True),
        _number("lease_until"),
        _number("fence"),
        _number("attempts"),
        _flag("parked"),
        _flag("touched"),
        _text("last_error", nullable=True),
        sa.PrimaryKeyConstraint("group_id", "conversation_id", "kind", name="background_work_pkey"),
        sqlite_with_rowid=False,
    )
    _partial_index("background_work_due", "background_work", "kind, due_at, conversation_id", "due_at IS NOT NULL")


def _recall_ranges() -> None:
    """The run of messages of each conversation that its index holds."""
    op.create_table(
        "recall_ranges",
        _id("group_id"),
        _id("conversation_id"),
        _number("start_seq"),
        _number("end_seq"),
        sa.PrimaryKeyConstraint("group_id", "conversation_id", name="recall_ranges_pkey"),
        sqlite_with_rowid=False,
    )


def _recall_entries() -> None:
    """Full text: FTS5 on SQLite, a `tsvector` on PostgreSQL. The terms come ready made, so neither takes them apart."""
    if op.get_context().dialect.name == "sqlite":
        op.execute(
            "CREATE VIRTUAL TABLE recall_entries USING fts5(group_id UNINDEXED, conversation_id UNINDEXED, "
            "seq UNINDEXED, anchor UNINDEXED, turn_start UNINDEXED, turn_end UNINDEXED, length UNINDEXED, terms, "
            "tokenize = 'ascii', detail = none, columnsize = 0)"
        )
        return
    op.create_table(
        "recall_entries",
        _id("group_id"),
        _id("conversation_id"),
        _number("seq"),
        _text("anchor"),
        _number("turn_start"),
        _number("turn_end"),
        _number("length"),
        sa.Column("terms", postgresql.TSVECTOR(), nullable=False),
        sa.PrimaryKeyConstraint("group_id", "conversation_id", "seq", "anchor", name="recall_entries_pkey"),
    )
    op.create_index("recall_entries_by_term", "recall_entries", ["terms"], postgresql_using="gin")


def _id(name: str, *, nullable: bool = False) -> sa.Column[str]:
    """Ids sort by code point on both engines, whatever the locale of the database."""
    by_code_point = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")
    return sa.Column(name, by_code_point, nullable=nullable)


def _text(name: str, *, nullable: bool = False) -> sa.Column[str]:
    return sa.Column(name, sa.Text(), nullable=nullable)


def _number(name: str, *, nullable: bool = False, default: int | None = None) -> sa.Column[int]:
    return sa.Column(name, sa.BigInteger(), nullable=nullable, server_default=None if default is None else str(default))


def _flag(name: str) -> sa.Column[int]:
    return sa.Column(name, sa.BigInteger(), nullable=False, server_default="0")


def _partial_index(name: str, table: str, columns: str, where: str, *, unique: bool = False) -> None:
    condition = sa.text(where)
    parts = [sa.text(column) for column in columns.split(", ")]
    op.create_index(name, table, parts, unique=unique, sqlite_where=condition, postgresql_where=condition)
