-- The SQL of active sessions. See core/log/queries.sql.

-- name: active_session
SELECT user_id, agent_name, active_session_id, last_active_at, created_at
FROM active_sessions
WHERE user_id = :user_id AND agent_name = :agent_name

-- name: active_sessions_of_user
SELECT user_id, agent_name, active_session_id, last_active_at, created_at
FROM active_sessions
WHERE user_id = :user_id
ORDER BY last_active_at DESC, agent_name

-- name: get_or_create_active
INSERT INTO active_sessions (user_id, agent_name, active_session_id, last_active_at, created_at)
VALUES (:user_id, :agent_name, :session_id, :now, :now)
ON CONFLICT (user_id, agent_name) DO UPDATE
SET active_session_id = COALESCE(active_sessions.active_session_id, excluded.active_session_id),
    last_active_at = CASE WHEN active_sessions.last_active_at > excluded.last_active_at
                          THEN active_sessions.last_active_at ELSE excluded.last_active_at END
RETURNING user_id, agent_name, active_session_id, last_active_at, created_at

-- name: activate
-- Where none is active.
INSERT INTO active_sessions (user_id, agent_name, active_session_id, last_active_at, created_at)
VALUES (:user_id, :agent_name, :session_id, :now, :now)
ON CONFLICT (user_id, agent_name) DO UPDATE
SET active_session_id = excluded.active_session_id,
    last_active_at = CASE WHEN active_sessions.last_active_at > excluded.last_active_at
                          THEN active_sessions.last_active_at ELSE excluded.last_active_at END
WHERE active_sessions.active_session_id IS NULL
RETURNING user_id, agent_name, active_session_id, last_active_at, created_at

-- name: replace_active
UPDATE active_sessions
SET active_session_id = :session_id,
    last_active_at = CASE WHEN last_active_at > :now THEN last_active_at ELSE :now END
WHERE user_id = :user_id AND agent_name = :agent_name AND active_session_id = :expected
RETURNING user_id, agent_name, active_session_id, last_active_at, created_at

-- name: deactivate_active
-- across groups
UPDATE active_sessions SET active_session_id = NULL
WHERE last_active_at < :before AND active_session_id IS NOT NULL
RETURNING user_id

-- name: delete_active_of_user
DELETE FROM active_sessions WHERE user_id = :user_id RETURNING agent_name

-- name: import_active
INSERT INTO active_sessions (user_id, agent_name, active_session_id, last_active_at, created_at)
VALUES (:user_id, :agent_name, :session_id, :last_active_at, :created_at)
ON CONFLICT (user_id, agent_name) DO NOTHING
