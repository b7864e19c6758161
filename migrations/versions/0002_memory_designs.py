"""What other memory designs keep beside the log: texts that stand for ranges of messages, active sessions, notes; and
what people corrected of the facts.

Tables of a user start with the user, all others with the group. On PostgreSQL a user's rows are fenced: a transaction
sees and writes the rows of the user that it names (`reactor_memory.user_id`), and none when it names nobody. Only
maintenance names all of them (`reactor_memory.all_users`).
"""

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None


def upgrade() -> None:
    _range_summaries()
    _archived_messages()
    _active_sessions()
    _long_term_notes()
    _fact_corrections()


def _range_summaries() -> None:
    """A text that stands for a run of messages. What a later one took the place of stays, so that it can be undone."""
    op.create_table(
        "range_summaries",
        _id("group_id"),
        _id("conversation_id"),
        _id("summary_id"),
        _text("kind"),
        _number("start_seq"),
        _number("end_seq"),
        _number("message_count"),
        _text("message_ids", nullable=True),
        _text("retention"),
        _id("replaced_by", nullable=True),
        _number("started_at"),
        _number("ended_at"),
        _text("text"),
        _number("token_count"),
        _text("tokenizer"),
        _number("created_at"),
        sa.PrimaryKeyConstraint("group_id", "conversation_id", "summary_id", name="range_summaries_pkey"),
    )


def _archived_messages() -> None:
    """Which summary took a message out of view, and where that summary ends: a branch in which it does not stand shows
    the message.
    """
    op.add_column("messages", _id("archived_by", nullable=True))
    op.add_column("messages", _number("archived_until", nullable=True))


def _active_sessions() -> None:
    """The session in which a user talks to an agent now; none while it is NULL."""
    op.create_table(
        "active_sessions",
        _id("user_id"),
        _id("agent_name"),
        _id("active_session_id", nullable=True),
        _number("last_active_at"),
        _number("created_at"),
        sa.PrimaryKeyConstraint("user_id", "agent_name", name="active_sessions_pkey"),
    )
    _fence("active_sessions")


def _long_term_notes() -> None:
    """Versions of the notes of an agent about a user: the highest one holds."""
    op.create_table(
        "long_term_notes",
        _id("user_id"),
        _id("agent_name"),
        _number("version"),
        _text("notes"),
        _text("author", nullable=True),
        _number("created_at"),
        sa.PrimaryKeyConstraint("user_id", "agent_name", "version", name="long_term_notes_pkey"),
    )
    _fence("long_term_notes")


def _fact_corrections() -> None:
    """What a person says of a fact; without a value it is retracted. The highest ordinal of a fact holds."""
    op.create_table(
        "fact_corrections",
        _id("group_id"),
        _id("conversation_id"),
        _number("ordinal"),
        _text("anchor"),
        _text("key"),
        _text("value", nullable=True),
        _number("seq"),
        _id("author_id", nullable=True),
        _number("created_at"),
        sa.PrimaryKeyConstraint("group_id", "conversation_id", "ordinal", name="fact_corrections_pkey"),
    )


def _fence(table: str) -> None:
    if op.get_context().dialect.name != "postgresql":
        return
    op.execute(f"ALTER TABLE {table} ENABLE ROW LEVEL SECURITY")
    op.execute(f"ALTER TABLE {table} FORCE ROW LEVEL SECURITY")
    op.execute(
        f"CREATE POLICY own_rows ON {table} USING "
        "(user_id = current_setting('reactor_memory.user_id', true)"
        " OR current_setting('reactor_memory.all_users', true) = 'yes')"
    )


def _id(name: str, *, nullable: bool = False) -> sa.Column[str]:
    """Ids sort by code point on both engines, whatever the locale of the database."""
    by_code_point = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")
    return sa.Column(name, by_code_point, nullable=nullable)


def _text(name: str, *, nullable: bool = False) -> sa.Column[str]:
    return sa.Column(name, sa.Text(), nullable=nullable)


def _number(name: str, *, nullable: bool = False) -> sa.Column[int]:
    return sa.Column(name, sa.BigInteger(), nullable=nullable)
