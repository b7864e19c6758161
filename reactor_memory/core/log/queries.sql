-- The SQL of the stores. `reactor_memory.database.statements` says how the file is read.
-- Ids are TEXT, times BIGINT microseconds UTC, flags 0 or 1, JSON is TEXT and NULL when empty.
-- Every statement names the group it works on; what must look across groups says so with `-- across groups`.


-- Conversations

-- part: session_rows
SELECT conversation_id, group_id, owner_id, last_seq, path, created_at, updated_at, title,
       forked_from_id, forked_at_seq, deleted_at
FROM conversations

-- name: session
-- include: session_rows
WHERE group_id = :group_id AND conversation_id = :conversation_id

-- name: lock_session
-- include: session_rows
WHERE group_id = :group_id AND conversation_id = :conversation_id

-- name: lock_session [postgres]
-- include: session_rows
WHERE group_id = :group_id AND conversation_id = :conversation_id
FOR UPDATE

-- name: lock_group
-- include: session_rows
WHERE group_id = :group_id
ORDER BY created_at, conversation_id

-- name: lock_group [postgres]
-- include: session_rows
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

-- name: hide_beginning
-- All before `seq` is out of view in the session itself, if what was put away, from `start_seq` on, follows on what was.
UPDATE conversations SET view_from = :seq
WHERE group_id = :group_id AND conversation_id = :conversation_id AND view_from < :seq
  AND (view_from >= :start_seq OR COALESCE(forked_at_seq, 1) >= :start_seq)

-- name: show_from
-- From the first message in view on, none before `seq`; without one there, as it is.
UPDATE conversations SET view_from = COALESCE((
    SELECT shown.seq FROM messages AS shown
    WHERE shown.group_id = :group_id AND shown.conversation_id = :conversation_id AND shown.state IS NULL
      AND shown.seq >= :seq AND shown.seq < conversations.view_from
    ORDER BY shown.seq
    LIMIT 1), view_from)
WHERE group_id = :group_id AND conversation_id = :conversation_id AND view_from > :seq

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

-- part: next_by_activity
  AND updated_at <= :updated_at AND (updated_at < :updated_at OR conversation_id > :conversation_id)
ORDER BY updated_at DESC, conversation_id
LIMIT :limit

-- name: list_owned
-- across groups
-- include: session_rows
WHERE owner_id = :owner_id AND deleted_at IS NULL
-- include: next_by_activity

-- name: list_matching
-- For whoever owns the database: those of all owners whose id, owner or title is like a pattern in lower case; :escape
-- takes their meaning from % and _.
-- across groups
-- include: session_rows
WHERE deleted_at IS NULL
  AND (LOWER(conversation_id) LIKE :pattern ESCAPE :escape OR LOWER(owner_id) LIKE :pattern ESCAPE :escape
       OR LOWER(title) LIKE :pattern ESCAPE :escape)
-- include: next_by_activity

-- name: list_beginning
-- Ids that lie between two texts, by the key of the table: roots (:of_forks 0), or forks (1) of one root; with an
-- owner those that this user may open. Of those that were deleted only the first text itself: it is an id, too.
-- across groups
-- include: session_rows
WHERE group_id >= :first_group AND group_id <= :last_group
  AND conversation_id >= :first_id AND conversation_id <= :last_id
  AND (deleted_at IS NULL OR conversation_id = :first_id)
  AND (owner_id IS NULL OR owner_id = COALESCE(:owner_id, owner_id))
  AND (conversation_id <> group_id OR :of_forks = 0) AND (conversation_id = group_id OR :of_forks = 1)
ORDER BY group_id, conversation_id
LIMIT :limit

-- name: group
-- include: session_rows
WHERE group_id = :group_id AND deleted_at IS NULL
ORDER BY created_at, conversation_id

-- name: list_groups
-- In the order of their ids, deleted ones, too; with an owner those of this one, by an index that begins with the owner.
-- across groups
SELECT group_id FROM (
    SELECT * FROM (
        SELECT group_id FROM conversations
        WHERE CAST(:owner_id AS TEXT) IS NULL AND group_id > :after AND conversation_id = group_id
        ORDER BY group_id
        LIMIT :limit) AS all_groups
    UNION ALL
    SELECT * FROM (
        SELECT group_id FROM conversations
        WHERE owner_id = :owner_id AND group_id > :after AND conversation_id = group_id
        ORDER BY group_id
        LIMIT :limit) AS own_groups
) AS found
ORDER BY group_id
LIMIT :limit

-- name: list_open
-- across groups
-- include: session_rows
WHERE owner_id IS NULL AND deleted_at IS NULL
-- include: next_by_activity


-- Appending

-- name: find_batch
SELECT seq, batch_fingerprint, batch_size FROM messages
WHERE group_id = :group_id AND conversation_id = :conversation_id AND batch_key = :batch_key

-- name: advance
-- Moves the counter of a session that its owner (or, without one, anybody) continues. Gives no row if it may not, if
-- there is no session, or if it has the batch of the key.
UPDATE conversations
SET last_seq = last_seq + :count,
    stored_bytes = stored_bytes + :stored_bytes,
    updated_at = CASE WHEN updated_at > :now THEN updated_at ELSE :now END,
    last_budget = COALESCE(:last_budget, last_budget)
WHERE group_id = :group_id AND conversation_id = :conversation_id AND deleted_at IS NULL
  AND (owner_id IS NULL OR owner_id = :owner_id)
  AND NOT EXISTS (
    SELECT 1 FROM messages
    WHERE group_id = :group_id AND conversation_id = :conversation_id AND batch_key = :batch_key)
RETURNING last_seq

-- name: begin
-- As `advance`, which gave no row, and begins a root that is not there yet.
INSERT INTO conversations (group_id, conversation_id, owner_id, agent_name, last_seq, stored_bytes, created_at,
                           updated_at, last_budget)
SELECT :group_id, :conversation_id, :owner_id, :agent_name, :count, :stored_bytes, :now, :now, :last_budget
WHERE NOT EXISTS (
    SELECT 1 FROM messages
    WHERE group_id = :group_id AND conversation_id = :conversation_id AND batch_key = :batch_key)
  AND (:group_id = :conversation_id OR EXISTS (
    SELECT 1 FROM conversations AS own WHERE own.group_id = :group_id AND own.conversation_id = :conversation_id))
ON CONFLICT (group_id, conversation_id) DO UPDATE
SET last_seq = conversations.last_seq + excluded.last_seq,
    stored_bytes = conversations.stored_bytes + excluded.stored_bytes,
    updated_at = CASE WHEN conversations.updated_at > excluded.updated_at
                      THEN conversations.updated_at ELSE excluded.updated_at END,
    last_budget = COALESCE(excluded.last_budget, conversations.last_budget)
WHERE conversations.deleted_at IS NULL
  AND (conversations.owner_id IS NULL OR conversations.owner_id = excluded.owner_id)
RETURNING last_seq

-- name: store_last_budget
UPDATE conversations SET last_budget = :budget
WHERE group_id = :group_id AND conversation_id = :conversation_id AND (last_budget IS NULL OR last_budget <> :budget)

-- name: last_budget
SELECT last_budget FROM conversations WHERE group_id = :group_id AND conversation_id = :conversation_id

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
                               updated_at, last_budget)
    SELECT :group_id::text, :conversation_id::text, :owner_id::text, :agent_name::text, :count::bigint,
           :stored_bytes::bigint, :now::bigint, :now::bigint, :last_budget::bigint
    WHERE NOT EXISTS (SELECT 1 FROM known)
      AND (:group_id::text = :conversation_id::text OR EXISTS (
          SELECT 1 FROM conversations AS own
          WHERE own.group_id = :group_id AND own.conversation_id = :conversation_id))
    ON CONFLICT (group_id, conversation_id) DO UPDATE
    SET last_seq = conversations.last_seq + excluded.last_seq,
        stored_bytes = conversations.stored_bytes + excluded.stored_bytes,
        updated_at = GREATEST(conversations.updated_at, excluded.updated_at),
        last_budget = COALESCE(excluded.last_budget, conversations.last_budget)
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
           :last_budgets::bigint[] AS last_budgets,
           :numbers::bigint[] AS numbers, :positions::bigint[] AS positions,
           :message_ids::text[] AS message_ids, :roles::text[] AS roles, :visibilities::text[] AS visibilities,
           :author_ids::text[] AS author_ids, :contents::text[] AS contents, :parts::text[] AS parts,
           :tool_calls::text[] AS tool_calls, :tool_call_ids::text[] AS tool_call_ids, :names::text[] AS names,
           :metadatas::text[] AS metadatas, :token_counts::bigint[] AS token_counts,
           :tokenizers::text[] AS tokenizers, :created_ats::bigint[] AS created_ats
), item AS (
    SELECT item.*
    FROM given, unnest(group_ids, conversation_ids, owner_ids, agent_names, counts, given.stored_bytes, nows,
                       batch_keys, batch_fingerprints, work_everys, last_budgets)
        WITH ORDINALITY AS item (group_id, conversation_id, owner_id, agent_name, count, stored_bytes, now, batch_key,
                                 batch_fingerprint, work_every, last_budget, number)
), advanced AS (
    INSERT INTO conversations (group_id, conversation_id, owner_id, agent_name, last_seq, stored_bytes, created_at,
                               updated_at, last_budget)
    SELECT group_id, conversation_id, owner_id, agent_name, count, stored_bytes, now, now, last_budget
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
        updated_at = GREATEST(conversations.updated_at, excluded.updated_at),
        last_budget = COALESCE(excluded.last_budget, conversations.last_budget)
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

-- name: steps
-- The batches that turns stored while they ran. `ranges` as in `messages_of_ranges`.
SELECT message.seq, batch_key, batch_size
FROM json_each(:ranges) AS wanted
CROSS JOIN messages AS message
WHERE message.group_id = :group_id AND message.conversation_id = json_extract(wanted.value, '$[0]')
  AND message.seq >= json_extract(wanted.value, '$[1]') AND message.seq <= json_extract(wanted.value, '$[2]')
  AND batch_key LIKE :pattern

-- name: steps [postgres]
SELECT message.seq, batch_key, batch_size
FROM json_array_elements(:ranges::json) AS wanted
CROSS JOIN messages AS message
WHERE message.group_id = :group_id AND message.conversation_id = wanted ->> 0
  AND message.seq >= (wanted ->> 1)::bigint AND message.seq <= (wanted ->> 2)::bigint AND batch_key LIKE :pattern

-- part: step_of_message
-- Of the first message of a step: where the turn begins whose step it is, and how many messages the step has.
SUBSTRING(batch_key FROM '^turn ([0-9]{1,18}) after [0-9]{1,18}$')::bigint AS turn_seq, batch_size

-- part: in_view
-- Those of a session that are not hidden from any branch, 9223372036854775807, begin with its `view_from`: what is put
-- away before is not looked through.
FROM messages
WHERE group_id = :group_id AND conversation_id = :conversation_id
  AND seq >= COALESCE((
      SELECT CASE WHEN :hidden_until = 9223372036854775807 AND own.view_from > :start_seq THEN own.view_from
                  ELSE :start_seq END
      FROM conversations AS own
      WHERE own.group_id = :group_id AND own.conversation_id = :conversation_id), :start_seq)
  AND seq <= :end_seq
  AND (state IS NULL OR (state IN ('archived', 'cleared') AND archived_until > :hidden_until))

-- name: messages_oldest_first
-- What was archived until behind `hidden_until` is in view: this branch began before.
SELECT seq, message_id, role, visibility, author_id, content, parts, tool_calls, tool_call_id, name, metadata,
       token_count, tokenizer, created_at
-- include: in_view
ORDER BY seq
LIMIT :limit

-- name: messages_newest_first
SELECT seq, message_id, role, visibility, author_id, content, parts, tool_calls, tool_call_id, name, metadata,
       token_count, tokenizer, created_at
-- include: in_view
ORDER BY seq DESC
LIMIT :limit

-- name: messages_newest_first_with_batches
-- As `messages_newest_first`, with what `steps` gives.
SELECT seq, message_id, role, visibility, author_id, content, parts, tool_calls, tool_call_id, name, metadata,
       token_count, tokenizer, created_at, batch_key, batch_size
-- include: in_view
ORDER BY seq DESC
LIMIT :limit

-- name: system_messages
-- Those that a summary stands for, too: of each name, and of each agent that keeps them for itself, the newest and all.
SELECT name, CASE WHEN visibility = 'agent' THEN author_id END AS kept_by, MAX(seq), GROUP_CONCAT(seq)
FROM messages
WHERE group_id = :group_id AND conversation_id = :conversation_id AND role = 'system'
  AND seq >= :start_seq AND seq <= :end_seq
  AND (state IS NULL OR (state = 'archived' AND archived_by IS NOT NULL)
       OR (state IN ('archived', 'cleared') AND archived_until > :hidden_until))
GROUP BY name, kept_by

-- name: system_messages [postgres]
SELECT name, CASE WHEN visibility = 'agent' THEN author_id END AS kept_by, MAX(seq), STRING_AGG(seq::text, ',')
FROM messages
WHERE group_id = :group_id AND conversation_id = :conversation_id AND role = 'system'
  AND seq >= :start_seq AND seq <= :end_seq
  AND (state IS NULL OR (state = 'archived' AND archived_by IS NOT NULL)
       OR (state IN ('archived', 'cleared') AND archived_until > :hidden_until))
GROUP BY name, kept_by

-- name: messages_to_export
-- With what a store keeps beside them, in view or not.
SELECT seq, message_id, role, visibility, author_id, content, parts, tool_calls, tool_call_id, name, metadata,
       token_count, tokenizer, created_at, state, archived_by, archived_until, batch_key, batch_fingerprint, batch_size
FROM messages
WHERE group_id = :group_id AND conversation_id = :conversation_id AND seq > :after
ORDER BY seq
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

-- part: session_and_pins
-- The beginning of the statements that read a context. `part` tells their rows apart: 0 session, 1 summary, 2 layout,
-- 3 message (with its step), 4 pin, 5 system message at the head of the session, 6 whether there are later ones. The columns are those of
-- a message and two more.
SELECT 0 AS part, last_seq AS n1, conversation_id AS t1, group_id AS t2, owner_id AS t3, path AS t4, title AS t5,
       forked_from_id AS t6, NULL AS t7, NULL AS t8, NULL AS t9, NULL AS t10, created_at AS n2, NULL AS t11,
       updated_at AS n3, forked_at_seq AS n4, deleted_at AS n5
FROM own
UNION ALL
SELECT 4, place, role, text, details, tokenizer, NULL, NULL, NULL, NULL, NULL, NULL, seq, NULL, token_count,
       created_at, NULL
FROM entries AS pin
WHERE group_id = :group_id AND conversation_id = :conversation_id AND kind = 'pin' AND NOT EXISTS (
    SELECT 1 FROM messages AS pinned
    WHERE pinned.group_id = pin.group_id AND pinned.conversation_id = pin.conversation_id AND pinned.seq = pin.seq
      AND pinned.state = 'cleared')
UNION ALL
SELECT 5, seq, message_id, role, visibility, author_id, content, parts, tool_calls, tool_call_id, name, metadata,
       token_count, tokenizer, created_at, NULL, NULL
FROM messages
WHERE group_id = :group_id AND conversation_id = :group_id AND seq <= :most_leading::bigint AND role = 'system'
  AND (state IS NULL OR (state IN ('archived', 'cleared')
                         AND archived_until > (SELECT (path::json -> 0 ->> 'end_seq')::bigint FROM own)))
UNION ALL
SELECT 6, 1, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL
WHERE EXISTS (SELECT 1 FROM messages WHERE group_id = :group_id AND role = 'system' AND seq > 1)
UNION ALL

-- part: summary_and_layout
SELECT 1, covered_seq, narrative, CASE WHEN :facts::boolean THEN facts_json END, stale_ranges, truncated::text,
       CASE WHEN :facts::boolean THEN spare_json END, CASE WHEN :facts::boolean THEN lines_json END,
       NULL, NULL, NULL, NULL,
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
           token_count, tokenizer, created_at,
-- include: step_of_message
    FROM messages
    WHERE group_id = :group_id AND conversation_id = :conversation_id AND state IS NULL
      AND seq >= (SELECT view_from FROM own)
    ORDER BY seq DESC
    LIMIT :last_count
)

-- name: read_context [postgres]
-- Above the trigger, the newest messages of a root until their tokens pass the limit.
WITH own AS (
    SELECT * FROM conversations WHERE group_id = :group_id AND conversation_id = :conversation_id
), newest AS (
    SELECT seq, message_id, role, visibility, author_id, content, parts, tool_calls, tool_call_id, name, metadata,
           token_count, tokenizer, created_at,
-- include: step_of_message
    FROM messages
    WHERE group_id = :group_id AND conversation_id = :conversation_id AND state IS NULL
      AND seq >= (SELECT view_from FROM own)
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
           token_count, tokenizer, created_at,
-- include: step_of_message
    FROM messages
    WHERE group_id = :group_id AND conversation_id = :conversation_id AND state IS NULL
      AND seq >= (SELECT CASE WHEN is_above THEN COALESCE((
              SELECT first.seq
              FROM context_layouts AS layout, LATERAL (
                  SELECT seq FROM messages
                  WHERE group_id = :group_id AND conversation_id = :conversation_id AND state IS NULL
                    AND seq <= layout.window_start_seq AND seq >= view_from
                  ORDER BY seq DESC
                  LIMIT 1
              ) AS first
              WHERE layout.group_id = :group_id AND layout.conversation_id = :conversation_id
                AND layout.budget = :budget AND layout.settings_fingerprint = :settings_fingerprint
          ), CASE WHEN last_seq <= :likely_count::bigint THEN view_from END) ELSE view_from END FROM own)
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
               token_count, tokenizer, created_at,
-- include: step_of_message
        FROM messages
        WHERE group_id = :group_id AND conversation_id = range ->> 'conversation_id'
          AND (state IS NULL OR (state IN ('archived', 'cleared') AND archived_until > (range ->> 'end_seq')::bigint))
          AND seq >= GREATEST((range ->> 'start_seq')::bigint, CASE WHEN range ->> 'end_seq' IS NULL THEN own.view_from END)
          AND seq <= COALESCE((range ->> 'end_seq')::bigint, own.last_seq)
        ORDER BY seq DESC
        LIMIT own.row_limit
    ) AS message
    ORDER BY seq DESC
    LIMIT (SELECT row_limit FROM own)
)
-- include: session_and_pins
-- include: summary_and_layout
-- include: within_tokens

-- part: within_tokens
-- The end of these statements: above the trigger, a message is shown unless the newer ones have passed the limit.
SELECT 3, seq, message_id, role, visibility, author_id, content, parts, tool_calls, tool_call_id, name, metadata,
       token_count, tokenizer, created_at, turn_seq, batch_size
FROM (
    SELECT newest.*, COALESCE(SUM(CASE WHEN role = 'summary' AND visibility = 'agent' THEN 0
                                       ELSE LEAST(COALESCE(token_count, 0), :max_message_tokens::bigint)
                                            + :overhead::bigint END)
               OVER (ORDER BY seq DESC ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING), 0) AS newer_tokens
    FROM newest
) AS counted
WHERE newer_tokens <= :max_tokens::bigint
   OR NOT EXISTS (SELECT 1 FROM own WHERE last_seq > :trigger_message_count::bigint)

-- name: session_with_pins
-- One row a pin, or one row without any. A pin of what was cleared is not shown.
SELECT own.conversation_id, own.group_id, own.owner_id, own.last_seq, own.path, own.created_at, own.updated_at,
       own.title, own.forked_from_id, own.forked_at_seq, own.deleted_at,
       pin.place, pin.seq, pin.role, pin.text, pin.details, pin.token_count, pin.tokenizer, pin.created_at
FROM conversations AS own
LEFT JOIN entries AS pin ON pin.group_id = own.group_id AND pin.conversation_id = own.conversation_id
     AND pin.kind = 'pin' AND NOT EXISTS (
    SELECT 1 FROM messages AS pinned
    WHERE pinned.group_id = :group_id AND pinned.conversation_id = pin.conversation_id AND pinned.seq = pin.seq
      AND pinned.state = 'cleared')
WHERE own.group_id = :group_id AND own.conversation_id = :conversation_id
ORDER BY pin.place

-- part: own_session
SELECT own.conversation_id, own.group_id, own.owner_id, own.last_seq, own.path, own.created_at, own.updated_at,
       own.title, own.forked_from_id, own.forked_at_seq, own.deleted_at,
       EXISTS (SELECT 1 FROM messages AS first

-- part: is_of_system
               WHERE first.group_id = :group_id AND first.conversation_id = :group_id AND first.seq = 1
                 AND first.role = 'system') AS begins_with_system,
       EXISTS (SELECT 1 FROM messages AS later

-- part: session_and_changes
               WHERE later.group_id = :group_id AND later.role = 'system' AND later.seq > 1) AS has_standing,
       EXISTS (SELECT 1 FROM entries AS pin
               WHERE pin.group_id = :group_id AND pin.conversation_id = :conversation_id AND pin.kind = 'pin')
           AS has_pins,
       (SELECT root.changes FROM conversations AS root
        WHERE root.group_id = :group_id AND root.conversation_id = :group_id) AS changes
FROM conversations AS own
WHERE own.group_id = :group_id AND own.conversation_id = :conversation_id

-- name: proof
-- What stays the same as long as nothing does that a load reads of the session (SQLite: triggers count `changes`). The
-- columns are those of a session, and one more.
SELECT conversation_id, group_id, owner_id, last_seq, path, created_at, updated_at, title,
       forked_from_id, forked_at_seq, deleted_at,
       (SELECT root.changes FROM conversations AS root
        WHERE root.group_id = :group_id AND root.conversation_id = :group_id) AS changes
FROM conversations
WHERE group_id = :group_id AND conversation_id = :conversation_id

-- name: session_head
-- What a load has to know of a session before it reads its messages. Left to choose, SQLite would look through all
-- messages of the group for those of the system.
-- include: own_session
               INDEXED BY messages_of_system
-- include: is_of_system
               INDEXED BY messages_of_system
-- include: session_and_changes

-- name: session_head [postgres]
-- include: own_session
-- include: is_of_system
-- include: session_and_changes

-- name: withdraw_message
UPDATE messages SET state = 'withdrawn'
WHERE group_id = :group_id AND conversation_id = :conversation_id AND seq = :seq


-- Segments, facts, summaries, layouts

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
WHERE (context_layouts.seq, context_layouts.covered_seq, context_layouts.window_start_seq)
      < (excluded.seq, excluded.covered_seq, excluded.window_start_seq)

-- name: delete_messages
DELETE FROM messages WHERE group_id = :group_id AND conversation_id = :conversation_id

-- name: delete_layouts
DELETE FROM context_layouts WHERE group_id = :group_id AND conversation_id = :conversation_id


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

-- name: server_clock
-- Whose clock times leases: of all processes the same one. It is asked first and comes back as `clock`, since what a
-- statement does on a shard may depend on its parameters alone.
SELECT :now

-- name: server_clock [postgres]
SELECT (EXTRACT(EPOCH FROM now()) * 1000000)::bigint

-- name: claim
-- What ends more than twice as far ahead as it can was written by a wrong clock. Twice, as who waited for a lock looked
-- at the clock before who held it.
-- A claim makes the work due, so that who dies with the lease leaves it to be found. Of a deleted conversation there is
-- nothing left to do but to erase it.
INSERT INTO background_work (group_id, conversation_id, kind, due_at, lease_until, fence, attempts)
SELECT :group_id, :conversation_id, :kind, :now, :clock + :lease_microseconds, 1, 0
WHERE :kind = 'scrub' OR EXISTS (
    SELECT 1 FROM conversations
    WHERE group_id = :group_id AND conversation_id = :conversation_id
      AND (deleted_at IS NULL OR :kind IN ('erase_user', 'forget')))
ON CONFLICT (group_id, conversation_id, kind) DO UPDATE
SET fence = background_work.fence + 1, lease_until = excluded.lease_until, parked = 0, touched = 0,
    due_at = CASE WHEN background_work.due_at < excluded.due_at THEN background_work.due_at ELSE excluded.due_at END
WHERE (background_work.lease_until <= :clock OR background_work.lease_until > :clock + 2 * :lease_microseconds)
  AND (:by_name = 1 OR (background_work.parked = 0 AND (background_work.due_at IS NULL OR background_work.due_at <= :now
                                                        OR background_work.due_at > :now + :wait_microseconds + :wait_microseconds)))
RETURNING fence, lease_until, attempts

-- name: claim [postgres]
INSERT INTO background_work (group_id, conversation_id, kind, due_at, lease_until, fence, attempts)
SELECT :group_id, :conversation_id, :kind, :now, :clock::bigint + :lease_microseconds::bigint, 1, 0
FROM conversations
WHERE group_id = :group_id AND conversation_id = :conversation_id AND (deleted_at IS NULL OR :kind IN ('erase_user', 'forget'))
FOR KEY SHARE
ON CONFLICT (group_id, conversation_id, kind) DO UPDATE
SET fence = background_work.fence + 1, lease_until = excluded.lease_until, parked = 0, touched = 0,
    due_at = LEAST(background_work.due_at, excluded.due_at)
WHERE (background_work.lease_until <= :clock::bigint
       OR background_work.lease_until > excluded.lease_until + :lease_microseconds::bigint)
  AND (:by_name::bigint = 1
       OR (background_work.parked = 0 AND (background_work.due_at IS NULL OR background_work.due_at <= excluded.due_at
                                           OR background_work.due_at > excluded.due_at + 2 * :wait_microseconds::bigint)))
RETURNING fence, lease_until, attempts

-- name: renew
UPDATE background_work SET lease_until = CAST(:clock AS BIGINT) + CAST(:lease_microseconds AS BIGINT)
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
-- Of a kind what is due behind one time and up to another, the longest waiting first. The scrub is of no conversation.
-- across groups
SELECT work.conversation_id, work.due_at
FROM background_work AS work
LEFT JOIN conversations AS own ON own.group_id = work.group_id AND own.conversation_id = work.conversation_id
WHERE work.kind = :kind AND work.due_at > :after AND work.due_at <= :until AND work.parked = 0
  AND (own.deleted_at IS NULL OR work.kind IN ('erase_user', 'forget'))
  AND (work.lease_until <= :clock OR work.lease_until > :latest_lease)
ORDER BY work.due_at, work.conversation_id
LIMIT :limit

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
SELECT current_setting('server_version'), current_database()

-- name: has_citus
SELECT 0

-- name: has_citus [postgres]
SELECT (to_regclass('pg_dist_partition') IS NOT NULL)::int

-- name: undistributed_tables [postgres]
-- Of ours, with the column that the primary key begins with.
SELECT own.relname::text, first.attname::text
FROM pg_class AS own
JOIN pg_index AS key ON key.indrelid = own.oid AND key.indisprimary
JOIN pg_attribute AS first ON first.attrelid = own.oid AND first.attnum = key.indkey[0]
WHERE own.relnamespace = to_regnamespace(COALESCE(current_schema(), 'public'))
  AND own.relname = ANY(:tables::text[])
  AND NOT EXISTS (SELECT 1 FROM pg_dist_partition AS placed WHERE placed.logicalrelid = own.oid)

-- name: distributed_tables [postgres]
SELECT table_name::text, distribution_column::text, shard_count::bigint FROM citus_tables
WHERE table_name::text = ANY(:tables::text[])

-- name: place_shards [postgres]
SELECT create_distributed_table(CAST(:table::text AS regclass), :key::text, colocate_with => :beside::text)

-- name: place_copies [postgres]
SELECT create_reference_table(CAST(:table::text AS regclass))

-- part: totals_and_gaps
-- What `doctor` asks of groups: 0 how many sessions and messages they have, 1 a session whose counter and messages
-- disagree, 2 how many things of a kind an erasure has left to do, with the most attempts and an error.
WITH held AS (
    SELECT conversation.conversation_id, conversation.deleted_at, conversation.purged_at, conversation.last_seq,
           conversation.last_seq - COALESCE(conversation.forked_at_seq - 1, 0) AS wanted,
           COUNT(message.seq) AS found, MAX(message.seq) AS last_found
    FROM conversations AS conversation
    LEFT JOIN messages AS message
      ON message.group_id = conversation.group_id AND message.conversation_id = conversation.conversation_id

-- part: gaps_and_left
    GROUP BY conversation.group_id, conversation.conversation_id, conversation.deleted_at, conversation.purged_at,
             conversation.last_seq, conversation.forked_at_seq
)
SELECT 0 AS part, NULL AS text, CAST(COUNT(CASE WHEN deleted_at IS NULL THEN 1 END) AS BIGINT) AS n1,
       CAST(COALESCE(SUM(found), 0) AS BIGINT) AS n2, NULL AS error
FROM held
UNION ALL
SELECT * FROM (
    SELECT 1, conversation_id, CAST(0 AS BIGINT), CAST(0 AS BIGINT), NULL FROM held
    WHERE purged_at IS NULL AND (found <> wanted OR COALESCE(last_found, last_seq) <> last_seq)
    ORDER BY conversation_id
    LIMIT :limit) AS gaps
UNION ALL
SELECT 2, kind, CAST(COUNT(*) AS BIGINT), CAST(MAX(attempts) AS BIGINT), MAX(last_error) FROM background_work

-- name: examined
-- Of these groups; `groups` is JSON: lists of one id.
-- include: totals_and_gaps
    WHERE conversation.group_id IN (SELECT json_extract(value, '$[0]') FROM json_each(:groups))
-- include: gaps_and_left
WHERE group_id IN (SELECT json_extract(value, '$[0]') FROM json_each(:groups))
  AND kind IN (:scrub, :erase, :forget, :erase_user)
GROUP BY kind

-- name: examined [postgres]
-- by group: groups[0]
-- include: totals_and_gaps
    WHERE conversation.group_id = ANY(:group_ids::text[])
-- include: gaps_and_left
WHERE group_id = ANY(:group_ids::text[]) AND kind IN (:scrub, :erase, :forget, :erase_user)
GROUP BY kind



-- Summaries of ranges

-- name: ids_in_view
SELECT seq, message_id FROM messages
WHERE group_id = :group_id AND conversation_id = :conversation_id
  AND seq >= :start_seq AND seq <= :end_seq AND state IS NULL
ORDER BY seq


-- What is archived

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


-- Who reads. On PostgreSQL rows are fenced: those of a user are there for a transaction that names the user, those of a
-- group for one that names the group as well, or nobody.

-- name: name_user
SELECT :user_id

-- name: name_user [postgres]
-- passed on
SELECT set_config('reactor_memory.user_id', :user_id, true) AS user_id

-- name: name_reader
SELECT :user_id, :group_id

-- name: name_reader [postgres]
-- passed on
SELECT set_config('reactor_memory.user_id', :user_id, true) AS user_id,
       set_config('reactor_memory.group_ids', CAST(ARRAY[:group_id::text] AS text), true) AS group_ids

-- name: name_all_users
SELECT 1

-- name: name_all_users [postgres]
-- passed on
SELECT set_config('reactor_memory.all_users', 'yes', true) AS all_users


-- Erasing

-- name: entomb_messages
UPDATE messages
SET state = 'erased', author_id = NULL, client_id = NULL, content = '', parts = NULL, tool_calls = NULL,
    tool_call_id = NULL, name = NULL, metadata = NULL, token_count = 0, archived_by = NULL, archived_until = NULL
WHERE group_id = :group_id AND conversation_id = :conversation_id AND seq >= :start_seq AND seq <= :end_seq
  AND (state IS NULL OR state <> 'erased')
RETURNING seq

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

-- name: note_forgetting
INSERT INTO background_work (group_id, conversation_id, kind, due_at, lease_until, fence, attempts)
VALUES (:group_id, :conversation_id, :kind, :due_at, 0, 0, 0)
ON CONFLICT (group_id, conversation_id, kind) DO NOTHING

-- name: group_ids
SELECT conversation_id FROM conversations WHERE group_id = :group_id

-- name: changed_rows
SELECT total_changes()

-- name: changed_rows [postgres]
SELECT 0

-- name: note_scrub
-- One row for the whole database, of no conversation. A growing fence tells what was destroyed since a scrub began.
INSERT INTO background_work (group_id, conversation_id, kind, due_at, lease_until, fence, attempts, touched)
VALUES ('', '', 'scrub', :due_at, 0, 1, 0, 1)
ON CONFLICT (group_id, conversation_id, kind) DO UPDATE
SET fence = background_work.fence + 1, lease_until = 0, touched = 1,
    due_at = CASE WHEN background_work.due_at < excluded.due_at THEN background_work.due_at ELSE excluded.due_at END

-- name: note_scrub [postgres]
SELECT 1

-- name: noted_scrub
SELECT fence FROM background_work WHERE group_id = '' AND conversation_id = '' AND kind = :kind

-- name: finish_scrub
DELETE FROM background_work WHERE group_id = '' AND conversation_id = '' AND kind = 'scrub' AND fence = :fence

-- name: scrub_soon
-- Unless somebody has a lease of it.
UPDATE background_work SET due_at = 0
WHERE group_id = '' AND conversation_id = '' AND kind = 'scrub' AND fence = :fence AND lease_until = 0 AND attempts = 0

-- name: rewrite
-- across groups
VACUUM

-- name: rewrite [postgres]
-- across groups
VACUUM (FULL) conversations, messages, entries, segments, facts, fact_anchors, conversation_summaries, context_layouts,
              recall_passages, fact_corrections, active_sessions, items, search_entries,
              embeddings

-- What applications keep by namespace and key. A namespace is a path of labels with points between them, so those below
-- `a` lie between `a.` and `a/`, the character that follows the point.


-- Corrections

-- name: is_in_view
SELECT seq FROM messages
WHERE group_id = :group_id AND conversation_id = :conversation_id AND seq = :seq
  AND (state IS NULL OR state = 'archived')


-- Conversations that people share

-- name: first_shown_text
SELECT SUBSTR(content, 1, :length) FROM messages
WHERE group_id = :group_id AND conversation_id = :conversation_id
  AND seq >= :start_seq AND seq <= :end_seq AND role = 'user' AND visibility = 'user'
  AND (state IS NULL OR state = 'archived')
ORDER BY seq
LIMIT 1

-- name: shown_texts
SELECT SUBSTR(content, 1, :length) FROM messages
WHERE group_id = :group_id AND conversation_id = :conversation_id
  AND seq >= :start_seq AND seq <= :end_seq AND role = 'user' AND visibility = 'user'

-- name: take_title_away
UPDATE conversations SET title = NULL WHERE group_id = :group_id AND title = :title


-- Responses that are being written

-- name: seqs_in_view
SELECT seq FROM messages
WHERE group_id = :group_id AND conversation_id = :conversation_id AND seq > :after AND seq <= :end_seq
  AND (state IS NULL OR state = 'archived')


-- Posted summaries

-- name: set_title
UPDATE conversations SET title = :title WHERE group_id = :group_id AND conversation_id = :conversation_id
