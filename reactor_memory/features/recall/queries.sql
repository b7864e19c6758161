-- The SQL of recall. See core/log/queries.sql.

-- name: recall_range
SELECT start_seq, end_seq FROM recall_ranges WHERE group_id = :group_id AND conversation_id = :conversation_id

-- name: recall_ranges
-- `conversations` is a JSON list of ids.
SELECT conversation_id, start_seq, end_seq FROM recall_ranges
WHERE group_id = :group_id AND conversation_id IN (SELECT value FROM json_each(:conversations))

-- name: recall_ranges [postgres]
SELECT conversation_id, start_seq, end_seq FROM recall_ranges
WHERE group_id = :group_id AND conversation_id = ANY(ARRAY(SELECT json_array_elements_text(:conversations::json)))

-- name: store_recall_range
INSERT INTO recall_ranges (group_id, conversation_id, start_seq, end_seq)
VALUES (:group_id, :conversation_id, :start_seq, :end_seq)
ON CONFLICT (group_id, conversation_id) DO UPDATE SET end_seq = excluded.end_seq

-- name: delete_recall_range
DELETE FROM recall_ranges WHERE group_id = :group_id AND conversation_id = :conversation_id

-- name: insert_recall_entry
INSERT INTO recall_entries (group_id, conversation_id, seq, anchor, turn_start, turn_end, length, terms)
VALUES (:group_id, :conversation_id, :seq, :anchor, :turn_start, :turn_end, :length, :terms)

-- name: insert_recall_entry [postgres]
INSERT INTO recall_entries (group_id, conversation_id, seq, anchor, turn_start, turn_end, length, terms)
VALUES (:group_id, :conversation_id, :seq, :anchor, :turn_start, :turn_end, :length,
        array_to_tsvector(string_to_array(:terms, ' ')))

-- name: recall_frequencies
-- `terms` is JSON: lists of what matches a term behind the key of any of the conversations, its weight, and the term.
-- How many entries hold each term.
-- across groups, were it not for the key in the terms: reading the group of every hit would cost ten times as much
SELECT wanted.key, COUNT(*)
FROM json_each(:terms) AS wanted
CROSS JOIN recall_entries
WHERE recall_entries MATCH json_extract(wanted.value, '$[0]')
GROUP BY wanted.key

-- name: recall_frequencies [postgres]
-- `any_term` is the query for all terms at once: the index is asked for it alone, each term only of what it found.
WITH needed AS MATERIALIZED (
    SELECT part ->> 0 AS conversation_id, (part ->> 1)::bigint AS start_seq, (part ->> 2)::bigint AS end_seq,
           part ->> 3 AS key
    FROM json_array_elements(:parts::json) AS part
), hits AS MATERIALIZED (
    SELECT needed.key, seq, anchor, turn_start, turn_end, length, terms
    FROM recall_entries
    JOIN needed ON needed.conversation_id = recall_entries.conversation_id
    WHERE terms @@ :any_term::text::tsquery AND group_id = :group_id
)
SELECT wanted.number - 1, COUNT(*)
FROM hits
JOIN json_array_elements(:terms::json) WITH ORDINALITY AS wanted (term, number)
  ON hits.terms @@ quote_literal(hits.key || (wanted.term ->> 2))::tsquery
GROUP BY wanted.number

-- name: recall_search
-- The entries of whole conversations whose terms weigh most together: only of these more than the number is read.
-- `parts` is JSON: lists of conversation, first and last seq, and key.
SELECT entry.seq, entry.anchor, entry.turn_start, entry.turn_end, entry.length, best.numbers
FROM (
    SELECT recall_entries.rowid AS id, SUM(json_extract(wanted.value, '$[1]')) AS weight,
           GROUP_CONCAT(wanted.key) AS numbers
    FROM json_each(:terms) AS wanted
    CROSS JOIN recall_entries
    WHERE recall_entries MATCH json_extract(wanted.value, '$[0]')
    GROUP BY recall_entries.rowid
    ORDER BY weight DESC, id DESC
    LIMIT :limit
) AS best
CROSS JOIN recall_entries AS entry ON entry.rowid = best.id
WHERE entry.group_id = :group_id
  AND entry.conversation_id IN (SELECT json_extract(value, '$[0]') FROM json_each(:parts))

-- name: recall_search [postgres]
-- include: recall_best

-- name: recall_best [postgres]
WITH needed AS MATERIALIZED (
    SELECT part ->> 0 AS conversation_id, (part ->> 1)::bigint AS start_seq, (part ->> 2)::bigint AS end_seq,
           part ->> 3 AS key
    FROM json_array_elements(:parts::json) AS part
), hits AS MATERIALIZED (
    SELECT needed.key, seq, anchor, turn_start, turn_end, length, terms
    FROM recall_entries
    JOIN needed ON needed.conversation_id = recall_entries.conversation_id
    WHERE terms @@ :any_term::text::tsquery AND group_id = :group_id
      AND seq >= needed.start_seq AND seq <= needed.end_seq
)
SELECT seq, anchor, turn_start, turn_end, length, STRING_AGG((wanted.number - 1)::text, ',')
FROM hits
JOIN json_array_elements(:terms::json) WITH ORDINALITY AS wanted (term, number)
  ON hits.terms @@ quote_literal(hits.key || (wanted.term ->> 2))::tsquery
GROUP BY hits.key, seq, anchor, turn_start, turn_end, length
ORDER BY SUM((wanted.term ->> 1)::bigint) DESC, seq DESC, anchor
LIMIT :limit

-- name: recall_search_within
-- As `recall_search`, where only parts of conversations count: the limit must not be used up by the rest of them.
WITH needed AS MATERIALIZED (
    SELECT json_extract(value, '$[0]') AS conversation_id, json_extract(value, '$[1]') AS start_seq,
           json_extract(value, '$[2]') AS end_seq
    FROM json_each(:parts)
)
SELECT seq, anchor, turn_start, turn_end, length, GROUP_CONCAT(number)
FROM (
    SELECT recall_entries.rowid AS id, recall_entries.*, wanted.key AS number,
           json_extract(wanted.value, '$[1]') AS weight
    FROM json_each(:terms) AS wanted
    CROSS JOIN recall_entries
    WHERE recall_entries MATCH json_extract(wanted.value, '$[0]')
) AS hit
CROSS JOIN needed ON needed.conversation_id = hit.conversation_id
WHERE group_id = :group_id AND seq >= needed.start_seq AND seq <= needed.end_seq
GROUP BY id
ORDER BY SUM(weight) DESC, id DESC
LIMIT :limit

-- name: recall_search_within [postgres]
-- include: recall_best

-- name: delete_recall_entries
DELETE FROM recall_entries
WHERE group_id = :group_id AND rowid IN (
    SELECT rowid FROM recall_entries
    WHERE recall_entries MATCH :key AND group_id = :group_id AND conversation_id = :conversation_id
      AND seq >= :start_seq)

-- name: delete_recall_entries [postgres]
DELETE FROM recall_entries
WHERE group_id = :group_id AND conversation_id = :conversation_id AND seq >= :start_seq

-- name: recall_state
-- How many conversations are indexed, and how many of their messages.
-- across groups
SELECT COUNT(*), CAST(COALESCE(SUM(end_seq - start_seq + 1), 0) AS BIGINT) FROM recall_ranges

-- name: merge_index
-- The full text of SQLite keeps deleted terms until its parts are merged: so many pages at a time.
-- across groups
INSERT INTO recall_entries (recall_entries, rank) VALUES ('merge', -500)

-- name: merge_index [postgres]
-- across groups
SELECT 1

-- name: turns_of_messages
-- `places` is JSON: lists of conversation and seq, first and last seq of the part of the branch that holds it, and
-- `hidden_until` as in `messages_oldest_first`. A posted summary comes back in no turn.
SELECT message.conversation_id, message.seq,
       COALESCE((SELECT seq FROM messages
                 WHERE group_id = :group_id AND conversation_id = message.conversation_id AND role = 'user'
                   AND seq >= json_extract(place.value, '$[2]') AND seq <= message.seq
                 ORDER BY seq DESC LIMIT 1), json_extract(place.value, '$[2]')),
       COALESCE((SELECT seq - 1 FROM messages
                 WHERE group_id = :group_id AND conversation_id = message.conversation_id AND role = 'user'
                   AND seq > message.seq AND seq <= json_extract(place.value, '$[3]')
                 ORDER BY seq LIMIT 1), json_extract(place.value, '$[3]'))
FROM json_each(:places) AS place
CROSS JOIN messages AS message
WHERE message.group_id = :group_id AND message.conversation_id = json_extract(place.value, '$[0]')
  AND message.seq = json_extract(place.value, '$[1]') AND message.role <> 'summary'
  AND (message.state IS NULL
       OR (message.state IN ('archived', 'cleared') AND message.archived_until > json_extract(place.value, '$[4]')))

-- name: turns_of_messages [postgres]
SELECT message.conversation_id, message.seq,
       COALESCE((SELECT seq FROM messages
                 WHERE group_id = :group_id AND conversation_id = message.conversation_id AND role = 'user'
                   AND seq >= (place ->> 2)::bigint AND seq <= message.seq
                 ORDER BY seq DESC LIMIT 1), (place ->> 2)::bigint),
       COALESCE((SELECT seq - 1 FROM messages
                 WHERE group_id = :group_id AND conversation_id = message.conversation_id AND role = 'user'
                   AND seq > message.seq AND seq <= (place ->> 3)::bigint
                 ORDER BY seq LIMIT 1), (place ->> 3)::bigint)
FROM json_array_elements(:places::json) AS place
CROSS JOIN messages AS message
WHERE message.group_id = :group_id AND message.conversation_id = place ->> 0 AND message.seq = (place ->> 1)::bigint
  AND message.role <> 'summary'
  AND (message.state IS NULL OR (message.state IN ('archived', 'cleared') AND message.archived_until > (place ->> 4)::bigint))
