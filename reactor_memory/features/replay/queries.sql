-- The SQL of load records. See core/log/queries.sql.

-- name: end_of_load_records
-- How long a living session is, and the last ordinal of the records of loads at its end.
SELECT own.last_seq, (
    SELECT MAX(record.ordinal) FROM load_records AS record
    WHERE record.group_id = :group_id AND record.conversation_id = :conversation_id AND record.seq = own.last_seq
)
FROM conversations AS own
WHERE own.group_id = :group_id AND own.conversation_id = :conversation_id

-- name: first_load_records
-- The last ordinal of the records of loads before the first message.
SELECT MAX(ordinal) FROM load_records
WHERE group_id = :group_id AND conversation_id = :conversation_id AND seq = 0

-- name: store_load_record
INSERT INTO load_records (group_id, conversation_id, seq, ordinal, budget, query, current_sha256, settings_fingerprint,
                          tokenizer, digest, shown, created_at)
VALUES (:group_id, :conversation_id, :seq, :ordinal, :budget, :query, :current_sha256, :settings_fingerprint,
        :tokenizer, :digest, :shown, :created_at)

-- name: load_records
SELECT seq, ordinal, budget, query, current_sha256, settings_fingerprint, tokenizer, digest, shown, created_at
FROM load_records
WHERE group_id = :group_id AND conversation_id = :conversation_id AND seq = :seq
ORDER BY ordinal

-- name: delete_load_records
DELETE FROM load_records
WHERE group_id = :group_id AND conversation_id = :conversation_id AND seq >= :from_seq

-- name: forget_queries
-- A query may name what is to be forgotten.
UPDATE load_records SET query = NULL
WHERE group_id = :group_id AND conversation_id = :conversation_id AND query IS NOT NULL
