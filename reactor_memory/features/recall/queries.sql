-- The SQL of recall. See core/log/queries.sql.

-- name: recall_range
SELECT start_seq, end_seq, number FROM recall_ranges
WHERE group_id = :group_id AND conversation_id = :conversation_id AND version = :version

-- name: recall_range_of_any_version
SELECT start_seq, end_seq, number FROM recall_ranges
WHERE group_id = :group_id AND conversation_id = :conversation_id

-- name: recall_ranges
-- `conversations` is a JSON list of ids.
SELECT conversation_id, start_seq, end_seq, number FROM recall_ranges
WHERE group_id = :group_id AND version = :version
  AND conversation_id IN (SELECT value FROM json_each(:conversations))

-- name: recall_ranges [postgres]
SELECT conversation_id, start_seq, end_seq, number FROM recall_ranges
WHERE group_id = :group_id AND version = :version
  AND conversation_id = ANY(ARRAY(SELECT json_array_elements_text(:conversations::json)))

-- name: store_recall_range
-- Each conversation has its own number, which no passage has, even if those of a range are damaged.
INSERT INTO recall_ranges (group_id, conversation_id, start_seq, end_seq, number, version)
SELECT :group_id, :conversation_id, :start_seq, :end_seq,
       MAX(COALESCE(MAX(number), 0), COALESCE((SELECT MAX(place) >> 40 FROM recall_passages), 0)) + 1, :version
FROM recall_ranges
WHERE typeof(number) = 'integer'
ON CONFLICT (group_id, conversation_id) DO UPDATE SET end_seq = excluded.end_seq
RETURNING number

-- name: store_recall_range [postgres]
-- Here the terms have the key of their conversation, so it needs no number.
INSERT INTO recall_ranges (group_id, conversation_id, start_seq, end_seq, number, version)
VALUES (:group_id, :conversation_id, :start_seq, :end_seq, 0, :version)
ON CONFLICT (group_id, conversation_id) DO UPDATE SET end_seq = excluded.end_seq
RETURNING number

-- name: shorten_recall_range
UPDATE recall_ranges SET end_seq = :end_seq WHERE group_id = :group_id AND conversation_id = :conversation_id

-- name: delete_recall_range
DELETE FROM recall_ranges WHERE group_id = :group_id AND conversation_id = :conversation_id

-- name: recall_numbers_of_nothing
-- Numbers of passages whose range has another one by damage.
SELECT DISTINCT place >> 40 FROM recall_passages WHERE place >> 40 NOT IN (SELECT number FROM recall_ranges)

-- name: recall_numbers_of_nothing [postgres]
SELECT NULL WHERE false

-- name: turn_start
SELECT MAX(seq) FROM messages
WHERE group_id = :group_id AND conversation_id = :conversation_id AND role = 'user' AND seq <= :seq

-- name: insert_recall_passage
-- `place` begins with the number of the conversation.
INSERT INTO recall_passages (place, end_seq, start_at, end_at, call_seq, tokens, length)
VALUES (:place, :end_seq, :start_at, :end_at, :call_seq, :tokens, :length)

-- name: insert_recall_passage [postgres]
INSERT INTO recall_passages
    (group_id, conversation_id, place, end_seq, start_at, end_at, call_seq, tokens, length, terms)
VALUES (:group_id, :conversation_id, :place, :end_seq, :start_at, :end_at, :call_seq, :tokens, :length,
        array_to_tsvector(string_to_array(:terms, ' ')))

-- name: index_recall_passage
INSERT INTO recall_terms (rowid, terms) VALUES (:place, :terms)

-- name: index_recall_passage [postgres]
SELECT 1

-- name: merge_some_of_index
-- Each commit adds a part to the full text, and every search looks into each part: four of a size become one, as far as
-- so many pages go.
INSERT INTO recall_terms (recall_terms, rank) VALUES ('merge', 64)

-- name: merge_some_of_index [postgres]
SELECT 1

-- name: unindex_recall_passages
-- What the full text forgets has to be told to it in the same words: those of a conversation stand between two words.
INSERT INTO recall_terms (recall_terms, rowid, terms)
SELECT 'delete', doc, group_concat(term, ' ') FROM recall_postings
WHERE term >= :first_term AND term < :last_term AND doc BETWEEN :first AND :last
GROUP BY doc

-- name: unindex_recall_passages [postgres]
SELECT 1

-- name: delete_recall_passages
DELETE FROM recall_passages WHERE place BETWEEN :first AND :last

-- name: delete_recall_passages [postgres]
DELETE FROM recall_passages
WHERE group_id = :group_id AND conversation_id = :conversation_id AND place BETWEEN :first AND :last

-- part: wanted_places
-- Once for each: where places are compared, JSON would be read again for each of them.
WITH wanted AS MATERIALIZED (
    SELECT key, json_extract(value, '$[0]') AS asked, json_extract(value, '$[1]') AS first,
           json_extract(value, '$[2]') AS last
    FROM json_each(:terms)
)

-- part: wanted_places_of_postgres
SELECT (wanted.number - 1)::int,
       (SELECT json_agg(hit.place)::text FROM (
            SELECT place FROM recall_passages
            WHERE group_id = :group_id AND conversation_id = wanted.term ->> 3
              AND terms @@ (wanted.term ->> 0)::tsquery
              AND place BETWEEN (wanted.term ->> 1)::bigint AND (wanted.term ->> 2)::bigint
            ORDER BY place DESC LIMIT :limit) AS hit)
FROM json_array_elements(:terms::json) WITH ORDINALITY AS wanted (term, number)

-- name: recall_places
-- `terms` is JSON: lists of what the engine is asked for, and the first and the last place where it counts. Where each
-- stands, newest first, at most `limit` of them, as JSON.
-- include: wanted_places
SELECT key,
       (SELECT json_group_array(place) FROM (
            SELECT rowid AS place FROM recall_terms
            WHERE recall_terms MATCH asked AND rowid BETWEEN first AND last
            ORDER BY rowid DESC LIMIT :limit))
FROM wanted

-- name: recall_places [postgres]
-- include: wanted_places_of_postgres

-- name: recall_places_among_few
-- The same where one of the words has at most `limit` places between the two. Full text of SQLite skips what lies
-- between these only when it goes forward; backward it reads all postings of the other word.
-- include: wanted_places
SELECT key,
       (SELECT json_group_array(place) FROM (
            SELECT rowid AS place FROM recall_terms
            WHERE recall_terms MATCH asked AND rowid BETWEEN first AND last
            ORDER BY rowid LIMIT :limit))
FROM wanted

-- name: recall_places_among_few [postgres]
-- include: wanted_places_of_postgres

-- name: recall_passages_at
-- `places` is a JSON list: the passages there, and of the first `near` of them those right before and behind, each with
-- the number of its conversation.
WITH wanted (place) AS (
    SELECT value FROM json_each(:places)
    UNION
    SELECT (SELECT MAX(place) FROM recall_passages WHERE place < value AND place >= value >> 40 << 40)
    FROM json_each(:places) WHERE key < :near
    UNION
    SELECT (SELECT MIN(place) FROM recall_passages WHERE place > value AND place < (value >> 40) + 1 << 40)
    FROM json_each(:places) WHERE key < :near
)
SELECT place >> 40, place, end_seq, start_at, end_at, call_seq, tokens, length
FROM wanted JOIN recall_passages USING (place)

-- name: recall_passages_at [postgres]
-- `conversations` says for each place of which conversation it is.
WITH given AS (
    SELECT place::bigint, conversation_id, number
    FROM ROWS FROM (json_array_elements_text(:places::json), json_array_elements_text(:conversations::json))
         WITH ORDINALITY AS given (place, conversation_id, number)
), wanted AS (
    SELECT place, conversation_id FROM given
    UNION
    SELECT (SELECT MAX(passage.place) FROM recall_passages AS passage
            WHERE passage.group_id = :group_id AND passage.conversation_id = given.conversation_id
              AND passage.place < given.place),
           conversation_id
    FROM given WHERE number <= :near
    UNION
    SELECT (SELECT MIN(passage.place) FROM recall_passages AS passage
            WHERE passage.group_id = :group_id AND passage.conversation_id = given.conversation_id
              AND passage.place > given.place),
           conversation_id
    FROM given WHERE number <= :near
)
SELECT conversation_id, place, end_seq, start_at, end_at, call_seq, tokens, length
FROM wanted JOIN recall_passages USING (conversation_id, place)
WHERE group_id = :group_id

-- name: recall_state
-- How many conversations of these groups are indexed, and how many of their messages.
SELECT COUNT(*), CAST(COALESCE(SUM(end_seq - start_seq + 1), 0) AS BIGINT) FROM recall_ranges
WHERE group_id IN (SELECT json_extract(value, '$[0]') FROM json_each(:groups))

-- name: recall_state [postgres]
-- by group: groups[0]
SELECT COUNT(*), CAST(COALESCE(SUM(end_seq - start_seq + 1), 0) AS BIGINT) FROM recall_ranges
WHERE group_id = ANY(:group_ids::text[])

-- name: merge_index
-- The full text of SQLite keeps deleted terms until its parts are merged: so many pages at a time.
INSERT INTO recall_terms (recall_terms, rank) VALUES ('merge', -500)

-- name: merge_index [postgres]
SELECT 1

-- name: messages_in_view
-- `places` is JSON: lists of conversation and seq, and `hidden_until` as in `messages_oldest_first`. A posted summary is no
-- answer.
SELECT message.conversation_id, message.seq
FROM json_each(:places) AS place
CROSS JOIN messages AS message
WHERE message.group_id = :group_id AND message.conversation_id = json_extract(place.value, '$[0]')
  AND message.seq = json_extract(place.value, '$[1]') AND message.role <> 'summary'
  AND (message.state IS NULL
       OR (message.state IN ('archived', 'cleared') AND message.archived_until > json_extract(place.value, '$[2]')))

-- name: messages_in_view [postgres]
SELECT message.conversation_id, message.seq
FROM json_array_elements(:places::json) AS place
CROSS JOIN messages AS message
WHERE message.group_id = :group_id AND message.conversation_id = place ->> 0 AND message.seq = (place ->> 1)::bigint
  AND message.role <> 'summary'
  AND (message.state IS NULL OR (message.state IN ('archived', 'cleared') AND message.archived_until > (place ->> 2)::bigint))

-- name: damaged_recall_ranges
-- The conversations of these groups whose range or passages hold what this library never wrote.
WITH held AS MATERIALIZED (
    SELECT * FROM recall_ranges WHERE group_id IN (SELECT json_extract(value, '$[0]') FROM json_each(:groups))
)
SELECT conversation_id FROM held
WHERE typeof(start_seq) <> 'integer' OR typeof(end_seq) <> 'integer' OR typeof(number) <> 'integer'
   OR typeof(version) <> 'integer' OR start_seq <= 0 OR end_seq < start_seq - 1 OR number < 0
UNION
SELECT held.conversation_id
FROM held
CROSS JOIN recall_passages AS passage ON passage.place >= held.number << 40 AND passage.place < held.number + 1 << 40
WHERE typeof(passage.end_seq) <> 'integer' OR typeof(start_at) <> 'integer' OR typeof(end_at) <> 'integer'
   OR typeof(call_seq) <> 'integer' OR typeof(tokens) <> 'integer' OR typeof(length) <> 'integer'
   OR passage.end_seq < 0 OR start_at < 0 OR end_at < 0 OR call_seq < 0 OR tokens < 0 OR length < 0

-- name: damaged_recall_ranges [postgres]
-- by group: groups[0]
SELECT conversation_id FROM recall_ranges
WHERE group_id = ANY(:group_ids::text[]) AND (start_seq <= 0 OR end_seq < start_seq - 1 OR number < 0)
UNION
SELECT conversation_id FROM recall_passages
WHERE group_id = ANY(:group_ids::text[])
  AND (end_seq < 0 OR start_at < 0 OR end_at < 0 OR call_seq < 0 OR tokens < 0 OR length < 0)
