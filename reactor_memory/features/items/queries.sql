-- The SQL of items. See core/log/queries.sql.

-- name: items_of_keys
-- `keys` is JSON: lists of a namespace and a key.
SELECT namespace, items.key, items.value, created_at, updated_at
FROM json_each(:keys) AS wanted
CROSS JOIN items
WHERE user_id = :user_id AND namespace = json_extract(wanted.value, '$[0]')
  AND items.key = json_extract(wanted.value, '$[1]')

-- name: items_of_keys [postgres]
SELECT namespace, key, value, created_at, updated_at
FROM json_array_elements(:keys::json) AS wanted (place)
JOIN items ON namespace = place ->> 0 AND key = place ->> 1
WHERE user_id = :user_id

-- name: items_below
SELECT namespace, key, value, created_at, updated_at
FROM items
WHERE user_id = :user_id AND (namespace = :namespace OR (namespace >= :first AND namespace < :beyond))
ORDER BY updated_at DESC, namespace, key

-- name: found_items
-- The items whose JSON holds all `fragments` (JSON: a list of texts), those with most of the `terms` (likewise, with
-- spaces around each) first, behind the one with these `after_` values in that order.
WITH wanted AS MATERIALIZED (SELECT value FROM json_each(:terms)),
     needed AS MATERIALIZED (SELECT value FROM json_each(:fragments)),
     found AS (
         SELECT namespace, key, items.value, created_at, updated_at,
                (SELECT COUNT(*) FROM wanted WHERE instr(items.terms, wanted.value) > 0) AS shared
         FROM items
         WHERE user_id = :user_id AND (namespace = :namespace OR (namespace >= :first AND namespace < :beyond))
           AND NOT EXISTS (SELECT 1 FROM needed WHERE instr(items.value, needed.value) = 0))
SELECT namespace, key, value, created_at, updated_at, shared
FROM found
WHERE shared < :after_shared OR (shared = :after_shared AND (updated_at < :after_updated_at
      OR (updated_at = :after_updated_at AND (namespace > :after_namespace
          OR (namespace = :after_namespace AND key > :after_key)))))
ORDER BY shared DESC, updated_at DESC, namespace, key
LIMIT :limit

-- name: found_items [postgres]
WITH wanted AS MATERIALIZED (SELECT value FROM json_array_elements_text(:terms::json) AS each (value)),
     needed AS MATERIALIZED (SELECT value FROM json_array_elements_text(:fragments::json) AS each (value)),
     found AS (
         SELECT namespace, key, items.value, created_at, updated_at,
                (SELECT COUNT(*) FROM wanted WHERE strpos(items.terms, wanted.value) > 0) AS shared
         FROM items
         WHERE user_id = :user_id AND (namespace = :namespace OR (namespace >= :first AND namespace < :beyond))
           AND NOT EXISTS (SELECT 1 FROM needed WHERE strpos(items.value, needed.value) = 0))
SELECT namespace, key, value, created_at, updated_at, shared
FROM found
WHERE shared < :after_shared::bigint OR (shared = :after_shared::bigint AND (updated_at < :after_updated_at
      OR (updated_at = :after_updated_at AND (namespace > :after_namespace
          OR (namespace = :after_namespace AND key > :after_key)))))
ORDER BY shared DESC, updated_at DESC, namespace, key
LIMIT :limit

-- name: item_namespaces
SELECT namespace FROM items WHERE user_id = :user_id GROUP BY namespace ORDER BY namespace

-- name: put_item
INSERT INTO items (user_id, namespace, key, value, terms, created_at, updated_at)
VALUES (:user_id, :namespace, :key, :value, :terms, :now, :now)
ON CONFLICT (user_id, namespace, key) DO UPDATE
SET value = excluded.value, terms = excluded.terms, updated_at = excluded.updated_at

-- name: remove_item
DELETE FROM items WHERE user_id = :user_id AND namespace = :namespace AND key = :key

-- name: delete_items_of_user
DELETE FROM items WHERE user_id = :user_id RETURNING key

-- name: import_item
INSERT INTO items (user_id, namespace, key, value, terms, created_at, updated_at)
VALUES (:user_id, :namespace, :key, :value, :terms, :created_at, :updated_at)
ON CONFLICT (user_id, namespace, key) DO NOTHING
