-- The SQL of posted summaries. See core/log/queries.sql.

-- name: messages_to_export
SELECT message.seq, message_id, role, visibility, author_id, content, parts, tool_calls, tool_call_id, name, metadata,
       token_count, tokenizer, created_at, state, archived_by, archived_until, batch_key, batch_fingerprint, batch_size,
       until_seq
FROM messages AS message
LEFT JOIN posted_summaries AS posted ON posted.group_id = message.group_id
     AND posted.conversation_id = message.conversation_id AND posted.seq = message.seq
WHERE message.group_id = :group_id AND message.conversation_id = :conversation_id AND message.seq > :after
ORDER BY message.seq
LIMIT :limit

-- name: delete_posted_summaries
DELETE FROM posted_summaries WHERE group_id = :group_id AND conversation_id = :conversation_id

-- name: insert_posted
INSERT INTO posted_summaries (group_id, conversation_id, seq, until_seq)
VALUES (:group_id, :conversation_id, :seq, :until_seq)

-- name: ruling_posted
-- One whose content was deleted to save space tells nothing, and neither does one that was cleared. `parts` as in
-- `segments_of_branch`.
SELECT posted.seq, posted.until_seq, message.content
FROM json_each(:parts) AS wanted
CROSS JOIN posted_summaries AS posted
JOIN messages AS message ON message.group_id = posted.group_id AND message.conversation_id = posted.conversation_id
     AND message.seq = posted.seq
WHERE posted.group_id = :group_id AND posted.conversation_id = json_extract(wanted.value, '$[0]')
  AND posted.seq <= json_extract(wanted.value, '$[1]') AND message.content <> ''
  AND (message.state IS NULL OR message.state <> 'cleared'
       OR message.archived_until > json_extract(wanted.value, '$[1]'))
ORDER BY posted.until_seq DESC, posted.seq DESC
LIMIT 1

-- name: ruling_posted [postgres]
SELECT posted.seq, posted.until_seq, message.content
FROM json_array_elements(:parts::json) AS wanted
CROSS JOIN posted_summaries AS posted
JOIN messages AS message ON message.group_id = posted.group_id AND message.conversation_id = posted.conversation_id
     AND message.seq = posted.seq
WHERE posted.group_id = :group_id AND posted.conversation_id = wanted ->> 0 AND posted.seq <= (wanted ->> 1)::bigint
  AND message.content <> ''
  AND (message.state IS NULL OR message.state <> 'cleared' OR message.archived_until > (wanted ->> 1)::bigint)
ORDER BY posted.until_seq DESC, posted.seq DESC
LIMIT 1

-- name: posted_of_group
SELECT posted.conversation_id, posted.seq, posted.until_seq, message.metadata
FROM posted_summaries AS posted
JOIN messages AS message ON message.group_id = posted.group_id AND message.conversation_id = posted.conversation_id
     AND message.seq = posted.seq
WHERE posted.group_id = :group_id

-- name: delete_posted
DELETE FROM posted_summaries WHERE group_id = :group_id AND conversation_id = :conversation_id AND seq = :seq
