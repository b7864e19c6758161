-- name: idle_groups
-- across groups
SELECT group_id, COUNT(*), CAST(SUM(last_seq - COALESCE(forked_at_seq - 1, 0)) AS BIGINT), MAX(updated_at)
FROM conversations
WHERE deleted_at IS NULL AND group_id > :after
GROUP BY group_id
HAVING MAX(updated_at) < :before
ORDER BY group_id
LIMIT :limit
