-- What callers archive. `archived` is out of view, `cleared` out of memory, too. What a summary archived has its id.

-- name: archive_own
-- `other` is the state besides none of which messages are taken: `archived` to clear it, `cleared` to show its facts.
UPDATE messages
SET state = :state, archived_until = CASE WHEN archived_by IS NULL THEN :archived_until ELSE archived_until END
WHERE group_id = :group_id AND conversation_id = :conversation_id
  AND seq >= :start_seq AND seq <= :end_seq AND (state IS NULL OR state = :other)
RETURNING seq

-- name: restore_own
-- What a summary archived before it was cleared is archived again.
UPDATE messages
SET archived_until = CASE WHEN archived_by IS NULL THEN NULL ELSE archived_until END,
    state = CASE WHEN archived_by IS NULL THEN NULL ELSE 'archived' END
WHERE group_id = :group_id AND conversation_id = :conversation_id AND seq >= :start_seq
  AND (state = 'cleared' OR (state = 'archived' AND archived_by IS NULL))
RETURNING seq
