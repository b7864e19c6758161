-- Statements of the seam itself: what it must know of the schema before anything else is asked.

-- name: tables
SELECT name FROM sqlite_master WHERE type = 'table'
-- name: tables [postgres]
-- Those that the user may not read, too.
SELECT relname FROM pg_class
WHERE relkind IN ('r', 'p', 'v', 'm', 'f') AND relnamespace = to_regnamespace(COALESCE(current_schema(), 'public'))

-- name: revision
SELECT version_num FROM reactor_memory_revision

-- Changes nothing, and is refused where nothing can be changed.
-- name: touch
DELETE FROM reactor_memory_revision WHERE 0

-- Until the end of the transaction nobody else migrates. On SQLite it is the only writer anyway.
-- name: lock_schema
SELECT 1
-- name: lock_schema [postgres]
SELECT pg_advisory_xact_lock(hashtext('reactor_memory_revision'))
