-- The SQL of pins. See core/log/queries.sql.

-- name: store_pin
INSERT INTO pins (group_id, conversation_id, ordinal, seq, anchor, key, role, text, sha256, token_count, tokenizer,
                  created_at)
VALUES (:group_id, :conversation_id, :ordinal, :seq, :anchor, :key, :role, :text, :sha256, :token_count, :tokenizer,
        :created_at)
ON CONFLICT (group_id, conversation_id, ordinal) DO UPDATE
SET seq = excluded.seq, text = excluded.text, sha256 = excluded.sha256, token_count = excluded.token_count,
    tokenizer = excluded.tokenizer, created_at = excluded.created_at

-- name: copy_pins
-- What a fork takes along: the pins on the messages that it shares.
INSERT INTO pins (group_id, conversation_id, ordinal, seq, anchor, key, role, text, sha256, token_count, tokenizer,
                  created_at)
SELECT group_id, :fork_id, ordinal, seq, anchor, key, role, text, sha256, token_count, tokenizer, created_at
FROM pins
WHERE group_id = :group_id AND conversation_id = :conversation_id AND seq < :at_seq AND NOT EXISTS (
    SELECT 1 FROM messages AS pinned
    WHERE pinned.group_id = pins.group_id AND pinned.conversation_id = pins.conversation_id AND pinned.seq = pins.seq
      AND pinned.state = 'cleared' AND pinned.archived_until < :at_seq)

-- name: pins
-- Shown or not.
SELECT ordinal, seq, anchor, key, role, text, sha256, token_count, tokenizer, created_at
FROM pins
WHERE group_id = :group_id AND conversation_id = :conversation_id
ORDER BY ordinal

-- name: delete_pin
DELETE FROM pins WHERE group_id = :group_id AND conversation_id = :conversation_id AND ordinal = :ordinal

-- name: delete_pins
DELETE FROM pins WHERE group_id = :group_id AND conversation_id = :conversation_id

-- name: pins_of_other_tokenizers
-- across groups
SELECT group_id, conversation_id,
       ordinal, seq, anchor, key, role, text, sha256, token_count, tokenizer, created_at
FROM pins
WHERE tokenizer <> :tokenizer
LIMIT :limit

-- name: delete_pins_of_messages
DELETE FROM pins
WHERE group_id = :group_id AND conversation_id = :conversation_id AND seq >= :start_seq AND seq <= :end_seq

-- name: delete_notes_behind
-- What an agent noted when it had seen a message that is gone now.
DELETE FROM pins
WHERE group_id = :group_id AND conversation_id = :conversation_id AND anchor = :anchor AND seq >= :start_seq

-- name: delete_pins_of_fact
DELETE FROM pins
WHERE group_id = :group_id AND conversation_id = :conversation_id AND anchor = :anchor AND key = :key
