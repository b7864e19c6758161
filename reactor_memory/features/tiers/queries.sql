-- The SQL of tiers. See core/log/queries.sql.

-- name: range_summaries
SELECT summary_id, kind, start_seq, end_seq, message_count, message_ids, retention, replaced_by, started_at, ended_at,
       text, token_count, tokenizer, created_at
FROM range_summaries
WHERE group_id = :group_id AND conversation_id = :conversation_id
ORDER BY start_seq, end_seq, summary_id

-- name: insert_range_summary
INSERT INTO range_summaries (group_id, conversation_id, summary_id, kind, start_seq, end_seq, message_count,
                             message_ids, retention, started_at, ended_at, text, token_count, tokenizer, created_at)
VALUES (:group_id, :conversation_id, :summary_id, :kind, :start_seq, :end_seq, :message_count,
        :message_ids, :retention, :started_at, :ended_at, :text, :token_count, :tokenizer, :created_at)

-- name: replace_range_summary
UPDATE range_summaries SET replaced_by = :replaced_by
WHERE group_id = :group_id AND conversation_id = :conversation_id AND summary_id = :summary_id

-- name: revive_range_summaries
UPDATE range_summaries SET replaced_by = NULL
WHERE group_id = :group_id AND conversation_id = :conversation_id AND replaced_by = :summary_id

-- name: delete_range_summary
DELETE FROM range_summaries
WHERE group_id = :group_id AND conversation_id = :conversation_id AND summary_id = :summary_id

-- name: delete_range_summaries
DELETE FROM range_summaries WHERE group_id = :group_id AND conversation_id = :conversation_id

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
      SELECT MAX(made.end_seq) FROM range_summaries AS made
      WHERE made.group_id = own.group_id AND made.conversation_id = own.conversation_id), 0)
ORDER BY own.group_id, own.conversation_id
LIMIT :limit

-- name: range_summaries_of_other_tokenizers
-- across groups
SELECT group_id, conversation_id, summary_id, text FROM range_summaries
WHERE tokenizer <> :tokenizer
LIMIT :limit

-- name: store_range_token_count
UPDATE range_summaries SET token_count = :token_count, tokenizer = :tokenizer
WHERE group_id = :group_id AND conversation_id = :conversation_id AND summary_id = :summary_id
