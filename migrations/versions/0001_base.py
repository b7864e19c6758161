"""The schema: the log of conversations, what is derived from it, and what each feature keeps beside it.

Keys start with the group, so that a group lives on one shard; those of a user's own rows with the user. Times are
microseconds UTC. What is large or rare is JSON text, NULL when empty.

On PostgreSQL all rows are fenced. Rows of users are seen and written by a transaction that names the user
(`reactor_memory.user_id`), and by none that names nobody; maintenance names all of them (`reactor_memory.all_users`).
Rows of groups are there for one that names the group (`reactor_memory.group_ids`, an array), and for the store
(`reactor_memory.service`); of messages it, too, sees no others while it names a user.
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
    _context_layouts()
    _load_records()
    _background_work()
    _segments()
    _facts()
    _conversation_summaries()
    _summary_spending()
    _fact_corrections()
    _recall_ranges()
    _recall_passages()
    _entries()
    _active_sessions()
    _items()
    _memberships()
    _ownership_transfers()
    _audit_records()
    _search_progress()
    _search_entries()
    _embeddings()
    _responses()
    _api_keys()
    _answered_requests()
    _service_secrets()
    _agent_settings()
    if op.get_context().dialect.name == "postgresql":
        _pgvector()
        _no_samples()
        _fences()
    else:
        _counted_changes()


def _conversations() -> None:
    """`stored_bytes`: of the content that the conversation holds itself, for quotas. `last_budget`: of the last load,
    in tokens; 0: it gave none. `changes`, of a root: `_counted_changes`. `view_from`: none of its own messages before
    is in its view, whatever forks show.
    """
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
        _number("changes", default=0),
        _number("stored_bytes", default=0),
        _number("vectorized_at", nullable=True),
        _number("last_budget", nullable=True),
        _number("view_from", default=1),
        sa.PrimaryKeyConstraint("group_id", "conversation_id", name="conversations_pkey"),
        sqlite_with_rowid=False,
    )
    _partial_index(
        "conversations_by_activity",
        "conversations",
        "owner_id, updated_at DESC, conversation_id, stored_bytes",
        "deleted_at IS NULL",
    )
    _partial_index("conversations_of_owner", "conversations", "owner_id, group_id", "conversation_id = group_id")
    _partial_index(
        "conversations_to_purge", "conversations", "deleted_at", "deleted_at IS NOT NULL AND purged_at IS NULL"
    )


def _messages() -> None:
    """`archived_by` names the summary that took a message out of view, `archived_until` where that summary ends: a
    branch in which it does not stand shows the message.
    """
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
        _number("created_at", nullable=True),
        _id("archived_by", nullable=True),
        _number("archived_until", nullable=True),
        sa.PrimaryKeyConstraint("group_id", "conversation_id", "seq", name="messages_pkey"),
    )
    _partial_index(
        "messages_batch_key", "messages", "group_id, conversation_id, batch_key", "batch_key IS NOT NULL", unique=True
    )
    _partial_index(
        "messages_of_system",
        "messages",
        "group_id, conversation_id, seq, name, visibility, author_id, state, archived_by, archived_until",
        "role = 'system'",
    )
    _partial_index(
        "messages_archived",
        "messages",
        "group_id, conversation_id, seq, archived_until, state, archived_by",
        "archived_until IS NOT NULL",
    )


READ_BY_LOADS = {
    "messages": ("UPDATE", "DELETE"),
    "entries": ("INSERT", "UPDATE", "DELETE"),
    "conversation_summaries": ("INSERT", "UPDATE", "DELETE"),
    "context_layouts": ("INSERT", "UPDATE", "DELETE"),
}
"""What a load reads beside the row of its session, and which changes that row does not show: an append moves its
`last_seq`.
"""


def _counted_changes() -> None:
    """On SQLite the row of a root counts what changed in its group, whoever changed it and by which statement: what was
    read before is as it was while neither this number nor the row of the session is another.
    """
    for table, kinds in READ_BY_LOADS.items():
        for kind in kinds:
            row = "NEW" if kind == "INSERT" else "OLD"
            counted = f"group_id = {row}.group_id AND conversation_id = {row}.group_id"
            change = f"UPDATE conversations SET changes = changes + 1 WHERE {counted}"  # noqa: S608 (names of our own)
            op.execute(f"CREATE TRIGGER {table}_{kind.lower()}_counted AFTER {kind} ON {table} BEGIN {change}; END")


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


def _load_records() -> None:
    """What loads showed: `shown` is JSON, messages by their seq, the rest as text. `seq` is the newest message then."""
    op.create_table(
        "load_records",
        _id("group_id"),
        _id("conversation_id"),
        _number("seq"),
        _number("ordinal"),
        _number("budget", nullable=True),
        _text("query", nullable=True),
        _text("current_sha256"),
        _text("settings_fingerprint"),
        _text("tokenizer"),
        _text("digest"),
        _text("shown"),
        _number("created_at"),
        sa.PrimaryKeyConstraint("group_id", "conversation_id", "seq", "ordinal", name="load_records_pkey"),
    )


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
    """The facts of each segment as one value: they are written, read and deleted together, and have much in common.

    `fact_anchors` leads from a thing to the segments that state something about it: `anchor` is a number made of its
    name, and two names may share one.
    """
    op.create_table(
        "facts",
        _id("group_id"),
        _id("conversation_id"),
        _number("end_seq"),
        sa.Column("records", sa.LargeBinary(), nullable=False),  # JSON, a list for each fact; compressed if it is long
        sa.PrimaryKeyConstraint("group_id", "conversation_id", "end_seq", name="facts_pkey"),
    )
    op.create_table(
        "fact_anchors",
        _id("group_id"),
        _id("conversation_id"),
        _number("anchor"),
        _number("end_seq"),
        sa.PrimaryKeyConstraint("group_id", "conversation_id", "anchor", "end_seq", name="fact_anchors_pkey"),
        sqlite_with_rowid=False,
    )


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
        _text("lines_json"),
        sa.PrimaryKeyConstraint("group_id", "conversation_id", name="conversation_summaries_pkey"),
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
        _number("source_seq"),
        _id("author_id", nullable=True),
        _number("created_at"),
        sa.PrimaryKeyConstraint("group_id", "conversation_id", "ordinal", name="fact_corrections_pkey"),
    )


def _recall_ranges() -> None:
    """The run of messages of each conversation that its index holds, and the version of the analyzer that made it.

    `number`: on SQLite, what the places of its passages begin with.
    """
    op.create_table(
        "recall_ranges",
        _id("group_id"),
        _id("conversation_id"),
        _number("start_seq"),
        _number("end_seq"),
        _number("number"),
        _number("version"),
        sa.PrimaryKeyConstraint("group_id", "conversation_id", name="recall_ranges_pkey"),
        sqlite_with_rowid=False,
    )
    op.create_index("recall_ranges_by_number", "recall_ranges", ["number"])


def _recall_passages() -> None:
    """Where passages begin and end, and their terms: no text a second time.

    On SQLite the place of a passage begins with the number of its conversation, and so does each term. Full text keeps
    the terms and nothing beside them; what it has to be told to forget, `recall_postings` tells. The terms come ready
    made, so neither engine takes them apart.
    """
    columns = [_number(name) for name in ("place", "end_seq", "start_at", "end_at", "call_seq", "tokens", "length")]
    if op.get_context().dialect.name == "sqlite":
        key = sa.PrimaryKeyConstraint("place", name="recall_passages_pkey")
        op.create_table("recall_passages", *columns, key, sqlite_with_rowid=False)
        op.execute(
            "CREATE VIRTUAL TABLE recall_terms USING fts5(terms, content = '', tokenize = 'ascii', detail = none, "
            "columnsize = 0)"
        )
        op.execute("CREATE VIRTUAL TABLE recall_postings USING fts5vocab(recall_terms, instance)")
        return
    op.create_table(
        "recall_passages",
        _id("group_id"),
        _id("conversation_id"),
        *columns,
        sa.Column("terms", postgresql.TSVECTOR(), nullable=False),
        sa.PrimaryKeyConstraint("group_id", "conversation_id", "place", name="recall_passages_pkey"),
    )
    op.create_index("recall_passages_by_term", "recall_passages", ["terms"], postgresql_using="gin")


def _entries() -> None:
    """Texts that stand in contexts: of a session, or of a user, whose entries have a group of their own (the user's id)
    and no conversation. Large columns come last.
    """
    op.create_table(
        "entries",
        _id("group_id"),
        _id("conversation_id"),
        _id("user_id"),
        _text("kind"),
        _id("name"),
        _number("version"),
        _number("place"),
        _number("start_seq"),
        _number("end_seq"),
        _number("seq", nullable=True),
        _text("role", nullable=True),
        _text("author", nullable=True),
        _text("state", nullable=True),
        _id("replaced_by", nullable=True),
        _number("token_count", nullable=True),
        _text("tokenizer", nullable=True),
        _number("created_at"),
        _text("text"),
        _text("details", nullable=True),
        sa.PrimaryKeyConstraint("group_id", "conversation_id", "kind", "name", "version", name="entries_pkey"),
    )


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


def _items() -> None:
    """JSON objects of applications. What belongs to nobody in particular has the empty user. `terms`: the words of the
    value, with spaces around and between.
    """
    op.create_table(
        "items",
        _id("user_id"),
        _id("namespace"),
        _id("key"),
        _text("value"),
        _number("created_at"),
        _number("updated_at"),
        _text("terms"),
        sa.PrimaryKeyConstraint("user_id", "namespace", "key", name="items_pkey"),
    )


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
        _partial_index(f"audit_records_by_{column}", "audit_records", column, f"{column} IS NOT NULL")


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
        _number("analyzer"),
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


def _service_secrets() -> None:
    """Secrets that the service makes once and all its processes share, such as the one that signs page tokens."""
    op.create_table(
        "service_secrets",
        _text("name"),
        _text("secret"),
        sa.PrimaryKeyConstraint("name", name="service_secrets_pkey"),
    )


CONTENT = {
    "conversations": "title metadata",
    "messages": "content parts tool_calls tool_call_id name metadata author_id client_id batch_fingerprint",
    "entries": "text details",
    "segments": "source_hash narrative headline",
    "facts": "records",
    "conversation_summaries": "narrative facts_json spare_json lines_json",
    "context_layouts": "fact_lines narrative",
    "load_records": "query current_sha256 shown",
    "fact_corrections": "anchor key value",
    "recall_passages": "terms",
    "items": "value terms",
    "audit_records": "details",
    "search_entries": "terms",
    "embeddings": "vector",
    "response_pieces": "text",
    "answered_requests": "body",
    "service_secrets": "secret",
}


def _no_samples() -> None:
    """The statistics of PostgreSQL hold samples of values, which would outlive them; no plan needs those of content."""
    for table, columns in CONTENT.items():
        changes = ", ".join(f"ALTER COLUMN {column} SET STATISTICS 0" for column in columns.split())
        op.execute(f"ALTER TABLE {table} {changes}")


def _agent_settings() -> None:
    """What the agent that saved last was given, as JSON. One row."""
    op.create_table(
        "agent_settings",
        _number("id"),
        _text("given"),
        _number("kept_at"),
        sa.PrimaryKeyConstraint("id", name="agent_settings_pkey"),
    )


def _pgvector() -> None:
    """A server without it, and a role that may not create it, do without it."""
    op.execute(
        "DO $$ BEGIN CREATE EXTENSION IF NOT EXISTS vector; EXCEPTION WHEN insufficient_privilege "
        "OR feature_not_supported OR undefined_file THEN NULL; END $$"
    )


NAMED_USER = "current_setting('reactor_memory.user_id', true)"
NAMED_GROUPS = "NULLIF(current_setting('reactor_memory.group_ids', true), '')::text[]"
NOBODY = f"COALESCE({NAMED_USER}, '') = ''"
SERVICE = "current_setting('reactor_memory.service', true) = 'yes'"
ALL_USERS = "current_setting('reactor_memory.all_users', true) = 'yes'"

IN_VIEW = f"CASE WHEN {NOBODY} THEN {SERVICE} ELSE group_id = ANY ({NAMED_GROUPS}) END"

OF_USERS = {
    "active_sessions": f"user_id = {NAMED_USER}",
    "items": f"user_id = {NAMED_USER}",
    "entries": f"CASE user_id WHEN '' THEN {IN_VIEW} ELSE user_id = {NAMED_USER} END",
    "memberships": f"user_id = {NAMED_USER}",
    "ownership_transfers": f"{NAMED_USER} IN (from_user_id, to_user_id)",
}
"""Tables of which a transaction sees the rows of the user that it names, and without a name none; entries of sessions
as `IN_VIEW`.
"""

READ_FOR_USERS = ("messages", "responses", "response_pieces")
"""Tables of which a transaction that names a user sees the groups that it names as well: the store found that the user
has access. One of the store that names nobody sees all: the log checks by itself.
"""

OF_GROUPS = (
    *("context_layouts", "load_records", "background_work", "segments", "facts", "fact_anchors"),
    *(
        "conversation_summaries",
        "summary_spending",
        "fact_corrections",
        "recall_ranges",
        "audit_records",
        "search_progress",
        "embeddings",
    ),
)
"""Tables of which the store sees all, and others the groups that they name."""

OF_TERMS = ("recall_passages", "search_entries")
"""As `OF_GROUPS`, but for the role that owns them: PostgreSQL asks no index for terms where a fence may hide a row."""

OF_THE_SERVICE = ("api_keys", "answered_requests", "service_secrets", "agent_settings")


def _fences() -> None:
    """Rules compare columns with settings of the transaction and read no table, so that they hold on every shard."""
    of_groups = f"{SERVICE} OR group_id = ANY ({NAMED_GROUPS})"
    rules = {
        **OF_USERS,
        **dict.fromkeys(READ_FOR_USERS, IN_VIEW),
        **dict.fromkeys((*OF_GROUPS, *OF_TERMS), of_groups),
        "conversations": f"{of_groups} OR owner_id = NULLIF({NAMED_USER}, '')",
        **dict.fromkeys(OF_THE_SERVICE, SERVICE),
    }
    for table, rule in rules.items():
        op.execute(f"ALTER TABLE {table} ENABLE ROW LEVEL SECURITY")
        if table not in OF_TERMS:
            op.execute(f"ALTER TABLE {table} FORCE ROW LEVEL SECURITY")
        op.execute(f"CREATE POLICY own_rows ON {table} USING ({rule} OR {ALL_USERS})")


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
