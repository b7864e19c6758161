-- The tables of a chat on Supabase over those of the store: user_agent_active_sessions, agent_long_term_memory and
-- chat_message_history, for supabase-js, PostgREST and langchain-postgres. Running it again changes nothing.
--
-- Run it as a role that row-level security does not bind, as `postgres` of Supabase is one: what it makes reads and
-- writes the tables of the store for others, and decides by auth.uid() what they see.

SET LOCAL search_path = public, pg_temp;
SET LOCAL client_min_messages = warning;

DO $$ BEGIN
    IF to_regprocedure('auth.uid()') IS NULL THEN
        RAISE EXCEPTION 'there is no function auth.uid(): this database is not one of Supabase';
    END IF;
    IF (SELECT count(*) FROM pg_roles WHERE rolname IN ('anon', 'authenticated', 'service_role')) < 3 THEN
        RAISE EXCEPTION 'the roles anon, authenticated and service_role are missing: this server is not one of Supabase';
    END IF;
    IF row_security_active('messages') THEN
        RAISE EXCEPTION 'row-level security binds the role %: run this as one with BYPASSRLS', current_user;
    END IF;
    IF EXISTS (SELECT FROM pg_class WHERE oid = to_regclass('public.chat_message_history') AND relkind <> 'v') THEN
        RAISE EXCEPTION 'there is a table chat_message_history: rename it, run this, and import it '
            '(reactor_memory.adapters.langchain_postgres.import_chat_history)';
    END IF;
END $$;


-- The tables of the store: out of reach for users, but for reading rows that name them

DO $$
DECLARE
    fenced name;
    own CONSTANT jsonb := '{
        "active_sessions": "user_id = auth.uid()::text",
        "entries": "user_id = auth.uid()::text",
        "items": "user_id = auth.uid()::text",
        "memberships": "user_id = auth.uid()::text",
        "ownership_transfers": "auth.uid()::text IN (from_user_id, to_user_id)",
        "conversations": "owner_id = auth.uid()::text"}';
BEGIN
    FOR fenced IN SELECT tablename FROM pg_policies WHERE schemaname = 'public' AND policyname = 'own_rows' LOOP
        EXECUTE format('REVOKE ALL ON %I FROM PUBLIC, anon, authenticated', fenced);
        EXECUTE format('GRANT ALL ON %I TO service_role', fenced);
        EXECUTE format('DROP POLICY IF EXISTS not_for_others ON %I', fenced);
        EXECUTE format('CREATE POLICY not_for_others ON %I AS RESTRICTIVE TO anon, authenticated USING (%s)', fenced,
                       coalesce(own ->> fenced, 'false'));
        EXECUTE format('DROP POLICY IF EXISTS for_their_user ON %I', fenced);
        IF own ? fenced THEN
            EXECUTE format('CREATE POLICY for_their_user ON %I FOR SELECT TO authenticated USING (%s)', fenced,
                           own ->> fenced);
            EXECUTE format('GRANT SELECT ON %I TO authenticated', fenced);
        END IF;
    END LOOP;
END $$;

ALTER TABLE reactor_memory_revision ENABLE ROW LEVEL SECURITY;
REVOKE ALL ON reactor_memory_revision FROM PUBLIC, anon, authenticated;
GRANT SELECT ON reactor_memory_revision TO service_role;


-- Values of both sides

CREATE OR REPLACE FUNCTION reactor_memory_uuid(id text) RETURNS uuid LANGUAGE sql IMMUTABLE AS $$
SELECT CASE WHEN id ~ '^[0-9a-f]{8}-([0-9a-f]{4}-){3}[0-9a-f]{12}$' THEN id::uuid END
$$;

CREATE OR REPLACE FUNCTION reactor_memory_time(microseconds bigint) RETURNS timestamptz LANGUAGE sql IMMUTABLE AS $$
SELECT timestamptz 'epoch' + microseconds * interval '1 microsecond'
$$;

CREATE OR REPLACE FUNCTION reactor_memory_microseconds(moment timestamptz) RETURNS bigint LANGUAGE sql IMMUTABLE AS $$
SELECT (extract(epoch FROM moment) * 1000000)::bigint
$$;

-- Whether a user may stand in the tables below, which refer to auth.users where that exists
CREATE OR REPLACE FUNCTION reactor_memory_is_user(id uuid) RETURNS boolean LANGUAGE plpgsql STABLE SECURITY DEFINER
SET search_path FROM CURRENT AS $$
DECLARE found boolean;
BEGIN
    IF id IS NULL OR to_regclass('auth.users') IS NULL THEN
        RETURN id IS NOT NULL;
    END IF;
    EXECUTE 'SELECT EXISTS (SELECT FROM auth.users WHERE auth.users.id = $1)' INTO found USING id;
    RETURN found;
END $$;
REVOKE ALL ON FUNCTION reactor_memory_is_user(uuid) FROM PUBLIC, anon, authenticated;


-- user_agent_active_sessions: the session in which a user talks to an agent now

CREATE TABLE IF NOT EXISTS user_agent_active_sessions (
    user_id uuid NOT NULL,
    agent_name text NOT NULL,
    active_session_id text NOT NULL,
    last_active_at timestamptz NOT NULL DEFAULT now(),
    created_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (user_id, agent_name)
);

CREATE OR REPLACE FUNCTION reactor_memory_show_active() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER
SET search_path FROM CURRENT AS $$
DECLARE
    own uuid := reactor_memory_uuid(coalesce(NEW.user_id, OLD.user_id));
BEGIN
    IF TG_OP = 'DELETE' OR NEW.active_session_id IS NULL THEN
        DELETE FROM user_agent_active_sessions
        WHERE user_id = own AND agent_name = coalesce(NEW.agent_name, OLD.agent_name);
    ELSIF reactor_memory_is_user(own) THEN
        INSERT INTO user_agent_active_sessions AS shown
        VALUES (own, NEW.agent_name, NEW.active_session_id, reactor_memory_time(NEW.last_active_at),
                reactor_memory_time(NEW.created_at))
        ON CONFLICT (user_id, agent_name) DO UPDATE
        SET active_session_id = excluded.active_session_id, last_active_at = excluded.last_active_at
        WHERE (shown.active_session_id, shown.last_active_at)
              IS DISTINCT FROM (excluded.active_session_id, excluded.last_active_at);
    END IF;
    RETURN NULL;
END $$;

CREATE OR REPLACE FUNCTION reactor_memory_take_active() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER
SET search_path FROM CURRENT AS $$
BEGIN
    IF TG_OP = 'DELETE' THEN
        UPDATE active_sessions SET active_session_id = NULL
        WHERE user_id = OLD.user_id::text AND agent_name = OLD.agent_name AND active_session_id IS NOT NULL;
    ELSE
        INSERT INTO active_sessions AS own
        VALUES (NEW.user_id::text, NEW.agent_name, NEW.active_session_id,
                reactor_memory_microseconds(NEW.last_active_at), reactor_memory_microseconds(NEW.created_at))
        ON CONFLICT (user_id, agent_name) DO UPDATE
        SET active_session_id = excluded.active_session_id, last_active_at = excluded.last_active_at
        WHERE (own.active_session_id, own.last_active_at)
              IS DISTINCT FROM (excluded.active_session_id, excluded.last_active_at);
    END IF;
    RETURN NULL;
END $$;


-- agent_long_term_memory: the notes of an agent about a user

CREATE TABLE IF NOT EXISTS agent_long_term_memory (
    id uuid PRIMARY KEY DEFAULT gen_random_uuid(),
    user_id uuid NOT NULL,
    agent_name text NOT NULL,
    notes text,
    created_at timestamptz NOT NULL DEFAULT now(),
    updated_at timestamptz NOT NULL DEFAULT now(),
    UNIQUE (user_id, agent_name)
);

CREATE OR REPLACE FUNCTION reactor_memory_show_notes() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER
SET search_path FROM CURRENT AS $$
DECLARE
    changed entries := coalesce(NEW, OLD);
    own uuid := reactor_memory_uuid(changed.user_id);
    newest entries;
BEGIN
    SELECT * INTO newest FROM entries
    WHERE group_id = changed.group_id AND conversation_id = '' AND kind = 'notes' AND name = changed.name
    ORDER BY version DESC LIMIT 1;
    IF coalesce(newest.text, '') = '' THEN
        DELETE FROM agent_long_term_memory WHERE user_id = own AND agent_name = changed.name AND notes <> '';
    ELSIF reactor_memory_is_user(own) THEN
        INSERT INTO agent_long_term_memory AS shown (user_id, agent_name, notes, created_at, updated_at)
        VALUES (own, newest.name, newest.text, reactor_memory_time(newest.created_at),
                reactor_memory_time(newest.created_at))
        ON CONFLICT (user_id, agent_name) DO UPDATE SET notes = excluded.notes, updated_at = excluded.updated_at
        WHERE shown.notes IS DISTINCT FROM excluded.notes;
    END IF;
    RETURN NULL;
END $$;

CREATE OR REPLACE FUNCTION reactor_memory_take_notes() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER
SET search_path FROM CURRENT AS $$
DECLARE
    changed agent_long_term_memory := coalesce(NEW, OLD);
    said text := CASE WHEN TG_OP = 'DELETE' THEN '' ELSE coalesce(NEW.notes, '') END;
    newest entries;
BEGIN
    SELECT * INTO newest FROM entries
    WHERE group_id = changed.user_id::text AND conversation_id = '' AND kind = 'notes' AND name = changed.agent_name
    ORDER BY version DESC LIMIT 1;
    IF coalesce(newest.text, '') IS DISTINCT FROM said THEN
        INSERT INTO entries (group_id, conversation_id, user_id, kind, name, version, place, start_seq, end_seq,
                             created_at, text)
        VALUES (changed.user_id::text, '', changed.user_id::text, 'notes', changed.agent_name,
                coalesce(newest.version, 0) + 1, 0, 0, 0, reactor_memory_microseconds(clock_timestamp()), said);
    END IF;
    RETURN NULL;
END $$;


-- Of both: their key stays, and the time of an update is now where the update names none

CREATE OR REPLACE FUNCTION reactor_memory_stamp() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF (NEW.user_id, NEW.agent_name) IS DISTINCT FROM (OLD.user_id, OLD.agent_name) THEN
        RAISE EXCEPTION 'user_id and agent_name of a row stay: delete it and insert another';
    END IF;
    IF TG_TABLE_NAME = 'agent_long_term_memory' THEN
        IF NEW.updated_at = OLD.updated_at THEN NEW.updated_at := now(); END IF;
    ELSIF NEW.last_active_at = OLD.last_active_at THEN
        NEW.last_active_at := now();
    END IF;
    RETURN NEW;
END $$;

DO $$
DECLARE named name;
BEGIN
    FOREACH named IN ARRAY ARRAY['user_agent_active_sessions', 'agent_long_term_memory'] LOOP
        EXECUTE format('ALTER TABLE %I ENABLE ROW LEVEL SECURITY', named);
        EXECUTE format('DROP POLICY IF EXISTS of_their_user ON %I', named);
        EXECUTE format('CREATE POLICY of_their_user ON %I TO authenticated USING (user_id = auth.uid()) '
                       'WITH CHECK (user_id = auth.uid())', named);
        EXECUTE format('REVOKE ALL ON %I FROM PUBLIC, anon, authenticated', named);
        EXECUTE format('GRANT SELECT ON %I TO anon', named);
        EXECUTE format('GRANT SELECT, INSERT, UPDATE, DELETE ON %I TO authenticated', named);
        EXECUTE format('GRANT ALL ON %I TO service_role', named);
        EXECUTE format('CREATE OR REPLACE TRIGGER stamp BEFORE UPDATE ON %I '
                       'FOR EACH ROW EXECUTE FUNCTION reactor_memory_stamp()', named);
        IF to_regclass('auth.users') IS NOT NULL AND NOT EXISTS (
            SELECT FROM pg_constraint WHERE conrelid = named::text::regclass AND confrelid = to_regclass('auth.users')
        ) THEN
            EXECUTE format('ALTER TABLE %I ADD FOREIGN KEY (user_id) REFERENCES auth.users (id) ON DELETE CASCADE', named);
        END IF;
    END LOOP;
END $$;

CREATE OR REPLACE TRIGGER show_active AFTER INSERT OR UPDATE OR DELETE ON active_sessions
    FOR EACH ROW EXECUTE FUNCTION reactor_memory_show_active();
CREATE OR REPLACE TRIGGER take_active AFTER INSERT OR UPDATE OR DELETE ON user_agent_active_sessions
    FOR EACH ROW EXECUTE FUNCTION reactor_memory_take_active();
CREATE OR REPLACE TRIGGER show_notes AFTER INSERT OR UPDATE ON entries
    FOR EACH ROW WHEN (NEW.kind = 'notes') EXECUTE FUNCTION reactor_memory_show_notes();
CREATE OR REPLACE TRIGGER show_notes_gone AFTER DELETE ON entries
    FOR EACH ROW WHEN (OLD.kind = 'notes') EXECUTE FUNCTION reactor_memory_show_notes();
CREATE OR REPLACE TRIGGER take_notes AFTER INSERT OR UPDATE OR DELETE ON agent_long_term_memory
    FOR EACH ROW EXECUTE FUNCTION reactor_memory_take_notes();

-- What was there before, on either side: an update without a change makes the triggers look
UPDATE active_sessions SET active_session_id = active_session_id;
UPDATE entries SET text = text WHERE kind = 'notes' AND user_id <> '';
INSERT INTO active_sessions
SELECT user_id::text, agent_name, active_session_id, reactor_memory_microseconds(last_active_at),
       reactor_memory_microseconds(created_at)
FROM user_agent_active_sessions
ON CONFLICT DO NOTHING;
INSERT INTO entries (group_id, conversation_id, user_id, kind, name, version, place, start_seq, end_seq, created_at, text)
SELECT user_id::text, '', user_id::text, 'notes', agent_name, 1, 0, 0, 0, reactor_memory_microseconds(updated_at), notes
FROM agent_long_term_memory AS shown
WHERE notes <> '' AND NOT EXISTS (
    SELECT FROM entries
    WHERE group_id = shown.user_id::text AND conversation_id = '' AND kind = 'notes' AND name = shown.agent_name);


-- chat_message_history: the messages in the form of langchain-postgres. `id` counts within a session.

CREATE OR REPLACE FUNCTION reactor_memory_blocks(said text, others jsonb, layout jsonb, calls jsonb) RETURNS jsonb
LANGUAGE plpgsql IMMUTABLE AS $$
DECLARE
    blocks jsonb := '[]';
    entry jsonb;
    place integer := 1;
    taken integer := 0;
    width integer;
BEGIN
    IF layout IS NULL THEN
        IF said <> '' THEN blocks := jsonb_build_array(jsonb_build_object('type', 'text', 'text', said)); END IF;
        RETURN blocks || others;
    END IF;
    FOR entry IN SELECT * FROM jsonb_array_elements(layout) LOOP
        CASE jsonb_typeof(entry)
            WHEN 'null' THEN
                blocks := blocks || jsonb_build_array(others -> taken);
                taken := taken + 1;
            WHEN 'object' THEN
                blocks := blocks || jsonb_build_array(entry -> 'block' || coalesce((
                    SELECT jsonb_build_object('input', call -> 'arguments') FROM jsonb_array_elements(calls) AS call
                    WHERE call ->> 'id' = entry ->> 'of'), '{}'));
            ELSE
                width := CASE jsonb_typeof(entry) WHEN 'array' THEN entry ->> 0 ELSE entry #>> '{}' END;
                blocks := blocks || jsonb_build_array(CASE jsonb_typeof(entry)
                    WHEN 'array' THEN (entry -> 1) || jsonb_build_object('text', substr(said, place, width))
                    ELSE to_jsonb(substr(said, place, width)) END);
                place := place + width;
        END CASE;
    END LOOP;
    RETURN blocks;
END $$;

CREATE OR REPLACE FUNCTION reactor_memory_object(value jsonb) RETURNS jsonb LANGUAGE plpgsql IMMUTABLE AS $$
DECLARE found jsonb;
BEGIN
    found := CASE jsonb_typeof(value) WHEN 'string' THEN coalesce(nullif(value #>> '{}', ''), '{}')::jsonb ELSE value END;
    RETURN CASE jsonb_typeof(found) WHEN 'object' THEN found END;
EXCEPTION WHEN invalid_text_representation OR untranslatable_character THEN
    RETURN NULL;
END $$;

CREATE OR REPLACE FUNCTION reactor_memory_langchain(own messages) RETURNS jsonb LANGUAGE plpgsql IMMUTABLE AS $$
DECLARE
    kept jsonb := coalesce(((own.metadata::jsonb) ->> 'langchain')::jsonb, '{}');
    kind text := coalesce(kept ->> '$kind', CASE own.role
        WHEN 'user' THEN 'human' WHEN 'tool' THEN 'tool' WHEN 'system' THEN 'system' ELSE 'ai' END);
    others jsonb := nullif(own.parts, '')::jsonb;
    calls jsonb := coalesce(nullif(own.tool_calls, '')::jsonb, '[]');
    data jsonb;
BEGIN
    IF jsonb_typeof(others) = 'object' THEN others := others -> 'parts'; END IF;
    others := coalesce(others, '[]');
    data := jsonb_build_object('type', kind, 'name', own.name, 'content',
        CASE WHEN kept ? '$layout' OR others <> '[]'
             THEN reactor_memory_blocks(coalesce(kept ->> '$exact', own.content), others, kept -> '$layout', calls)
             ELSE to_jsonb(coalesce(kept ->> '$exact', own.content)) END);
    IF own.role = 'tool' THEN
        data := data || jsonb_build_object('tool_call_id', own.tool_call_id, 'status',
            CASE WHEN (own.metadata::jsonb) ->> 'is_error' = 'true' THEN 'error' ELSE 'success' END);
    END IF;
    IF kind IN ('ai', 'AIMessageChunk') THEN
        data := data || (
            SELECT jsonb_build_object(
                'tool_calls', coalesce(jsonb_agg(jsonb_build_object('type', 'tool_call', 'id', call -> 'id',
                    'name', call -> 'name', 'args', parsed)) FILTER (WHERE parsed IS NOT NULL), '[]'),
                'invalid_tool_calls', coalesce(jsonb_agg(jsonb_build_object('type', 'invalid_tool_call', 'id', call -> 'id',
                    'name', call -> 'name', 'args', call -> 'arguments', 'error', NULL))
                    FILTER (WHERE parsed IS NULL), '[]'))
            FROM (SELECT call, reactor_memory_object(coalesce(call -> 'arguments', '{}')) AS parsed
                  FROM jsonb_array_elements(calls) AS call) AS made);
    END IF;
    RETURN jsonb_build_object('type', kind, 'data', data || (kept - '$kind' - '$layout' - '$exact'));
END $$;

-- Who is not bound by row-level security reads all; a user the sessions that they own. Of forks nothing: their ids are no
-- UUIDs, so no history of langchain-postgres can name them.
CREATE OR REPLACE VIEW chat_message_history WITH (security_barrier) AS
SELECT message.seq::integer AS id, message.conversation_id AS session_id, reactor_memory_langchain(message) AS message,
       reactor_memory_time(message.created_at) AS created_at
FROM messages AS message
JOIN conversations AS own ON own.group_id = message.group_id AND own.conversation_id = message.conversation_id
WHERE message.group_id = message.conversation_id AND message.state IS NULL AND own.deleted_at IS NULL
  AND (own.owner_id = auth.uid()::text OR NOT row_security_active('messages'));

-- Appends as the log does. A session that is new belongs to the user whose active one it is, if it is anybody's.
CREATE OR REPLACE FUNCTION reactor_memory_take_message() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER
SET search_path FROM CURRENT AS $$
DECLARE
    data CONSTANT jsonb := NEW.message -> 'data';
    its_kind CONSTANT text := NEW.message ->> 'type';
    own_role CONSTANT text := CASE its_kind WHEN 'human' THEN 'user' WHEN 'ai' THEN 'assistant' WHEN 'AIMessageChunk' THEN
        'assistant' WHEN 'system' THEN 'system' WHEN 'tool' THEN 'tool' ELSE 'agent' END;
    moment CONSTANT bigint := reactor_memory_microseconds(coalesce(NEW.created_at, clock_timestamp()));
    said text := '';
    others jsonb := '[]';
    layout jsonb := '[]';
    block jsonb;
    kept jsonb;
    calls jsonb;
    next_seq bigint;
BEGIN
    IF its_kind IS NULL OR coalesce(jsonb_typeof(data -> 'content'), '') NOT IN ('string', 'array') THEN
        RAISE EXCEPTION 'message holds no message of LangChain: {"type": ..., "data": {"content": ...}}';
    END IF;
    IF NEW.session_id LIKE '%~%' OR coalesce(NEW.session_id, '') = '' THEN
        RAISE EXCEPTION 'session_id must be the id of a session that is no fork';
    END IF;
    IF jsonb_typeof(data -> 'content') = 'string' THEN
        said := data ->> 'content';
        layout := NULL;
    ELSE
        FOR block IN SELECT * FROM jsonb_array_elements(data -> 'content') LOOP
            IF jsonb_typeof(block) = 'string' THEN
                said := said || (block #>> '{}');
                layout := layout || to_jsonb(length(block #>> '{}'));
            ELSIF block ->> 'type' = 'text' AND jsonb_typeof(block -> 'text') = 'string' THEN
                said := said || (block ->> 'text');
                layout := layout || jsonb_build_array(jsonb_build_array(length(block ->> 'text'), block || '{"text": null}'));
            ELSE
                others := others || jsonb_build_array(block);
                layout := layout || 'null'::jsonb;
            END IF;
        END LOOP;
    END IF;
    SELECT coalesce(jsonb_object_agg(key, value), '{}') INTO kept
    FROM jsonb_each(data - ARRAY['content', 'name', 'tool_calls', 'invalid_tool_calls', 'tool_call_id', 'type'])
    WHERE value NOT IN ('null', '{}', '[]', 'false');
    IF layout IS NOT NULL THEN kept := kept || jsonb_build_object('$layout', layout); END IF;
    IF own_role = 'agent' OR its_kind = 'AIMessageChunk' THEN kept := kept || jsonb_build_object('$kind', its_kind); END IF;
    SELECT jsonb_agg(jsonb_build_object('id', coalesce(call ->> 'id', 'call'), 'name', coalesce(call ->> 'name', ''),
                                        'arguments', call -> 'args')) INTO calls
    FROM jsonb_array_elements(coalesce(data -> 'tool_calls', '[]') || coalesce(data -> 'invalid_tool_calls', '[]')) AS call;

    INSERT INTO conversations AS own (group_id, conversation_id, owner_id, agent_name, last_seq, stored_bytes, created_at,
                                      updated_at)
    VALUES (NEW.session_id, NEW.session_id,
            (SELECT user_id FROM active_sessions WHERE active_session_id = NEW.session_id LIMIT 1),
            (SELECT agent_name FROM active_sessions WHERE active_session_id = NEW.session_id LIMIT 1),
            1, octet_length(said), moment, moment)
    ON CONFLICT (group_id, conversation_id) DO UPDATE
    SET last_seq = own.last_seq + 1, stored_bytes = own.stored_bytes + excluded.stored_bytes,
        updated_at = GREATEST(own.updated_at, excluded.updated_at)
    WHERE own.deleted_at IS NULL
    RETURNING last_seq INTO next_seq;
    IF next_seq IS NULL THEN
        RAISE EXCEPTION 'the session was deleted: begin another one';
    END IF;
    INSERT INTO messages (group_id, conversation_id, seq, message_id, role, visibility, content, parts, tool_calls,
                          tool_call_id, name, metadata, created_at)
    VALUES (NEW.session_id, NEW.session_id, next_seq,
            encode(set_bit(set_bit(overlay(uuid_send(gen_random_uuid())
                PLACING substring(int8send(moment / 1000) FROM 3) FROM 1 FOR 6), 52, 1), 53, 1), 'hex')::uuid::text,
            own_role, 'user', said, nullif(others, '[]')::text, calls::text, data ->> 'tool_call_id', data ->> 'name',
            CASE WHEN kept <> '{}' OR data ->> 'status' = 'error' THEN (
                jsonb_build_object('langchain', kept::text)
                || CASE WHEN data ->> 'status' = 'error' THEN '{"is_error": true}' ELSE '{}' END::jsonb)::text END,
            moment);
    IF next_seq % 10 = 0 THEN
        INSERT INTO background_work AS due (group_id, conversation_id, kind, due_at, lease_until, fence, attempts, touched)
        VALUES (NEW.session_id, NEW.session_id, 'summarize', moment, 0, 0, 0, 1)
        ON CONFLICT (group_id, conversation_id, kind) DO UPDATE SET due_at = LEAST(due.due_at, excluded.due_at), touched = 1;
    END IF;
    NEW.id := next_seq;
    RETURN NEW;
END $$;

CREATE OR REPLACE FUNCTION reactor_memory_keep_message() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
    RAISE EXCEPTION 'messages of the log stay as they are: delete the session, or erase messages, with reactor-memory';
END $$;

CREATE OR REPLACE TRIGGER take_message INSTEAD OF INSERT ON chat_message_history
    FOR EACH ROW EXECUTE FUNCTION reactor_memory_take_message();
CREATE OR REPLACE TRIGGER keep_message INSTEAD OF UPDATE OR DELETE ON chat_message_history
    FOR EACH ROW EXECUTE FUNCTION reactor_memory_keep_message();

REVOKE ALL ON chat_message_history FROM PUBLIC, anon, authenticated;
GRANT SELECT ON chat_message_history TO anon, authenticated;
GRANT SELECT, INSERT, UPDATE, DELETE ON chat_message_history TO service_role;

-- For Supabase Realtime (a view cannot be published):
-- ALTER PUBLICATION supabase_realtime ADD TABLE user_agent_active_sessions, agent_long_term_memory;
