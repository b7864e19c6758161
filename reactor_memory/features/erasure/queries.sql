-- The SQL of erasure. See core/log/queries.sql.

-- name: messages_taken_away
SELECT conversation_id, seq, message_id FROM messages
WHERE group_id = :group_id AND state IN ('erased', 'withdrawn')
ORDER BY conversation_id, seq

-- name: note_erasure_of_group
-- Under a lease of who begins it, so that nobody else does so at once.
INSERT INTO background_work (group_id, conversation_id, kind, due_at, lease_until, fence, attempts)
VALUES (:group_id, :conversation_id, :kind, :now, :lease_until, 1, 0)
ON CONFLICT (group_id, conversation_id, kind) DO NOTHING

-- name: is_message_left
SELECT seq FROM messages
WHERE group_id = :group_id AND conversation_id = :conversation_id AND seq >= :start_seq AND seq <= :end_seq
  AND (state IS NULL OR state NOT IN ('erased', 'withdrawn'))
LIMIT 1

-- name: note_left
UPDATE background_work SET due_at = :now, lease_until = 0, attempts = attempts + 1, last_error = :error
WHERE group_id = :group_id AND conversation_id = :conversation_id AND kind = :kind

-- name: disown_group
UPDATE conversations SET owner_id = NULL, agent_name = NULL, title = NULL, metadata = NULL
WHERE group_id = :group_id AND owner_id = :owner_id AND deleted_at IS NOT NULL
