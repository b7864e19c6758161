-- name: messages_of_other_tokenizers
-- across groups
SELECT group_id, conversation_id,
       seq, message_id, role, visibility, author_id, content, parts, tool_calls, tool_call_id, name, metadata,
       token_count, tokenizer, created_at
FROM messages
WHERE (group_id, conversation_id, seq) > (:group_id, :conversation_id, :seq)
  AND (tokenizer IS NULL OR tokenizer <> :tokenizer)
ORDER BY group_id, conversation_id, seq
LIMIT :limit

-- name: store_token_count
UPDATE messages SET token_count = :token_count, tokenizer = :tokenizer
WHERE group_id = :group_id AND conversation_id = :conversation_id AND seq = :seq
