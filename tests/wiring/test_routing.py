"""On PostgreSQL every statement asks one shard, when tables are distributed by group or user, or says why it cannot."""

import asyncpg
import pytest

from reactor_memory.database.statements import Block, about_one_group
from reactor_memory.wiring.queries import QUERIES
from tests.scenes.tables import each_row
from tests.wiring.routes import faults, is_routed, parsed, placements, routes

BLOCKS = {block.name: block for block in QUERIES.blocks}
"""Those of PostgreSQL: a twin stands below its block."""

BACKGROUND = {
    "due_work": "what is due lies on all shards; claimed by key",
    "behind_in_search": "as due_work, what is to be indexed",
    "behind_in_tiers": "as due_work, what is to be summarized",
    "spending": "the cap of a day counts what everybody spent",
    "sessions_to_purge": "deleted sessions whose days of grace are over",
    "expired_responses": "responses whose time is over",
    "forget_requests": "answers that are too old to be asked for again",
    "deactivate_active": "active sessions that nobody uses any more",
}
ADMINISTRATION = {
    "list_matching": "lists the sessions of all users",
    "list_open": "lists the sessions that nobody owns",
    "list_beginning": "finds the session to a shortened id",
    "list_groups": "walks through everything, for a copy or an erasure",
    "list_users": "as list_groups, what belongs to users",
    "messages_of_other_tokenizers": "counts again after a change of the tokenizer",
    "entries_of_other_tokenizers": "as messages_of_other_tokenizers",
    "troubled_work": "work that failed, of everybody",
    "search_backlog": "a gauge counts what waits",
    "rewrite": "VACUUM of all tables",
    "groups_naming_user": "an erasure of a user finds where they are named",
    "delete_answers_of_user": "an erasure of a user; answers lie with who asked",
    "delete_answers_of_group": "an erasure in a group; answers lie with who asked",
}
LISTS_OF_USERS = {
    "list_owned": "sessions of a user lie on the shards of their groups",
    "conversations_of_user": "as list_owned, with what others share",
    "visible_conversations": "as conversations_of_user, before a search",
    "transfers_of_user": "offers lie on the shards of their groups",
    "holdings_of_owner": "quotas count the sessions of an owner",
}
ACROSS = BACKGROUND | ADMINISTRATION | LISTS_OF_USERS
NOT_WHERE_DISTRIBUTED = {"append_many": "each append is a statement of its own there (tests/database/test_shards.py)"}
NAMES_GROUPS = {"newest_shown", "found_messages", "place_of_message"}
"""They name the group that they read, by `set_config`, to save a round trip; run for each group alone."""


class TestEveryStatement:
    @each_row("block", [block for block in BLOCKS.values() if block.name not in {*ACROSS, *NOT_WHERE_DISTRIBUTED}])
    def test_asks_one_shard(self, block: Block) -> None:
        statement = parsed(block.statement)
        assert is_routed(statement, is_by_group=block.by_group is not None), routes(statement)
        assert not is_excused(block)

    @each_row("name", ACROSS)
    def test_is_not_excused_without_need(self, name: str) -> None:
        assert is_excused(BLOCKS[name])
        assert name == "rewrite" or not is_routed(parsed(BLOCKS[name].statement), is_by_group=True)

    def test_few_are_excused(self) -> None:
        assert (len(BACKGROUND), len(ADMINISTRATION), len(LISTS_OF_USERS)) == (8, 13, 5)

    @each_row("block", [block for block in BLOCKS.values() if block.by_group is not None])
    def test_for_several_groups_names_them(self, block: Block) -> None:
        assert {route.by for route in routes(parsed(block.statement))} == {"group_ids[]"}
        assert {route.by for route in routes(parsed(about_one_group(block.statement)))} == {"group_id"}

    @pytest.mark.postgres
    @pytest.mark.anyio
    async def test_does_what_shards_can_do(self, postgres_dsn: str) -> None:
        changing = await changing_functions(postgres_dsn)
        assert {"now", "set_config", "random"} <= changing
        for block in BLOCKS.values():
            if block.name in {"rewrite", *NOT_WHERE_DISTRIBUTED}:
                continue
            found = faults(block.statement, changing, is_by_group=block.by_group is not None)
            excused = {"calls set_config"} if block.name in NAMES_GROUPS else set()
            excused |= (
                {each for each in found if each.startswith("asks every shard")} if block.name in ACROSS else set()
            )
            assert set(found) <= excused, block.name


def is_excused(block: Block) -> bool:
    return "-- across groups" in block.text.splitlines()


async def changing_functions(dsn: str) -> set[str]:
    """Functions that the server does not call immutable. Those that make or take JSON apart are so by their types."""
    connection = await asyncpg.connect(dsn)
    try:
        rows = await connection.fetch(
            "SELECT proname FROM pg_proc WHERE prokind IN ('f', 'w') "
            "GROUP BY proname HAVING bool_and(provolatile <> 'i')"
        )
    finally:
        await connection.close()
    return {row[0] for row in rows}


KEYED = "group_id = :group_id"


class TestTheFourKinds:
    """What a cluster refused, and variations of it."""

    @pytest.mark.parametrize(
        "text",
        [
            "SELECT * FROM messages WHERE conversation_id = :conversation_id",
            "SELECT * FROM messages WHERE group_id = :group_id OR seq = 1",
            "SELECT * FROM messages WHERE group_id <> :group_id",
            "SELECT * FROM messages AS m JOIN facts AS f ON f.seq = m.seq WHERE m.group_id = :group_id",
            "SELECT * FROM messages WHERE group_id = :group_id AND seq = (SELECT MAX(seq) FROM facts)",
            "SELECT * FROM messages AS m, facts AS f WHERE m.group_id = :one AND f.group_id = :other",
            "UPDATE messages SET seq = 1 WHERE conversation_id = :group_id",
            "DELETE FROM items WHERE namespace = :user_id",
            "WITH a AS (SELECT * FROM messages) SELECT * FROM a WHERE seq = :seq",
            "SELECT 1 FROM items a WHERE EXISTS (SELECT 1 FROM items b WHERE b.user_id = a.user_id AND b.user_id = :u)",
            "SELECT * FROM messages AS m LEFT JOIN facts AS f ON m.group_id = :group_id AND f.group_id = :group_id",
            "SELECT * FROM items JOIN messages ON messages.group_id = :group_id AND items.user_id = :user_id",
        ],
    )
    def test_statement_without_a_key_is_refused(self, text: str) -> None:
        assert any(each.startswith("asks every shard") for each in faults(text, ()))

    @pytest.mark.parametrize(
        "text",
        [
            f"SELECT * FROM messages WHERE {KEYED}",
            f"SELECT * FROM messages AS m JOIN facts AS f ON f.group_id = m.group_id WHERE m.{KEYED}",
            f"WITH a AS (SELECT * FROM messages WHERE {KEYED}) SELECT f.* FROM a JOIN facts AS f USING (group_id)",
            f"SELECT (SELECT MAX(a.seq) FROM facts a WHERE a.group_id = m.group_id) FROM messages m WHERE m.{KEYED}",
            "INSERT INTO items (namespace, user_id) VALUES (:a, :user_id)",
            f"INSERT INTO facts (seq, group_id) SELECT seq, group_id FROM messages WHERE {KEYED}",
            "SELECT * FROM api_keys",
        ],
    )
    def test_statement_with_a_key_is_not(self, text: str) -> None:
        assert faults(text, ()) == []

    @pytest.mark.parametrize(
        "clock", ["now()", "clock_timestamp()", "(EXTRACT(EPOCH FROM now()) * 1000000)::bigint", "random()"]
    )
    def test_changing_function_is_refused(self, clock: str) -> None:
        claim = f"""INSERT INTO background_work (group_id, conversation_id, kind) VALUES (:group_id, :c, :kind)
            ON CONFLICT (group_id, conversation_id, kind) DO UPDATE SET fence = 1
            WHERE background_work.lease_until <= {clock}"""
        assert faults(claim, {"now", "clock_timestamp", "random"})
        assert faults(claim.replace(clock, ":clock"), {"now", "clock_timestamp", "random"}) == []

    def test_lateral_over_a_function_is_refused(self) -> None:
        work = "SELECT work.fence FROM background_work AS work WHERE work.kind = wanted ->> 0 LIMIT 9"
        text = f"SELECT found.* FROM json_array_elements(:wanted::json) AS wanted, LATERAL ({work}) AS found"
        assert "LATERAL on several shards" in faults(text, ())

    @pytest.mark.parametrize(
        "rows",
        [
            "SELECT * FROM unnest(:group_ids::text[], :seqs::bigint[]) AS item (group_id, seq)",
            "SELECT group_id, seq FROM facts WHERE group_id = ANY(:group_ids)",
            "VALUES (:one, 1), (:other, 2)",
        ],
    )
    def test_rows_of_several_groups_are_refused(self, rows: str) -> None:
        assert "writes to several shards" in faults(f"INSERT INTO messages (group_id, seq) {rows}", ())


def test_every_table_has_a_key_or_is_small() -> None:
    assert {table for table, key in placements().items() if key is None} == {
        "api_keys",
        "service_secrets",
        "agent_settings",
    }
    assert {table for table, key in placements().items() if key == "user_id"} == {"active_sessions", "items"}
    assert {table for table, key in placements().items() if key == "principal_id"} == {"answered_requests"}
