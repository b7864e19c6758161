-- The SQL of the stores. See queries.py for the format.
-- Ids are TEXT, times BIGINT microseconds UTC, flags 0 or 1, JSON is TEXT and NULL when empty.
-- Every statement names the group it works on; what must look across groups says so with `-- across groups`.


-- Conversations

-- name: session
SELECT conversation_id, group_id, owner_id, last_seq, path, created_at, updated_at, title,
       forked_from_id, forked_at_seq, deleted_at
FROM conversations
WHERE group_id = :group_id AND conversation_id = :conversation_id

-- name: lock_session
SELECT conversation_id, group_id, owner_id, last_seq, path, created_at, updated_at, title,
       forked_from_id, forked_at_seq, deleted_at
FROM conversations
WHERE group_id = :group_id AND conversation_id = :conversation_id
-- name: lock_session [postgres]
SELECT conversation_id, group_id, owner_id, last_seq, path, created_at, updated_at, title,
       forked_from_id, forked_at_seq, deleted_at
FROM conversations
WHERE group_id = :group_id AND conversation_id = :conversation_id
FOR UPDATE

-- name: lock_group
SELECT conversation_id, group_id, owner_id, last_seq, path, created_at, updated_at, title,
       forked_from_id, forked_at_seq, deleted_at
FROM conversations
WHERE group_id = :group_id
ORDER BY created_at, conversation_id
-- name: lock_group [postgres]
SELECT conversation_id, group_id, owner_id, last_seq, path, created_at, updated_at, title,
       forked_from_id, forked_at_seq, deleted_at
FROM conversations
WHERE group_id = :group_id
ORDER BY created_at, conversation_id
FOR UPDATE

-- name: hold_session
-- An append goes on meanwhile, but who locks the group waits.
SELECT deleted_at FROM conversations WHERE group_id = :group_id AND conversation_id = :conversation_id
-- name: hold_session [postgres]
SELECT deleted_at FROM conversations WHERE group_id = :group_id AND conversation_id = :conversation_id
FOR KEY SHARE

-- name: insert_fork
INSERT INTO conversations (group_id, conversation_id, owner_id, last_seq, path, forked_from_id, forked_at_seq,
                           created_at, updated_at)
VALUES (:group_id, :conversation_id, :owner_id, :last_seq, :path, :forked_from_id, :forked_at_seq, :now, :now)
ON CONFLICT (group_id, conversation_id) DO NOTHING
RETURNING conversation_id

-- name: touch_session
UPDATE conversations
SET updated_at = CASE WHEN updated_at > :now THEN updated_at ELSE :now END
WHERE group_id = :group_id AND conversation_id = :conversation_id

-- name: mark_deleted
UPDATE conversations SET deleted_at = :now
WHERE group_id = :group_id AND conversation_id = :conversation_id AND deleted_at IS NULL
RETURNING conversation_id

-- name: mark_purged
UPDATE conversations SET purged_at = :now, title = NULL, metadata = NULL, stored_bytes = 0
WHERE group_id = :group_id AND conversation_id = :conversation_id AND purged_at IS NULL AND deleted_at IS NOT NULL
RETURNING conversation_id

-- name: sessions_to_purge
-- across groups
SELECT group_id, conversation_id, deleted_at FROM conversations
WHERE deleted_at < :before AND purged_at IS NULL
ORDER BY deleted_at, conversation_id
LIMIT :limit

-- name: list_owned
-- across groups
SELECT conversation_id, group_id, owner_id, last_seq, path, created_at, updated_at, title,
       forked_from_id, forked_at_seq, deleted_at
FROM conversations
WHERE owner_id = :owner_id AND deleted_at IS NULL
  AND updated_at <= :updated_at AND (updated_at < :updated_at OR conversation_id > :conversation_id)
ORDER BY updated_at DESC, conversation_id
LIMIT :limit

-- name: list_open
-- across groups
SELECT conversation_id, group_id, owner_id, last_seq, path, created_at, updated_at, title,
       forked_from_id, forked_at_seq, deleted_at
FROM conversations
WHERE owner_id IS NULL AND deleted_at IS NULL
  AND updated_at <= :updated_at AND (updated_at < :updated_at OR conversation_id > :conversation_id)
ORDER BY updated_at DESC, conversation_id
LIMIT :limit


-- Appending

-- name: find_batch
SELECT seq, batch_fingerprint, batch_size FROM messages
WHERE group_id = :group_id AND conversation_id = :conversation_id AND batch_key = :batch_key

-- name: advance
-- Begins a root, or moves the counter of a session that its owner (or, without one, anybody) continues. Gives no row
-- if it may not, or if the session has the batch of the key.
INSERT INTO conversations (group_id, conversation_id, owner_id, agent_name, last_seq, stored_bytes, created_at,
                           updated_at)
SELECT :group_id, :conversation_id, :owner_id, :agent_name, :count, :stored_bytes, :now, :now
WHERE NOT EXISTS (
    SELECT 1 FROM messages
    WHERE group_id = :group_id AND conversation_id = :conversation_id AND batch_key = :batch_key)
  AND (:group_id = :conversation_id OR EXISTS (
    SELECT 1 FROM conversations AS own WHERE own.group_id = :group_id AND own.conversation_id = :conversation_id))
ON CONFLICT (group_id, conversation_id) DO UPDATE
SET last_seq = conversations.last_seq + excluded.last_seq,
    stored_bytes = conversations.stored_bytes + excluded.stored_bytes,
    updated_at = CASE WHEN conversations.updated_at > excluded.updated_at
                      THEN conversations.updated_at ELSE excluded.updated_at END
WHERE conversations.deleted_at IS NULL
  AND (conversations.owner_id IS NULL OR conversations.owner_id = excluded.owner_id)
RETURNING last_seq

-- name: insert_message
INSERT INTO messages (group_id, conversation_id, seq, message_id, role, visibility, author_id, content, parts,
                      tool_calls, tool_call_id, name, metadata, token_count, tokenizer, created_at,
                      batch_key, batch_fingerprint, batch_size)
VALUES (:group_id, :conversation_id, :seq, :message_id, :role, :visibility, :author_id, :content, :parts,
        :tool_calls, :tool_call_id, :name, :metadata, :token_count, :tokenizer, :created_at,
        :batch_key, :batch_fingerprint, :batch_size)

-- name: append [postgres]
-- All of an append: `known` finds the batch of the key, `advanced` moves the counter, `stored` holds the messages.
WITH known AS (
    SELECT seq, batch_fingerprint, batch_size FROM messages
    WHERE group_id = :group_id AND conversation_id = :conversation_id AND batch_key = :batch_key
), advanced AS (
    INSERT INTO conversations (group_id, conversation_id, owner_id, agent_name, last_seq, stored_bytes, created_at,
                               updated_at)
    SELECT :group_id::text, :conversation_id::text, :owner_id::text, :agent_name::text, :count::bigint,
           :stored_bytes::bigint, :now::bigint, :now::bigint
    WHERE NOT EXISTS (SELECT 1 FROM known)
      AND (:group_id::text = :conversation_id::text OR EXISTS (
          SELECT 1 FROM conversations AS own
          WHERE own.group_id = :group_id AND own.conversation_id = :conversation_id))
    ON CONFLICT (group_id, conversation_id) DO UPDATE
    SET last_seq = conversations.last_seq + excluded.last_seq,
        stored_bytes = conversations.stored_bytes + excluded.stored_bytes,
        updated_at = GREATEST(conversations.updated_at, excluded.updated_at)
    WHERE conversations.deleted_at IS NULL
      AND (conversations.owner_id IS NULL OR conversations.owner_id = excluded.owner_id)
    RETURNING last_seq
), stored AS (
    INSERT INTO messages (group_id, conversation_id, seq, message_id, role, visibility, author_id, content, parts,
                          tool_calls, tool_call_id, name, metadata, token_count, tokenizer, created_at,
                          batch_key, batch_fingerprint, batch_size)
    SELECT :group_id, :conversation_id, advanced.last_seq - :count + entry.ordinality,
           entry.message_id, entry.role, entry.visibility, entry.author_id, entry.content, entry.parts,
           entry.tool_calls, entry.tool_call_id, entry.name, entry.metadata, entry.token_count, entry.tokenizer,
           entry.created_at,
           CASE WHEN entry.ordinality = 1 THEN :batch_key::text END,
           CASE WHEN entry.ordinality = 1 THEN :batch_fingerprint::text END,
           CASE WHEN entry.ordinality = 1 THEN :batch_size::bigint END
    FROM advanced, unnest(
        :message_ids::text[], :roles::text[], :visibilities::text[], :author_ids::text[], :contents::text[],
        :parts::text[], :tool_calls::text[], :tool_call_ids::text[], :names::text[], :metadatas::text[],
        :token_counts::bigint[], :tokenizers::text[], :created_ats::bigint[]
    ) WITH ORDINALITY AS entry (message_id, role, visibility, author_id, content, parts, tool_calls, tool_call_id,
                              name, metadata, token_count, tokenizer, created_at, ordinality)
), work AS (
    INSERT INTO background_work (group_id, conversation_id, kind, due_at, lease_until, fence, attempts, touched)
    SELECT :group_id, :conversation_id, :kind, :now, 0, 0, 0, 1 FROM advanced
    WHERE advanced.last_seq / :work_every::bigint > (advanced.last_seq - :count) / :work_every::bigint
    ON CONFLICT (group_id, conversation_id, kind) DO UPDATE
    SET due_at = LEAST(background_work.due_at, excluded.due_at), touched = 1
)
SELECT last_seq, NULL::bigint AS known_seq, NULL::text AS known_fingerprint, NULL::bigint AS known_size,
       NULL::text AS owner_id, NULL::bigint AS deleted_at
FROM advanced
UNION ALL
SELECT NULL, known.seq, known.batch_fingerprint, known.batch_size, own.owner_id, own.deleted_at
FROM known, conversations AS own
WHERE own.group_id = :group_id AND own.conversation_id = :conversation_id


-- name: append_many [postgres]
-- Appends to several groups, one each, in the order of their keys, so that two such statements do not wait for each
-- other. Who gets no row was not appended: `append` says why. An item is found by its `number`, from 1 on.
-- `given` hides the arrays from the planner: it would make a plan for their lengths, each time, at twice the cost.
-- across groups
WITH given AS MATERIALIZED (
    SELECT :group_ids::text[] AS group_ids, :conversation_ids::text[] AS conversation_ids,
           :owner_ids::text[] AS owner_ids, :agent_names::text[] AS agent_names, :counts::bigint[] AS counts,
           :stored_bytes::bigint[] AS stored_bytes, :nows::bigint[] AS nows, :batch_keys::text[] AS batch_keys,
           :batch_fingerprints::text[] AS batch_fingerprints, :work_everys::bigint[] AS work_everys,
           :numbers::bigint[] AS numbers, :positions::bigint[] AS positions,
           :message_ids::text[] AS message_ids, :roles::text[] AS roles, :visibilities::text[] AS visibilities,
           :author_ids::text[] AS author_ids, :contents::text[] AS contents, :parts::text[] AS parts,
           :tool_calls::text[] AS tool_calls, :tool_call_ids::text[] AS tool_call_ids, :names::text[] AS names,
           :metadatas::text[] AS metadatas, :token_counts::bigint[] AS token_counts,
           :tokenizers::text[] AS tokenizers, :created_ats::bigint[] AS created_ats
), item AS (
    SELECT item.*
    FROM given, unnest(group_ids, conversation_ids, owner_ids, agent_names, counts, given.stored_bytes, nows,
                       batch_keys, batch_fingerprints, work_everys)
        WITH ORDINALITY AS item (group_id, conversation_id, owner_id, agent_name, count, stored_bytes, now, batch_key,
                                 batch_fingerprint, work_every, number)
), advanced AS (
    INSERT INTO conversations (group_id, conversation_id, owner_id, agent_name, last_seq, stored_bytes, created_at,
                               updated_at)
    SELECT group_id, conversation_id, owner_id, agent_name, count, stored_bytes, now, now
    FROM item
    WHERE (SELECT known.seq FROM messages AS known
           WHERE known.group_id = item.group_id AND known.conversation_id = item.conversation_id
             AND known.batch_key = item.batch_key) IS NULL
      AND (group_id = conversation_id OR
           (SELECT own.last_seq FROM conversations AS own
            WHERE own.group_id = item.group_id AND own.conversation_id = item.conversation_id) IS NOT NULL)
    ORDER BY group_id, conversation_id
    ON CONFLICT (group_id, conversation_id) DO UPDATE
    SET last_seq = conversations.last_seq + excluded.last_seq,
        stored_bytes = conversations.stored_bytes + excluded.stored_bytes,
        updated_at = GREATEST(conversations.updated_at, excluded.updated_at)
    WHERE conversations.deleted_at IS NULL
      AND (conversations.owner_id IS NULL OR conversations.owner_id = excluded.owner_id)
    RETURNING conversation_id, last_seq
), placed AS (
    SELECT item.*, advanced.last_seq FROM item JOIN advanced ON advanced.conversation_id = item.conversation_id
), stored AS (
    INSERT INTO messages (group_id, conversation_id, seq, message_id, role, visibility, author_id, content, parts,
                          tool_calls, tool_call_id, name, metadata, token_count, tokenizer, created_at,
                          batch_key, batch_fingerprint, batch_size)
    SELECT placed.group_id, placed.conversation_id, placed.last_seq - placed.count + entry.position,
           entry.message_id, entry.role, entry.visibility, entry.author_id, entry.content, entry.parts,
           entry.tool_calls, entry.tool_call_id, entry.name, entry.metadata, entry.token_count, entry.tokenizer,
           entry.created_at,
           CASE WHEN entry.position = 1 THEN placed.batch_key END,
           CASE WHEN entry.position = 1 THEN placed.batch_fingerprint END,
           CASE WHEN entry.position = 1 AND placed.batch_key IS NOT NULL THEN placed.count END
    FROM given, unnest(numbers, positions, message_ids, roles, visibilities, author_ids, contents, parts, tool_calls,
                       tool_call_ids, names, metadatas, token_counts, tokenizers, created_ats)
        AS entry (number, position, message_id, role, visibility, author_id, content, parts, tool_calls,
                  tool_call_id, name, metadata, token_count, tokenizer, created_at)
    JOIN placed ON placed.number = entry.number
), work AS (
    INSERT INTO background_work (group_id, conversation_id, kind, due_at, lease_until, fence, attempts, touched)
    SELECT group_id, conversation_id, :kind, now, 0, 0, 0, 1 FROM placed
    WHERE last_seq / work_every > (last_seq - count) / work_every
    ORDER BY group_id, conversation_id
    ON CONFLICT (group_id, conversation_id, kind) DO UPDATE
    SET due_at = LEAST(background_work.due_at, excluded.due_at), touched = 1
)
SELECT number, last_seq FROM placed


-- Reading messages

-- name: messages_oldest_first
-- What was archived until behind `hidden_until` is in view: this branch began before.
SELECT seq, message_id, role, visibility, author_id, content, parts, tool_calls, tool_call_id, name, metadata,
       token_count, tokenizer, created_at
FROM messages
WHERE group_id = :group_id AND conversation_id = :conversation_id
  AND seq >= :start_seq AND seq <= :end_seq
  AND (state IS NULL OR (state IN ('archived', 'cleared') AND archived_until > :hidden_until))
ORDER BY seq
LIMIT :limit

-- name: messages_newest_first
SELECT seq, message_id, role, visibility, author_id, content, parts, tool_calls, tool_call_id, name, metadata,
       token_count, tokenizer, created_at
FROM messages
WHERE group_id = :group_id AND conversation_id = :conversation_id
  AND seq >= :start_seq AND seq <= :end_seq
  AND (state IS NULL OR (state IN ('archived', 'cleared') AND archived_until > :hidden_until))
ORDER BY seq DESC
LIMIT :limit

-- name: messages_of_ranges
-- `ranges` is JSON: lists of conversation, first and last seq, and `hidden_until` as in `messages_oldest_first`.
SELECT message.seq, message_id, role, visibility, author_id, content, parts, tool_calls, tool_call_id, name, metadata,
       token_count, tokenizer, created_at
FROM json_each(:ranges) AS wanted
CROSS JOIN messages AS message
WHERE message.group_id = :group_id AND message.conversation_id = json_extract(wanted.value, '$[0]')
  AND message.seq >= json_extract(wanted.value, '$[1]') AND message.seq <= json_extract(wanted.value, '$[2]')
  AND (message.state IS NULL
       OR (message.state IN ('archived', 'cleared') AND message.archived_until > json_extract(wanted.value, '$[3]')))
ORDER BY message.seq
-- name: messages_of_ranges [postgres]
SELECT message.seq, message_id, role, visibility, author_id, content, parts, tool_calls, tool_call_id, name, metadata,
       token_count, tokenizer, created_at
FROM json_array_elements(:ranges::json) AS wanted
CROSS JOIN messages AS message
WHERE message.group_id = :group_id AND message.conversation_id = wanted ->> 0
  AND message.seq >= (wanted ->> 1)::bigint AND message.seq <= (wanted ->> 2)::bigint
  AND (message.state IS NULL OR (message.state IN ('archived', 'cleared') AND message.archived_until > (wanted ->> 3)::bigint))
ORDER BY message.seq

-- name: session_and_pins [postgres]
-- The beginning of the statements that read a context. `part` tells their rows apart: 0 session, 1 summary, 2 layout,
-- 3 message, 4 pin. The columns are those of a message and two more.
SELECT 0 AS part, last_seq AS n1, conversation_id AS t1, group_id AS t2, owner_id AS t3, path AS t4, title AS t5,
       forked_from_id AS t6, NULL AS t7, NULL AS t8, NULL AS t9, NULL AS t10, created_at AS n2, NULL AS t11,
       updated_at AS n3, forked_at_seq AS n4, deleted_at AS n5
FROM own
UNION ALL
SELECT 4, ordinal, anchor, key, role, text, sha256, tokenizer, NULL, NULL, NULL, NULL, seq, NULL, token_count,
       created_at, NULL
FROM pins
WHERE group_id = :group_id AND conversation_id = :conversation_id AND NOT EXISTS (
    SELECT 1 FROM messages AS pinned
    WHERE pinned.group_id = pins.group_id AND pinned.conversation_id = pins.conversation_id AND pinned.seq = pins.seq
      AND pinned.state = 'cleared')
UNION ALL

-- name: summary_and_layout [postgres]
SELECT 1, covered_seq, narrative, CASE WHEN :facts::boolean THEN facts_json END, stale_ranges, truncated::text,
       CASE WHEN :facts::boolean THEN spare_json END, NULL, NULL, NULL, NULL, NULL,
       version, NULL, epoch, created_at, updated_at
FROM conversation_summaries
WHERE group_id = :group_id AND conversation_id = :conversation_id
UNION ALL
SELECT 2, seq, fact_lines, narrative, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, window_start_seq, NULL,
       covered_seq, epoch, NULL
FROM context_layouts
WHERE group_id = :group_id AND conversation_id = :conversation_id
  AND budget = :budget AND settings_fingerprint = :settings_fingerprint
UNION ALL

-- name: read_newest_context [postgres]
-- The newest messages of a root, whatever its length. Who asks for them alone has no use for a summary.
WITH own AS (
    SELECT * FROM conversations WHERE group_id = :group_id AND conversation_id = :conversation_id
)
-- include: session_and_pins
(
    SELECT 3, seq, message_id, role, visibility, author_id, content, parts, tool_calls, tool_call_id, name, metadata,
           token_count, tokenizer, created_at, NULL, NULL
    FROM messages
    WHERE group_id = :group_id AND conversation_id = :conversation_id AND state IS NULL
    ORDER BY seq DESC
    LIMIT :last_count
)

-- name: read_context [postgres]
-- Above the trigger, the newest messages of a root until their tokens pass the limit.
WITH own AS (
    SELECT * FROM conversations WHERE group_id = :group_id AND conversation_id = :conversation_id
), newest AS (
    SELECT seq, message_id, role, visibility, author_id, content, parts, tool_calls, tool_call_id, name, metadata,
           token_count, tokenizer, created_at
    FROM messages
    WHERE group_id = :group_id AND conversation_id = :conversation_id AND state IS NULL
    ORDER BY seq DESC
    LIMIT (SELECT CASE WHEN last_seq > :trigger_message_count::bigint THEN :max_messages::bigint
                       ELSE :last_count::bigint END FROM own)
)
-- include: session_and_pins
-- include: summary_and_layout
-- include: within_tokens

-- name: read_context_of_layout [postgres]
-- Above the trigger, the messages of a root from the window of the layout on (and the one before, if what it starts with
-- went out of view): no more is needed until the window moves. Without a layout, all of a session that is likely to fit,
-- else no messages.
WITH own AS (
    SELECT *, last_seq > :trigger_message_count::bigint AS is_above
    FROM conversations WHERE group_id = :group_id AND conversation_id = :conversation_id
)
-- include: session_and_pins
-- include: summary_and_layout
(
    SELECT 3, seq, message_id, role, visibility, author_id, content, parts, tool_calls, tool_call_id, name, metadata,
           token_count, tokenizer, created_at, NULL, NULL
    FROM messages
    WHERE group_id = :group_id AND conversation_id = :conversation_id AND state IS NULL
      AND seq >= (SELECT CASE WHEN is_above THEN COALESCE((
              SELECT first.seq
              FROM context_layouts AS layout, LATERAL (
                  SELECT seq FROM messages
                  WHERE group_id = :group_id AND conversation_id = :conversation_id AND state IS NULL
                    AND seq <= layout.window_start_seq
                  ORDER BY seq DESC
                  LIMIT 1
              ) AS first
              WHERE layout.group_id = :group_id AND layout.conversation_id = :conversation_id
                AND layout.budget = :budget AND layout.settings_fingerprint = :settings_fingerprint
          ), CASE WHEN last_seq <= :likely_count::bigint THEN 0 END) ELSE 0 END FROM own)
    ORDER BY seq DESC
    LIMIT (SELECT CASE WHEN is_above THEN :max_messages::bigint ELSE :last_count::bigint END FROM own)
)

-- name: read_context_of_fork [postgres]
-- As `read_context`, along the path of a fork. Every range gives at most as many rows as are wanted, so none is read
-- whole.
WITH own AS (
    SELECT *, CASE WHEN last_seq > :trigger_message_count::bigint THEN :max_messages::bigint
                   ELSE :last_count::bigint END AS row_limit
    FROM conversations WHERE group_id = :group_id AND conversation_id = :conversation_id
), newest AS (
    SELECT message.*
    FROM own, json_array_elements(own.path::json) AS range, LATERAL (
        SELECT seq, message_id, role, visibility, author_id, content, parts, tool_calls, tool_call_id, name, metadata,
               token_count, tokenizer, created_at
        FROM messages
        WHERE group_id = :group_id AND conversation_id = range ->> 'conversation_id'
          AND (state IS NULL OR (state IN ('archived', 'cleared') AND archived_until > (range ->> 'end_seq')::bigint))
          AND seq >= (range ->> 'start_seq')::bigint AND seq <= COALESCE((range ->> 'end_seq')::bigint, own.last_seq)
        ORDER BY seq DESC
        LIMIT own.row_limit
    ) AS message
    ORDER BY seq DESC
    LIMIT (SELECT row_limit FROM own)
)
-- include: session_and_pins
-- include: summary_and_layout
-- include: within_tokens

-- name: within_tokens [postgres]
-- The end of these statements: above the trigger, a message is shown unless the newer ones have passed the limit.
SELECT 3, seq, message_id, role, visibility, author_id, content, parts, tool_calls, tool_call_id, name, metadata,
       token_count, tokenizer, created_at, NULL, NULL
FROM (
    SELECT newest.*, COALESCE(SUM(CASE WHEN role = 'summary' AND visibility = 'agent' THEN 0
                                       ELSE COALESCE(token_count, 0) + :overhead::bigint END)
               OVER (ORDER BY seq DESC ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING), 0) AS newer_tokens
    FROM newest
) AS counted
WHERE newer_tokens <= :max_tokens::bigint
   OR NOT EXISTS (SELECT 1 FROM own WHERE last_seq > :trigger_message_count::bigint)

-- name: session_with_pins
-- One row a pin, or one row without any. A pin of what was cleared is not shown.
SELECT own.conversation_id, own.group_id, own.owner_id, own.last_seq, own.path, own.created_at, own.updated_at,
       own.title, own.forked_from_id, own.forked_at_seq, own.deleted_at,
       pin.ordinal, pin.seq, pin.anchor, pin.key, pin.role, pin.text, pin.sha256, pin.token_count, pin.tokenizer,
       pin.created_at
FROM conversations AS own
LEFT JOIN pins AS pin ON pin.group_id = own.group_id AND pin.conversation_id = own.conversation_id AND NOT EXISTS (
    SELECT 1 FROM messages AS pinned
    WHERE pinned.group_id = pin.group_id AND pinned.conversation_id = pin.conversation_id AND pinned.seq = pin.seq
      AND pinned.state = 'cleared')
WHERE own.group_id = :group_id AND own.conversation_id = :conversation_id
ORDER BY pin.ordinal

-- name: messages_of_other_tokenizers
-- across groups
SELECT group_id, conversation_id,
       seq, message_id, role, visibility, author_id, content, parts, tool_calls, tool_call_id, name, metadata,
       token_count, tokenizer, created_at
FROM messages
WHERE (group_id, conversation_id, seq) > (:group_id, :conversation_id, :seq)
  AND (tokenizer IS NULL OR tokenizer <> :tokenizer)
ORDER BY group_id, conversation_id, seq
LIMIT :limit

-- name: store_token_count
UPDATE messages SET token_count = :token_count, tokenizer = :tokenizer
WHERE group_id = :group_id AND conversation_id = :conversation_id AND seq = :seq

-- name: withdraw_message
UPDATE messages SET state = 'withdrawn'
WHERE group_id = :group_id AND conversation_id = :conversation_id AND seq = :seq


-- Pins

-- name: store_pin
INSERT INTO pins (group_id, conversation_id, ordinal, seq, anchor, key, role, text, sha256, token_count, tokenizer,
                  created_at)
VALUES (:group_id, :conversation_id, :ordinal, :seq, :anchor, :key, :role, :text, :sha256, :token_count, :tokenizer,
        :created_at)
ON CONFLICT (group_id, conversation_id, ordinal) DO UPDATE
SET seq = excluded.seq, text = excluded.text, sha256 = excluded.sha256, token_count = excluded.token_count,
    tokenizer = excluded.tokenizer, created_at = excluded.created_at

-- name: copy_pins
-- What a fork takes along: the pins on the messages that it shares.
INSERT INTO pins (group_id, conversation_id, ordinal, seq, anchor, key, role, text, sha256, token_count, tokenizer,
                  created_at)
SELECT group_id, :fork_id, ordinal, seq, anchor, key, role, text, sha256, token_count, tokenizer, created_at
FROM pins
WHERE group_id = :group_id AND conversation_id = :conversation_id AND seq < :at_seq AND NOT EXISTS (
    SELECT 1 FROM messages AS pinned
    WHERE pinned.group_id = pins.group_id AND pinned.conversation_id = pins.conversation_id AND pinned.seq = pins.seq
      AND pinned.state = 'cleared' AND pinned.archived_until < :at_seq)

-- name: pins
-- Shown or not.
SELECT ordinal, seq, anchor, key, role, text, sha256, token_count, tokenizer, created_at
FROM pins
WHERE group_id = :group_id AND conversation_id = :conversation_id
ORDER BY ordinal

-- name: delete_pin
DELETE FROM pins WHERE group_id = :group_id AND conversation_id = :conversation_id AND ordinal = :ordinal

-- name: delete_pins
DELETE FROM pins WHERE group_id = :group_id AND conversation_id = :conversation_id

-- name: pins_of_other_tokenizers
-- across groups
SELECT group_id, conversation_id,
       ordinal, seq, anchor, key, role, text, sha256, token_count, tokenizer, created_at
FROM pins
WHERE tokenizer <> :tokenizer
LIMIT :limit


-- Segments, facts, summaries, layouts

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
SELECT conversation_id, end_seq, anchor, facts.key, facts.value, category, source_seq, span_start, span_end, said_by,
       act, failed, verified, salience
FROM json_each(:parts) AS wanted
CROSS JOIN facts
WHERE group_id = :group_id AND conversation_id = json_extract(wanted.value, '$[0]')
  AND end_seq <= json_extract(wanted.value, '$[1]')
ORDER BY end_seq, ordinal
-- name: facts_of_branch [postgres]
SELECT conversation_id, end_seq, anchor, facts.key, facts.value, category, source_seq, span_start, span_end, said_by,
       act, failed, verified, salience
FROM json_array_elements(:parts::json) AS wanted
CROSS JOIN facts
WHERE group_id = :group_id AND conversation_id = wanted ->> 0 AND end_seq <= (wanted ->> 1)::bigint
ORDER BY end_seq, ordinal

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
-- `anchors` is a JSON list. Left to choose, SQLite would read all facts of the conversations.
SELECT anchor, facts.key, facts.value, category, source_seq, span_start, span_end, said_by, act, failed, verified,
       salience, NULL AS corrected_seq, ordinal, end_seq
FROM json_each(:parts) AS wanted
CROSS JOIN facts INDEXED BY facts_by_anchor
WHERE group_id = :group_id AND conversation_id = json_extract(wanted.value, '$[0]')
  AND end_seq <= json_extract(wanted.value, '$[1]') AND verified = 1
  AND anchor IN (SELECT value FROM json_each(:anchors))
UNION ALL
SELECT anchor, key, value, NULL, source_seq, NULL, NULL, NULL, NULL, NULL, NULL, NULL, seq, ordinal, 0
FROM fact_corrections
WHERE group_id = :group_id AND conversation_id = :conversation_id
  AND anchor IN (SELECT value FROM json_each(:anchors))
ORDER BY end_seq, ordinal
-- name: facts_about [postgres]
SELECT anchor, facts.key, facts.value, category, source_seq, span_start, span_end, said_by, act, failed, verified,
       salience, NULL::bigint AS corrected_seq, ordinal, end_seq
FROM json_array_elements(:parts::json) AS wanted
CROSS JOIN facts
WHERE group_id = :group_id AND conversation_id = wanted ->> 0 AND end_seq <= (wanted ->> 1)::bigint AND verified = 1
  AND anchor = ANY(ARRAY(SELECT json_array_elements_text(:anchors::json)))
UNION ALL
SELECT anchor, key, value, NULL, source_seq, NULL, NULL, NULL, NULL, NULL, NULL, NULL, seq, ordinal, 0
FROM fact_corrections
WHERE group_id = :group_id AND conversation_id = :conversation_id
  AND anchor = ANY(ARRAY(SELECT json_array_elements_text(:anchors::json)))
ORDER BY end_seq, ordinal

-- name: store_segment
-- Gives no row if the segment is there and neither stale (1) nor outdated (2), or has other borders.
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

-- name: insert_fact
INSERT INTO facts (group_id, conversation_id, end_seq, ordinal, anchor, key, value, category, source_seq,
                   span_start, span_end, said_by, act, failed, verified, salience)
VALUES (:group_id, :conversation_id, :end_seq, :ordinal, :anchor, :key, :value, :category, :source_seq,
        :span_start, :span_end, :said_by, :act, :failed, :verified, :salience)

-- name: summary_head
SELECT covered_seq, version, epoch, truncated, stale_ranges, created_at, updated_at, narrative
FROM conversation_summaries
WHERE group_id = :group_id AND conversation_id = :conversation_id

-- name: summary
SELECT covered_seq, version, epoch, truncated, stale_ranges, created_at, updated_at, narrative, facts_json, spare_json
FROM conversation_summaries
WHERE group_id = :group_id AND conversation_id = :conversation_id

-- name: store_summary
INSERT INTO conversation_summaries (group_id, conversation_id, covered_seq, version, epoch, fence, truncated,
                                    stale_ranges, created_at, updated_at, narrative, facts_json, spare_json)
VALUES (:group_id, :conversation_id, :covered_seq, :version, :epoch, :fence, :truncated,
        :stale_ranges, :created_at, :updated_at, :narrative, :facts_json, :spare_json)
ON CONFLICT (group_id, conversation_id) DO UPDATE
SET covered_seq = excluded.covered_seq, version = excluded.version, epoch = excluded.epoch, fence = excluded.fence,
    truncated = excluded.truncated, stale_ranges = excluded.stale_ranges, created_at = excluded.created_at,
    updated_at = excluded.updated_at, narrative = excluded.narrative, facts_json = excluded.facts_json,
    spare_json = excluded.spare_json

-- name: layout
SELECT seq, window_start_seq, covered_seq, epoch, fact_lines, narrative
FROM context_layouts
WHERE group_id = :group_id AND conversation_id = :conversation_id
  AND budget = :budget AND settings_fingerprint = :settings_fingerprint

-- name: store_layout
INSERT INTO context_layouts (group_id, conversation_id, budget, settings_fingerprint, seq, window_start_seq,
                             fact_lines, narrative, covered_seq, epoch)
VALUES (:group_id, :conversation_id, :budget, :settings_fingerprint, :seq, :window_start_seq,
        :fact_lines, :narrative, :covered_seq, :epoch)
ON CONFLICT (group_id, conversation_id, budget, settings_fingerprint) DO UPDATE
SET seq = excluded.seq, window_start_seq = excluded.window_start_seq, fact_lines = excluded.fact_lines,
    narrative = excluded.narrative, covered_seq = excluded.covered_seq, epoch = excluded.epoch
WHERE (context_layouts.seq, context_layouts.covered_seq) < (excluded.seq, excluded.covered_seq)

-- name: delete_messages
DELETE FROM messages WHERE group_id = :group_id AND conversation_id = :conversation_id

-- name: delete_segments
DELETE FROM segments WHERE group_id = :group_id AND conversation_id = :conversation_id

-- name: delete_facts
DELETE FROM facts WHERE group_id = :group_id AND conversation_id = :conversation_id

-- name: delete_summary
DELETE FROM conversation_summaries WHERE group_id = :group_id AND conversation_id = :conversation_id

-- name: delete_layouts
DELETE FROM context_layouts WHERE group_id = :group_id AND conversation_id = :conversation_id

-- name: add_spending
INSERT INTO summary_spending (group_id, conversation_id, day, tokens)
VALUES (:group_id, :conversation_id, :day, :tokens)
ON CONFLICT (group_id, conversation_id, day) DO UPDATE SET tokens = summary_spending.tokens + excluded.tokens

-- name: spent_for_owner
-- across groups
SELECT CAST(COALESCE(SUM(spent.tokens), 0) AS BIGINT)
FROM summary_spending AS spent
JOIN conversations AS other ON other.group_id = spent.group_id AND other.conversation_id = spent.conversation_id
JOIN conversations AS own ON own.group_id = :group_id AND own.conversation_id = :conversation_id
     AND own.owner_id = other.owner_id
WHERE spent.day = :day

-- name: spending
-- Of the conversation in all, and of everybody on one day. The cap of a day bounds how many rows that reads.
-- across groups
SELECT CAST(COALESCE(SUM(tokens), 0) AS BIGINT),
       (SELECT CAST(COALESCE(SUM(other.tokens), 0) AS BIGINT) FROM summary_spending AS other WHERE other.day = :day)
FROM summary_spending
WHERE group_id = :group_id AND conversation_id = :conversation_id


-- The recall index. A term in it begins with the key of its conversation, so that a search meets no other conversation,
-- and every entry holds that key alone, too: the way to all entries of a conversation.

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


-- Background work

-- name: make_due
INSERT INTO background_work (group_id, conversation_id, kind, due_at, lease_until, fence, attempts, touched)
VALUES (:group_id, :conversation_id, :kind, :now, 0, 0, 0, 1)
ON CONFLICT (group_id, conversation_id, kind) DO UPDATE
SET due_at = CASE WHEN background_work.due_at < excluded.due_at THEN background_work.due_at ELSE excluded.due_at END,
    touched = 1

-- name: lock_work
SELECT fence FROM background_work
WHERE group_id = :group_id AND conversation_id = :conversation_id AND kind = :kind
-- name: lock_work [postgres]
SELECT fence FROM background_work
WHERE group_id = :group_id AND conversation_id = :conversation_id AND kind = :kind
FOR UPDATE

-- name: claim
-- What ends more than twice as far ahead as it can was written by a wrong clock. Twice, as who waited for a lock looked
-- at the clock before who held it.
-- A claim makes the work due, so that who dies with the lease leaves it to be found. Of a deleted conversation there is
-- nothing left to do but to erase it.
INSERT INTO background_work (group_id, conversation_id, kind, due_at, lease_until, fence, attempts)
SELECT :group_id, :conversation_id, :kind, :now, :now + :lease_microseconds, 1, 0
FROM conversations
WHERE group_id = :group_id AND conversation_id = :conversation_id AND (deleted_at IS NULL OR :kind IN ('erase_user', 'forget'))
ON CONFLICT (group_id, conversation_id, kind) DO UPDATE
SET fence = background_work.fence + 1, lease_until = excluded.lease_until, parked = 0, touched = 0,
    due_at = CASE WHEN background_work.due_at < excluded.due_at THEN background_work.due_at ELSE excluded.due_at END
WHERE (background_work.lease_until <= :now OR background_work.lease_until > :now + 2 * :lease_microseconds)
  AND (:by_name = 1 OR (background_work.parked = 0 AND (background_work.due_at IS NULL OR background_work.due_at <= :now
                                                        OR background_work.due_at > :now + :wait_microseconds + :wait_microseconds)))
RETURNING fence, lease_until, attempts
-- name: claim [postgres]
INSERT INTO background_work (group_id, conversation_id, kind, due_at, lease_until, fence, attempts)
SELECT :group_id, :conversation_id, :kind, :now,
       (EXTRACT(EPOCH FROM now()) * 1000000)::bigint + :lease_microseconds::bigint, 1, 0
FROM conversations
WHERE group_id = :group_id AND conversation_id = :conversation_id AND (deleted_at IS NULL OR :kind IN ('erase_user', 'forget'))
FOR KEY SHARE
ON CONFLICT (group_id, conversation_id, kind) DO UPDATE
SET fence = background_work.fence + 1, lease_until = excluded.lease_until, parked = 0, touched = 0,
    due_at = LEAST(background_work.due_at, excluded.due_at)
WHERE (background_work.lease_until <= (EXTRACT(EPOCH FROM now()) * 1000000)::bigint
       OR background_work.lease_until > excluded.lease_until + :lease_microseconds::bigint)
  AND (:by_name::bigint = 1
       OR (background_work.parked = 0 AND (background_work.due_at IS NULL OR background_work.due_at <= excluded.due_at
                                           OR background_work.due_at > excluded.due_at + 2 * :wait_microseconds::bigint)))
RETURNING fence, lease_until, attempts

-- name: renew
UPDATE background_work SET lease_until = :now + :lease_microseconds
WHERE group_id = :group_id AND conversation_id = :conversation_id AND kind = :kind
  AND fence = :fence AND lease_until > 0
RETURNING fence
-- name: renew [postgres]
UPDATE background_work SET lease_until = (EXTRACT(EPOCH FROM now()) * 1000000)::bigint + :lease_microseconds::bigint
WHERE group_id = :group_id AND conversation_id = :conversation_id AND kind = :kind
  AND fence = :fence AND lease_until > 0
RETURNING fence

-- name: release
UPDATE background_work
SET due_at = CASE WHEN touched = 1 THEN due_at ELSE :due_at END, lease_until = 0, attempts = :attempts,
    parked = :parked, last_error = :last_error
WHERE group_id = :group_id AND conversation_id = :conversation_id AND kind = :kind AND fence = :fence

-- name: finish_work
DELETE FROM background_work
WHERE group_id = :group_id AND conversation_id = :conversation_id AND kind = :kind AND fence = :fence

-- name: drop_work
DELETE FROM background_work WHERE group_id = :group_id AND conversation_id = :conversation_id AND kind = :kind

-- name: ensure_work
-- Who claims meanwhile waits for us, or we for him: so no lease is claimed that `take_leases_away` does not see.
-- Of a deleted conversation none can be claimed.
INSERT INTO background_work (group_id, conversation_id, kind, lease_until, fence, attempts)
SELECT group_id, conversation_id, :kind, 0, 0, 0 FROM conversations
WHERE group_id = :group_id AND conversation_id = :conversation_id AND deleted_at IS NULL
ON CONFLICT (group_id, conversation_id, kind) DO NOTHING

-- name: take_leases_away
UPDATE background_work SET fence = fence + 1, lease_until = 0
WHERE group_id = :group_id AND conversation_id = :conversation_id

-- name: forget_work
-- A fence never goes back, so what held an older lease is refused for ever. What destroys goes on.
UPDATE background_work
SET due_at = NULL, lease_until = 0, fence = fence + 1, attempts = 0, parked = 0, touched = 0, last_error = NULL
WHERE group_id = :group_id AND conversation_id = :conversation_id AND kind NOT IN ('erase_user', 'forget')

-- name: delete_work
-- Of a conversation that is gone for good: no lease of it can be claimed, and no write under an older one finds its
-- fence. The row of what destroys goes when that has ended.
DELETE FROM background_work
WHERE group_id = :group_id AND conversation_id = :conversation_id AND kind NOT IN ('erase_user', 'forget')

-- name: due_work
-- Of each wanted kind what is due, behind one time and up to another: the longest waiting first, each kind for itself.
-- across groups
SELECT work.kind, work.conversation_id, work.due_at
FROM json_each(:wanted) AS wanted
CROSS JOIN background_work AS work
WHERE work.kind = json_extract(wanted.value, '$[0]') AND (work.group_id, work.conversation_id) IN (
    SELECT one.group_id, one.conversation_id
    FROM background_work AS one
    JOIN conversations AS own ON own.group_id = one.group_id AND own.conversation_id = one.conversation_id
    WHERE one.kind = json_extract(wanted.value, '$[0]') AND one.due_at > json_extract(wanted.value, '$[1]')
      AND one.due_at <= json_extract(wanted.value, '$[2]') AND one.parked = 0
      AND (own.deleted_at IS NULL OR one.kind IN ('erase_user', 'forget'))
      AND (one.lease_until <= :now OR one.lease_until > :now + 2 * :lease_microseconds)
    ORDER BY one.due_at, one.conversation_id
    LIMIT :limit
)
-- name: due_work [postgres]
-- across groups
SELECT found.kind, found.conversation_id, found.due_at
FROM json_array_elements(:wanted::json) AS wanted, LATERAL (
    SELECT work.kind, work.conversation_id, work.due_at
    FROM background_work AS work
    JOIN conversations AS own ON own.group_id = work.group_id AND own.conversation_id = work.conversation_id
    WHERE work.kind = wanted ->> 0 AND work.due_at > (wanted ->> 1)::bigint AND work.due_at <= (wanted ->> 2)::bigint
      AND work.parked = 0 AND (own.deleted_at IS NULL OR work.kind IN ('erase_user', 'forget'))
      AND (work.lease_until <= (EXTRACT(EPOCH FROM now()) * 1000000)::bigint
           OR work.lease_until > (EXTRACT(EPOCH FROM now()) * 1000000)::bigint + 2 * :lease_microseconds::bigint)
    ORDER BY work.due_at, work.conversation_id
    LIMIT :limit
) AS found

-- name: work_state
SELECT conversation_id, kind, due_at, lease_until, fence, attempts, parked, last_error
FROM background_work
WHERE group_id = :group_id AND conversation_id = :conversation_id AND kind = :kind

-- name: troubled_work
-- across groups
SELECT work.conversation_id, work.kind, work.due_at, work.lease_until, work.fence, work.attempts, work.parked,
       work.last_error
FROM background_work AS work
JOIN conversations AS own ON own.group_id = work.group_id AND own.conversation_id = work.conversation_id
WHERE work.kind = :kind AND (work.parked = 1 OR work.attempts > 0) AND own.deleted_at IS NULL
ORDER BY work.conversation_id
LIMIT :limit


-- The database as a whole

-- name: server [postgres]
-- across groups
SELECT current_setting('server_version'), current_database()

-- name: totals
-- across groups
SELECT (SELECT COUNT(*) FROM conversations WHERE deleted_at IS NULL), (SELECT COUNT(*) FROM messages)

-- name: gaps
-- Sessions whose counter and messages disagree.
-- across groups
SELECT own.conversation_id
FROM conversations AS own
LEFT JOIN messages AS message ON message.group_id = own.group_id AND message.conversation_id = own.conversation_id
WHERE own.purged_at IS NULL
GROUP BY own.group_id, own.conversation_id, own.last_seq, own.forked_at_seq
HAVING COUNT(message.seq) <> own.last_seq - COALESCE(own.forked_at_seq - 1, 0)
    OR COALESCE(MAX(message.seq), own.last_seq) <> own.last_seq
ORDER BY own.conversation_id
LIMIT :limit


-- Summaries of ranges

-- name: range_summaries
SELECT summary_id, kind, start_seq, end_seq, message_count, message_ids, retention, replaced_by, started_at, ended_at,
       text, token_count, tokenizer, created_at
FROM range_summaries
WHERE group_id = :group_id AND conversation_id = :conversation_id
ORDER BY start_seq, end_seq, summary_id

-- name: insert_range_summary
INSERT INTO range_summaries (group_id, conversation_id, summary_id, kind, start_seq, end_seq, message_count,
                             message_ids, retention, started_at, ended_at, text, token_count, tokenizer, created_at)
VALUES (:group_id, :conversation_id, :summary_id, :kind, :start_seq, :end_seq, :message_count,
        :message_ids, :retention, :started_at, :ended_at, :text, :token_count, :tokenizer, :created_at)

-- name: replace_range_summary
UPDATE range_summaries SET replaced_by = :replaced_by
WHERE group_id = :group_id AND conversation_id = :conversation_id AND summary_id = :summary_id

-- name: revive_range_summaries
UPDATE range_summaries SET replaced_by = NULL
WHERE group_id = :group_id AND conversation_id = :conversation_id AND replaced_by = :summary_id

-- name: delete_range_summary
DELETE FROM range_summaries
WHERE group_id = :group_id AND conversation_id = :conversation_id AND summary_id = :summary_id

-- name: delete_range_summaries
DELETE FROM range_summaries WHERE group_id = :group_id AND conversation_id = :conversation_id

-- name: ids_in_view
SELECT seq, message_id FROM messages
WHERE group_id = :group_id AND conversation_id = :conversation_id
  AND seq >= :start_seq AND seq <= :end_seq AND state IS NULL
ORDER BY seq

-- name: archive_messages
UPDATE messages SET state = 'archived', archived_by = :summary_id, archived_until = :end_seq
WHERE group_id = :group_id AND conversation_id = :conversation_id
  AND seq >= :start_seq AND seq <= :end_seq AND state IS NULL

-- name: unarchive_messages
UPDATE messages
SET archived_until = CASE WHEN state = 'cleared' THEN archived_until END, archived_by = NULL,
    state = CASE WHEN state = 'cleared' THEN state END
WHERE group_id = :group_id AND conversation_id = :conversation_id
  AND seq >= :start_seq AND seq <= :end_seq AND state IN ('archived', 'cleared') AND archived_by = :summary_id


-- What callers archive. `archived` is out of view, `cleared` out of memory, too. What a summary archived has its id.

-- name: archive_own
-- `other` is the state besides none of which messages are taken: `archived` to clear it, `cleared` to show its facts.
UPDATE messages
SET state = :state, archived_until = CASE WHEN archived_by IS NULL THEN :archived_until ELSE archived_until END
WHERE group_id = :group_id AND conversation_id = :conversation_id
  AND seq >= :start_seq AND seq <= :end_seq AND (state IS NULL OR state = :other)
RETURNING seq

-- name: restore_own
-- What a summary archived before it was cleared is archived again.
UPDATE messages
SET archived_until = CASE WHEN archived_by IS NULL THEN NULL ELSE archived_until END,
    state = CASE WHEN archived_by IS NULL THEN NULL ELSE 'archived' END
WHERE group_id = :group_id AND conversation_id = :conversation_id AND seq >= :start_seq
  AND (state = 'cleared' OR (state = 'archived' AND archived_by IS NULL))
RETURNING seq

-- name: archived_ranges
-- `parts` is JSON: lists of conversation, first and last seq. The runs of messages that are archived or cleared there,
-- but for those that only a summary archived.
SELECT state, MIN(seq), MAX(seq)
FROM (
    SELECT message.state, message.seq,
           message.seq - ROW_NUMBER() OVER (PARTITION BY message.state ORDER BY message.seq) AS run
    FROM json_each(:parts) AS part
    CROSS JOIN messages AS message INDEXED BY messages_archived
    WHERE message.group_id = :group_id AND message.conversation_id = json_extract(part.value, '$[0]')
      AND message.seq >= json_extract(part.value, '$[1]') AND message.seq <= json_extract(part.value, '$[2]')
      AND message.archived_until <= json_extract(part.value, '$[2]')
      AND (message.state = 'cleared' OR (message.state = 'archived' AND message.archived_by IS NULL))
) AS archived
GROUP BY state, run
ORDER BY MIN(seq)
-- name: archived_ranges [postgres]
SELECT state, MIN(seq), MAX(seq)
FROM (
    SELECT message.state, message.seq,
           message.seq - ROW_NUMBER() OVER (PARTITION BY message.state ORDER BY message.seq) AS run
    FROM json_array_elements(:parts::json) AS part
    CROSS JOIN messages AS message
    WHERE message.group_id = :group_id AND message.conversation_id = part ->> 0
      AND message.seq >= (part ->> 1)::bigint AND message.seq <= (part ->> 2)::bigint
      AND message.archived_until <= (part ->> 2)::bigint
      AND (message.state = 'cleared' OR (message.state = 'archived' AND message.archived_by IS NULL))
) AS archived
GROUP BY state, run
ORDER BY MIN(seq)

-- name: behind_in_tiers
-- Sessions with more than `threshold` messages of their own behind their newest summary.
-- across groups
SELECT own.conversation_id, own.last_seq
FROM conversations AS own
WHERE (own.group_id, own.conversation_id) > (:group_id, :conversation_id) AND own.deleted_at IS NULL
  AND own.last_seq - COALESCE(own.forked_at_seq - 1, 0) > :threshold
  AND own.last_seq > :threshold + COALESCE((
      SELECT MAX(made.end_seq) FROM range_summaries AS made
      WHERE made.group_id = own.group_id AND made.conversation_id = own.conversation_id), 0)
ORDER BY own.group_id, own.conversation_id
LIMIT :limit

-- name: range_summaries_of_other_tokenizers
-- across groups
SELECT group_id, conversation_id, summary_id, text FROM range_summaries
WHERE tokenizer <> :tokenizer
LIMIT :limit

-- name: store_range_token_count
UPDATE range_summaries SET token_count = :token_count, tokenizer = :tokenizer
WHERE group_id = :group_id AND conversation_id = :conversation_id AND summary_id = :summary_id


-- What belongs to a user. On PostgreSQL such rows are fenced: they are there for a transaction that names the user.

-- name: name_user
-- across groups
SELECT :user_id
-- name: name_user [postgres]
-- across groups
SELECT set_config('reactor_memory.user_id', :user_id, true)

-- name: name_all_users
-- across groups
SELECT 1
-- name: name_all_users [postgres]
-- across groups
SELECT set_config('reactor_memory.all_users', 'yes', true)

-- name: active_session
SELECT user_id, agent_name, active_session_id, last_active_at, created_at
FROM active_sessions
WHERE user_id = :user_id AND agent_name = :agent_name

-- name: active_sessions_of_user
SELECT user_id, agent_name, active_session_id, last_active_at, created_at
FROM active_sessions
WHERE user_id = :user_id
ORDER BY last_active_at DESC, agent_name

-- name: get_or_create_active
INSERT INTO active_sessions (user_id, agent_name, active_session_id, last_active_at, created_at)
VALUES (:user_id, :agent_name, :session_id, :now, :now)
ON CONFLICT (user_id, agent_name) DO UPDATE
SET active_session_id = COALESCE(active_sessions.active_session_id, excluded.active_session_id),
    last_active_at = CASE WHEN active_sessions.last_active_at > excluded.last_active_at
                          THEN active_sessions.last_active_at ELSE excluded.last_active_at END
RETURNING user_id, agent_name, active_session_id, last_active_at, created_at

-- name: activate
-- Where none is active.
INSERT INTO active_sessions (user_id, agent_name, active_session_id, last_active_at, created_at)
VALUES (:user_id, :agent_name, :session_id, :now, :now)
ON CONFLICT (user_id, agent_name) DO UPDATE
SET active_session_id = excluded.active_session_id,
    last_active_at = CASE WHEN active_sessions.last_active_at > excluded.last_active_at
                          THEN active_sessions.last_active_at ELSE excluded.last_active_at END
WHERE active_sessions.active_session_id IS NULL
RETURNING user_id, agent_name, active_session_id, last_active_at, created_at

-- name: replace_active
UPDATE active_sessions
SET active_session_id = :session_id,
    last_active_at = CASE WHEN last_active_at > :now THEN last_active_at ELSE :now END
WHERE user_id = :user_id AND agent_name = :agent_name AND active_session_id = :expected
RETURNING user_id, agent_name, active_session_id, last_active_at, created_at

-- name: deactivate_active
-- across groups
UPDATE active_sessions SET active_session_id = NULL
WHERE last_active_at < :before AND active_session_id IS NOT NULL
RETURNING user_id

-- name: notes
SELECT user_id, agent_name, version, notes, author, created_at
FROM long_term_notes
WHERE user_id = :user_id AND agent_name = :agent_name AND version <= :version
ORDER BY version DESC
LIMIT :limit

-- name: insert_notes
INSERT INTO long_term_notes (user_id, agent_name, version, notes, author, created_at)
SELECT CAST(:user_id AS TEXT), CAST(:agent_name AS TEXT), CAST(:version AS BIGINT), CAST(:notes AS TEXT),
       CAST(:author AS TEXT), CAST(:created_at AS BIGINT)
WHERE :version = (
    SELECT COALESCE(MAX(version), 0) + 1 FROM long_term_notes WHERE user_id = :user_id AND agent_name = :agent_name)
ON CONFLICT (user_id, agent_name, version) DO NOTHING
RETURNING version


-- Erasing

-- name: entomb_messages
UPDATE messages
SET state = 'erased', author_id = NULL, client_id = NULL, content = '', parts = NULL, tool_calls = NULL,
    tool_call_id = NULL, name = NULL, metadata = NULL, token_count = 0, archived_by = NULL, archived_until = NULL
WHERE group_id = :group_id AND conversation_id = :conversation_id AND seq >= :start_seq AND seq <= :end_seq
  AND (state IS NULL OR state <> 'erased')
RETURNING seq

-- name: delete_pins_of_messages
DELETE FROM pins
WHERE group_id = :group_id AND conversation_id = :conversation_id AND seq >= :start_seq AND seq <= :end_seq

-- name: blank_batches
-- A fingerprint is made from the content of a whole batch, so it goes with any of its messages. The key stays: a late
-- repetition of the batch is still recognised, and not stored again.
UPDATE messages SET batch_fingerprint = ''
WHERE group_id = :group_id AND conversation_id = :conversation_id AND batch_key IS NOT NULL
  AND seq <= :end_seq AND seq + batch_size > :start_seq

-- name: give_bytes_back
-- What these messages hold no longer counts.
UPDATE conversations SET stored_bytes = stored_bytes - (
    SELECT COALESCE(SUM(LENGTH(CAST(content AS BLOB)) + COALESCE(LENGTH(CAST(parts AS BLOB)), 0)
                        + COALESCE(LENGTH(CAST(tool_calls AS BLOB)), 0) + COALESCE(LENGTH(CAST(metadata AS BLOB)), 0)), 0)
    FROM messages AS message
    WHERE message.group_id = :group_id AND message.conversation_id = :conversation_id
      AND message.seq >= :start_seq AND message.seq <= :end_seq)
WHERE group_id = :group_id AND conversation_id = :conversation_id

-- name: give_bytes_back [postgres]
UPDATE conversations SET stored_bytes = stored_bytes - (
    SELECT COALESCE(SUM(OCTET_LENGTH(content) + COALESCE(OCTET_LENGTH(parts), 0)
                        + COALESCE(OCTET_LENGTH(tool_calls), 0) + COALESCE(OCTET_LENGTH(metadata), 0)), 0)
    FROM messages AS message
    WHERE message.group_id = :group_id AND message.conversation_id = :conversation_id
      AND message.seq >= :start_seq AND message.seq <= :end_seq)
WHERE group_id = :group_id AND conversation_id = :conversation_id

-- name: messages_taken_away
SELECT conversation_id, seq, message_id FROM messages
WHERE group_id = :group_id AND state IN ('erased', 'withdrawn')
ORDER BY conversation_id, seq

-- name: note_erasure_of_user
-- Under a lease of who begins it, so that nobody else does so at once. Deleted groups, too.
-- across groups
INSERT INTO background_work (group_id, conversation_id, kind, due_at, lease_until, fence, attempts)
SELECT group_id, conversation_id, :kind, :now, CAST(:now AS BIGINT) + CAST(:lease_microseconds AS BIGINT), 1, 0
FROM conversations
WHERE owner_id = :owner_id AND group_id = conversation_id
ON CONFLICT (group_id, conversation_id, kind) DO NOTHING

-- name: note_forgetting
INSERT INTO background_work (group_id, conversation_id, kind, due_at, lease_until, fence, attempts)
VALUES (:group_id, :conversation_id, :kind, :due_at, 0, 0, 0)
ON CONFLICT (group_id, conversation_id, kind) DO NOTHING

-- name: owned_roots
-- Deleted ones, too.
-- across groups
SELECT conversation_id FROM conversations
WHERE owner_id = :owner_id AND group_id = conversation_id AND group_id > :after
ORDER BY group_id
LIMIT :limit

-- name: group_ids
SELECT conversation_id FROM conversations WHERE group_id = :group_id

-- name: disown_group
UPDATE conversations SET owner_id = NULL, agent_name = NULL, title = NULL, metadata = NULL
WHERE group_id = :group_id AND owner_id = :owner_id AND deleted_at IS NOT NULL

-- name: newest_notes_of_user
SELECT agent_name, MAX(version) FROM long_term_notes WHERE user_id = :user_id GROUP BY agent_name
HAVING MAX(LENGTH(notes)) > 0

-- name: delete_notes_of_user
DELETE FROM long_term_notes
WHERE user_id = :user_id AND agent_name IN (
    SELECT agent_name FROM long_term_notes WHERE user_id = :user_id GROUP BY agent_name HAVING MAX(LENGTH(notes)) > 0)
RETURNING version

-- name: end_notes
-- On PostgreSQL a version may have been stored since the newest was read, and it goes, too.
INSERT INTO long_term_notes (user_id, agent_name, version, notes, author, created_at)
VALUES (:user_id, :agent_name, :version, '', NULL, :now)
ON CONFLICT (user_id, agent_name, version) DO UPDATE
SET notes = excluded.notes, author = NULL, created_at = excluded.created_at

-- name: delete_active_of_user
DELETE FROM active_sessions WHERE user_id = :user_id RETURNING agent_name

-- name: merge_index
-- The full text of SQLite keeps deleted terms until its parts are merged: so many pages at a time.
-- across groups
INSERT INTO recall_entries (recall_entries, rank) VALUES ('merge', -500)
-- name: merge_index [postgres]
-- across groups
SELECT 1

-- name: changed_rows
-- across groups
SELECT total_changes()
-- name: changed_rows [postgres]
-- across groups
SELECT 0

-- name: checkpoint
-- across groups
PRAGMA wal_checkpoint(TRUNCATE)
-- name: checkpoint [postgres]
-- across groups
SELECT 1

-- name: rewrite
-- across groups
VACUUM
-- name: rewrite [postgres]
-- across groups
VACUUM (FULL) conversations, messages, pins, segments, facts, conversation_summaries, context_layouts, recall_entries,
              range_summaries, fact_corrections, long_term_notes, active_sessions, items, search_entries, embeddings

-- What applications keep by namespace and key. A namespace is a path of labels with points between them, so those below
-- `a` lie between `a.` and `a/`, the character that follows the point.

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


-- Corrections

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

-- name: delete_pins_of_fact
DELETE FROM pins
WHERE group_id = :group_id AND conversation_id = :conversation_id AND anchor = :anchor AND key = :key

-- name: is_in_view
SELECT seq FROM messages
WHERE group_id = :group_id AND conversation_id = :conversation_id AND seq = :seq
  AND (state IS NULL OR state = 'archived')


-- Retention by age

-- name: idle_groups
-- across groups
SELECT group_id, COUNT(*), CAST(SUM(last_seq - COALESCE(forked_at_seq - 1, 0)) AS BIGINT), MAX(updated_at)
FROM conversations
WHERE deleted_at IS NULL AND group_id > :after
GROUP BY group_id
HAVING MAX(updated_at) < :before
ORDER BY group_id
LIMIT :limit


-- Extracting anew

-- name: mark_outdated
UPDATE segments SET stale = 2
WHERE group_id = :group_id AND conversation_id = :conversation_id AND stale = 0
RETURNING end_seq

-- name: outdated_ranges
SELECT start_seq, end_seq FROM segments
WHERE group_id = :group_id AND conversation_id = :conversation_id AND stale = 2
ORDER BY end_seq


-- Moving sessions to another store

-- name: list_groups
-- across groups
SELECT group_id FROM conversations
WHERE group_id > :after AND conversation_id = group_id AND (CAST(:owner_id AS TEXT) IS NULL OR owner_id = :owner_id)
ORDER BY group_id
LIMIT :limit

-- name: conversations_to_export
SELECT conversation_id, group_id, owner_id, last_seq, path, created_at, updated_at, title,
       forked_from_id, forked_at_seq, deleted_at, agent_name, metadata, purged_at,
       EXISTS (SELECT 1 FROM background_work AS work
               WHERE work.group_id = :group_id AND work.conversation_id = conversations.conversation_id
                 AND work.kind = :kind) AS importing
FROM conversations
WHERE group_id = :group_id
ORDER BY created_at, conversation_id

-- name: messages_to_export
SELECT message.seq, message_id, role, visibility, author_id, content, parts, tool_calls, tool_call_id, name, metadata,
       token_count, tokenizer, created_at, state, archived_by, archived_until, batch_key, batch_fingerprint, batch_size,
       until_seq
FROM messages AS message
LEFT JOIN posted_summaries AS posted ON posted.group_id = message.group_id
     AND posted.conversation_id = message.conversation_id AND posted.seq = message.seq
WHERE message.group_id = :group_id AND message.conversation_id = :conversation_id AND message.seq > :after
ORDER BY message.seq
LIMIT :limit

-- name: import_conversation
INSERT INTO conversations (group_id, conversation_id, owner_id, agent_name, title, metadata, last_seq, path,
                           forked_from_id, forked_at_seq, created_at, updated_at, deleted_at, purged_at)
VALUES (:group_id, :conversation_id, :owner_id, :agent_name, :title, :metadata, :last_seq, :path,
        :forked_from_id, :forked_at_seq, :created_at, :updated_at, :deleted_at, :purged_at)
ON CONFLICT (group_id, conversation_id) DO NOTHING
RETURNING conversation_id

-- name: mark_importing
INSERT INTO background_work (group_id, conversation_id, kind, lease_until, fence, attempts)
VALUES (:group_id, :conversation_id, :kind, 0, 0, 0)

-- name: advance_import
UPDATE conversations SET last_seq = :last_seq, stored_bytes = stored_bytes + :stored_bytes
WHERE group_id = :group_id AND conversation_id = :conversation_id AND last_seq = :before AND deleted_at IS NULL
RETURNING last_seq

-- name: import_correction
INSERT INTO fact_corrections (group_id, conversation_id, ordinal, anchor, key, value, seq, source_seq, author_id,
                              created_at)
VALUES (:group_id, :conversation_id, :ordinal, :anchor, :key, :value, :seq, :source_seq, :author_id, :now)

-- name: import_membership
INSERT INTO memberships (group_id, user_id, access_level, created_at)
VALUES (:group_id, :user_id, :access_level, :created_at)
ON CONFLICT (group_id, user_id) DO NOTHING

-- name: import_message
INSERT INTO messages (group_id, conversation_id, seq, message_id, role, visibility, author_id, content, parts,
                      tool_calls, tool_call_id, name, metadata, token_count, tokenizer, created_at,
                      state, archived_by, archived_until, batch_key, batch_fingerprint, batch_size)
VALUES (:group_id, :conversation_id, :seq, :message_id, :role, :visibility, :author_id, :content, :parts,
        :tool_calls, :tool_call_id, :name, :metadata, :token_count, :tokenizer, :created_at,
        :state, :archived_by, :archived_until, :batch_key, :batch_fingerprint, :batch_size)

-- name: list_users
-- across groups
SELECT user_id FROM (
    SELECT user_id FROM active_sessions WHERE user_id > :after
    UNION
    SELECT user_id FROM long_term_notes WHERE user_id > :after
    UNION
    SELECT user_id FROM items WHERE user_id > :after) AS users
ORDER BY user_id
LIMIT :limit

-- name: notes_of_user
SELECT user_id, agent_name, version, notes, author, created_at FROM long_term_notes
WHERE user_id = :user_id
ORDER BY agent_name, version

-- name: import_active
INSERT INTO active_sessions (user_id, agent_name, active_session_id, last_active_at, created_at)
VALUES (:user_id, :agent_name, :session_id, :last_active_at, :created_at)
ON CONFLICT (user_id, agent_name) DO NOTHING

-- name: import_notes
INSERT INTO long_term_notes (user_id, agent_name, version, notes, author, created_at)
VALUES (:user_id, :agent_name, :version, :notes, :author, :created_at)
ON CONFLICT (user_id, agent_name, version) DO NOTHING

-- name: import_item
INSERT INTO items (user_id, namespace, key, value, terms, created_at, updated_at)
VALUES (:user_id, :namespace, :key, :value, :terms, :created_at, :updated_at)
ON CONFLICT (user_id, namespace, key) DO NOTHING


-- Who calls: keys of agents, and requests that may be repeated

-- name: insert_api_key
-- across groups
INSERT INTO api_keys (key_prefix, client_id, secret_hash, agent_names, operations, created_at, expires_at, revoked_at)
VALUES (:key_prefix, :client_id, :secret_hash, :agent_names, :operations, :created_at, :expires_at, :revoked_at)
ON CONFLICT (key_prefix) DO NOTHING
RETURNING key_prefix

-- name: api_key
-- across groups
SELECT key_prefix, client_id, secret_hash, agent_names, operations, created_at, expires_at, revoked_at
FROM api_keys
WHERE key_prefix = :key_prefix

-- name: api_keys
-- across groups
SELECT key_prefix, client_id, secret_hash, agent_names, operations, created_at, expires_at, revoked_at
FROM api_keys
ORDER BY created_at, key_prefix

-- name: revoke_api_key
-- across groups
UPDATE api_keys SET revoked_at = :now WHERE key_prefix = :key_prefix AND revoked_at IS NULL
RETURNING key_prefix

-- name: insert_service_secret
-- across groups
INSERT INTO service_secrets (name, secret) VALUES (:name, :secret) ON CONFLICT (name) DO NOTHING

-- name: service_secret
-- across groups
SELECT secret FROM service_secrets WHERE name = :name

-- name: claim_request
-- across groups
-- One that was left behind is taken over by whoever asks for the same again.
INSERT INTO answered_requests (principal_id, request_key, user_id, group_id, fingerprint, lease_until, created_at)
VALUES (:principal_id, :request_key, :user_id, :group_id, :fingerprint, :lease_until, :created_at)
ON CONFLICT (principal_id, request_key) DO UPDATE SET lease_until = excluded.lease_until
WHERE answered_requests.status IS NULL AND answered_requests.lease_until <= :now
  AND answered_requests.fingerprint = excluded.fingerprint
RETURNING request_key

-- name: answered_request
-- across groups
SELECT principal_id, request_key, user_id, group_id, fingerprint, status, body, lease_until, created_at
FROM answered_requests
WHERE principal_id = :principal_id AND request_key = :request_key

-- name: answer_request
-- across groups
UPDATE answered_requests SET status = :status, body = :body, group_id = COALESCE(:group_id, group_id)
WHERE principal_id = :principal_id AND request_key = :request_key AND status IS NULL

-- name: release_request
-- across groups
DELETE FROM answered_requests
WHERE principal_id = :principal_id AND request_key = :request_key AND status IS NULL

-- name: forget_requests
-- across groups
DELETE FROM answered_requests
WHERE (principal_id, request_key) IN (
    SELECT principal_id, request_key FROM answered_requests WHERE created_at < :before ORDER BY created_at LIMIT :limit)
RETURNING request_key
-- name: forget_requests [postgres]
-- across groups
-- Whoever forgets at the same time takes others.
DELETE FROM answered_requests
WHERE (principal_id, request_key) IN (
    SELECT principal_id, request_key FROM answered_requests WHERE created_at < :before ORDER BY created_at LIMIT :limit
    FOR UPDATE SKIP LOCKED)
RETURNING request_key

-- name: delete_answers_of_group
DELETE FROM answered_requests WHERE group_id = :group_id AND status IS NOT NULL

-- name: delete_answers_of_user
-- across groups
-- Those that the user got, and those that name the user: `named` is the id as JSON has it.
DELETE FROM answered_requests WHERE (user_id = :user_id OR instr(body, :named) > 0) AND status IS NOT NULL
RETURNING request_key
-- name: delete_answers_of_user [postgres]
-- across groups
DELETE FROM answered_requests WHERE (user_id = :user_id OR strpos(body, :named) > 0) AND status IS NOT NULL
RETURNING request_key



-- Conversations that people share

-- name: shared_conversation
SELECT own.conversation_id, own.group_id, own.owner_id, own.last_seq, own.path, own.created_at, own.updated_at,
       own.title, own.forked_from_id, own.forked_at_seq, own.deleted_at, own.agent_name, own.metadata,
       own.vectorized_at, member.access_level
FROM conversations AS own
LEFT JOIN memberships AS member ON member.group_id = own.group_id AND member.user_id = :user_id
WHERE own.group_id = :group_id AND own.conversation_id = :conversation_id AND own.purged_at IS NULL

-- name: shared_group
SELECT own.conversation_id, own.group_id, own.owner_id, own.last_seq, own.path, own.created_at, own.updated_at,
       own.title, own.forked_from_id, own.forked_at_seq, own.deleted_at, own.agent_name, own.metadata,
       own.vectorized_at, member.access_level
FROM conversations AS own
LEFT JOIN memberships AS member ON member.group_id = own.group_id AND member.user_id = :user_id
WHERE own.group_id = :group_id AND own.deleted_at IS NULL
  AND (:conversation_id = '' OR (own.conversation_id <> own.group_id AND (
      :conversation_id = own.group_id OR own.created_at > :created_at
      OR (own.created_at = :created_at AND own.conversation_id > :conversation_id))))
ORDER BY own.conversation_id <> own.group_id, own.created_at, own.conversation_id
LIMIT :limit

-- name: conversations_of_user
-- Those that the user owns in the order of an index, and all that others share with them.
-- across groups
SELECT * FROM (
    SELECT * FROM (
        SELECT own.conversation_id, own.group_id, own.owner_id, own.last_seq, own.path, own.created_at,
               own.updated_at, own.title, own.forked_from_id, own.forked_at_seq, own.deleted_at, own.agent_name,
               own.metadata, own.vectorized_at, NULL AS access_level
        FROM conversations AS own
        WHERE own.owner_id = :user_id AND own.deleted_at IS NULL
          AND own.updated_at <= :updated_at
          AND (own.updated_at < :updated_at OR own.conversation_id > :conversation_id)
          AND (:only_roots = 0 OR own.conversation_id = own.group_id)
          AND (:only_newest = 0 OR NOT EXISTS (
              SELECT 1 FROM conversations AS other
              WHERE other.group_id = own.group_id AND other.deleted_at IS NULL
                AND (other.updated_at > own.updated_at OR
                     (other.updated_at = own.updated_at AND other.conversation_id < own.conversation_id))))
        ORDER BY own.updated_at DESC, own.conversation_id
        LIMIT :limit
    ) AS owned
    UNION ALL
    SELECT * FROM (
        SELECT own.conversation_id, own.group_id, own.owner_id, own.last_seq, own.path, own.created_at,
               own.updated_at, own.title, own.forked_from_id, own.forked_at_seq, own.deleted_at, own.agent_name,
               own.metadata, own.vectorized_at, member.access_level
        FROM memberships AS member
        JOIN conversations AS own ON own.group_id = member.group_id
        WHERE member.user_id = :user_id AND own.owner_id <> :user_id AND own.deleted_at IS NULL
          AND own.updated_at <= :updated_at
          AND (own.updated_at < :updated_at OR own.conversation_id > :conversation_id)
          AND (:only_roots = 0 OR own.conversation_id = own.group_id)
          AND (:only_newest = 0 OR NOT EXISTS (
              SELECT 1 FROM conversations AS other
              WHERE other.group_id = own.group_id AND other.deleted_at IS NULL
                AND (other.updated_at > own.updated_at OR
                     (other.updated_at = own.updated_at AND other.conversation_id < own.conversation_id))))
        ORDER BY own.updated_at DESC, own.conversation_id
        LIMIT :limit
    ) AS shared
) AS listed
ORDER BY updated_at DESC, conversation_id
LIMIT :limit

-- name: newest_shown
-- `parts` is JSON: lists of a number, group, conversation, first and last seq. Of each, the newest message that users
-- see.
-- across groups
SELECT json_extract(part.value, '$[0]'), message.seq, message.message_id, SUBSTR(message.content, 1, :length)
FROM json_each(:parts) AS part
CROSS JOIN messages AS message
WHERE message.group_id = json_extract(part.value, '$[1]')
  AND message.conversation_id = json_extract(part.value, '$[2]')
  AND message.seq = (
      SELECT newest.seq FROM messages AS newest
      WHERE newest.group_id = json_extract(part.value, '$[1]')
        AND newest.conversation_id = json_extract(part.value, '$[2]')
        AND newest.seq >= json_extract(part.value, '$[3]') AND newest.seq <= json_extract(part.value, '$[4]')
        AND (newest.state IS NULL OR newest.state = 'archived')
        AND newest.visibility = 'user' AND newest.role <> 'summary'
      ORDER BY newest.seq DESC
      LIMIT 1)
-- name: newest_shown [postgres]
-- across groups
SELECT (part ->> 0)::bigint, message.seq, message.message_id, SUBSTR(message.content, 1, :length::integer)
FROM json_array_elements(:parts::json) AS part, LATERAL (
    SELECT seq, message_id, content FROM messages
    WHERE group_id = part ->> 1 AND conversation_id = part ->> 2
      AND seq >= (part ->> 3)::bigint AND seq <= (part ->> 4)::bigint
      AND (state IS NULL OR state = 'archived') AND visibility = 'user' AND role <> 'summary'
    ORDER BY seq DESC
    LIMIT 1
) AS message

-- name: visible_messages
-- Without a client those that users see; with one, summaries, what is for all agents, and its own, too.
SELECT seq, message_id, role, visibility, author_id, content, parts, tool_calls, tool_call_id, name, metadata,
       token_count, tokenizer, created_at
FROM messages
WHERE group_id = :group_id AND conversation_id = :conversation_id
  AND seq >= :start_seq AND seq <= :end_seq
  AND (state IS NULL OR state = 'archived')
  AND ((visibility = 'user' AND role <> 'summary') OR
       (CAST(:client_id AS TEXT) IS NOT NULL AND
        (role = 'summary' OR visibility = 'system' OR author_id = CAST(:client_id AS TEXT))))
  AND (CAST(:channel AS TEXT) IS NULL OR CAST(:channel AS TEXT) =
       CASE WHEN role = 'summary' THEN 'SUMMARY' WHEN visibility = 'user' THEN 'HISTORY' ELSE 'MEMORY' END)
ORDER BY seq
LIMIT :limit

-- name: visible_messages_of_ranges
SELECT seq, message_id, role, visibility, author_id, content, parts, tool_calls, tool_call_id, name, metadata,
       token_count, tokenizer, created_at
FROM json_each(:ranges) AS wanted
CROSS JOIN messages
WHERE group_id = :group_id AND conversation_id = json_extract(wanted.value, '$[0]')
  AND seq >= json_extract(wanted.value, '$[1]') AND seq <= json_extract(wanted.value, '$[2]')
  AND (state IS NULL OR state = 'archived')
  AND ((visibility = 'user' AND role <> 'summary') OR
       (CAST(:client_id AS TEXT) IS NOT NULL AND (role = 'summary' OR author_id = CAST(:client_id AS TEXT))))
  AND (CAST(:channel AS TEXT) IS NULL OR CAST(:channel AS TEXT) =
       CASE WHEN role = 'summary' THEN 'SUMMARY' WHEN visibility = 'user' THEN 'HISTORY' ELSE 'MEMORY' END)
ORDER BY seq
-- name: visible_messages_of_ranges [postgres]
SELECT seq, message_id, role, visibility, author_id, content, parts, tool_calls, tool_call_id, name, metadata,
       token_count, tokenizer, created_at
FROM json_array_elements(:ranges::json) AS wanted
CROSS JOIN messages
WHERE group_id = :group_id AND conversation_id = wanted ->> 0
  AND seq >= (wanted ->> 1)::bigint AND seq <= (wanted ->> 2)::bigint
  AND (state IS NULL OR state = 'archived')
  AND ((visibility = 'user' AND role <> 'summary') OR
       (CAST(:client_id AS TEXT) IS NOT NULL AND (role = 'summary' OR author_id = CAST(:client_id AS TEXT))))
  AND (CAST(:channel AS TEXT) IS NULL OR CAST(:channel AS TEXT) =
       CASE WHEN role = 'summary' THEN 'SUMMARY' WHEN visibility = 'user' THEN 'HISTORY' ELSE 'MEMORY' END)
ORDER BY seq

-- name: message_of_id
SELECT seq, message_id, role, visibility, author_id, content, parts, tool_calls, tool_call_id, name, metadata,
       token_count, tokenizer, created_at
FROM json_each(:ranges) AS wanted
CROSS JOIN messages
WHERE group_id = :group_id AND conversation_id = json_extract(wanted.value, '$[0]')
  AND seq >= json_extract(wanted.value, '$[1]') AND seq <= json_extract(wanted.value, '$[2]')
  AND message_id = :message_id AND (state IS NULL OR state = 'archived')
ORDER BY seq DESC
LIMIT 1
-- name: message_of_id [postgres]
SELECT seq, message_id, role, visibility, author_id, content, parts, tool_calls, tool_call_id, name, metadata,
       token_count, tokenizer, created_at
FROM json_array_elements(:ranges::json) AS wanted
CROSS JOIN messages
WHERE group_id = :group_id AND conversation_id = wanted ->> 0
  AND seq >= (wanted ->> 1)::bigint AND seq <= (wanted ->> 2)::bigint
  AND message_id = :message_id AND (state IS NULL OR state = 'archived')
ORDER BY seq DESC
LIMIT 1

-- name: first_shown_text
SELECT SUBSTR(content, 1, :length) FROM messages
WHERE group_id = :group_id AND conversation_id = :conversation_id
  AND seq >= :start_seq AND seq <= :end_seq AND role = 'user' AND visibility = 'user'
  AND (state IS NULL OR state = 'archived')
ORDER BY seq
LIMIT 1

-- name: create_conversation
INSERT INTO conversations (group_id, conversation_id, owner_id, agent_name, title, metadata, last_seq, created_at,
                           updated_at)
VALUES (:group_id, :conversation_id, :owner_id, :agent_name, :title, :metadata, 0, :now, :now)
ON CONFLICT (group_id, conversation_id) DO NOTHING
RETURNING conversation_id

-- name: count_roots
-- No more than `limit` of them are counted.
-- across groups
SELECT COUNT(*) FROM (
    SELECT 1 FROM conversations
    WHERE owner_id = :owner_id AND deleted_at IS NULL AND conversation_id = group_id
    LIMIT :limit
) AS best

-- name: stored_bytes_of_owner
-- across groups
SELECT CAST(COALESCE(SUM(stored_bytes), 0) AS BIGINT) FROM conversations
WHERE owner_id = :owner_id AND deleted_at IS NULL

-- name: count_forks
-- across groups
SELECT COUNT(*) FROM (
    SELECT 1 FROM conversations
    WHERE owner_id = :owner_id AND deleted_at IS NULL AND conversation_id <> group_id
    LIMIT :limit
) AS best

-- name: count_members
-- across groups
SELECT COUNT(*) FROM (
    SELECT 1 FROM conversations AS root
    JOIN memberships AS member ON member.group_id = root.group_id
    WHERE root.owner_id = :owner_id AND root.deleted_at IS NULL AND root.conversation_id = root.group_id
    LIMIT :limit
) AS best

-- name: describe_fork
UPDATE conversations SET title = :title, agent_name = :agent_name
WHERE group_id = :group_id AND conversation_id = :conversation_id

-- name: rename_conversation
UPDATE conversations SET title = :title
WHERE group_id = :group_id AND conversation_id = :conversation_id AND deleted_at IS NULL
RETURNING conversation_id

-- name: title_conversation
UPDATE conversations SET title = :title
WHERE group_id = :group_id AND conversation_id = :conversation_id AND title IS NULL AND deleted_at IS NULL

-- name: shown_texts
SELECT SUBSTR(content, 1, :length) FROM messages
WHERE group_id = :group_id AND conversation_id = :conversation_id
  AND seq >= :start_seq AND seq <= :end_seq AND role = 'user' AND visibility = 'user'

-- name: take_title_away
UPDATE conversations SET title = NULL WHERE group_id = :group_id AND title = :title

-- name: deleted_together
SELECT conversation_id, purged_at FROM conversations WHERE group_id = :group_id AND deleted_at = :deleted_at

-- name: restore_deleted
UPDATE conversations SET deleted_at = NULL WHERE group_id = :group_id AND deleted_at = :deleted_at

-- name: memberships
SELECT group_id, user_id, access_level, created_at FROM memberships
WHERE group_id = :group_id
ORDER BY created_at, user_id

-- name: add_membership
INSERT INTO memberships (group_id, user_id, access_level, created_at)
VALUES (:group_id, :user_id, :access_level, :created_at)
ON CONFLICT (group_id, user_id) DO NOTHING
RETURNING group_id, user_id, access_level, created_at

-- name: change_membership
UPDATE memberships SET access_level = :access_level
WHERE group_id = :group_id AND user_id = :user_id
RETURNING group_id, user_id, access_level, created_at

-- name: remove_membership
DELETE FROM memberships WHERE group_id = :group_id AND user_id = :user_id
RETURNING user_id

-- name: delete_memberships
-- Of the group, with the key of its root.
DELETE FROM memberships WHERE group_id = :group_id AND group_id = :conversation_id

-- name: transfer_of_group
SELECT transfer_id, group_id, from_user_id, to_user_id, created_at FROM ownership_transfers
WHERE group_id = :group_id

-- name: transfer_of_id
-- across groups
SELECT transfer_id, group_id, from_user_id, to_user_id, created_at FROM ownership_transfers
WHERE transfer_id = :transfer_id

-- name: transfers_of_user
-- across groups
SELECT transfer_id, group_id, from_user_id, to_user_id, created_at FROM ownership_transfers
WHERE from_user_id = :user_id
UNION ALL
SELECT transfer_id, group_id, from_user_id, to_user_id, created_at FROM ownership_transfers
WHERE to_user_id = :user_id
ORDER BY created_at, transfer_id

-- name: add_transfer
INSERT INTO ownership_transfers (group_id, transfer_id, from_user_id, to_user_id, created_at)
VALUES (:group_id, :transfer_id, :from_user_id, :to_user_id, :created_at)
ON CONFLICT (group_id) DO NOTHING

-- name: delete_transfers
-- Of the group, with the key of its root.
DELETE FROM ownership_transfers WHERE group_id = :group_id AND group_id = :conversation_id

-- name: delete_transfer_to
DELETE FROM ownership_transfers WHERE group_id = :group_id AND to_user_id = :user_id

-- name: hand_over
-- Deleted conversations, too: they may be restored.
UPDATE conversations SET owner_id = :new_owner_id WHERE group_id = :group_id AND owner_id = :owner_id

-- name: add_audit
INSERT INTO audit_records (group_id, record_id, conversation_id, actor_id, client_id, action, target, details,
                           created_at)
VALUES (:group_id, :record_id, :conversation_id, :actor_id, :client_id, :action, :target, :details, :created_at)
ON CONFLICT (group_id, record_id) DO NOTHING

-- name: audit_records
SELECT record_id, group_id, conversation_id, actor_id, client_id, action, target, details, created_at
FROM audit_records
WHERE group_id = :group_id AND record_id > :after
ORDER BY record_id
LIMIT :limit

-- name: delete_memberships_of_user
DELETE FROM memberships WHERE user_id = :user_id RETURNING group_id

-- name: delete_transfers_of_user
DELETE FROM ownership_transfers WHERE from_user_id = :user_id OR to_user_id = :user_id RETURNING group_id

-- name: forget_actor
UPDATE audit_records SET actor_id = NULL WHERE actor_id = :user_id

-- name: forget_target
UPDATE audit_records SET target = NULL WHERE target = :user_id

-- name: delete_posted_summaries
DELETE FROM posted_summaries WHERE group_id = :group_id AND conversation_id = :conversation_id


-- Responses that are being written

-- name: response
SELECT conversation_id, response_id, fence, client_id, producer, state, last_event, size, stop_requested, message_id,
       created_at, updated_at, expires_at
FROM responses
WHERE group_id = :group_id AND conversation_id = :conversation_id AND response_id = :response_id

-- name: lock_response
-- include: response
-- name: lock_response [postgres]
-- include: response
FOR UPDATE

-- name: newest_responses
SELECT conversation_id, response_id, fence, client_id, producer, state, last_event, size, stop_requested, message_id,
       created_at, updated_at, expires_at
FROM responses
WHERE group_id = :group_id AND conversation_id = :conversation_id
ORDER BY fence DESC
LIMIT :limit

-- name: supersede_responses
-- One that was silent for too long stays as it is: it expired.
UPDATE responses SET state = 'superseded', updated_at = :now, expires_at = :keep_until
WHERE group_id = :group_id AND conversation_id = :conversation_id AND state = 'running' AND expires_at > :now

-- name: insert_response
INSERT INTO responses (group_id, conversation_id, response_id, fence, client_id, producer, state, last_event, size,
                       stop_requested, message_id, created_at, updated_at, expires_at)
VALUES (:group_id, :conversation_id, :response_id,
        (SELECT COALESCE(MAX(fence), 0) + 1 FROM responses
         WHERE group_id = :group_id AND conversation_id = :conversation_id),
        :client_id, :producer, :state, :last_event, :size, :stop_requested, :message_id,
        :created_at, :updated_at, :expires_at)
RETURNING fence

-- name: update_response
UPDATE responses SET state = :state, last_event = :last_event, size = :size, stop_requested = :stop_requested,
                     message_id = :message_id, updated_at = :updated_at, expires_at = :expires_at
WHERE group_id = :group_id AND conversation_id = :conversation_id AND response_id = :response_id

-- name: insert_piece
INSERT INTO response_pieces (group_id, conversation_id, response_id, event, text)
VALUES (:group_id, :conversation_id, :response_id, :event, :text)

-- name: pieces
SELECT event, text FROM response_pieces
WHERE group_id = :group_id AND conversation_id = :conversation_id AND response_id = :response_id AND event > :after
ORDER BY event
LIMIT :limit

-- name: delete_responses
DELETE FROM responses WHERE group_id = :group_id AND conversation_id = :conversation_id

-- name: delete_pieces
DELETE FROM response_pieces WHERE group_id = :group_id AND conversation_id = :conversation_id

-- name: delete_pieces_of_response
DELETE FROM response_pieces
WHERE group_id = :group_id AND conversation_id = :conversation_id AND response_id = :response_id

-- name: delete_answers
DELETE FROM responses
WHERE group_id = :group_id AND conversation_id = :conversation_id AND message_id = :message_id
RETURNING conversation_id, response_id

-- name: delete_answers_between
-- A message of an ancestor may answer a response of a fork.
DELETE FROM responses
WHERE group_id = :group_id
  AND message_id IN (SELECT message_id FROM messages
                     WHERE group_id = :group_id AND conversation_id = :conversation_id
                       AND seq BETWEEN :start_seq AND :end_seq)
RETURNING conversation_id, response_id

-- name: expired_responses
-- across groups
SELECT conversation_id, response_id FROM responses
WHERE expires_at <= :now AND (state <> 'running' OR expires_at <= :silent_until)
ORDER BY expires_at
LIMIT :limit

-- name: delete_expired_response
DELETE FROM responses
WHERE group_id = :group_id AND conversation_id = :conversation_id AND response_id = :response_id
  AND expires_at <= :now AND (state <> 'running' OR expires_at <= :silent_until)
RETURNING response_id
-- Search over many conversations. A term stands behind the scope of its conversation, the key of who owned it when it
-- was first indexed: so a search meets what belongs to people whose conversations the caller may read, and of that only
-- what is in `visible` counts, before the best are taken. `visible` is JSON, one list a conversation: number, first and
-- last seq, conversation, scope, group. On SQLite a row id is the number of the conversation, shifted, and the seq.

-- name: visible_conversations
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

-- name: search_hits [postgres]
-- The beginning of the searches for words. The index is asked for all terms at once, each term only of what it found.
-- across groups
WITH visible AS MATERIALIZED (
    SELECT part ->> 3 AS conversation_id, part ->> 4 AS scope,
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
    JOIN visible ON visible.conversation_id = entry.conversation_id
    WHERE entry.terms @@ :any_term::text::tsquery AND entry.seq BETWEEN visible.start_seq AND visible.end_seq
      AND (:as_of::bigint IS NULL OR entry.created_at <= :as_of::bigint)
      AND (:before_at::bigint IS NULL
           OR CASE WHEN entry.conversation_id = :before_conversation::text THEN entry.seq < :before_seq::bigint
                   ELSE entry.sent_at < :before_at::bigint END)
)

-- name: search_frequencies
-- How many entries hold each term. `terms` is JSON: lists of a term behind its scope, its number, its weight, its scope.
-- `is_whole` 1: all of the visible conversations counts. A bound that is NULL does not bind.
-- across groups
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
-- across groups
-- include: search_hits
SELECT wanted.number, COUNT(*)
FROM hits
JOIN wanted ON wanted.scope = hits.scope AND hits.terms @@ wanted.query
GROUP BY wanted.number

-- name: search_words
-- The entries whose terms weigh most together.
-- across groups
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
-- across groups
-- include: search_hits
SELECT hits.conversation_id, hits.seq, hits.length, STRING_AGG(wanted.number::text, ',')
FROM hits
JOIN wanted ON wanted.scope = hits.scope AND hits.terms @@ wanted.query
GROUP BY hits.conversation_id, hits.seq, hits.length
ORDER BY SUM(wanted.weight) DESC, hits.seq DESC, hits.conversation_id
LIMIT :limit

-- name: compares_vectors
-- Whether the database itself can compare vectors.
-- across groups
SELECT 0
-- name: compares_vectors [postgres]
-- across groups
SELECT (to_regtype('vector') IS NOT NULL)::int

-- name: visible_embeddings
-- across groups
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
-- across groups
SELECT meaning.conversation_id, meaning.seq, meaning.vector
FROM json_array_elements(:visible::json) AS part
JOIN embeddings AS meaning
  ON meaning.group_id = part ->> 5 AND meaning.conversation_id = part ->> 3
WHERE meaning.seq BETWEEN (part ->> 1)::bigint AND (part ->> 2)::bigint
  AND meaning.model = :model
  AND (:as_of::bigint IS NULL OR meaning.created_at <= :as_of::bigint)
  AND (:before_at::bigint IS NULL
       OR CASE WHEN meaning.conversation_id = :before_conversation::text THEN meaning.seq < :before_seq::bigint
               ELSE meaning.sent_at < :before_at::bigint END)

-- name: nearest_embeddings [postgres]
-- All of what is visible is compared: an index over all vectors would take the best of everybody's first.
-- across groups
SELECT conversation_id, seq, similarity
FROM (
    SELECT meaning.conversation_id, meaning.seq, -(meaning.vector::vector <#> :vector::real[]::vector) AS similarity
    FROM json_array_elements(:visible::json) AS part
    JOIN embeddings AS meaning
      ON meaning.group_id = part ->> 5 AND meaning.conversation_id = part ->> 3
    WHERE meaning.seq BETWEEN (part ->> 1)::bigint AND (part ->> 2)::bigint
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
-- across groups
SELECT message.conversation_id, message.seq, message.created_at
FROM json_each(:visible) AS part
CROSS JOIN messages AS message
WHERE message.group_id = json_extract(part.value, '$[5]')
  AND message.conversation_id = json_extract(part.value, '$[3]')
  AND message.message_id = :message_id AND (message.visibility = 'user' OR message.role = 'summary')
-- name: place_of_message [postgres]
-- across groups
SELECT message.conversation_id, message.seq, message.created_at
FROM json_array_elements(:visible::json) AS part
JOIN messages AS message
  ON message.group_id = part ->> 5 AND message.conversation_id = part ->> 3
WHERE message.message_id = :message_id AND (message.visibility = 'user' OR message.role = 'summary')

-- name: found_messages
-- `places` is JSON: lists of group, conversation and seq.
-- across groups
SELECT message.conversation_id,
       message.seq, message_id, role, visibility, author_id, content, parts, tool_calls, tool_call_id, name, metadata,
       token_count, tokenizer, created_at
FROM json_each(:places) AS place
CROSS JOIN messages AS message
WHERE message.group_id = json_extract(place.value, '$[0]')
  AND message.conversation_id = json_extract(place.value, '$[1]') AND message.seq = json_extract(place.value, '$[2]')
-- name: found_messages [postgres]
-- across groups
SELECT message.conversation_id,
       message.seq, message_id, role, visibility, author_id, content, parts, tool_calls, tool_call_id, name, metadata,
       token_count, tokenizer, created_at
FROM json_array_elements(:places::json) AS place
CROSS JOIN messages AS message
WHERE message.group_id = place ->> 0 AND message.conversation_id = place ->> 1
  AND message.seq = (place ->> 2)::bigint

-- name: search_progress
SELECT indexed_seq, embedded_seq, model, parked, scope FROM search_progress
WHERE group_id = :group_id AND conversation_id = :conversation_id

-- name: begin_search_progress
-- across groups: each conversation has its own number
INSERT INTO search_progress (group_id, conversation_id, number, scope, indexed_seq, embedded_seq, model, parked)
SELECT :group_id, :conversation_id, COALESCE(MAX(number), 0) + 1, :scope, :after, :after, NULL, 0
FROM search_progress
WHERE true
ON CONFLICT (group_id, conversation_id) DO NOTHING
-- name: begin_search_progress [postgres]
-- Here an entry needs no number.
INSERT INTO search_progress (group_id, conversation_id, number, scope, indexed_seq, embedded_seq, model, parked)
VALUES (:group_id, :conversation_id, 0, :scope, :after, :after, NULL, 0)
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
UPDATE search_progress SET indexed_seq = :end_seq, parked = parked + :parked
WHERE group_id = :group_id AND conversation_id = :conversation_id AND indexed_seq = :after
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

-- name: seqs_in_view
SELECT seq FROM messages
WHERE group_id = :group_id AND conversation_id = :conversation_id AND seq > :after AND seq <= :end_seq
  AND (state IS NULL OR state = 'archived')

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

-- name: behind_in_words
-- Conversations that have an owner and messages which are not indexed, unless somebody works on them or they are to be
-- tried later.
-- across groups
SELECT own.conversation_id
FROM conversations AS own
LEFT JOIN search_progress AS progress
  ON progress.group_id = own.group_id AND progress.conversation_id = own.conversation_id
LEFT JOIN background_work AS work
  ON work.group_id = own.group_id AND work.conversation_id = own.conversation_id AND work.kind = :kind
WHERE (own.group_id, own.conversation_id) > (:group_id, :conversation_id)
  AND own.owner_id IS NOT NULL AND own.deleted_at IS NULL
  AND own.last_seq > COALESCE(progress.indexed_seq, own.forked_at_seq - 1, 0)
  AND (work.due_at IS NULL OR work.due_at <= :now OR work.due_at > :now + :wait_microseconds + :wait_microseconds)
  AND (work.lease_until IS NULL OR work.lease_until <= :now
       OR work.lease_until > :now + :lease_microseconds + :lease_microseconds)
ORDER BY own.group_id, own.conversation_id
LIMIT :limit

-- name: behind_in_meanings
-- across groups
SELECT own.conversation_id
FROM conversations AS own
LEFT JOIN search_progress AS progress
  ON progress.group_id = own.group_id AND progress.conversation_id = own.conversation_id
LEFT JOIN background_work AS work
  ON work.group_id = own.group_id AND work.conversation_id = own.conversation_id AND work.kind = :kind
WHERE (own.group_id, own.conversation_id) > (:group_id, :conversation_id)
  AND own.owner_id IS NOT NULL AND own.deleted_at IS NULL
  AND own.last_seq > COALESCE(CASE WHEN progress.model = :model THEN progress.embedded_seq END,
                              own.forked_at_seq - 1, 0)
  AND (work.due_at IS NULL OR work.due_at <= :now OR work.due_at > :now + :wait_microseconds + :wait_microseconds)
  AND (work.lease_until IS NULL OR work.lease_until <= :now
       OR work.lease_until > :now + :lease_microseconds + :lease_microseconds)
ORDER BY own.group_id, own.conversation_id
LIMIT :limit

-- name: search_backlog
-- Messages that are not indexed yet, messages without a meaning yet, and messages that were given up.
-- across groups
SELECT CAST(COALESCE(SUM(own.last_seq - COALESCE(progress.indexed_seq, own.forked_at_seq - 1, 0)), 0) AS BIGINT),
       CAST(COALESCE(SUM(own.last_seq - COALESCE(CASE WHEN progress.model = :model THEN progress.embedded_seq END,
                                                 own.forked_at_seq - 1, 0)), 0) AS BIGINT),
       CAST(COALESCE(SUM(progress.parked), 0) AS BIGINT)
FROM conversations AS own
LEFT JOIN search_progress AS progress
  ON progress.group_id = own.group_id AND progress.conversation_id = own.conversation_id
WHERE own.owner_id IS NOT NULL AND own.deleted_at IS NULL
-- name: search_backlog [postgres]
-- across groups
SELECT CAST(COALESCE(SUM(own.last_seq - COALESCE(progress.indexed_seq, own.forked_at_seq - 1, 0)), 0) AS BIGINT),
       CAST(COALESCE(SUM(own.last_seq - COALESCE(CASE WHEN progress.model = :model::text THEN progress.embedded_seq END,
                                                 own.forked_at_seq - 1, 0)), 0) AS BIGINT),
       CAST(COALESCE(SUM(progress.parked), 0) AS BIGINT)
FROM conversations AS own
LEFT JOIN search_progress AS progress
  ON progress.group_id = own.group_id AND progress.conversation_id = own.conversation_id
WHERE own.owner_id IS NOT NULL AND own.deleted_at IS NULL

-- name: merge_search
-- As `merge_index`.
-- across groups
INSERT INTO search_entries (search_entries, rank) VALUES ('merge', -500)
-- name: merge_search [postgres]
-- across groups
SELECT 1


-- Posted summaries

-- name: insert_posted
INSERT INTO posted_summaries (group_id, conversation_id, seq, until_seq)
VALUES (:group_id, :conversation_id, :seq, :until_seq)

-- name: ruling_posted
-- One whose content was deleted to save space tells nothing, and neither does one that was cleared. `parts` as in
-- `segments_of_branch`.
SELECT posted.seq, posted.until_seq, message.content
FROM json_each(:parts) AS wanted
CROSS JOIN posted_summaries AS posted
JOIN messages AS message ON message.group_id = posted.group_id AND message.conversation_id = posted.conversation_id
     AND message.seq = posted.seq
WHERE posted.group_id = :group_id AND posted.conversation_id = json_extract(wanted.value, '$[0]')
  AND posted.seq <= json_extract(wanted.value, '$[1]') AND message.content <> ''
  AND (message.state IS NULL OR message.state <> 'cleared'
       OR message.archived_until > json_extract(wanted.value, '$[1]'))
ORDER BY posted.until_seq DESC, posted.seq DESC
LIMIT 1
-- name: ruling_posted [postgres]
SELECT posted.seq, posted.until_seq, message.content
FROM json_array_elements(:parts::json) AS wanted
CROSS JOIN posted_summaries AS posted
JOIN messages AS message ON message.group_id = posted.group_id AND message.conversation_id = posted.conversation_id
     AND message.seq = posted.seq
WHERE posted.group_id = :group_id AND posted.conversation_id = wanted ->> 0 AND posted.seq <= (wanted ->> 1)::bigint
  AND message.content <> ''
  AND (message.state IS NULL OR message.state <> 'cleared' OR message.archived_until > (wanted ->> 1)::bigint)
ORDER BY posted.until_seq DESC, posted.seq DESC
LIMIT 1

-- name: posted_of_group
SELECT posted.conversation_id, posted.seq, posted.until_seq, message.metadata
FROM posted_summaries AS posted
JOIN messages AS message ON message.group_id = posted.group_id AND message.conversation_id = posted.conversation_id
     AND message.seq = posted.seq
WHERE posted.group_id = :group_id

-- name: delete_posted
DELETE FROM posted_summaries WHERE group_id = :group_id AND conversation_id = :conversation_id AND seq = :seq

-- name: set_title
UPDATE conversations SET title = :title WHERE group_id = :group_id AND conversation_id = :conversation_id


-- Recall by meaning

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
