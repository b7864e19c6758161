-- The SQL of transfer. See core/log/queries.sql.

-- name: conversations_to_export
SELECT conversation_id, group_id, owner_id, last_seq, path, created_at, updated_at, title,
       forked_from_id, forked_at_seq, deleted_at, agent_name, metadata, purged_at,
       EXISTS (SELECT 1 FROM background_work AS work
               WHERE work.group_id = :group_id AND work.conversation_id = conversations.conversation_id
                 AND work.kind = :kind) AS importing
FROM conversations
WHERE group_id = :group_id
ORDER BY created_at, conversation_id

-- name: import_conversation
INSERT INTO conversations (group_id, conversation_id, owner_id, agent_name, title, metadata, last_seq, path,
                           forked_from_id, forked_at_seq, created_at, updated_at, deleted_at, purged_at)
VALUES (:group_id, :conversation_id, :owner_id, :agent_name, :title, :metadata, :last_seq, :path,
        :forked_from_id, :forked_at_seq, :created_at, :updated_at, :deleted_at, :purged_at)
ON CONFLICT (group_id, conversation_id) DO NOTHING
RETURNING conversation_id

-- name: mark_importing
INSERT INTO background_work (group_id, conversation_id, kind, lease_until, fence, attempts)
VALUES (:group_id, :conversation_id, :kind, 0, 0, 0)

-- name: advance_import
UPDATE conversations SET last_seq = :last_seq, stored_bytes = stored_bytes + :stored_bytes
WHERE group_id = :group_id AND conversation_id = :conversation_id AND last_seq = :before AND deleted_at IS NULL
RETURNING last_seq

-- name: import_message
INSERT INTO messages (group_id, conversation_id, seq, message_id, role, visibility, author_id, content, parts,
                      tool_calls, tool_call_id, name, metadata, token_count, tokenizer, created_at,
                      state, archived_by, archived_until, batch_key, batch_fingerprint, batch_size)
VALUES (:group_id, :conversation_id, :seq, :message_id, :role, :visibility, :author_id, :content, :parts,
        :tool_calls, :tool_call_id, :name, :metadata, :token_count, :tokenizer, :created_at,
        :state, :archived_by, :archived_until, :batch_key, :batch_fingerprint, :batch_size)

-- name: list_users
-- across groups
SELECT user_id FROM (
    SELECT user_id FROM active_sessions WHERE user_id > :after
    UNION
    SELECT user_id FROM entries WHERE user_id > :after
    UNION
    SELECT user_id FROM items WHERE user_id > :after) AS users
ORDER BY user_id
LIMIT :limit

-- name: describe_imported
UPDATE conversations
SET title = COALESCE(title, :title),
    created_at = CASE WHEN created_at > :began_at THEN :began_at ELSE created_at END
WHERE group_id = :group_id AND conversation_id = :conversation_id AND deleted_at IS NULL
