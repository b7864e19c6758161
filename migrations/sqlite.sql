CREATE TABLE reactor_memory_revision (
    version_num VARCHAR(32) NOT NULL, 
    CONSTRAINT reactor_memory_revision_pkc PRIMARY KEY (version_num)
);

CREATE TABLE conversations (
    group_id TEXT NOT NULL, 
    conversation_id TEXT NOT NULL, 
    owner_id TEXT, 
    agent_name TEXT, 
    title TEXT, 
    metadata TEXT, 
    last_seq BIGINT NOT NULL, 
    path TEXT, 
    forked_from_id TEXT, 
    forked_at_seq BIGINT, 
    created_at BIGINT NOT NULL, 
    updated_at BIGINT NOT NULL, 
    deleted_at BIGINT, 
    purged_at BIGINT, 
    changes BIGINT DEFAULT '0' NOT NULL, 
    stored_bytes BIGINT DEFAULT '0' NOT NULL, 
    vectorized_at BIGINT, 
    last_budget BIGINT, 
    view_from BIGINT DEFAULT '1' NOT NULL, 
    CONSTRAINT conversations_pkey PRIMARY KEY (group_id, conversation_id)
)
 WITHOUT ROWID;

CREATE INDEX conversations_by_activity ON conversations (owner_id, updated_at DESC, conversation_id, stored_bytes) WHERE deleted_at IS NULL;

CREATE INDEX conversations_of_owner ON conversations (owner_id, group_id) WHERE conversation_id = group_id;

CREATE INDEX conversations_to_purge ON conversations (deleted_at) WHERE deleted_at IS NOT NULL AND purged_at IS NULL;

CREATE TABLE messages (
    group_id TEXT NOT NULL, 
    conversation_id TEXT NOT NULL, 
    seq BIGINT NOT NULL, 
    message_id TEXT NOT NULL, 
    role TEXT NOT NULL, 
    visibility TEXT NOT NULL, 
    author_id TEXT, 
    client_id TEXT, 
    content TEXT NOT NULL, 
    parts TEXT, 
    tool_calls TEXT, 
    tool_call_id TEXT, 
    name TEXT, 
    metadata TEXT, 
    token_count BIGINT, 
    tokenizer TEXT, 
    batch_key TEXT, 
    batch_fingerprint TEXT, 
    batch_size BIGINT, 
    state TEXT, 
    created_at BIGINT, 
    archived_by TEXT, 
    archived_until BIGINT, 
    CONSTRAINT messages_pkey PRIMARY KEY (group_id, conversation_id, seq)
);

CREATE UNIQUE INDEX messages_batch_key ON messages (group_id, conversation_id, batch_key) WHERE batch_key IS NOT NULL;

CREATE INDEX messages_of_system ON messages (group_id, conversation_id, seq, name, visibility, author_id, state, archived_by, archived_until) WHERE role = 'system';

CREATE INDEX messages_archived ON messages (group_id, conversation_id, seq, archived_until, state, archived_by) WHERE archived_until IS NOT NULL;

CREATE TABLE context_layouts (
    group_id TEXT NOT NULL, 
    conversation_id TEXT NOT NULL, 
    budget BIGINT NOT NULL, 
    settings_fingerprint TEXT NOT NULL, 
    seq BIGINT NOT NULL, 
    window_start_seq BIGINT NOT NULL, 
    fact_lines TEXT NOT NULL, 
    narrative TEXT NOT NULL, 
    covered_seq BIGINT NOT NULL, 
    epoch BIGINT NOT NULL, 
    CONSTRAINT context_layouts_pkey PRIMARY KEY (group_id, conversation_id, budget, settings_fingerprint)
);

CREATE TABLE load_records (
    group_id TEXT NOT NULL, 
    conversation_id TEXT NOT NULL, 
    seq BIGINT NOT NULL, 
    ordinal BIGINT NOT NULL, 
    budget BIGINT, 
    "query" TEXT, 
    current_sha256 TEXT NOT NULL, 
    settings_fingerprint TEXT NOT NULL, 
    tokenizer TEXT NOT NULL, 
    digest TEXT NOT NULL, 
    shown TEXT NOT NULL, 
    created_at BIGINT NOT NULL, 
    CONSTRAINT load_records_pkey PRIMARY KEY (group_id, conversation_id, seq, ordinal)
);

CREATE TABLE background_work (
    group_id TEXT NOT NULL, 
    conversation_id TEXT NOT NULL, 
    kind TEXT NOT NULL, 
    due_at BIGINT, 
    lease_until BIGINT NOT NULL, 
    fence BIGINT NOT NULL, 
    attempts BIGINT NOT NULL, 
    parked BIGINT DEFAULT '0' NOT NULL, 
    touched BIGINT DEFAULT '0' NOT NULL, 
    last_error TEXT, 
    CONSTRAINT background_work_pkey PRIMARY KEY (group_id, conversation_id, kind)
)
 WITHOUT ROWID;

CREATE INDEX background_work_due ON background_work (kind, due_at, conversation_id) WHERE due_at IS NOT NULL;

CREATE TABLE segments (
    group_id TEXT NOT NULL, 
    conversation_id TEXT NOT NULL, 
    end_seq BIGINT NOT NULL, 
    start_seq BIGINT NOT NULL, 
    source_hash TEXT NOT NULL, 
    summarizer TEXT NOT NULL, 
    prompt_version TEXT NOT NULL, 
    narrative TEXT NOT NULL, 
    headline TEXT NOT NULL, 
    tokens_read BIGINT NOT NULL, 
    tokens_written BIGINT NOT NULL, 
    created_at BIGINT NOT NULL, 
    stale BIGINT DEFAULT '0' NOT NULL, 
    CONSTRAINT segments_pkey PRIMARY KEY (group_id, conversation_id, end_seq)
)
 WITHOUT ROWID;

CREATE TABLE facts (
    group_id TEXT NOT NULL, 
    conversation_id TEXT NOT NULL, 
    end_seq BIGINT NOT NULL, 
    records BLOB NOT NULL, 
    CONSTRAINT facts_pkey PRIMARY KEY (group_id, conversation_id, end_seq)
);

CREATE TABLE fact_anchors (
    group_id TEXT NOT NULL, 
    conversation_id TEXT NOT NULL, 
    anchor BIGINT NOT NULL, 
    end_seq BIGINT NOT NULL, 
    CONSTRAINT fact_anchors_pkey PRIMARY KEY (group_id, conversation_id, anchor, end_seq)
)
 WITHOUT ROWID;

CREATE TABLE conversation_summaries (
    group_id TEXT NOT NULL, 
    conversation_id TEXT NOT NULL, 
    covered_seq BIGINT NOT NULL, 
    version BIGINT NOT NULL, 
    epoch BIGINT NOT NULL, 
    fence BIGINT NOT NULL, 
    truncated BIGINT DEFAULT '0' NOT NULL, 
    stale_ranges TEXT, 
    created_at BIGINT NOT NULL, 
    updated_at BIGINT NOT NULL, 
    narrative TEXT NOT NULL, 
    facts_json TEXT NOT NULL, 
    spare_json TEXT NOT NULL, 
    lines_json TEXT NOT NULL, 
    CONSTRAINT conversation_summaries_pkey PRIMARY KEY (group_id, conversation_id)
);

CREATE TABLE summary_spending (
    group_id TEXT NOT NULL, 
    conversation_id TEXT NOT NULL, 
    day BIGINT NOT NULL, 
    tokens BIGINT NOT NULL, 
    CONSTRAINT summary_spending_pkey PRIMARY KEY (group_id, conversation_id, day)
)
 WITHOUT ROWID;

CREATE INDEX summary_spending_by_day ON summary_spending (day, tokens);

CREATE TABLE fact_corrections (
    group_id TEXT NOT NULL, 
    conversation_id TEXT NOT NULL, 
    ordinal BIGINT NOT NULL, 
    anchor TEXT NOT NULL, 
    "key" TEXT NOT NULL, 
    value TEXT, 
    seq BIGINT NOT NULL, 
    source_seq BIGINT NOT NULL, 
    author_id TEXT, 
    created_at BIGINT NOT NULL, 
    CONSTRAINT fact_corrections_pkey PRIMARY KEY (group_id, conversation_id, ordinal)
);

CREATE TABLE recall_ranges (
    group_id TEXT NOT NULL, 
    conversation_id TEXT NOT NULL, 
    start_seq BIGINT NOT NULL, 
    end_seq BIGINT NOT NULL, 
    number BIGINT NOT NULL, 
    version BIGINT NOT NULL, 
    CONSTRAINT recall_ranges_pkey PRIMARY KEY (group_id, conversation_id)
)
 WITHOUT ROWID;

CREATE INDEX recall_ranges_by_number ON recall_ranges (number);

CREATE TABLE recall_passages (
    place BIGINT NOT NULL, 
    end_seq BIGINT NOT NULL, 
    start_at BIGINT NOT NULL, 
    end_at BIGINT NOT NULL, 
    call_seq BIGINT NOT NULL, 
    tokens BIGINT NOT NULL, 
    length BIGINT NOT NULL, 
    CONSTRAINT recall_passages_pkey PRIMARY KEY (place)
)
 WITHOUT ROWID;

CREATE VIRTUAL TABLE recall_terms USING fts5(terms, content = '', tokenize = 'ascii', detail = none, columnsize = 0);

CREATE VIRTUAL TABLE recall_postings USING fts5vocab(recall_terms, instance);

CREATE TABLE entries (
    group_id TEXT NOT NULL, 
    conversation_id TEXT NOT NULL, 
    user_id TEXT NOT NULL, 
    kind TEXT NOT NULL, 
    name TEXT NOT NULL, 
    version BIGINT NOT NULL, 
    place BIGINT NOT NULL, 
    start_seq BIGINT NOT NULL, 
    end_seq BIGINT NOT NULL, 
    seq BIGINT, 
    role TEXT, 
    author TEXT, 
    state TEXT, 
    replaced_by TEXT, 
    token_count BIGINT, 
    tokenizer TEXT, 
    created_at BIGINT NOT NULL, 
    text TEXT NOT NULL, 
    details TEXT, 
    CONSTRAINT entries_pkey PRIMARY KEY (group_id, conversation_id, kind, name, version)
);

CREATE TABLE active_sessions (
    user_id TEXT NOT NULL, 
    agent_name TEXT NOT NULL, 
    active_session_id TEXT, 
    last_active_at BIGINT NOT NULL, 
    created_at BIGINT NOT NULL, 
    CONSTRAINT active_sessions_pkey PRIMARY KEY (user_id, agent_name)
);

CREATE TABLE items (
    user_id TEXT NOT NULL, 
    namespace TEXT NOT NULL, 
    "key" TEXT NOT NULL, 
    value TEXT NOT NULL, 
    created_at BIGINT NOT NULL, 
    updated_at BIGINT NOT NULL, 
    terms TEXT NOT NULL, 
    CONSTRAINT items_pkey PRIMARY KEY (user_id, namespace, "key")
);

CREATE TABLE memberships (
    group_id TEXT NOT NULL, 
    user_id TEXT NOT NULL, 
    access_level TEXT NOT NULL, 
    created_at BIGINT NOT NULL, 
    CONSTRAINT memberships_pkey PRIMARY KEY (group_id, user_id)
)
 WITHOUT ROWID;

CREATE INDEX memberships_by_user ON memberships (user_id, group_id);

CREATE TABLE ownership_transfers (
    group_id TEXT NOT NULL, 
    transfer_id TEXT NOT NULL, 
    from_user_id TEXT NOT NULL, 
    to_user_id TEXT NOT NULL, 
    created_at BIGINT NOT NULL, 
    CONSTRAINT ownership_transfers_pkey PRIMARY KEY (group_id)
)
 WITHOUT ROWID;

CREATE INDEX ownership_transfers_to_user ON ownership_transfers (to_user_id);

CREATE INDEX ownership_transfers_from_user ON ownership_transfers (from_user_id);

CREATE TABLE audit_records (
    group_id TEXT NOT NULL, 
    record_id TEXT NOT NULL, 
    conversation_id TEXT NOT NULL, 
    actor_id TEXT, 
    client_id TEXT, 
    action TEXT NOT NULL, 
    target TEXT, 
    details TEXT, 
    created_at BIGINT NOT NULL, 
    CONSTRAINT audit_records_pkey PRIMARY KEY (group_id, record_id)
)
 WITHOUT ROWID;

CREATE INDEX audit_records_by_actor_id ON audit_records (actor_id) WHERE actor_id IS NOT NULL;

CREATE INDEX audit_records_by_target ON audit_records (target) WHERE target IS NOT NULL;

CREATE TABLE search_progress (
    group_id TEXT NOT NULL, 
    conversation_id TEXT NOT NULL, 
    number BIGINT NOT NULL, 
    scope TEXT NOT NULL, 
    indexed_seq BIGINT NOT NULL, 
    embedded_seq BIGINT NOT NULL, 
    model TEXT, 
    parked BIGINT NOT NULL, 
    analyzer BIGINT NOT NULL, 
    CONSTRAINT search_progress_pkey PRIMARY KEY (group_id, conversation_id)
)
 WITHOUT ROWID;

CREATE INDEX search_progress_by_number ON search_progress (number);

CREATE VIRTUAL TABLE search_entries USING fts5(group_id UNINDEXED, conversation_id UNINDEXED, seq UNINDEXED, length UNINDEXED, sent_at UNINDEXED, created_at UNINDEXED, terms, tokenize = 'ascii', detail = none, columnsize = 0);

CREATE TABLE embeddings (
    group_id TEXT NOT NULL, 
    conversation_id TEXT NOT NULL, 
    seq BIGINT NOT NULL, 
    model TEXT NOT NULL, 
    sent_at BIGINT NOT NULL, 
    created_at BIGINT NOT NULL, 
    vector BLOB NOT NULL, 
    CONSTRAINT embeddings_pkey PRIMARY KEY (group_id, conversation_id, seq)
)
 WITHOUT ROWID;

CREATE TABLE responses (
    group_id TEXT NOT NULL, 
    conversation_id TEXT NOT NULL, 
    response_id TEXT NOT NULL, 
    fence BIGINT NOT NULL, 
    client_id TEXT NOT NULL, 
    producer TEXT, 
    state TEXT NOT NULL, 
    last_event BIGINT NOT NULL, 
    size BIGINT NOT NULL, 
    stop_requested BIGINT NOT NULL, 
    message_id TEXT, 
    created_at BIGINT NOT NULL, 
    updated_at BIGINT NOT NULL, 
    expires_at BIGINT NOT NULL, 
    CONSTRAINT responses_pkey PRIMARY KEY (group_id, conversation_id, response_id)
);

CREATE INDEX responses_by_expiry ON responses (expires_at);

CREATE TABLE response_pieces (
    group_id TEXT NOT NULL, 
    conversation_id TEXT NOT NULL, 
    response_id TEXT NOT NULL, 
    event BIGINT NOT NULL, 
    text TEXT NOT NULL, 
    CONSTRAINT response_pieces_pkey PRIMARY KEY (group_id, conversation_id, response_id, event)
)
 WITHOUT ROWID;

CREATE TABLE api_keys (
    key_prefix TEXT NOT NULL, 
    client_id TEXT NOT NULL, 
    secret_hash TEXT NOT NULL, 
    agent_names TEXT NOT NULL, 
    operations TEXT NOT NULL, 
    created_at BIGINT NOT NULL, 
    expires_at BIGINT, 
    revoked_at BIGINT, 
    CONSTRAINT api_keys_pkey PRIMARY KEY (key_prefix)
);

CREATE INDEX api_keys_by_client ON api_keys (client_id);

CREATE TABLE answered_requests (
    principal_id TEXT NOT NULL, 
    request_key TEXT NOT NULL, 
    user_id TEXT, 
    group_id TEXT, 
    fingerprint TEXT NOT NULL, 
    status BIGINT, 
    body TEXT, 
    lease_until BIGINT NOT NULL, 
    created_at BIGINT NOT NULL, 
    CONSTRAINT answered_requests_pkey PRIMARY KEY (principal_id, request_key)
);

CREATE INDEX answered_requests_by_age ON answered_requests (created_at);

CREATE INDEX answered_requests_by_group ON answered_requests (group_id);

CREATE TABLE service_secrets (
    name TEXT NOT NULL, 
    secret TEXT NOT NULL, 
    CONSTRAINT service_secrets_pkey PRIMARY KEY (name)
);

CREATE TABLE agent_settings (
    id BIGINT NOT NULL, 
    given TEXT NOT NULL, 
    kept_at BIGINT NOT NULL, 
    CONSTRAINT agent_settings_pkey PRIMARY KEY (id)
);

CREATE TRIGGER messages_update_counted AFTER UPDATE ON messages BEGIN UPDATE conversations SET changes = changes + 1 WHERE group_id = OLD.group_id AND conversation_id = OLD.group_id; END;

CREATE TRIGGER messages_delete_counted AFTER DELETE ON messages BEGIN UPDATE conversations SET changes = changes + 1 WHERE group_id = OLD.group_id AND conversation_id = OLD.group_id; END;

CREATE TRIGGER entries_insert_counted AFTER INSERT ON entries BEGIN UPDATE conversations SET changes = changes + 1 WHERE group_id = NEW.group_id AND conversation_id = NEW.group_id; END;

CREATE TRIGGER entries_update_counted AFTER UPDATE ON entries BEGIN UPDATE conversations SET changes = changes + 1 WHERE group_id = OLD.group_id AND conversation_id = OLD.group_id; END;

CREATE TRIGGER entries_delete_counted AFTER DELETE ON entries BEGIN UPDATE conversations SET changes = changes + 1 WHERE group_id = OLD.group_id AND conversation_id = OLD.group_id; END;

CREATE TRIGGER conversation_summaries_insert_counted AFTER INSERT ON conversation_summaries BEGIN UPDATE conversations SET changes = changes + 1 WHERE group_id = NEW.group_id AND conversation_id = NEW.group_id; END;

CREATE TRIGGER conversation_summaries_update_counted AFTER UPDATE ON conversation_summaries BEGIN UPDATE conversations SET changes = changes + 1 WHERE group_id = OLD.group_id AND conversation_id = OLD.group_id; END;

CREATE TRIGGER conversation_summaries_delete_counted AFTER DELETE ON conversation_summaries BEGIN UPDATE conversations SET changes = changes + 1 WHERE group_id = OLD.group_id AND conversation_id = OLD.group_id; END;

CREATE TRIGGER context_layouts_insert_counted AFTER INSERT ON context_layouts BEGIN UPDATE conversations SET changes = changes + 1 WHERE group_id = NEW.group_id AND conversation_id = NEW.group_id; END;

CREATE TRIGGER context_layouts_update_counted AFTER UPDATE ON context_layouts BEGIN UPDATE conversations SET changes = changes + 1 WHERE group_id = OLD.group_id AND conversation_id = OLD.group_id; END;

CREATE TRIGGER context_layouts_delete_counted AFTER DELETE ON context_layouts BEGIN UPDATE conversations SET changes = changes + 1 WHERE group_id = OLD.group_id AND conversation_id = OLD.group_id; END;

INSERT INTO reactor_memory_revision VALUES ('0001');

