"""The seam to a database: six verbs that run operations, on SQLite (a file or memory) and on PostgreSQL."""
