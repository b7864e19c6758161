"""A damaged value anywhere in the database: a typed error or an answer, lists that go on, and loads that fail only
where the messages of their session cannot be read.

The cases come from the schema: every column of every table, with values that this library never writes there.
"""

from __future__ import annotations

import random
import sqlite3
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, closing
from pathlib import Path
from shutil import copyfile
from typing import Any, NamedTuple

import pytest

from reactor_memory import Memory, Message, open_memory
from reactor_memory.errors import ReactorMemoryError, StoreCorruptError, StoreError
from reactor_memory.features.notes import operations as note_rows
from reactor_memory.features.notes.models import Notes
from reactor_memory.features.search.models import MessageSearch
from tests.acceptance.scenes import settings

pytestmark = pytest.mark.anyio

SAMPLE = 10
"""Damages of the fast test; the slow one tries them all."""

DAMAGES: dict[str, object] = {
    "wrong type": "x7",
    "broken json": '{"a": [1,',
    "other json": "[[1, 2, 3]]",
    "blob": b"\xff\x00\xfe",
    "out of range": -(2**62),
}

LOG = ("conversations", "messages")
LEFT_ALONE = ("group_id", "conversation_id", "user_id", "alembic_version")
"""Keys: a damaged one is a row of somebody else."""


class Damage(NamedTuple):
    table: str
    column: str
    kind: str

    def do(self, path: Path) -> bool:
        """Whether the database took the value, in one row of the damaged session if that has some."""
        with closing(sqlite3.connect(path)) as connection:
            columns = [row[1] for row in connection.execute(f"PRAGMA table_info({self.table})")]
            scope = "conversation_id = 'damaged'" if "conversation_id" in columns else "1 = 1"
            key = _row_id(connection, self.table)
            place = f"SELECT MAX({key}) FROM {self.table} WHERE {scope}"
            change = f"UPDATE {self.table} SET {self.column} = ? WHERE {key} = ({place})"
            try:
                done = connection.execute(change, [DAMAGES[self.kind]])
            except sqlite3.Error:
                return False
            connection.commit()
            return done.rowcount > 0


def _row_id(connection: sqlite3.Connection, table: str) -> str:
    """What names a row: these tables have no row id of their own."""
    keys = [row[1] for row in connection.execute(f"PRAGMA table_info({table})") if row[5]]
    return " || '/' || ".join(keys) if keys else "rowid"


def damages(path: Path) -> Iterator[Damage]:
    with closing(sqlite3.connect(path)) as connection:
        tables = connection.execute(
            "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%' "
            "AND name NOT LIKE 'recall_terms_%' AND name NOT LIKE 'search_entries_%'"
        ).fetchall()
        for (table,) in sorted(tables):
            if not connection.execute(f"SELECT COUNT(*) FROM {table}").fetchone()[0]:
                continue
            for row in connection.execute(f"PRAGMA table_info({table})").fetchall():
                if row[1] not in LEFT_ALONE and table not in LEFT_ALONE:
                    yield from (Damage(table, row[1], kind) for kind in DAMAGES)


@asynccontextmanager
async def opened(path: Path) -> AsyncGenerator[Memory]:
    sections: dict[str, Any] = {
        "search": {"enabled": True},
        "notes": {"enabled": True},
        "background": {"enabled": False},
        "summary": {"enabled": True, "trigger_message_count": 12, "recent_message_count": 4},
        "context": {"record": "all"},
    }
    async with open_memory(settings(f"sqlite:///{path}", **sections)) as memory:
        yield memory


async def fill(path: Path) -> None:
    async with opened(path) as memory:
        for session_id in ("damaged", "whole"):
            for turn in range(10):
                said = [
                    Message.user(f"My order number is A-{turn}, for {turn} people.", metadata={"turn": turn}),
                    Message.assistant("Noted.", parts=({"type": "text", "text": "Noted."},)),
                ]
                await memory.save_history(session_id, said, user_id="ann", idempotency_key=f"k{turn}")
            await memory.summarize(session_id, user_id="ann")
            await memory.pins.add(session_id, seq=1, user_id="ann")
            await memory.load_history(session_id, user_id="ann", budget=300)
            await memory.load_history(session_id, user_id="ann", message="What was my order number?", budget=500)
        await memory.fork("damaged", at_seq=5, user_id="ann")
        note = Notes(user_id="ann", agent_name="a", version=1, text="likes tea")
        await memory.container.database().write(note_rows.put_notes, note)
        await memory.container.background_work().run_once()


LOADS: dict[str, Callable[[Memory], Awaitable[Any]]] = {
    "load": lambda memory: memory.load_history("damaged", user_id="ann", message="And now?"),
    "load budget": lambda memory: memory.load_history("damaged", user_id="ann", message="And now?", budget=500),
    "load query": lambda memory: memory.load_history(
        "damaged", user_id="ann", message="order?", query="order number A-2", budget=900
    ),
}
OTHERS: dict[str, Callable[[Memory], Awaitable[Any]]] = {
    "get": lambda memory: memory.get_session("damaged", user_id="ann"),
    "messages": lambda memory: memory.read_messages("damaged", user_id="ann"),
    "newest messages": lambda memory: memory.read_messages("damaged", user_id="ann", last=5),
    "originals": lambda memory: memory.read_messages("damaged", user_id="ann", archived=True),
    "facts": lambda memory: memory.facts.list("damaged", user_id="ann"),
    "trace": lambda memory: memory.facts.trace("damaged", user_id="ann"),
    "recall": lambda memory: memory.recall("damaged", "order number", user_id="ann"),
    "search": lambda memory: memory.search.search(MessageSearch(text="order number", user_id="ann")),
    "explain": lambda memory: memory.explain("damaged", user_id="ann", budget=500),
    "preview": lambda memory: memory.preview("damaged", user_id="ann", message="And now?"),
    "replay": lambda memory: memory.replay("damaged", seq=20, user_id="ann"),
    "pins": lambda memory: memory.pins.list("damaged", user_id="ann"),
    "notes": lambda memory: memory.notes.read("ann", "a"),
    "summary": lambda memory: memory.get_summary("damaged", user_id="ann"),
    "work": lambda memory: memory.work_state("damaged", user_id="ann"),
    "doctor": lambda memory: memory.container.message_store().check(),
    "overview": lambda memory: memory.overview.sessions(limit=10),
}


async def check(path: Path, damage: Damage) -> list[str]:
    """What is wrong with the answers."""
    wrong: list[str] = []
    async with opened(path) as memory:
        for name, call in {**LOADS, **OTHERS}.items():
            try:
                await call(memory)
            except ReactorMemoryError as error:
                is_typed = type(error) is not StoreError
                may_fail = name not in LOADS or damage.table in LOG
                if not is_typed or (not may_fail and not isinstance(error, ReactorMemoryError)):
                    wrong.append(f"{damage}: {name}: bare {error!r}")
                elif not may_fail or (
                    name in LOADS and not isinstance(error, StoreCorruptError) and damage.table == "messages"
                ):
                    wrong.append(f"{damage}: {name}: {error!r}")
            except Exception as error:
                wrong.append(f"{damage}: {name}: untyped {error!r}")
        try:
            listed = await memory.list_sessions(user_id="ann")
            ids = {each.session_id for each in listed.sessions}
            if "whole" not in ids:
                wrong.append(f"{damage}: the list lost the others")
            await memory.load_history("whole", user_id="ann", message="And now?")
        except Exception as error:
            wrong.append(f"{damage}: the others: {error!r}")
    return wrong


def fresh(original: Path, copy: Path) -> Path:
    for each in copy.parent.glob(f"{copy.name}*"):
        each.unlink()
    copyfile(original, copy)
    return copy


async def wrongs(tmp_path: Path, choose: Callable[[list[Damage]], list[Damage]]) -> list[str]:
    original, copy = tmp_path / "original.db", tmp_path / "copy.db"
    await fill(original)
    wrong: list[str] = []
    for damage in choose(list(damages(original))):
        if damage.do(fresh(original, copy)):
            wrong += await check(copy, damage)
    return wrong


async def test_a_sample_of_damaged_values_gives_typed_errors_only(tmp_path: Path) -> None:
    assert await wrongs(tmp_path, lambda found: random.Random(7).sample(found, SAMPLE)) == []


@pytest.mark.slow
async def test_every_damaged_value_gives_typed_errors_only(tmp_path: Path) -> None:
    assert await wrongs(tmp_path, lambda found: found) == []


@pytest.mark.parametrize(
    ("column", "value"), [("facts_json", "[[1, 2, 3]]"), ("narrative", b"\xff"), ("stale_ranges", "{bad")]
)
async def test_a_damaged_summary_is_folded_anew(tmp_path: Path, column: str, value: object) -> None:
    path = tmp_path / "memory.db"
    await fill(path)
    async with opened(path) as memory:
        before = await memory.get_summary("damaged", user_id="ann")
    change(path, f"UPDATE conversation_summaries SET {column} = ? WHERE conversation_id = 'damaged'", value)
    async with opened(path) as memory:
        await memory.load_history("damaged", user_id="ann", budget=700)
        await memory.summarize("damaged", user_id="ann")
        after = await memory.get_summary("damaged", user_id="ann")
        assert before is not None
        assert after is not None
        assert (after.facts(), after.narrative, after.stale_ranges) == (before.facts(), before.narrative, ())


async def test_damaged_facts_are_extracted_again(tmp_path: Path) -> None:
    path = tmp_path / "memory.db"
    await fill(path)
    async with opened(path) as memory:
        before = await memory.facts.list("damaged", user_id="ann")
    change(path, "UPDATE facts SET act = ? WHERE conversation_id = 'damaged'", "{bad")
    async with opened(path) as memory:
        assert len(await memory.facts.list("damaged", user_id="ann")) < len(before)
        await memory.summarize("damaged", user_id="ann")
        assert await memory.facts.list("damaged", user_id="ann") == before


async def test_a_damaged_pin_is_left_out_and_named(tmp_path: Path) -> None:
    path = tmp_path / "memory.db"
    await fill(path)
    change(path, "UPDATE pins SET text = ? WHERE conversation_id = 'damaged'", b"\xff")
    async with opened(path) as memory:
        context = await memory.load_history("damaged", user_id="ann")
        assert context.report.remarks == ("damaged, left out: pin of message 1; unpin it, and pin it again",)
        with pytest.raises(StoreCorruptError, match="the pin of message 1 of session 'damaged' is damaged"):
            await memory.pins.list("damaged", user_id="ann")
        await memory.pins.remove("damaged", seq=1, user_id="ann")
        assert await memory.pins.list("damaged", user_id="ann") == ()


@pytest.mark.parametrize(("column", "value"), [("path", "{bad"), ("last_seq", "x7"), ("title", b"\xff")])
async def test_a_damaged_session_is_listed_as_that(tmp_path: Path, column: str, value: object) -> None:
    path = tmp_path / "memory.db"
    await fill(path)
    change(path, f"UPDATE conversations SET {column} = ? WHERE conversation_id = 'damaged'", value)
    async with opened(path) as memory:
        listed = (await memory.list_sessions(user_id="ann")).sessions
        assert {each.session_id for each in listed if each.is_damaged} == {"damaged"}
        assert {each.session_id for each in listed} > {"damaged", "whole"}


def change(path: Path, statement: str, value: object) -> None:
    with closing(sqlite3.connect(path)) as connection:
        connection.execute(statement, [value])
        connection.commit()
