"""What search over many conversations needs: words of messages, their meanings, and how far both have come.

Words are the full text of each engine. On SQLite an entry is found by its row id, the number of its conversation and
the position of its message, so that a search can tell whose it is without reading it. Meanings are compared one by one;
on PostgreSQL by pgvector where the server offers it and the role may create it, and else outside of the database.
"""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None


def upgrade() -> None:
    _search_progress()
    _search_entries()
    _embeddings()
    if op.get_context().dialect.name == "postgresql":
        _pgvector()
        _no_samples()


def _search_progress() -> None:
    """Up to which message a conversation was indexed, and behind which key its terms stand."""
    op.create_table(
        "search_progress",
        _id("group_id"),
        _id("conversation_id"),
        _number("number"),
        _text("scope"),
        _number("indexed_seq"),
        _number("embedded_seq"),
        _text("model", nullable=True),
        _number("parked"),
        sa.PrimaryKeyConstraint("group_id", "conversation_id", name="search_progress_pkey"),
        sqlite_with_rowid=False,
    )
    op.create_index("search_progress_by_number", "search_progress", ["number"])


def _search_entries() -> None:
    """Full text: FTS5 on SQLite, a `tsvector` on PostgreSQL. The terms come ready made, so neither takes them apart."""
    if op.get_context().dialect.name == "sqlite":
        op.execute(
            "CREATE VIRTUAL TABLE search_entries USING fts5(group_id UNINDEXED, conversation_id UNINDEXED, "
            "seq UNINDEXED, length UNINDEXED, sent_at UNINDEXED, created_at UNINDEXED, terms, "
            "tokenize = 'ascii', detail = none, columnsize = 0)"
        )
        return
    op.create_table(
        "search_entries",
        _id("group_id"),
        _id("conversation_id"),
        _number("seq"),
        _number("length"),
        _number("sent_at"),
        _number("created_at"),
        sa.Column("terms", postgresql.TSVECTOR(), nullable=False),
        sa.PrimaryKeyConstraint("group_id", "conversation_id", "seq", name="search_entries_pkey"),
    )
    # Without the list of what is pending, which every search would have to read through
    op.execute("CREATE INDEX search_entries_by_term ON search_entries USING gin (terms) WITH (fastupdate = off)")


def _embeddings() -> None:
    """What a message means. A vector says what its text says, so it goes when the text goes."""
    op.create_table(
        "embeddings",
        _id("group_id"),
        _id("conversation_id"),
        _number("seq"),
        _text("model"),
        _number("sent_at"),
        _number("created_at"),
        sa.Column("vector", sa.LargeBinary().with_variant(postgresql.ARRAY(sa.REAL), "postgresql"), nullable=False),
        sa.PrimaryKeyConstraint("group_id", "conversation_id", "seq", name="embeddings_pkey"),
        sqlite_with_rowid=False,
    )


def _pgvector() -> None:
    """A server without it, and a role that may not create it, do without it."""
    op.execute(
        "DO $$ BEGIN CREATE EXTENSION IF NOT EXISTS vector; EXCEPTION WHEN insufficient_privilege "
        "OR feature_not_supported OR undefined_file THEN NULL; END $$"
    )


def _no_samples() -> None:
    """The statistics of PostgreSQL hold samples of values, which would outlive them; no plan needs those of content."""
    op.execute("ALTER TABLE search_entries ALTER COLUMN terms SET STATISTICS 0")
    op.execute("ALTER TABLE embeddings ALTER COLUMN vector SET STATISTICS 0")


def _id(name: str, *, nullable: bool = False) -> sa.Column[str]:
    """Ids sort by code point on both engines, whatever the locale of the database."""
    by_code_point = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")
    return sa.Column(name, by_code_point, nullable=nullable)


def _text(name: str, *, nullable: bool = False) -> sa.Column[str]:
    return sa.Column(name, sa.Text(), nullable=nullable)


def _number(name: str, *, nullable: bool = False) -> sa.Column[int]:
    return sa.Column(name, sa.BigInteger(), nullable=nullable)
