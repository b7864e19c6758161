-- The SQL of what an operator sees. See core/log/queries.sql.

-- name: keep_agent_settings
-- One row for the store.
INSERT INTO agent_settings (id, given, kept_at) VALUES (1, :given, :kept_at)
ON CONFLICT (id) DO UPDATE SET given = excluded.given, kept_at = excluded.kept_at
WHERE agent_settings.given <> excluded.given

-- name: agent_settings
SELECT given, kept_at FROM agent_settings WHERE id = 1
