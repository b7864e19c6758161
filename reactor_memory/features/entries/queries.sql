-- The SQL of entries. See core/log/queries.sql. An entry of a session has the empty user. One of a user stands in a group
-- of the user's own, in no conversation.

-- name: all_entries
SELECT kind, name, version, place, start_seq, end_seq, seq, role, author, state, replaced_by, token_count, tokenizer,
       created_at, text, details
FROM entries
WHERE group_id = :group_id AND conversation_id = :conversation_id

-- name: entries
-- include: all_entries
  AND kind = :kind
ORDER BY place, name

-- name: versions_of_entry
-- include: all_entries
  AND kind = :kind AND name = :name AND version <= :version
ORDER BY version DESC
LIMIT :limit

-- name: insert_entry
INSERT INTO entries (group_id, conversation_id, user_id, kind, name, version, place, start_seq, end_seq, seq, role,
                     author, state, replaced_by, token_count, tokenizer, created_at, text, details)
VALUES (:group_id, :conversation_id, :user_id, :kind, :name, :version, :place, :start_seq, :end_seq, :seq, :role,
        :author, :state, :replaced_by, :token_count, :tokenizer, :created_at, :text, :details)

-- name: put_entry
-- include: insert_entry
ON CONFLICT (group_id, conversation_id, kind, name, version) DO UPDATE
SET place = excluded.place, start_seq = excluded.start_seq, end_seq = excluded.end_seq, seq = excluded.seq,
    role = excluded.role, author = excluded.author, state = excluded.state, replaced_by = excluded.replaced_by,
    token_count = excluded.token_count, tokenizer = excluded.tokenizer, created_at = excluded.created_at,
    text = excluded.text, details = excluded.details

-- name: put_new_entry
-- include: insert_entry
ON CONFLICT (group_id, conversation_id, kind, name, version) DO NOTHING
RETURNING version

-- name: replace_entry
UPDATE entries SET replaced_by = :replaced_by
WHERE group_id = :group_id AND conversation_id = :conversation_id AND kind = :kind AND name = :name

-- name: revive_entries
UPDATE entries SET replaced_by = NULL
WHERE group_id = :group_id AND conversation_id = :conversation_id AND kind = :kind AND replaced_by = :name

-- name: delete_entry
DELETE FROM entries
WHERE group_id = :group_id AND conversation_id = :conversation_id AND kind = :kind AND name = :name

-- name: delete_entries
DELETE FROM entries WHERE group_id = :group_id AND conversation_id = :conversation_id

-- name: entries_made_of
SELECT kind, name, start_seq, end_seq, state FROM entries
WHERE group_id = :group_id AND conversation_id = :conversation_id AND start_seq <= :end_seq AND end_seq >= :start_seq

-- name: copy_entries
-- What a fork takes along: what was made of messages that it shares and that are not cleared for it, and stands for none
-- of them.
INSERT INTO entries (group_id, conversation_id, user_id, kind, name, version, place, start_seq, end_seq, seq, role,
                     author, state, replaced_by, token_count, tokenizer, created_at, text, details)
SELECT group_id, :fork_id, user_id, kind, name, version, place, start_seq, end_seq, seq, role,
       author, state, replaced_by, token_count, tokenizer, created_at, text, details
FROM entries
WHERE group_id = :group_id AND conversation_id = :conversation_id AND state IS NULL AND end_seq < :at_seq AND NOT EXISTS (
    SELECT 1 FROM messages AS quoted
    WHERE quoted.group_id = entries.group_id AND quoted.conversation_id = entries.conversation_id
      AND quoted.seq = entries.seq AND quoted.state = 'cleared' AND quoted.archived_until < :at_seq)

-- name: entries_of_other_tokenizers
-- across groups
SELECT group_id, conversation_id, kind, name, version, text FROM entries
WHERE tokenizer <> :tokenizer
LIMIT :limit

-- name: store_entry_count
UPDATE entries SET token_count = :token_count, tokenizer = :tokenizer
WHERE group_id = :group_id AND conversation_id = :conversation_id AND kind = :kind AND name = :name
  AND version = :version

-- name: texts_of_user
-- The newest version of each text that ever said something, and how many versions there are.
SELECT kind, name, MAX(version), COUNT(*) FROM entries
WHERE group_id = :group_id AND conversation_id = :conversation_id
GROUP BY kind, name
HAVING MAX(LENGTH(text)) > 0
