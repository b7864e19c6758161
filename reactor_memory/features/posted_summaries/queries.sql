-- The SQL of posted summaries. See core/log/queries.sql.

-- name: ruling_posted
-- One whose content was deleted to save space tells nothing, and neither does one that was cleared. `parts` as in
-- `segments_of_branch`. Left to choose, SQLite would look through all messages for one that was posted.
SELECT posted.seq, posted.end_seq, message.content
FROM json_each(:parts) AS wanted
CROSS JOIN entries AS posted
CROSS JOIN messages AS message ON message.group_id = posted.group_id AND message.conversation_id = posted.conversation_id
     AND message.seq = posted.seq
WHERE posted.group_id = :group_id AND posted.conversation_id = json_extract(wanted.value, '$[0]')
  AND posted.kind = 'posted' AND posted.seq <= json_extract(wanted.value, '$[1]') AND message.content <> ''
  AND (message.state IS NULL OR message.state <> 'cleared'
       OR message.archived_until > json_extract(wanted.value, '$[1]'))
ORDER BY posted.end_seq DESC, posted.seq DESC
LIMIT 1

-- name: ruling_posted [postgres]
SELECT posted.seq, posted.end_seq, message.content
FROM json_array_elements(:parts::json) AS wanted
CROSS JOIN entries AS posted
JOIN messages AS message ON message.group_id = posted.group_id AND message.conversation_id = posted.conversation_id
     AND message.seq = posted.seq
WHERE posted.group_id = :group_id AND posted.conversation_id = wanted ->> 0 AND posted.kind = 'posted'
  AND posted.seq <= (wanted ->> 1)::bigint AND message.content <> ''
  AND (message.state IS NULL OR message.state <> 'cleared' OR message.archived_until > (wanted ->> 1)::bigint)
ORDER BY posted.end_seq DESC, posted.seq DESC
LIMIT 1

-- name: posted_of_group
SELECT posted.conversation_id, posted.seq, posted.end_seq, message.metadata
FROM entries AS posted
JOIN messages AS message ON message.group_id = posted.group_id AND message.conversation_id = posted.conversation_id
     AND message.seq = posted.seq
WHERE posted.group_id = :group_id AND posted.kind = 'posted'
