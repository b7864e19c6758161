-- The SQL of search. See core/log/queries.sql.

-- name: visible_conversations
-- across groups
-- Of groups that the user owns or is a member of.
SELECT own.group_id, own.conversation_id, own.agent_name, own.path, progress.number, progress.scope,
       progress.indexed_seq
FROM conversations AS own
LEFT JOIN search_progress AS progress
  ON progress.group_id = own.group_id AND progress.conversation_id = own.conversation_id
WHERE own.owner_id = :user_id AND own.deleted_at IS NULL
UNION
SELECT own.group_id, own.conversation_id, own.agent_name, own.path, progress.number, progress.scope,
       progress.indexed_seq
FROM memberships AS member
JOIN conversations AS own ON own.group_id = member.group_id
LEFT JOIN search_progress AS progress
  ON progress.group_id = own.group_id AND progress.conversation_id = own.conversation_id
WHERE member.user_id = :user_id AND own.deleted_at IS NULL AND own.owner_id IS NOT NULL

-- part: search_hits
-- The beginning of the searches for words. The index is asked for all terms at once, each term only of what it found.
WITH visible AS MATERIALIZED (
    SELECT part ->> 3 AS conversation_id, part ->> 4 AS scope, part ->> 5 AS group_id,
           (part ->> 1)::bigint AS start_seq, (part ->> 2)::bigint AS end_seq
    FROM json_array_elements(:visible::json) AS part
), wanted AS MATERIALIZED (
    SELECT (quote_literal(rtrim(term ->> 0, '*')) || CASE WHEN right(term ->> 0, 1) = '*' THEN ':*' ELSE '' END)::tsquery
               AS query, (term ->> 1)::bigint AS number,
           (term ->> 2)::bigint AS weight, term ->> 3 AS scope
    FROM json_array_elements(:terms::json) AS term
), hits AS MATERIALIZED (
    SELECT visible.scope, entry.conversation_id, entry.seq, entry.length, entry.terms
    FROM search_entries AS entry
    JOIN visible ON visible.group_id = entry.group_id AND visible.conversation_id = entry.conversation_id
    WHERE entry.group_id = ANY(:group_ids::text[])
      AND entry.terms @@ :any_term::text::tsquery AND entry.seq BETWEEN visible.start_seq AND visible.end_seq
      AND (:as_of::bigint IS NULL OR entry.created_at <= :as_of::bigint)
      AND (:before_at::bigint IS NULL
           OR CASE WHEN entry.conversation_id = :before_conversation::text THEN entry.seq < :before_seq::bigint
                   ELSE entry.sent_at < :before_at::bigint END)
)

-- name: search_frequencies
-- How many entries hold each term. `terms` is JSON: lists of a term behind its scope, its number, its weight, its scope.
-- `is_whole` 1: all of the visible conversations counts. A bound that is NULL does not bind.
SELECT json_extract(wanted.value, '$[1]') AS number, COUNT(*)
FROM json_each(:terms) AS wanted
CROSS JOIN search_entries AS entry
WHERE entry.search_entries MATCH json_extract(wanted.value, '$[0]')
  AND (entry.rowid >> 31) IN (SELECT json_extract(value, '$[0]') FROM json_each(:visible))
  AND (:is_whole = 1 OR EXISTS (
      SELECT 1 FROM json_each(:visible) AS part
      WHERE json_extract(part.value, '$[0]') = entry.rowid >> 31
        AND (entry.rowid & 2147483647) BETWEEN json_extract(part.value, '$[1]') AND json_extract(part.value, '$[2]')))
  AND (:as_of IS NULL OR entry.created_at <= :as_of)
  AND (:before_at IS NULL OR CASE WHEN entry.conversation_id = :before_conversation THEN entry.seq < :before_seq
                                  ELSE entry.sent_at < :before_at END)
GROUP BY number

-- name: search_frequencies [postgres]
-- by group: visible[5]
-- include: search_hits
SELECT wanted.number, COUNT(*)
FROM hits
JOIN wanted ON wanted.scope = hits.scope AND hits.terms @@ wanted.query
GROUP BY wanted.number

-- name: search_words
-- The entries whose terms weigh most together.
SELECT entry.conversation_id, entry.seq, entry.length, best.numbers
FROM (
    SELECT entry.rowid AS id, SUM(json_extract(wanted.value, '$[2]')) AS weight,
           GROUP_CONCAT(json_extract(wanted.value, '$[1]')) AS numbers
    FROM json_each(:terms) AS wanted
    CROSS JOIN search_entries AS entry
    WHERE entry.search_entries MATCH json_extract(wanted.value, '$[0]')
      AND (entry.rowid >> 31) IN (SELECT json_extract(value, '$[0]') FROM json_each(:visible))
      AND (:is_whole = 1 OR EXISTS (
          SELECT 1 FROM json_each(:visible) AS part
          WHERE json_extract(part.value, '$[0]') = entry.rowid >> 31
            AND (entry.rowid & 2147483647)
                BETWEEN json_extract(part.value, '$[1]') AND json_extract(part.value, '$[2]')))
      AND (:as_of IS NULL OR entry.created_at <= :as_of)
      AND (:before_at IS NULL OR CASE WHEN entry.conversation_id = :before_conversation THEN entry.seq < :before_seq
                                      ELSE entry.sent_at < :before_at END)
    GROUP BY entry.rowid
    ORDER BY weight DESC, id DESC
    LIMIT :limit
) AS best
CROSS JOIN search_entries AS entry ON entry.rowid = best.id

-- name: search_words [postgres]
-- by group: visible[5]
-- include: search_hits
SELECT hits.conversation_id, hits.seq, hits.length, STRING_AGG(wanted.number::text, ',')
FROM hits
JOIN wanted ON wanted.scope = hits.scope AND hits.terms @@ wanted.query
GROUP BY hits.conversation_id, hits.seq, hits.length
ORDER BY SUM(wanted.weight) DESC, hits.seq DESC, hits.conversation_id
LIMIT :limit

-- name: compares_vectors
-- Whether the database itself can compare vectors.
SELECT 0

-- name: compares_vectors [postgres]
SELECT (to_regtype('vector') IS NOT NULL)::int

-- name: visible_embeddings
SELECT meaning.conversation_id, meaning.seq, meaning.vector
FROM json_each(:visible) AS part
CROSS JOIN embeddings AS meaning
WHERE meaning.group_id = json_extract(part.value, '$[5]')
  AND meaning.conversation_id = json_extract(part.value, '$[3]')
  AND meaning.seq BETWEEN json_extract(part.value, '$[1]') AND json_extract(part.value, '$[2]')
  AND meaning.model = :model
  AND (:as_of IS NULL OR meaning.created_at <= :as_of)
  AND (:before_at IS NULL OR CASE WHEN meaning.conversation_id = :before_conversation THEN meaning.seq < :before_seq
                                  ELSE meaning.sent_at < :before_at END)

-- name: visible_embeddings [postgres]
-- by group: visible[5]
SELECT meaning.conversation_id, meaning.seq, meaning.vector
FROM json_array_elements(:visible::json) AS part
JOIN embeddings AS meaning
  ON meaning.group_id = part ->> 5 AND meaning.conversation_id = part ->> 3
WHERE meaning.group_id = ANY(:group_ids::text[]) AND meaning.seq BETWEEN (part ->> 1)::bigint AND (part ->> 2)::bigint
  AND meaning.model = :model
  AND (:as_of::bigint IS NULL OR meaning.created_at <= :as_of::bigint)
  AND (:before_at::bigint IS NULL
       OR CASE WHEN meaning.conversation_id = :before_conversation::text THEN meaning.seq < :before_seq::bigint
               ELSE meaning.sent_at < :before_at::bigint END)

-- name: nearest_embeddings [postgres]
-- All of what is visible is compared: an index over all vectors would take the best of everybody's first.
-- by group: visible[5]
SELECT conversation_id, seq, similarity
FROM (
    SELECT meaning.conversation_id, meaning.seq, -(meaning.vector::vector <#> :vector::real[]::vector) AS similarity
    FROM json_array_elements(:visible::json) AS part
    JOIN embeddings AS meaning
      ON meaning.group_id = part ->> 5 AND meaning.conversation_id = part ->> 3
    WHERE meaning.group_id = ANY(:group_ids::text[]) AND meaning.seq BETWEEN (part ->> 1)::bigint AND (part ->> 2)::bigint
      AND meaning.model = :model
      AND (:as_of::bigint IS NULL OR meaning.created_at <= :as_of::bigint)
      AND (:before_at::bigint IS NULL
           OR CASE WHEN meaning.conversation_id = :before_conversation::text THEN meaning.seq < :before_seq::bigint
                   ELSE meaning.sent_at < :before_at::bigint END)
) AS compared
WHERE similarity >= :min_similarity::double precision
ORDER BY similarity DESC, seq DESC, conversation_id
LIMIT :limit

-- name: place_of_message
SELECT message.conversation_id, message.seq, message.created_at
FROM json_each(:visible) AS part
CROSS JOIN messages AS message
WHERE message.group_id = json_extract(part.value, '$[5]')
  AND message.conversation_id = json_extract(part.value, '$[3]')
  AND message.message_id = :message_id AND (message.visibility = 'user' OR message.role = 'summary')

-- name: place_of_message [postgres]
-- by group: visible[5]
WITH named AS MATERIALIZED (
    SELECT set_config('reactor_memory.group_ids', CAST(:group_ids::text[] AS text), true) AS groups
)
SELECT message.conversation_id, message.seq, message.created_at
FROM named, json_array_elements(:visible::json) AS part, LATERAL (
    SELECT conversation_id, seq, created_at FROM messages
    WHERE named.groups IS NOT NULL AND group_id = ANY(:group_ids::text[]) AND group_id = part ->> 5
      AND conversation_id = part ->> 3
      AND message_id = :message_id AND (visibility = 'user' OR role = 'summary')
    LIMIT 1
) AS message

-- name: found_messages
-- `places` is JSON: lists of group, conversation and seq.
SELECT message.conversation_id,
       message.seq, message_id, role, visibility, author_id, content, parts, tool_calls, tool_call_id, name, metadata,
       token_count, tokenizer, created_at
FROM json_each(:places) AS place
CROSS JOIN messages AS message
WHERE message.group_id = json_extract(place.value, '$[0]')
  AND message.conversation_id = json_extract(place.value, '$[1]') AND message.seq = json_extract(place.value, '$[2]')

-- name: found_messages [postgres]
-- by group: places[0]
-- As in `newest_shown`.
WITH named AS MATERIALIZED (
    SELECT set_config('reactor_memory.group_ids', CAST(:group_ids::text[] AS text), true) AS groups
)
SELECT message.*
FROM named, json_array_elements(:places::json) AS place, LATERAL (
    SELECT conversation_id, seq, message_id, role, visibility, author_id, content, parts, tool_calls, tool_call_id, name,
           metadata, token_count, tokenizer, created_at
    FROM messages
    WHERE named.groups IS NOT NULL AND group_id = ANY(:group_ids::text[]) AND group_id = place ->> 0
      AND conversation_id = place ->> 1 AND seq = (place ->> 2)::bigint
    LIMIT 1
) AS message

-- name: search_progress
SELECT indexed_seq, embedded_seq, model, parked, analyzer, scope FROM search_progress
WHERE group_id = :group_id AND conversation_id = :conversation_id

-- name: begin_search_progress
-- Each conversation has its own number.
INSERT INTO search_progress (group_id, conversation_id, number, scope, indexed_seq, embedded_seq, model, parked, analyzer)
SELECT :group_id, :conversation_id, COALESCE(MAX(number), 0) + 1, :scope, :after, :after, NULL, 0, :analyzer
FROM search_progress
WHERE true
ON CONFLICT (group_id, conversation_id) DO NOTHING

-- name: begin_search_progress [postgres]
-- Here an entry needs no number.
INSERT INTO search_progress (group_id, conversation_id, number, scope, indexed_seq, embedded_seq, model, parked, analyzer)
VALUES (:group_id, :conversation_id, 0, :scope, :after, :after, NULL, 0, :analyzer)
ON CONFLICT (group_id, conversation_id) DO NOTHING

-- name: insert_search_entry
INSERT INTO search_entries (rowid, group_id, conversation_id, seq, length, sent_at, created_at, terms)
SELECT (number << 31) + :seq, group_id, conversation_id, :seq, :length, :sent_at, :now, :terms
FROM search_progress
WHERE group_id = :group_id AND conversation_id = :conversation_id

-- name: insert_search_entry [postgres]
INSERT INTO search_entries (group_id, conversation_id, seq, length, sent_at, created_at, terms)
VALUES (:group_id, :conversation_id, :seq, :length, :sent_at, :now, array_to_tsvector(string_to_array(:terms, ' ')))

-- name: advance_indexed
UPDATE search_progress SET indexed_seq = :end_seq, analyzer = :analyzer, parked = parked + :parked
WHERE group_id = :group_id AND conversation_id = :conversation_id
  AND :after = CASE WHEN analyzer = :analyzer THEN indexed_seq ELSE :first END
RETURNING indexed_seq

-- name: advance_indexed [postgres]
UPDATE search_progress SET indexed_seq = :end_seq, analyzer = :analyzer::bigint, parked = parked + :parked
WHERE group_id = :group_id AND conversation_id = :conversation_id
  AND :after::bigint = CASE WHEN analyzer = :analyzer::bigint THEN indexed_seq ELSE :first::bigint END
RETURNING indexed_seq

-- name: insert_embedding
INSERT INTO embeddings (group_id, conversation_id, seq, model, sent_at, created_at, vector)
VALUES (:group_id, :conversation_id, :seq, :model, :sent_at, :now, :vector)
ON CONFLICT (group_id, conversation_id, seq) DO UPDATE
SET model = excluded.model, created_at = excluded.created_at, vector = excluded.vector

-- name: insert_embedding [postgres]
INSERT INTO embeddings (group_id, conversation_id, seq, model, sent_at, created_at, vector)
VALUES (:group_id, :conversation_id, :seq, :model, :sent_at, :now, :numbers)
ON CONFLICT (group_id, conversation_id, seq) DO UPDATE
SET model = excluded.model, created_at = excluded.created_at, vector = excluded.vector

-- name: advance_embedded
UPDATE search_progress SET embedded_seq = :end_seq, model = :model, parked = parked + :parked
WHERE group_id = :group_id AND conversation_id = :conversation_id
  AND :after = CASE WHEN model = :model THEN embedded_seq ELSE :first END
RETURNING embedded_seq

-- name: advance_embedded [postgres]
UPDATE search_progress SET embedded_seq = :end_seq, model = :model::text, parked = parked + :parked
WHERE group_id = :group_id AND conversation_id = :conversation_id
  AND :after::bigint = CASE WHEN model = :model::text THEN embedded_seq ELSE :first::bigint END
RETURNING embedded_seq

-- name: mark_vectorized
UPDATE conversations SET vectorized_at = :read_at
WHERE group_id = :group_id AND conversation_id = :conversation_id AND last_seq <= :end_seq

-- name: delete_search_entries
DELETE FROM search_entries
WHERE rowid BETWEEN (SELECT (number << 31) + :start_seq FROM search_progress
                     WHERE group_id = :group_id AND conversation_id = :conversation_id)
                AND (SELECT (number << 31) + :end_seq FROM search_progress
                     WHERE group_id = :group_id AND conversation_id = :conversation_id)

-- name: delete_search_entries [postgres]
DELETE FROM search_entries
WHERE group_id = :group_id AND conversation_id = :conversation_id AND seq >= :start_seq AND seq <= :end_seq

-- name: rewind_search
-- What stands behind `end_seq` is to be indexed again.
UPDATE search_progress
SET indexed_seq = CASE WHEN indexed_seq < :end_seq THEN indexed_seq ELSE :end_seq END,
    embedded_seq = CASE WHEN embedded_seq < :end_seq THEN embedded_seq ELSE :end_seq END
WHERE group_id = :group_id AND conversation_id = :conversation_id

-- name: delete_embeddings
DELETE FROM embeddings
WHERE group_id = :group_id AND conversation_id = :conversation_id AND seq >= :start_seq AND seq <= :end_seq

-- name: delete_search_progress
DELETE FROM search_progress WHERE group_id = :group_id AND conversation_id = :conversation_id

-- name: behind_in_search
-- Conversations that have an owner and messages which are not indexed (by this :analyzer, else by this :model), unless
-- somebody works on them or they are to be tried later.
-- across groups
SELECT own.conversation_id
FROM conversations AS own
LEFT JOIN search_progress AS progress
  ON progress.group_id = own.group_id AND progress.conversation_id = own.conversation_id
LEFT JOIN background_work AS work
  ON work.group_id = own.group_id AND work.conversation_id = own.conversation_id AND work.kind = :kind
WHERE (own.group_id, own.conversation_id) > (:group_id, :conversation_id)
  AND own.owner_id IS NOT NULL AND own.deleted_at IS NULL
  AND own.last_seq > COALESCE(CASE WHEN progress.analyzer = :analyzer THEN progress.indexed_seq
                                   WHEN progress.model = :model THEN progress.embedded_seq END,
                              own.forked_at_seq - 1, 0)
  AND (work.due_at IS NULL OR work.due_at <= :now OR work.due_at > :now + :wait_microseconds + :wait_microseconds)
  AND (work.lease_until IS NULL OR work.lease_until <= :now
       OR work.lease_until > :now + :lease_microseconds + :lease_microseconds)
ORDER BY own.group_id, own.conversation_id
LIMIT :limit

-- name: search_backlog
-- Messages that are not indexed yet, messages without a meaning yet, and messages that were given up.
-- across groups
SELECT CAST(COALESCE(SUM(own.last_seq - COALESCE(CASE WHEN progress.analyzer = CAST(:analyzer AS BIGINT) THEN progress.indexed_seq END,
                                                 own.forked_at_seq - 1, 0)), 0) AS BIGINT),
       CAST(COALESCE(SUM(own.last_seq - COALESCE(CASE WHEN progress.model = CAST(:model AS TEXT) THEN progress.embedded_seq END,
                                                 own.forked_at_seq - 1, 0)), 0) AS BIGINT),
       CAST(COALESCE(SUM(progress.parked), 0) AS BIGINT)
FROM conversations AS own
LEFT JOIN search_progress AS progress
  ON progress.group_id = own.group_id AND progress.conversation_id = own.conversation_id
WHERE own.owner_id IS NOT NULL AND own.deleted_at IS NULL

-- name: merge_search
-- As `merge_index`.
INSERT INTO search_entries (search_entries, rank) VALUES ('merge', -500)

-- name: merge_search [postgres]
SELECT 1

-- name: damaged_entries
-- Of these groups. `vector_bytes`: how long a vector is, if that is known.
WITH held AS MATERIALIZED (
    SELECT * FROM search_progress WHERE group_id IN (SELECT json_extract(value, '$[0]') FROM json_each(:groups))
), meanings AS (
    SELECT * FROM embeddings WHERE group_id IN (SELECT json_extract(value, '$[0]') FROM json_each(:groups))
)
SELECT conversation_id FROM held
WHERE typeof(indexed_seq) <> 'integer' OR typeof(embedded_seq) <> 'integer' OR typeof(number) <> 'integer'
   OR typeof(scope) <> 'text' OR length(scope) <> 8 OR scope GLOB '*[^0-9a-f]*'
   OR typeof(parked) <> 'integer' OR indexed_seq < 0 OR embedded_seq < 0 OR number < 0
UNION
SELECT held.conversation_id
FROM held
CROSS JOIN search_entries AS entry ON entry.rowid >= held.number << 31 AND entry.rowid < held.number + 1 << 31
WHERE typeof(entry.seq) <> 'integer' OR typeof(entry.length) <> 'integer' OR typeof(entry.sent_at) <> 'integer'
   OR entry.seq < 0 OR entry.length < 0
UNION
SELECT conversation_id FROM meanings
WHERE typeof(vector) <> 'blob' OR typeof(seq) <> 'integer' OR typeof(sent_at) <> 'integer'
   OR (CAST(:vector_bytes AS INTEGER) IS NOT NULL AND length(vector) <> CAST(:vector_bytes AS INTEGER))
UNION
SELECT conversation_id FROM meanings
GROUP BY conversation_id, model
HAVING MIN(length(vector)) <> MAX(length(vector))

-- name: damaged_entries [postgres]
-- by group: groups[0]
-- As above. Its columns hold what they are declared for.
SELECT conversation_id FROM search_progress
WHERE group_id = ANY(:group_ids::text[])
  AND (indexed_seq < 0 OR embedded_seq < 0 OR :vector_bytes::bigint < 0 OR scope !~ '^[0-9a-f]{8}$')
