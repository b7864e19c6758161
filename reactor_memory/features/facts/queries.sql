-- The SQL of facts. See core/log/queries.sql.

-- name: segments
SELECT conversation_id, start_seq, end_seq, source_hash, summarizer, prompt_version, narrative, headline,
       tokens_read, tokens_written, created_at, stale
FROM segments
WHERE group_id = :group_id AND conversation_id = :conversation_id
ORDER BY end_seq

-- name: segments_of_branch
-- `parts` is JSON: lists of conversation and the last seq that counts.
SELECT conversation_id, start_seq, end_seq, source_hash, summarizer, prompt_version, narrative, headline,
       tokens_read, tokens_written, created_at, stale
FROM json_each(:parts) AS wanted
CROSS JOIN segments
WHERE group_id = :group_id AND conversation_id = json_extract(wanted.value, '$[0]')
  AND end_seq <= json_extract(wanted.value, '$[1]')

-- name: segments_of_branch [postgres]
SELECT conversation_id, start_seq, end_seq, source_hash, summarizer, prompt_version, narrative, headline,
       tokens_read, tokens_written, created_at, stale
FROM json_array_elements(:parts::json) AS wanted
CROSS JOIN segments
WHERE group_id = :group_id AND conversation_id = wanted ->> 0 AND end_seq <= (wanted ->> 1)::bigint

-- name: facts_of_branch
SELECT conversation_id, end_seq, records
FROM json_each(:parts) AS wanted
CROSS JOIN facts
WHERE group_id = :group_id AND conversation_id = json_extract(wanted.value, '$[0]')
  AND end_seq <= json_extract(wanted.value, '$[1]')
ORDER BY end_seq

-- name: facts_of_branch [postgres]
SELECT conversation_id, end_seq, records
FROM json_array_elements(:parts::json) AS wanted
CROSS JOIN facts
WHERE group_id = :group_id AND conversation_id = wanted ->> 0 AND end_seq <= (wanted ->> 1)::bigint
ORDER BY end_seq

-- name: first_segments
-- Of each conversation that has any.
SELECT conversation_id, start_seq, end_seq
FROM json_each(:parts) AS wanted
CROSS JOIN segments
WHERE group_id = :group_id AND conversation_id = json_extract(wanted.value, '$[0]')
  AND end_seq = (SELECT MIN(first.end_seq) FROM segments AS first
                 WHERE first.group_id = :group_id AND first.conversation_id = json_extract(wanted.value, '$[0]'))

-- name: first_segments [postgres]
SELECT conversation_id, start_seq, end_seq
FROM json_array_elements(:parts::json) AS wanted
CROSS JOIN segments
WHERE group_id = :group_id AND conversation_id = wanted ->> 0
  AND end_seq = (SELECT MIN(first.end_seq) FROM segments AS first
                 WHERE first.group_id = :group_id AND first.conversation_id = wanted ->> 0)

-- name: facts_about
-- `anchors` is a JSON list of numbers made of names: the facts of the segments that state something about one of them.
SELECT conversation_id, end_seq, records
FROM json_each(:parts) AS wanted
CROSS JOIN facts
WHERE group_id = :group_id AND conversation_id = json_extract(wanted.value, '$[0]')
  AND end_seq IN (SELECT named.end_seq FROM fact_anchors AS named
                  WHERE named.group_id = :group_id AND named.conversation_id = json_extract(wanted.value, '$[0]')
                    AND named.anchor IN (SELECT value FROM json_each(:anchors))
                    AND named.end_seq <= json_extract(wanted.value, '$[1]'))
ORDER BY end_seq

-- name: facts_about [postgres]
SELECT conversation_id, end_seq, records
FROM json_array_elements(:parts::json) AS wanted
CROSS JOIN facts
WHERE group_id = :group_id AND conversation_id = wanted ->> 0
  AND end_seq IN (SELECT named.end_seq FROM fact_anchors AS named
                  WHERE named.group_id = :group_id AND named.conversation_id = wanted ->> 0
                    AND named.anchor = ANY(ARRAY(SELECT json_array_elements_text(:anchors::json)::bigint))
                    AND named.end_seq <= (wanted ->> 1)::bigint)
ORDER BY end_seq

-- name: corrections_about
-- `anchors` is a JSON list of names.
SELECT ordinal, anchor, key, value, seq, source_seq, author_id, created_at FROM fact_corrections
WHERE group_id = :group_id AND conversation_id = :conversation_id
  AND anchor IN (SELECT value FROM json_each(:anchors))
ORDER BY ordinal

-- name: corrections_about [postgres]
SELECT ordinal, anchor, key, value, seq, source_seq, author_id, created_at FROM fact_corrections
WHERE group_id = :group_id AND conversation_id = :conversation_id
  AND anchor = ANY(ARRAY(SELECT json_array_elements_text(:anchors::json)))
ORDER BY ordinal

-- name: asked_after
-- `wanted` is JSON: lists of conversation and seq. Where the user speaks again behind each.
SELECT json_extract(wanted.value, '$[1]'),
       (SELECT message.seq FROM messages AS message
        WHERE message.group_id = :group_id AND message.conversation_id = json_extract(wanted.value, '$[0]')
          AND message.seq > json_extract(wanted.value, '$[1]') AND message.role = 'user'
        ORDER BY message.seq LIMIT 1)
FROM json_each(:wanted) AS wanted

-- name: asked_after [postgres]
SELECT (wanted ->> 1)::bigint,
       (SELECT message.seq FROM messages AS message
        WHERE message.group_id = :group_id AND message.conversation_id = wanted ->> 0
          AND message.seq > (wanted ->> 1)::bigint AND message.role = 'user'
        ORDER BY message.seq LIMIT 1)
FROM json_array_elements(:wanted::json) AS wanted

-- name: store_segment
-- Gives no row if the segment is there and neither stale (1) nor outdated (2) nor waits (3), or has other borders.
INSERT INTO segments (group_id, conversation_id, start_seq, end_seq, source_hash, summarizer, prompt_version,
                      narrative, headline, tokens_read, tokens_written, created_at, stale)
VALUES (:group_id, :conversation_id, :start_seq, :end_seq, :source_hash, :summarizer, :prompt_version,
        :narrative, :headline, :tokens_read, :tokens_written, :created_at, :stale)
ON CONFLICT (group_id, conversation_id, end_seq) DO UPDATE
SET source_hash = excluded.source_hash, summarizer = excluded.summarizer, prompt_version = excluded.prompt_version,
    narrative = excluded.narrative, headline = excluded.headline, tokens_read = excluded.tokens_read,
    tokens_written = excluded.tokens_written, created_at = excluded.created_at, stale = excluded.stale
WHERE segments.stale > 0 AND segments.start_seq = excluded.start_seq
RETURNING end_seq

-- name: blank_segment
UPDATE segments SET stale = 1, source_hash = '', narrative = '', headline = ''
WHERE group_id = :group_id AND conversation_id = :conversation_id AND end_seq = :end_seq

-- name: delete_facts_of_segment
DELETE FROM facts WHERE group_id = :group_id AND conversation_id = :conversation_id AND end_seq = :end_seq
RETURNING end_seq

-- name: delete_anchors_of_segment
DELETE FROM fact_anchors WHERE group_id = :group_id AND conversation_id = :conversation_id AND end_seq = :end_seq

-- name: store_facts
INSERT INTO facts (group_id, conversation_id, end_seq, records)
VALUES (:group_id, :conversation_id, :end_seq, :records)
ON CONFLICT (group_id, conversation_id, end_seq) DO UPDATE SET records = excluded.records

-- name: store_anchors
-- `anchors` is a JSON list of numbers.
INSERT INTO fact_anchors (group_id, conversation_id, anchor, end_seq)
SELECT :group_id, :conversation_id, value, :end_seq FROM json_each(:anchors) WHERE true
ON CONFLICT (group_id, conversation_id, anchor, end_seq) DO NOTHING

-- name: store_anchors [postgres]
INSERT INTO fact_anchors (group_id, conversation_id, anchor, end_seq)
SELECT :group_id, :conversation_id, value::bigint, :end_seq
FROM json_array_elements_text(:anchors::json) AS each (value)
ON CONFLICT (group_id, conversation_id, anchor, end_seq) DO NOTHING

-- name: summary_head
SELECT covered_seq, version, epoch, truncated, stale_ranges, created_at, updated_at, narrative
FROM conversation_summaries
WHERE group_id = :group_id AND conversation_id = :conversation_id

-- name: summary
SELECT covered_seq, version, epoch, truncated, stale_ranges, created_at, updated_at, narrative, facts_json, spare_json,
       lines_json
FROM conversation_summaries
WHERE group_id = :group_id AND conversation_id = :conversation_id

-- name: store_summary
INSERT INTO conversation_summaries (group_id, conversation_id, covered_seq, version, epoch, fence, truncated,
                                    stale_ranges, created_at, updated_at, narrative, facts_json, spare_json,
                                    lines_json)
VALUES (:group_id, :conversation_id, :covered_seq, :version, :epoch, :fence, :truncated,
        :stale_ranges, :created_at, :updated_at, :narrative, :facts_json, :spare_json, :lines_json)
ON CONFLICT (group_id, conversation_id) DO UPDATE
SET covered_seq = excluded.covered_seq, version = excluded.version, epoch = excluded.epoch, fence = excluded.fence,
    truncated = excluded.truncated, stale_ranges = excluded.stale_ranges, created_at = excluded.created_at,
    updated_at = excluded.updated_at, narrative = excluded.narrative, facts_json = excluded.facts_json,
    spare_json = excluded.spare_json, lines_json = excluded.lines_json

-- name: delete_segments
DELETE FROM segments WHERE group_id = :group_id AND conversation_id = :conversation_id

-- name: delete_facts
DELETE FROM facts WHERE group_id = :group_id AND conversation_id = :conversation_id

-- name: delete_anchors
DELETE FROM fact_anchors WHERE group_id = :group_id AND conversation_id = :conversation_id

-- name: delete_summary
DELETE FROM conversation_summaries WHERE group_id = :group_id AND conversation_id = :conversation_id

-- name: add_spending
INSERT INTO summary_spending (group_id, conversation_id, day, tokens)
VALUES (:group_id, :conversation_id, :day, :tokens)
ON CONFLICT (group_id, conversation_id, day) DO UPDATE SET tokens = summary_spending.tokens + excluded.tokens

-- name: spending
-- Of the conversation in all, of everybody on one day, and, if that is asked for (:of_owner 1), on that day of whoever
-- owns the conversation. The cap of a day bounds how many rows that reads.
-- across groups
SELECT CAST(COALESCE(SUM(tokens), 0) AS BIGINT),
       (SELECT CAST(COALESCE(SUM(other.tokens), 0) AS BIGINT) FROM summary_spending AS other WHERE other.day = :day),
       CASE WHEN CAST(:of_owner AS BIGINT) = 1 THEN (
           SELECT CAST(COALESCE(SUM(spent.tokens), 0) AS BIGINT)
           FROM summary_spending AS spent
           JOIN conversations AS other ON other.group_id = spent.group_id
                AND other.conversation_id = spent.conversation_id
           JOIN conversations AS own ON own.group_id = :group_id AND own.conversation_id = :conversation_id
                AND own.owner_id = other.owner_id
           WHERE spent.day = :day) END
FROM summary_spending
WHERE group_id = :group_id AND conversation_id = :conversation_id


-- The recall index. A term in it begins with the key of its conversation, so that a search meets no other conversation,
-- and every entry holds that key alone, too: the way to all entries of a conversation.

-- name: unarchive_messages
UPDATE messages
SET archived_until = CASE WHEN state = 'cleared' THEN archived_until END, archived_by = NULL,
    state = CASE WHEN state = 'cleared' THEN state END
WHERE group_id = :group_id AND conversation_id = :conversation_id
  AND seq >= :start_seq AND seq <= :end_seq AND state IN ('archived', 'cleared') AND archived_by = :summary_id

-- name: anything_withheld
-- `parts` is JSON: lists of conversation, first and last seq.
SELECT 1 FROM fact_corrections WHERE group_id = :group_id AND conversation_id = :conversation_id
UNION ALL
SELECT 1 FROM json_each(:parts) AS part
CROSS JOIN messages AS message INDEXED BY messages_archived
WHERE message.group_id = :group_id AND message.conversation_id = json_extract(part.value, '$[0]')
  AND message.seq >= json_extract(part.value, '$[1]') AND message.seq <= json_extract(part.value, '$[2]')
  AND message.archived_until IS NOT NULL
LIMIT 1

-- name: anything_withheld [postgres]
SELECT 1 FROM fact_corrections WHERE group_id = :group_id AND conversation_id = :conversation_id
UNION ALL
SELECT 1 FROM json_array_elements(:parts::json) AS part
CROSS JOIN messages AS message
WHERE message.group_id = :group_id AND message.conversation_id = part ->> 0
  AND message.seq >= (part ->> 1)::bigint AND message.seq <= (part ->> 2)::bigint
  AND message.archived_until IS NOT NULL
LIMIT 1

-- name: corrections
SELECT ordinal, anchor, key, value, seq, source_seq, author_id, created_at FROM fact_corrections
WHERE group_id = :group_id AND conversation_id = :conversation_id
ORDER BY ordinal

-- name: insert_correction
INSERT INTO fact_corrections (group_id, conversation_id, ordinal, anchor, key, value, seq, source_seq, author_id,
                              created_at)
SELECT :group_id, :conversation_id, COALESCE(MAX(ordinal), 0) + 1, :anchor, :key, :value, :seq, :source_seq,
       :author_id, :now
FROM fact_corrections
WHERE group_id = :group_id AND conversation_id = :conversation_id

-- name: insert_correction [postgres]
INSERT INTO fact_corrections (group_id, conversation_id, ordinal, anchor, key, value, seq, source_seq, author_id,
                              created_at)
SELECT :group_id::text, :conversation_id::text, COALESCE(MAX(ordinal), 0) + 1, :anchor::text, :key::text,
       :value::text, :seq::bigint, :source_seq::bigint, :author_id::text, :now::bigint
FROM fact_corrections
WHERE group_id = :group_id AND conversation_id = :conversation_id

-- name: copy_corrections
-- What a fork takes along: what was said before its first message.
INSERT INTO fact_corrections (group_id, conversation_id, ordinal, anchor, key, value, seq, source_seq, author_id,
                              created_at)
SELECT group_id, :fork_id, ordinal, anchor, key, value, seq, source_seq, author_id, created_at
FROM fact_corrections
WHERE group_id = :group_id AND conversation_id = :conversation_id
  AND seq < :at_seq

-- name: delete_corrections
DELETE FROM fact_corrections WHERE group_id = :group_id AND conversation_id = :conversation_id

-- name: delete_corrections_of_messages
DELETE FROM fact_corrections
WHERE group_id = :group_id AND conversation_id = :conversation_id
  AND source_seq >= :start_seq AND source_seq <= :end_seq
RETURNING ordinal

-- name: mark_outdated
UPDATE segments SET stale = 2
WHERE group_id = :group_id AND conversation_id = :conversation_id AND stale IN (0, 3)
RETURNING end_seq

-- name: wait_no_more
UPDATE segments SET stale = 0
WHERE group_id = :group_id AND conversation_id = :conversation_id AND stale = 3
  AND start_seq >= :start_seq AND end_seq <= :end_seq

-- name: ranges_to_read
-- Those that are outdated (2), or that wait (3).
SELECT start_seq, end_seq FROM segments
WHERE group_id = :group_id AND conversation_id = :conversation_id AND stale = :stale
ORDER BY end_seq

-- name: import_correction
INSERT INTO fact_corrections (group_id, conversation_id, ordinal, anchor, key, value, seq, source_seq, author_id,
                              created_at)
VALUES (:group_id, :conversation_id, :ordinal, :anchor, :key, :value, :seq, :source_seq, :author_id, :now)
