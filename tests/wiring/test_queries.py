"""The file of queries: its format, its compilation, and the rules that let the same SQL run on shards."""

import re
import sqlite3
from collections import defaultdict
from collections.abc import Iterator, Mapping
from contextlib import closing
from itertools import count
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reactor_memory import database
from reactor_memory.core.log import background_work, rows, summaries
from reactor_memory.database.migrations import migration_statements
from reactor_memory.database.statements import Block, parse, to_numbered, to_positional
from reactor_memory.features.facts import ledger_rows
from reactor_memory.models import LARGEST
from reactor_memory.wiring.queries import QUERIES
from tests.scenes.tables import each_row

PACKAGE = Path(database.__file__).parents[1]
SOURCES = "\n".join(
    path.read_text()
    for room in ("core", "database", "features")
    for path in sorted((PACKAGE / room).rglob("*.py"))
    if path.parent.name != "notes"
    or path.name in ("hooks.py", "operations.py")  # operations of its tool have names like statements
)
CALLS = re.compile(r"""(?:Query|Batch|read_parts)\(\s*"(\w+)"|_queries\(\)\["(\w+)"\]""")
FORBIDDEN = re.compile(
    r"\b(OFFSET|LISTEN|NOTIFY|TRIGGER|SERIAL|NEXTVAL|RANDOM|pg_advisory_lock|clock_timestamp)\b", re.IGNORECASE
)
HARMLESS_SCAN = re.compile(
    r"CONSTANT ROW|VIRTUAL TABLE INDEX (?:1:|0:=|0:><|\d+:M\d)"
    r"|SCAN (?:best|wanted|needed|archived|load|held|gaps|meanings|\(subquery-\d+\))$"
)
"""Of bound JSON, of what full text matched, of rows that another step has found."""
SQL = "\n".join(path.read_text() for path in PACKAGE.rglob("*.sql"))
INCLUDED = set(re.findall(r"^-- include: (\w+)", SQL, re.MULTILINE))
PARTS = re.findall(r"^-- part: (\w+)", SQL, re.MULTILINE)
NAMED = {f"{block.name}{' [postgres]' if block.only_postgres else ''}": block for block in QUERIES.blocks}


class TestEveryStatement:
    @each_row("block", NAMED.values())
    def test_uses_nothing_that_shards_lack(self, block: Block) -> None:
        assert not FORBIDDEN.search(block.statement)

    @each_row("block", NAMED.values())
    def test_holds_no_values(self, block: Block) -> None:
        """Values are bound. Only words of our own schema stand in the text."""
        literals = set(re.findall(r"'([^']*)'", block.statement))
        assert literals <= {
            "",
            " ",
            ",",
            "user",
            "agent",
            "system",
            "summary",
            "withdrawn",
            "archived",
            "cleared",
            "erased",
            "erase_user",
            "forget",
            "merge",
            "scrub",
            "delete",
            "conversation_id",
            "start_seq",
            "end_seq",
            "table",
            "*",
            ":*",
            "$[0]",
            "$[1]",
            "$[2]",
            "$[3]",
            "$[4]",
            "^turn ([0-9]{1,18}) after [0-9]{1,18}$",
            *"rpvmf",
            "public",
            "HISTORY",
            "MEMORY",
            "SUMMARY",
            "server_version",
            "running",
            "superseded",
            "reactor_memory_revision",
            "reactor_memory.user_id",
            "reactor_memory.group_ids",
            "reactor_memory.all_users",
            "yes",
            "$[5]",
            "vector",
            "pg_dist_partition",
            "*[^0-9a-f]*",
            "^[0-9a-f]{8}$",
            "pin",
            "posted",
            "range",
            "integer",
            "text",
            "blob",
        }


class TestTheFile:
    def test_every_name_is_used_and_every_use_is_known(self) -> None:
        used = {one or other for one, other in CALLS.findall(SOURCES)} | INCLUDED - {*PARTS}
        used |= set(re.findall(r'"(delete_\w+|forget_work|\w+_of_ranges|rewrite|checkpoint)"', SOURCES))
        used |= set(re.findall(r'"(read_\w*context\w*|recall_search\w*|recall_places\w*|merge_\w+)"', SOURCES))
        used |= set(re.findall(r'"(count_\w+|finish_scrub|scrub_soon)"', SOURCES))
        used |= set(re.findall(r'\bof_(?:all_)?groups\("(\w+)"', SOURCES))
        assert used == {block.name for block in QUERIES.blocks}

    def test_every_part_is_included_under_its_own_name(self) -> None:
        assert {*PARTS} <= INCLUDED
        assert len({*PARTS}) == len(PARTS)
        assert not {*PARTS} & {block.name for block in QUERIES.blocks}

    def test_none_of_a_batch_returns_rows(self) -> None:
        batched = set(re.findall(r'Batch\(\s*"(\w+)"', SOURCES))
        assert len(batched) > 20
        assert [
            block.name for block in QUERIES.blocks if block.name in batched and "RETURNING" in block.statement
        ] == []

    def test_a_twin_stands_directly_below_its_block(self) -> None:
        for before, block in zip(QUERIES.blocks, QUERIES.blocks[1:], strict=False):
            if block.only_postgres and block.name in QUERIES.sqlite:
                assert before.name == block.name

    def test_no_name_is_given_twice(self) -> None:
        assert len(NAMED) == len(QUERIES.blocks)

    def test_a_twin_wins_on_postgres_only(self) -> None:
        assert "FOR UPDATE" in QUERIES.postgres["lock_session"].text
        assert "FOR UPDATE" not in QUERIES.sqlite["lock_session"].text
        assert "append" not in QUERIES.sqlite


class TestParsing:
    def test_blocks_and_their_comments(self) -> None:
        source = "-- a file\n\n-- name: one\n-- why\nSELECT 1\n\n-- name: one [postgres]\nSELECT 2\n\n-- A section\n"
        one, twin = parse(source)
        assert (one.name, one.only_postgres, one.statement) == ("one", False, "SELECT 1")
        assert "-- why" in one.text
        assert (twin.name, twin.only_postgres, twin.statement) == ("one", True, "SELECT 2")

    def test_an_included_block_stands_where_it_is_named(self) -> None:
        _, block, whole = parse("-- name: x\nX\n-- name: y\n-- why\nB\n-- name: whole\nA\n-- include: y\nC\n")
        assert block.statement == "B"
        assert whole.statement == "A\nB\nC"

    def test_a_part_is_no_statement(self) -> None:
        (whole,) = parse("-- part: end\n-- why\nB\n-- name: whole\nA\n-- include: end\n")
        assert (whole.name, whole.statement) == ("whole", "A\nB")

    def test_a_name_has_one_number_however_often_it_stands(self) -> None:
        query = to_numbered("SELECT :b, :a, :b::text")
        assert query.text == "SELECT $1, $2, $1::text"
        assert query.parameters == ("b", "a")
        assert query.arguments({"a": 1, "b": 2, "c": 3}) == [2, 1]

    def test_sqlite_gets_the_value_of_a_name_wherever_it_stands(self) -> None:
        query = to_positional("SELECT :b, ':x', :a, :b")
        assert query.text == "SELECT ?, ':x', ?, ?"
        assert query.arguments({"a": 1, "b": 2, "c": 3}) == (2, 1, 2)

    @pytest.mark.parametrize(("text", "arguments"), [("SELECT 1", ()), ("SELECT :a", (1,))])
    def test_few_parameters(self, text: str, arguments: tuple[int, ...]) -> None:
        assert to_positional(text).arguments({"a": 1, "b": 2}) == arguments

    def test_literals_and_casts_are_left_alone(self) -> None:
        assert to_numbered("SELECT ':x', 'it''s :y', '{}'::json").text == "SELECT ':x', 'it''s :y', '{}'::json"

    @given(st.lists(st.sampled_from(["a", "b", "c_d", "e1"]), max_size=12))
    def test_the_numbers_select_the_values(self, names: list[str]) -> None:
        query = to_numbered(", ".join(f":{name}" for name in names))
        values = {name: f"value of {name}" for name in names}
        arguments = query.arguments(values)
        chosen = [arguments[int(number) - 1] for number in re.findall(r"\$(\d+)", query.text)]
        assert chosen == [values[name] for name in names]


STEP = re.compile(r"SEARCH (?P<table>\w+) USING (?:COVERING )?(?:INDEX (?P<index>\w+)|.*?) (?P<by>\(.*\))")
KEYS_OF_MESSAGES = ("sqlite_autoindex_messages_1", None)
WHOLE_TABLES = {"tables", "revision", "touch", "api_keys", "recall_numbers_of_nothing", "unindex_recall_passages"}
"""The schema and a small table; and where the recall index is damaged, or forgets by words between two bounds."""

WHOLE_SESSIONS = {"delete_messages", "examined", "messages_taken_away", "place_of_message"}
"""What is deleted, what `doctor` counts, what was taken away, and a message of which nothing is known but its id."""


@pytest.fixture(scope="module")
def empty_database() -> Iterator[sqlite3.Connection]:
    with closing(sqlite3.connect(":memory:")) as connection:
        for statement in migration_statements("sqlite", None):
            connection.execute(statement).fetchall()
        yield connection


class TestOnSqlite:
    @each_row("name", QUERIES.sqlite)
    def test_every_statement_is_valid(self, empty_database: sqlite3.Connection, name: str) -> None:
        empty_database.execute(f"EXPLAIN {QUERIES.sqlite[name].text}", _anything(name))

    @each_row("name", [block.name for block in QUERIES.blocks if "-- across groups" not in block.text])
    def test_no_statement_of_a_group_reads_a_whole_table(self, empty_database: sqlite3.Connection, name: str) -> None:
        if name in QUERIES.sqlite and name not in WHOLE_TABLES:
            plan = empty_database.execute(f"EXPLAIN QUERY PLAN {QUERIES.sqlite[name].text}", _anything(name))
            assert not [row[3] for row in plan if row[3].startswith("SCAN") and not HARMLESS_SCAN.search(row[3])]

    @pytest.mark.parametrize("name", ["list_owned", "list_open", "due_work", "sessions_to_purge"])
    def test_lists_are_read_in_the_order_of_an_index(self, empty_database: sqlite3.Connection, name: str) -> None:
        plan = empty_database.execute(f"EXPLAIN QUERY PLAN {QUERIES.sqlite[name].text}", _anything(name)).fetchall()
        details = " / ".join(row[3] for row in plan)
        assert "INDEX conversations_" in details or "INDEX background_work_due" in details
        assert "TEMP B-TREE" not in details or name == "sessions_to_purge"

    def test_a_list_reads_the_conversations_of_its_user_only(self, empty_database: sqlite3.Connection) -> None:
        """Own ones by an index that holds their order, shared ones by the memberships."""
        statement = QUERIES.sqlite["conversations_of_user"].text
        plan = empty_database.execute(f"EXPLAIN QUERY PLAN {statement}", _anything("conversations_of_user"))
        details = " / ".join(row[3] for row in plan)
        assert "own USING INDEX conversations_by_activity (owner_id=?" in details
        assert "member USING INDEX memberships_by_user (user_id=?" in details
        assert not re.search(r"SCAN (own|member)\b", details)

    def test_groups_of_an_owner_are_found_by_owner(self, empty_database: sqlite3.Connection) -> None:
        statement = QUERIES.sqlite["list_groups"].text
        plan = empty_database.execute(f"EXPLAIN QUERY PLAN {statement}", _anything("list_groups")).fetchall()
        assert [row[3] for row in plan if row[3].startswith("SEARCH")] == [
            "SEARCH conversations USING PRIMARY KEY (group_id>?)",
            "SEARCH conversations USING COVERING INDEX conversations_of_owner (owner_id=? AND group_id>?)",
        ]

    def test_beginnings_of_ids_are_found_by_the_key(self, empty_database: sqlite3.Connection) -> None:
        statement = QUERIES.sqlite["list_beginning"].text
        plan = empty_database.execute(f"EXPLAIN QUERY PLAN {statement}", _anything("list_beginning")).fetchall()
        assert [row[3] for row in plan] == ["SEARCH conversations USING PRIMARY KEY (group_id>? AND group_id<?)"]

    def test_facts_about_anchors_are_found_by_anchor(self, empty_database: sqlite3.Connection) -> None:
        statement = QUERIES.sqlite["facts_about"].text
        plan = empty_database.execute(f"EXPLAIN QUERY PLAN {statement}", _anything("facts_about"))
        details = " / ".join(row[3] for row in plan)
        assert "SEARCH named USING PRIMARY KEY (group_id=? AND conversation_id=? AND anchor=? AND end_seq<?)" in details
        assert (
            "SEARCH facts USING INDEX sqlite_autoindex_facts_1 (group_id=? AND conversation_id=? AND end_seq=?)"
            in details
        )

    @each_row("name", set(QUERIES.sqlite) - WHOLE_SESSIONS)
    def test_no_statement_looks_through_all_messages(self, empty_database: sqlite3.Connection, name: str) -> None:
        """A group may have a million: they are found by their places, or by an index that holds few of them."""
        text = QUERIES.sqlite[name].text
        plan = empty_database.execute(f"EXPLAIN QUERY PLAN {text}", _anything(name)).fetchall()
        called = {alias or "messages" for alias in re.findall(r"\bmessages\b(?: AS (\w+))?", text)}
        steps = [found for row in plan if (found := STEP.match(row[3])) and found["table"] in called]
        assert not [step[0] for step in steps if step["index"] in KEYS_OF_MESSAGES and "seq" not in step["by"]]

    @pytest.mark.parametrize("name", ["messages_newest_first", "messages_newest_first_with_batches"])
    def test_what_was_put_away_is_not_looked_through(self, empty_database: sqlite3.Connection, name: str) -> None:
        key = {"group_id": "s", "conversation_id": "s", "start_seq": 1}
        steps: list[int] = []
        empty_database.rollback()
        empty_database.execute(
            "INSERT INTO conversations (group_id, conversation_id, last_seq, created_at, updated_at) "
            "VALUES ('s', 's', 5010, 1, 1)"
        )
        empty_database.executemany(
            "INSERT INTO messages (group_id, conversation_id, seq, message_id, role, visibility, content, state, "
            "archived_until) VALUES ('s', 's', ?, '', 'user', 'user', 'text', ?, ?)",
            [(seq, "archived", 5_000) if seq <= 5_000 else (seq, None, None) for seq in range(1, 5_011)],
        )
        for seq in (1, 5_001):
            _run(empty_database, "hide_beginning", key | {"seq": seq})
            taken = count()
            empty_database.set_progress_handler(lambda taken=taken: next(taken) < 0, 100)
            values = key | {"end_seq": LARGEST - 1, "hidden_until": LARGEST, "limit": 20}
            assert len(_run(empty_database, name, values)) == 10
            steps.append(next(taken))
            empty_database.set_progress_handler(None, 0)
        empty_database.rollback()
        assert steps[1] < 20 < steps[0]

    def test_posted_summaries_are_read_by_their_places(self, empty_database: sqlite3.Connection) -> None:
        statement = QUERIES.sqlite["ruling_posted"].text
        plan = [row[3] for row in empty_database.execute(f"EXPLAIN QUERY PLAN {statement}", _anything("ruling_posted"))]
        assert any(step.startswith("SEARCH message ") and "seq=?" in step for step in plan)

    def test_columns_stand_in_the_order_that_rows_expects(self) -> None:
        """The mappers take rows apart by position."""
        for name, expected in {
            "session": rows.session_from,
            "messages_newest_first": rows.message_from,
            "segments": ledger_rows.segment_from,
            "summary": summaries.summary_from,
            "summary_head": summaries.summary_head_from,
            "work_state": background_work.work_state_from,
        }.items():
            columns = re.findall(r"\w+", QUERIES.sqlite[name].text.split("FROM")[0].removeprefix("SELECT"))
            row = [_sample(column, place) for place, column in enumerate(columns)]
            value = expected(row)
            for column, sample in zip(columns, row, strict=True):
                assert sample is None or getattr(value, column, sample) == sample, column

    def test_columns_of_a_pin_stand_behind_those_of_its_session(self) -> None:
        selected = QUERIES.sqlite["session_with_pins"].text.split("FROM")[0]
        session = re.findall(r"\w+", QUERIES.sqlite["session"].text.split("FROM")[0].removeprefix("SELECT"))
        assert re.findall(r"own\.(\w+)", selected) == session
        columns = re.findall(r"pin\.(\w+)", selected)
        details = {"details": '{"fact":["anchor","key"],"sha256":"h"}'}
        pin = rows.pin_from([details.get(each, each) for each in columns])
        assert all(getattr(pin, column, column) == column for column in columns)
        assert (pin.ordinal, pin.fact, pin.sha256) == ("place", ("anchor", "key"), "h")


def _run(database: sqlite3.Connection, name: str, values: Mapping[str, object]) -> list[object]:
    text, arguments, _ = QUERIES.sqlite[name]
    return database.execute(text, arguments(values)).fetchall()


def _anything(name: str) -> tuple[int, ...]:
    return QUERIES.sqlite[name].arguments(defaultdict(lambda: 1))


def _sample(column: str, place: int) -> object:
    """A value that no other column has, of the type of the column where a mapper looks at it; None for JSON."""
    if column.endswith("seq") or column in {
        *("token_count", "created_at", "updated_at", "version", "epoch", "tokens_read", "tokens_written"),
    }:
        return place
    if column == "stale":
        return False
    if column in {"role", "visibility"}:
        return "tool" if column == "role" else "agent"
    is_json = column in {"path", "parts", "tool_calls", "metadata", "stale_ranges", "fact_lines"}
    return (
        None if is_json or column in {"truncated", "parked"} else f"[{column}" if column.endswith("_json") else column
    )
