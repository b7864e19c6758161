-- name: idle_groups
-- Those of these groups that nobody used since.
SELECT group_id, COUNT(*), CAST(SUM(last_seq - COALESCE(forked_at_seq - 1, 0)) AS BIGINT), MAX(updated_at)
FROM conversations
WHERE group_id IN (SELECT json_extract(value, '$[0]') FROM json_each(:groups)) AND deleted_at IS NULL
GROUP BY group_id
HAVING MAX(updated_at) < :before

-- name: idle_groups [postgres]
-- by group: groups[0]
SELECT group_id, COUNT(*), CAST(SUM(last_seq - COALESCE(forked_at_seq - 1, 0)) AS BIGINT), MAX(updated_at)
FROM conversations
WHERE group_id = ANY(:group_ids::text[]) AND deleted_at IS NULL
GROUP BY group_id
HAVING MAX(updated_at) < :before
