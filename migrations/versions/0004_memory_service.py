"""What a service keeps for many users of one log: members, offers of ownership, an audit trail, keys of agents, answers
to repeated requests, what search finds, and responses that are being written.

Keys start with the group where a row belongs to a conversation. On PostgreSQL rows about users are fenced as those of
notes are (`reactor_memory.user_id`, `reactor_memory.all_users`).
"""

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None


def upgrade() -> None:
    _memberships()
    _ownership_transfers()
    _audit_records()
    _api_keys()
    _answered_requests()
    _posted_summaries()
    _responses()
    op.add_column("conversations", _number("vectorized_at", nullable=True))
    _no_samples()


CONTENT = {
    "conversations": "title metadata",
    "audit_records": "details",
    "answered_requests": "body",
    "response_pieces": "text",
}


def _no_samples() -> None:
    """The statistics of PostgreSQL hold samples of values, which would outlive them; no plan needs those of content."""
    if op.get_context().dialect.name != "postgresql":
        return
    for table, columns in CONTENT.items():
        changes = ", ".join(f"ALTER COLUMN {column} SET STATISTICS 0" for column in columns.split())
        op.execute(f"ALTER TABLE {table} {changes}")


def _memberships() -> None:
    """Everybody but the owner, who is named in the conversations themselves."""
    op.create_table(
        "memberships",
        _id("group_id"),
        _id("user_id"),
        _text("access_level"),
        _number("created_at"),
        sa.PrimaryKeyConstraint("group_id", "user_id", name="memberships_pkey"),
        sqlite_with_rowid=False,
    )
    op.create_index("memberships_by_user", "memberships", ["user_id", "group_id"])


def _ownership_transfers() -> None:
    """Offers that wait for an answer; a group has one at most."""
    op.create_table(
        "ownership_transfers",
        _id("group_id"),
        _id("transfer_id"),
        _id("from_user_id"),
        _id("to_user_id"),
        _number("created_at"),
        sa.PrimaryKeyConstraint("group_id", name="ownership_transfers_pkey"),
        sqlite_with_rowid=False,
    )
    op.create_index("ownership_transfers_by_id", "ownership_transfers", ["transfer_id"])
    op.create_index("ownership_transfers_to_user", "ownership_transfers", ["to_user_id"])
    op.create_index("ownership_transfers_from_user", "ownership_transfers", ["from_user_id"])


def _audit_records() -> None:
    """Without names, once a user was erased: that is what the indexes are for."""
    op.create_table(
        "audit_records",
        _id("group_id"),
        _id("record_id"),
        _id("conversation_id"),
        _id("actor_id", nullable=True),
        _id("client_id", nullable=True),
        _text("action"),
        _text("target", nullable=True),
        _text("details", nullable=True),
        _number("created_at"),
        sa.PrimaryKeyConstraint("group_id", "record_id", name="audit_records_pkey"),
        sqlite_with_rowid=False,
    )
    for column in ("actor_id", "target"):
        condition = sa.text(f"{column} IS NOT NULL")
        op.create_index(
            f"audit_records_by_{column}",
            "audit_records",
            [column],
            sqlite_where=condition,
            postgresql_where=condition,
        )


def _api_keys() -> None:
    """Keys of agents: only a hash of each, found by its public prefix."""
    op.create_table(
        "api_keys",
        _id("key_prefix"),
        _id("client_id"),
        _text("secret_hash"),
        _text("agent_names"),
        _text("operations"),
        _number("created_at"),
        _number("expires_at", nullable=True),
        _number("revoked_at", nullable=True),
        sa.PrimaryKeyConstraint("key_prefix", name="api_keys_pkey"),
    )
    op.create_index("api_keys_by_client", "api_keys", ["client_id"])


def _answered_requests() -> None:
    """What was answered to a request with an idempotency key; without a status it is being worked on. An answer is
    erased with its user, and with anything of its group.
    """
    op.create_table(
        "answered_requests",
        _id("principal_id"),
        _id("request_key"),
        _id("user_id", nullable=True),
        _id("group_id", nullable=True),
        _text("fingerprint"),
        _number("status", nullable=True),
        _text("body", nullable=True),
        _number("lease_until"),
        _number("created_at"),
        sa.PrimaryKeyConstraint("principal_id", "request_key", name="answered_requests_pkey"),
    )
    op.create_index("answered_requests_by_age", "answered_requests", ["created_at"])
    op.create_index("answered_requests_by_group", "answered_requests", ["group_id"])


def _posted_summaries() -> None:
    """Which messages are summaries that an agent posted, and of which messages they tell: 1..until_seq."""
    op.create_table(
        "posted_summaries",
        _id("group_id"),
        _id("conversation_id"),
        _number("seq"),
        _number("until_seq"),
        sa.PrimaryKeyConstraint("group_id", "conversation_id", "seq", name="posted_summaries_pkey"),
        sqlite_with_rowid=False,
    )


def _responses() -> None:
    """Responses that are being written, and their pieces; both go when they expire."""
    op.create_table(
        "responses",
        _id("group_id"),
        _id("conversation_id"),
        _id("response_id"),
        _number("fence"),
        _id("client_id"),
        _text("producer", nullable=True),
        _text("state"),
        _number("last_event"),
        _number("size"),
        _number("stop_requested"),
        _id("message_id", nullable=True),
        _number("created_at"),
        _number("updated_at"),
        _number("expires_at"),
        sa.PrimaryKeyConstraint("group_id", "conversation_id", "response_id", name="responses_pkey"),
    )
    op.create_index("responses_by_expiry", "responses", ["expires_at"])
    op.create_table(
        "response_pieces",
        _id("group_id"),
        _id("conversation_id"),
        _id("response_id"),
        _number("event"),
        _text("text"),
        sa.PrimaryKeyConstraint("group_id", "conversation_id", "response_id", "event", name="response_pieces_pkey"),
        sqlite_with_rowid=False,
    )


def _id(name: str, *, nullable: bool = False) -> sa.Column[str]:
    """Ids sort by code point on both engines, whatever the locale of the database."""
    by_code_point = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")
    return sa.Column(name, by_code_point, nullable=nullable)


def _text(name: str, *, nullable: bool = False) -> sa.Column[str]:
    return sa.Column(name, sa.Text(), nullable=nullable)


def _number(name: str, *, nullable: bool = False) -> sa.Column[int]:
    return sa.Column(name, sa.BigInteger(), nullable=nullable)
