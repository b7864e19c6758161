-- The SQL of responses. See core/log/queries.sql.

-- name: response
SELECT conversation_id, response_id, fence, client_id, producer, state, last_event, size, stop_requested, message_id,
       created_at, updated_at, expires_at
FROM responses
WHERE group_id = :group_id AND conversation_id = :conversation_id AND response_id = :response_id

-- name: lock_response
-- include: response

-- name: lock_response [postgres]
-- include: response
FOR UPDATE

-- name: newest_responses
SELECT conversation_id, response_id, fence, client_id, producer, state, last_event, size, stop_requested, message_id,
       created_at, updated_at, expires_at
FROM responses
WHERE group_id = :group_id AND conversation_id = :conversation_id
ORDER BY fence DESC
LIMIT :limit

-- name: supersede_responses
-- One that was silent for too long stays as it is: it expired.
UPDATE responses SET state = 'superseded', updated_at = :now, expires_at = :keep_until
WHERE group_id = :group_id AND conversation_id = :conversation_id AND state = 'running' AND expires_at > :now

-- name: insert_response
INSERT INTO responses (group_id, conversation_id, response_id, fence, client_id, producer, state, last_event, size,
                       stop_requested, message_id, created_at, updated_at, expires_at)
VALUES (:group_id, :conversation_id, :response_id,
        (SELECT COALESCE(MAX(fence), 0) + 1 FROM responses
         WHERE group_id = :group_id AND conversation_id = :conversation_id),
        :client_id, :producer, :state, :last_event, :size, :stop_requested, :message_id,
        :created_at, :updated_at, :expires_at)
RETURNING fence

-- name: update_response
UPDATE responses SET state = :state, last_event = :last_event, size = :size, stop_requested = :stop_requested,
                     message_id = :message_id, updated_at = :updated_at, expires_at = :expires_at
WHERE group_id = :group_id AND conversation_id = :conversation_id AND response_id = :response_id

-- name: insert_piece
INSERT INTO response_pieces (group_id, conversation_id, response_id, event, text)
VALUES (:group_id, :conversation_id, :response_id, :event, :text)

-- name: pieces
SELECT event, text FROM response_pieces
WHERE group_id = :group_id AND conversation_id = :conversation_id AND response_id = :response_id AND event > :after
ORDER BY event
LIMIT :limit

-- name: delete_responses
DELETE FROM responses WHERE group_id = :group_id AND conversation_id = :conversation_id

-- name: delete_pieces
DELETE FROM response_pieces WHERE group_id = :group_id AND conversation_id = :conversation_id

-- name: delete_pieces_of_response
DELETE FROM response_pieces
WHERE group_id = :group_id AND conversation_id = :conversation_id AND response_id = :response_id

-- name: delete_answers
DELETE FROM responses
WHERE group_id = :group_id AND conversation_id = :conversation_id AND message_id = :message_id
RETURNING conversation_id, response_id

-- name: delete_answers_between
-- A message of an ancestor may answer a response of a fork.
DELETE FROM responses
WHERE group_id = :group_id
  AND message_id IN (SELECT message_id FROM messages
                     WHERE group_id = :group_id AND conversation_id = :conversation_id
                       AND seq BETWEEN :start_seq AND :end_seq)
RETURNING conversation_id, response_id

-- name: expired_responses
-- across groups
SELECT conversation_id, response_id FROM responses
WHERE expires_at <= :now AND (state <> 'running' OR expires_at <= :silent_until)
ORDER BY expires_at
LIMIT :limit

-- name: delete_expired_response
DELETE FROM responses
WHERE group_id = :group_id AND conversation_id = :conversation_id AND response_id = :response_id
  AND expires_at <= :now AND (state <> 'running' OR expires_at <= :silent_until)
RETURNING response_id
-- Search over many conversations. A term stands behind the scope of its conversation, the key of who owned it when it
-- was first indexed: so a search meets what belongs to people whose conversations the caller may read, and of that only
-- what is in `visible` counts, before the best are taken. `visible` is JSON, one list a conversation: number, first and
-- last seq, conversation, scope, group. On SQLite a row id is the number of the conversation, shifted, and the seq.
