"""The tool: bound to one user and agent, and never raising."""

import logging
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from reactor_memory.database.database import Database
from reactor_memory.errors import StoreUnavailableError
from reactor_memory.features.notes import operations as note_rows
from reactor_memory.features.notes.changes import OPERATIONS
from reactor_memory.features.notes.long_term_memory import LongTermMemory
from reactor_memory.features.notes.tool import NO_NOTES, ManageLongTermMemoryTool
from reactor_memory.testing import FakeClock
from tests.doubles.faulty_database import FaultyDatabase
from tests.scenes.stores import SqlStore

pytestmark = pytest.mark.anyio

SECRET = "the secret of Ann"


def tool_on(database: Database, *, allow_destructive: bool = True, user_id: str = "ann") -> ManageLongTermMemoryTool:
    memory = LongTermMemory(database=database, clock=FakeClock(), max_chars=100, allow_destructive=allow_destructive)
    return memory.tool(user_id, "travel")


class TestWhatTheModelSees:
    async def test_the_name_and_the_arguments_of_the_seed(self, store: SqlStore) -> None:
        tool = tool_on(store.database)
        assert tool.name == "manage_long_term_memory"
        properties = tool.input_schema["properties"]
        assert list(properties) == ["operation", "content", "section_header"]
        assert properties["operation"]["enum"] == list(OPERATIONS)
        assert properties["operation"]["default"] == "read"
        assert tool.input_schema.get("required", []) == []
        assert tool.input_schema["additionalProperties"] is False

    async def test_neither_user_nor_agent(self, store: SqlStore) -> None:
        tool = tool_on(store.database, user_id="ann-4711")
        shown = f"{tool.name} {tool.description} {tool.input_schema}"
        assert "ann-4711" not in shown
        assert "user_id" not in shown
        assert "agent" not in shown

    async def test_what_is_switched_off_is_not_offered(self, store: SqlStore) -> None:
        schema = tool_on(store.database, allow_destructive=False).input_schema
        assert schema["properties"]["operation"]["enum"] == ["read", "append", "prepend"]


class TestCalling:
    async def test_it_reads_and_writes(self, store: SqlStore) -> None:
        tool = tool_on(store.database)
        assert await tool() == NO_NOTES
        assert await tool(operation="append", content="tea") == "Done. The notes have 3 of 100 characters."
        assert await tool(operation="read", content=None, section_header=None) == "tea"
        assert (await tool(operation="overwrite", content="tea")).startswith("Nothing to do")
        await tool(operation="delete_all_notes")
        assert await tool() == NO_NOTES

    async def test_who_wrote_is_noted(self, store: SqlStore) -> None:
        await tool_on(store.database)(operation="append", content="tea")
        notes = await store.database.read(note_rows.read_notes, "ann", "travel")
        assert (notes.author, notes.text) == ("travel", "tea")

    async def test_each_user_has_its_own_tool(self, store: SqlStore) -> None:
        await tool_on(store.database)(operation="append", content=SECRET)
        assert await tool_on(store.database, user_id="bob")() == NO_NOTES

    @pytest.mark.parametrize(
        ("arguments", "told"),
        [
            ({"operation": "erase"}, "unknown operation"),
            ({"operation": "append"}, "content"),
            ({"operation": "append", "content": ""}, "content"),
            ({"operation": "append", "content": 3}, "content"),
            ({"operation": ["read"]}, "operation"),
            ({"operation": "delete_section_by_header"}, "section_header"),
            ({"operation": "delete_section_by_header", "section_header": "Food"}, "no section"),
            ({"operation": "append", "content": "x" * 101}, "101 characters"),
            ({"operation": "append", "content": "a\0b"}, "NUL"),
            ({"user_id": "bob"}, "unknown"),
            ({"operation": "append", "content": "x", "author": "bob"}, "unknown"),
            ({"create_if_missing": True}, "unknown"),
        ],
    )
    async def test_what_cannot_be_done_is_an_error_text(
        self, store: SqlStore, arguments: dict[str, Any], told: str
    ) -> None:
        answer = await tool_on(store.database)(**arguments)
        assert answer.startswith("Error: ")
        assert told in answer
        assert (await store.database.read(note_rows.read_notes, "ann", "travel")).version == 0

    @pytest.mark.parametrize("error", [None, RuntimeError(SECRET)])
    async def test_so_is_a_store_that_fails(
        self, store: SqlStore, error: Exception | None, caplog: pytest.LogCaptureFixture
    ) -> None:
        class Broken(FaultyDatabase):
            async def _fail(self, work: Callable[[], Awaitable[Any]]) -> Any:
                raise error or StoreUnavailableError("store: a fault made by a test")

        faulty = Broken(store.database, at=1, mode="before", for_ever=True)
        with caplog.at_level(logging.DEBUG):
            answer = await tool_on(faulty)(operation="append", content=SECRET)
        assert answer.startswith("Error: the notes cannot be reached")
        assert SECRET not in answer + caplog.text
        assert "failed with" in caplog.text
