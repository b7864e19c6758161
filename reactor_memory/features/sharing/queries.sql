-- The SQL of sharing. See core/log/queries.sql.

-- name: import_membership
INSERT INTO memberships (group_id, user_id, access_level, created_at)
VALUES (:group_id, :user_id, :access_level, :created_at)
ON CONFLICT (group_id, user_id) DO NOTHING

-- name: insert_api_key
INSERT INTO api_keys (key_prefix, client_id, secret_hash, agent_names, operations, created_at, expires_at, revoked_at)
VALUES (:key_prefix, :client_id, :secret_hash, :agent_names, :operations, :created_at, :expires_at, :revoked_at)
ON CONFLICT (key_prefix) DO NOTHING
RETURNING key_prefix

-- name: api_key
SELECT key_prefix, client_id, secret_hash, agent_names, operations, created_at, expires_at, revoked_at
FROM api_keys
WHERE key_prefix = :key_prefix

-- name: api_keys
SELECT key_prefix, client_id, secret_hash, agent_names, operations, created_at, expires_at, revoked_at
FROM api_keys
ORDER BY created_at, key_prefix

-- name: revoke_api_key
UPDATE api_keys SET revoked_at = :now WHERE key_prefix = :key_prefix AND revoked_at IS NULL
RETURNING key_prefix

-- name: insert_service_secret
INSERT INTO service_secrets (name, secret) VALUES (:name, :secret) ON CONFLICT (name) DO NOTHING

-- name: replace_service_secret
UPDATE service_secrets SET secret = :secret WHERE name = :name

-- name: service_secret
SELECT secret FROM service_secrets WHERE name = :name

-- name: claim_request
-- One that was left behind is taken over by whoever asks for the same again.
INSERT INTO answered_requests (principal_id, request_key, user_id, group_id, fingerprint, lease_until, created_at)
VALUES (:principal_id, :request_key, :user_id, :group_id, :fingerprint, :lease_until, :created_at)
ON CONFLICT (principal_id, request_key) DO UPDATE SET lease_until = excluded.lease_until
WHERE answered_requests.status IS NULL AND answered_requests.lease_until <= :now
  AND answered_requests.fingerprint = excluded.fingerprint
RETURNING request_key

-- name: answered_request
SELECT principal_id, request_key, user_id, group_id, fingerprint, status, body, lease_until, created_at
FROM answered_requests
WHERE principal_id = :principal_id AND request_key = :request_key

-- name: answer_request
UPDATE answered_requests SET status = :status, body = :body, group_id = COALESCE(:group_id, group_id)
WHERE principal_id = :principal_id AND request_key = :request_key AND status IS NULL

-- name: release_request
DELETE FROM answered_requests
WHERE principal_id = :principal_id AND request_key = :request_key AND status IS NULL

-- name: forget_requests
-- across groups
DELETE FROM answered_requests
WHERE (principal_id, request_key) IN (
    SELECT principal_id, request_key FROM answered_requests WHERE created_at < :before ORDER BY created_at LIMIT :limit)
RETURNING request_key

-- name: forget_requests [postgres]
-- across groups
-- Whoever forgets at the same time takes others.
DELETE FROM answered_requests
WHERE (principal_id, request_key) IN (
    SELECT principal_id, request_key FROM answered_requests WHERE created_at < :before ORDER BY created_at LIMIT :limit
    FOR UPDATE SKIP LOCKED)
RETURNING request_key

-- name: delete_answers_of_group
-- across groups
DELETE FROM answered_requests WHERE group_id = :group_id AND status IS NOT NULL

-- name: delete_answers_of_user
-- across groups
-- Those that the user got, and those that name the user: `named` is the id as JSON has it.
DELETE FROM answered_requests WHERE (user_id = :user_id OR instr(body, :named) > 0) AND status IS NOT NULL
RETURNING request_key

-- name: delete_answers_of_user [postgres]
-- across groups
DELETE FROM answered_requests WHERE (user_id = :user_id OR strpos(body, :named) > 0) AND status IS NOT NULL
RETURNING request_key

-- name: shared_conversation
SELECT own.conversation_id, own.group_id, own.owner_id, own.last_seq, own.path, own.created_at, own.updated_at,
       own.title, own.forked_from_id, own.forked_at_seq, own.deleted_at, own.agent_name, own.metadata,
       own.vectorized_at, member.access_level
FROM conversations AS own
LEFT JOIN memberships AS member ON member.group_id = own.group_id AND member.user_id = :user_id
WHERE own.group_id = :group_id AND own.conversation_id = :conversation_id AND own.purged_at IS NULL

-- name: shared_group
SELECT own.conversation_id, own.group_id, own.owner_id, own.last_seq, own.path, own.created_at, own.updated_at,
       own.title, own.forked_from_id, own.forked_at_seq, own.deleted_at, own.agent_name, own.metadata,
       own.vectorized_at, member.access_level
FROM conversations AS own
LEFT JOIN memberships AS member ON member.group_id = own.group_id AND member.user_id = :user_id
WHERE own.group_id = :group_id AND own.deleted_at IS NULL
  AND (:conversation_id = '' OR (own.conversation_id <> own.group_id AND (
      :conversation_id = own.group_id OR own.created_at > :created_at
      OR (own.created_at = :created_at AND own.conversation_id > :conversation_id))))
ORDER BY own.conversation_id <> own.group_id, own.created_at, own.conversation_id
LIMIT :limit

-- name: conversations_of_user
-- Those that the user owns in the order of an index, and all that others share with them.
-- across groups
SELECT * FROM (
    SELECT * FROM (
        SELECT own.conversation_id, own.group_id, own.owner_id, own.last_seq, own.path, own.created_at,
               own.updated_at, own.title, own.forked_from_id, own.forked_at_seq, own.deleted_at, own.agent_name,
               own.metadata, own.vectorized_at, NULL AS access_level
        FROM conversations AS own
        WHERE own.owner_id = :user_id AND own.deleted_at IS NULL
          AND own.updated_at <= :updated_at
          AND (own.updated_at < :updated_at OR own.conversation_id > :conversation_id)
          AND (:only_roots = 0 OR own.conversation_id = own.group_id)
          AND (:only_newest = 0 OR NOT EXISTS (
              SELECT 1 FROM conversations AS other
              WHERE other.group_id = own.group_id AND other.deleted_at IS NULL
                AND (other.updated_at > own.updated_at OR
                     (other.updated_at = own.updated_at AND other.conversation_id < own.conversation_id))))
        ORDER BY own.updated_at DESC, own.conversation_id
        LIMIT :limit
    ) AS owned
    UNION ALL
    SELECT * FROM (
        SELECT own.conversation_id, own.group_id, own.owner_id, own.last_seq, own.path, own.created_at,
               own.updated_at, own.title, own.forked_from_id, own.forked_at_seq, own.deleted_at, own.agent_name,
               own.metadata, own.vectorized_at, member.access_level
        FROM memberships AS member
        JOIN conversations AS own ON own.group_id = member.group_id
        WHERE member.user_id = :user_id AND own.owner_id <> :user_id AND own.deleted_at IS NULL
          AND own.updated_at <= :updated_at
          AND (own.updated_at < :updated_at OR own.conversation_id > :conversation_id)
          AND (:only_roots = 0 OR own.conversation_id = own.group_id)
          AND (:only_newest = 0 OR NOT EXISTS (
              SELECT 1 FROM conversations AS other
              WHERE other.group_id = own.group_id AND other.deleted_at IS NULL
                AND (other.updated_at > own.updated_at OR
                     (other.updated_at = own.updated_at AND other.conversation_id < own.conversation_id))))
        ORDER BY own.updated_at DESC, own.conversation_id
        LIMIT :limit
    ) AS shared
) AS listed
ORDER BY updated_at DESC, conversation_id
LIMIT :limit

-- name: newest_shown
-- `parts` is JSON: lists of a number, group, conversation, first and last seq. Of each, the newest message that users
-- see.
SELECT json_extract(part.value, '$[0]'), message.seq, message.message_id, SUBSTR(message.content, 1, :length)
FROM json_each(:parts) AS part
CROSS JOIN messages AS message
WHERE message.group_id = json_extract(part.value, '$[1]')
  AND message.conversation_id = json_extract(part.value, '$[2]')
  AND message.seq = (
      SELECT newest.seq FROM messages AS newest
      WHERE newest.group_id = json_extract(part.value, '$[1]')
        AND newest.conversation_id = json_extract(part.value, '$[2]')
        AND newest.seq >= json_extract(part.value, '$[3]') AND newest.seq <= json_extract(part.value, '$[4]')
        AND (newest.state IS NULL OR newest.state = 'archived')
        AND newest.visibility = 'user' AND newest.role <> 'summary'
      ORDER BY newest.seq DESC
      LIMIT 1)

-- name: newest_shown [postgres]
-- by group: parts[1]
-- The groups are named before a row of them is looked for: what is looked for needs the answer.
WITH named AS MATERIALIZED (
    SELECT set_config('reactor_memory.group_ids', CAST(:group_ids::text[] AS text), true) AS groups
)
SELECT (part ->> 0)::bigint, message.seq, message.message_id, SUBSTR(message.content, 1, :length::integer)
FROM named, json_array_elements(:parts::json) AS part, LATERAL (
    SELECT seq, message_id, content FROM messages
    WHERE named.groups IS NOT NULL AND group_id = ANY(:group_ids::text[]) AND group_id = part ->> 1
      AND conversation_id = part ->> 2 AND seq >= (part ->> 3)::bigint AND seq <= (part ->> 4)::bigint
      AND (state IS NULL OR state = 'archived') AND visibility = 'user' AND role <> 'summary'
    ORDER BY seq DESC
    LIMIT 1
) AS message

-- part: visible
-- Without a client those that users see; with one, summaries, what is for all agents, and its own, too.
  AND (state IS NULL OR state = 'archived')
  AND ((visibility = 'user' AND role <> 'summary') OR
       (CAST(:client_id AS TEXT) IS NOT NULL AND
        (role = 'summary' OR visibility = 'system' OR author_id = CAST(:client_id AS TEXT))))
  AND (CAST(:channel AS TEXT) IS NULL OR CAST(:channel AS TEXT) =
       CASE WHEN role = 'summary' THEN 'SUMMARY' WHEN visibility = 'user' THEN 'HISTORY' ELSE 'MEMORY' END)
ORDER BY seq

-- name: visible_messages
SELECT seq, message_id, role, visibility, author_id, content, parts, tool_calls, tool_call_id, name, metadata,
       token_count, tokenizer, created_at
FROM messages
WHERE group_id = :group_id AND conversation_id = :conversation_id
  AND seq >= :start_seq AND seq <= :end_seq
-- include: visible
LIMIT :limit

-- name: visible_messages_of_ranges
SELECT seq, message_id, role, visibility, author_id, content, parts, tool_calls, tool_call_id, name, metadata,
       token_count, tokenizer, created_at
FROM json_each(:ranges) AS wanted
CROSS JOIN messages
WHERE group_id = :group_id AND conversation_id = json_extract(wanted.value, '$[0]')
  AND seq >= json_extract(wanted.value, '$[1]') AND seq <= json_extract(wanted.value, '$[2]')
-- include: visible

-- name: visible_messages_of_ranges [postgres]
SELECT seq, message_id, role, visibility, author_id, content, parts, tool_calls, tool_call_id, name, metadata,
       token_count, tokenizer, created_at
FROM json_array_elements(:ranges::json) AS wanted
CROSS JOIN messages
WHERE group_id = :group_id AND conversation_id = wanted ->> 0
  AND seq >= (wanted ->> 1)::bigint AND seq <= (wanted ->> 2)::bigint
-- include: visible

-- name: message_of_id
SELECT seq, message_id, role, visibility, author_id, content, parts, tool_calls, tool_call_id, name, metadata,
       token_count, tokenizer, created_at
FROM json_each(:ranges) AS wanted
CROSS JOIN messages
WHERE group_id = :group_id AND conversation_id = json_extract(wanted.value, '$[0]')
  AND seq >= json_extract(wanted.value, '$[1]') AND seq <= json_extract(wanted.value, '$[2]')
  AND message_id = :message_id AND (state IS NULL OR state = 'archived')
ORDER BY seq DESC
LIMIT 1

-- name: message_of_id [postgres]
SELECT seq, message_id, role, visibility, author_id, content, parts, tool_calls, tool_call_id, name, metadata,
       token_count, tokenizer, created_at
FROM json_array_elements(:ranges::json) AS wanted
CROSS JOIN messages
WHERE group_id = :group_id AND conversation_id = wanted ->> 0
  AND seq >= (wanted ->> 1)::bigint AND seq <= (wanted ->> 2)::bigint
  AND message_id = :message_id AND (state IS NULL OR state = 'archived')
ORDER BY seq DESC
LIMIT 1

-- name: create_conversation
INSERT INTO conversations (group_id, conversation_id, owner_id, agent_name, title, metadata, last_seq, created_at,
                           updated_at)
VALUES (:group_id, :conversation_id, :owner_id, :agent_name, :title, :metadata, 0, :now, :now)
ON CONFLICT (group_id, conversation_id) DO NOTHING
RETURNING conversation_id

-- name: holdings_of_owner
-- How many conversations, forks and members of all of them an owner has, and how many bytes in them: of each no more
-- than asked for are counted, and what is not asked for (0) is NULL.
-- across groups
SELECT CASE WHEN CAST(:roots AS BIGINT) > 0 THEN (SELECT COUNT(*) FROM (
           SELECT 1 FROM conversations
           WHERE owner_id = :owner_id AND deleted_at IS NULL AND conversation_id = group_id
           LIMIT CAST(:roots AS BIGINT)) AS root) END,
       CASE WHEN CAST(:forks AS BIGINT) > 0 THEN (SELECT COUNT(*) FROM (
           SELECT 1 FROM conversations
           WHERE owner_id = :owner_id AND deleted_at IS NULL AND conversation_id <> group_id
           LIMIT CAST(:forks AS BIGINT)) AS fork) END,
       CASE WHEN CAST(:members AS BIGINT) > 0 THEN (SELECT COUNT(*) FROM (
           SELECT 1 FROM conversations AS root
           JOIN memberships AS member ON member.group_id = root.group_id
           WHERE root.owner_id = :owner_id AND root.deleted_at IS NULL AND root.conversation_id = root.group_id
           LIMIT CAST(:members AS BIGINT)) AS member) END,
       CASE WHEN CAST(:bytes AS BIGINT) > 0 THEN (
           SELECT CAST(COALESCE(SUM(stored_bytes), 0) AS BIGINT) FROM conversations
           WHERE owner_id = :owner_id AND deleted_at IS NULL) END

-- name: describe_fork
UPDATE conversations SET title = :title, agent_name = :agent_name
WHERE group_id = :group_id AND conversation_id = :conversation_id

-- name: rename_conversation
UPDATE conversations SET title = :title
WHERE group_id = :group_id AND conversation_id = :conversation_id AND deleted_at IS NULL
RETURNING conversation_id

-- name: title_conversation
UPDATE conversations SET title = :title
WHERE group_id = :group_id AND conversation_id = :conversation_id AND title IS NULL AND deleted_at IS NULL

-- name: deleted_together
SELECT conversation_id, purged_at FROM conversations WHERE group_id = :group_id AND deleted_at = :deleted_at

-- name: restore_deleted
UPDATE conversations SET deleted_at = NULL WHERE group_id = :group_id AND deleted_at = :deleted_at

-- name: memberships
SELECT group_id, user_id, access_level, created_at FROM memberships
WHERE group_id = :group_id
ORDER BY created_at, user_id

-- name: add_membership
INSERT INTO memberships (group_id, user_id, access_level, created_at)
VALUES (:group_id, :user_id, :access_level, :created_at)
ON CONFLICT (group_id, user_id) DO NOTHING
RETURNING group_id, user_id, access_level, created_at

-- name: change_membership
UPDATE memberships SET access_level = :access_level
WHERE group_id = :group_id AND user_id = :user_id
RETURNING group_id, user_id, access_level, created_at

-- name: remove_membership
DELETE FROM memberships WHERE group_id = :group_id AND user_id = :user_id
RETURNING user_id

-- name: delete_memberships
-- Of the group, with the key of its root.
DELETE FROM memberships WHERE group_id = :group_id AND group_id = :conversation_id

-- name: transfer_of_group
SELECT transfer_id, group_id, from_user_id, to_user_id, created_at FROM ownership_transfers
WHERE group_id = :group_id

-- name: transfers_of_user
-- across groups
SELECT transfer_id, group_id, from_user_id, to_user_id, created_at FROM ownership_transfers
WHERE from_user_id = :user_id
UNION ALL
SELECT transfer_id, group_id, from_user_id, to_user_id, created_at FROM ownership_transfers
WHERE to_user_id = :user_id
ORDER BY created_at, transfer_id

-- name: add_transfer
INSERT INTO ownership_transfers (group_id, transfer_id, from_user_id, to_user_id, created_at)
VALUES (:group_id, :transfer_id, :from_user_id, :to_user_id, :created_at)
ON CONFLICT (group_id) DO NOTHING

-- name: delete_transfers
-- Of the group, with the key of its root.
DELETE FROM ownership_transfers WHERE group_id = :group_id AND group_id = :conversation_id

-- name: delete_transfer_to
DELETE FROM ownership_transfers WHERE group_id = :group_id AND to_user_id = :user_id

-- name: hand_over
-- Deleted conversations, too: they may be restored.
UPDATE conversations SET owner_id = :new_owner_id WHERE group_id = :group_id AND owner_id = :owner_id

-- name: add_audit
INSERT INTO audit_records (group_id, record_id, conversation_id, actor_id, client_id, action, target, details,
                           created_at)
VALUES (:group_id, :record_id, :conversation_id, :actor_id, :client_id, :action, :target, :details, :created_at)
ON CONFLICT (group_id, record_id) DO NOTHING

-- name: audit_records
SELECT record_id, group_id, conversation_id, actor_id, client_id, action, target, details, created_at
FROM audit_records
WHERE group_id = :group_id AND record_id > :after
ORDER BY record_id
LIMIT :limit

-- name: groups_naming_user
-- Beside those that the user owns.
-- across groups
SELECT group_id FROM memberships WHERE user_id = :user_id
UNION
SELECT group_id FROM ownership_transfers WHERE from_user_id = :user_id
UNION
SELECT group_id FROM ownership_transfers WHERE to_user_id = :user_id
UNION
SELECT group_id FROM audit_records WHERE actor_id = :user_id
UNION
SELECT group_id FROM audit_records WHERE target = :user_id

-- name: delete_memberships_of_user
DELETE FROM memberships
WHERE user_id = :user_id
RETURNING group_id

-- name: delete_memberships_of_user [postgres]
-- by group: groups[0]
DELETE FROM memberships
WHERE group_id = ANY(:group_ids::text[]) AND user_id = :user_id
RETURNING group_id

-- name: delete_transfers_of_user
DELETE FROM ownership_transfers
WHERE from_user_id = :user_id OR to_user_id = :user_id
RETURNING group_id

-- name: delete_transfers_of_user [postgres]
-- by group: groups[0]
DELETE FROM ownership_transfers
WHERE group_id = ANY(:group_ids::text[]) AND (from_user_id = :user_id OR to_user_id = :user_id)
RETURNING group_id

-- name: forget_actor
UPDATE audit_records SET actor_id = NULL
WHERE actor_id = :user_id

-- name: forget_actor [postgres]
-- by group: groups[0]
UPDATE audit_records SET actor_id = NULL
WHERE group_id = ANY(:group_ids::text[]) AND actor_id = :user_id

-- name: forget_target
UPDATE audit_records SET target = NULL
WHERE target = :user_id

-- name: forget_target [postgres]
-- by group: groups[0]
UPDATE audit_records SET target = NULL
WHERE group_id = ANY(:group_ids::text[]) AND target = :user_id
