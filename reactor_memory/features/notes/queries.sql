-- The SQL of notes. See core/log/queries.sql.

-- name: notes
SELECT user_id, agent_name, version, notes, author, created_at
FROM long_term_notes
WHERE user_id = :user_id AND agent_name = :agent_name AND version <= :version
ORDER BY version DESC
LIMIT :limit

-- name: insert_notes
INSERT INTO long_term_notes (user_id, agent_name, version, notes, author, created_at)
SELECT CAST(:user_id AS TEXT), CAST(:agent_name AS TEXT), CAST(:version AS BIGINT), CAST(:notes AS TEXT),
       CAST(:author AS TEXT), CAST(:created_at AS BIGINT)
WHERE :version = (
    SELECT COALESCE(MAX(version), 0) + 1 FROM long_term_notes WHERE user_id = :user_id AND agent_name = :agent_name)
ON CONFLICT (user_id, agent_name, version) DO NOTHING
RETURNING version

-- name: newest_notes_of_user
SELECT agent_name, MAX(version) FROM long_term_notes WHERE user_id = :user_id GROUP BY agent_name
HAVING MAX(LENGTH(notes)) > 0

-- name: delete_notes_of_user
DELETE FROM long_term_notes
WHERE user_id = :user_id AND agent_name IN (
    SELECT agent_name FROM long_term_notes WHERE user_id = :user_id GROUP BY agent_name HAVING MAX(LENGTH(notes)) > 0)
RETURNING version

-- name: end_notes
-- On PostgreSQL a version may have been stored since the newest was read, and it goes, too.
INSERT INTO long_term_notes (user_id, agent_name, version, notes, author, created_at)
VALUES (:user_id, :agent_name, :version, '', NULL, :now)
ON CONFLICT (user_id, agent_name, version) DO UPDATE
SET notes = excluded.notes, author = NULL, created_at = excluded.created_at

-- name: notes_of_user
SELECT user_id, agent_name, version, notes, author, created_at FROM long_term_notes
WHERE user_id = :user_id
ORDER BY agent_name, version

-- name: import_notes
INSERT INTO long_term_notes (user_id, agent_name, version, notes, author, created_at)
VALUES (:user_id, :agent_name, :version, :notes, :author, :created_at)
ON CONFLICT (user_id, agent_name, version) DO NOTHING
