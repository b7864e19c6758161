-- The SQL of tiers. See core/log/queries.sql.

-- name: archive_messages
UPDATE messages SET state = 'archived', archived_by = :summary_id, archived_until = :end_seq
WHERE group_id = :group_id AND conversation_id = :conversation_id
  AND seq >= :start_seq AND seq <= :end_seq AND state IS NULL

-- name: behind_in_tiers
-- Sessions with more than `threshold` messages of their own behind their newest summary.
-- across groups
SELECT own.conversation_id, own.last_seq
FROM conversations AS own
WHERE (own.group_id, own.conversation_id) > (:group_id, :conversation_id) AND own.deleted_at IS NULL
  AND own.last_seq - COALESCE(own.forked_at_seq - 1, 0) > :threshold
  AND own.last_seq > :threshold + COALESCE((
      SELECT MAX(made.end_seq) FROM entries AS made
      WHERE made.group_id = own.group_id AND made.conversation_id = own.conversation_id AND made.kind = 'range'), 0)
ORDER BY own.group_id, own.conversation_id
LIMIT :limit
