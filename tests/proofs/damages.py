"""A database with a row of everything, and values in it that this library never writes."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import AsyncGenerator, Generator, Iterator
from contextlib import asynccontextmanager, closing, contextmanager
from pathlib import Path
from typing import Any, NamedTuple
from unittest.mock import patch

from dependency_injector import providers

from reactor_memory import Container, Memory, Message, Settings, open_memory
from reactor_memory.features.facts import operations as fact_rows
from reactor_memory.features.items import operations as item_rows
from reactor_memory.features.items.models import ItemChange
from reactor_memory.features.notes import operations as note_rows
from reactor_memory.features.notes.models import Notes
from tests.doubles.fake_embedder import FakeEmbedder
from tests.server.worlds import USER, staged

SCHEMA = Path(__file__).parents[2] / "migrations" / "sqlite.sql"
DAMAGES: dict[str, object] = {
    "wrong type": "x7",
    "broken json": '{"a": [1,',
    "other json": "[[1, 2, 3]]",
    "blob": b"\xff\x00\xfe",
    "out of range": -(2**62),
}


def columns() -> dict[str, list[str]]:
    """Of every table of the schema, those of full text and of keys as well."""
    text = SCHEMA.read_text()
    found = {
        table: re.findall(r'^    "?(\w+)"? (?:TEXT|BIGINT|BLOB)', body, re.MULTILINE)
        for table, body in re.findall(r"^CREATE TABLE (\w+) \((.*?)^\)", text, re.MULTILINE | re.DOTALL)
    }
    for table, body in re.findall(r"^CREATE VIRTUAL TABLE (\w+) USING fts5\((.*?)\);", text, re.MULTILINE):
        if "content =" not in body:  # else its columns are those of another table
            found[table] = [each.split()[0] for each in body.split(", ") if "=" not in each]
    return found


class Damage(NamedTuple):
    table: str
    column: str
    kind: str
    entries: str = ""
    """Which kind of entries is damaged."""

    def do(self, path: Path) -> bool:
        """Whether the database took the value, in one row of the damaged session if that has some."""
        with closing(sqlite3.connect(path)) as connection:
            names = [row[1] for row in connection.execute(f"PRAGMA table_info({self.table})")]
            whole = f"kind = '{self.entries}'" if self.entries else "1 = 1"
            scope = f"{whole} AND conversation_id = 'damaged'" if "conversation_id" in names else whole
            if not connection.execute(f"SELECT COUNT(*) FROM {self.table} WHERE {scope}").fetchone()[0]:
                scope = whole
            key = _row_id(connection, self.table)
            place = f"SELECT MAX({key}) FROM {self.table} WHERE {scope}"
            change = f'UPDATE {self.table} SET "{self.column}" = ? WHERE {key} = ({place})'
            try:
                done = connection.execute(change, [DAMAGES[self.kind]])
            except sqlite3.Error:
                return False
            connection.commit()
            return done.rowcount > 0


def _row_id(connection: sqlite3.Connection, table: str) -> str:
    """What names a row: most tables have no row id of their own."""
    keys = [row[1] for row in connection.execute(f"PRAGMA table_info({table})") if row[5]]
    return " || '/' || ".join(f'"{key}"' for key in keys) if keys else "rowid"


def damages(table: str) -> Iterator[Damage]:
    """Of entries, those of each kind."""
    kinds = ("notes", "pin", "posted", "range") if table == "entries" else ("",)
    return (Damage(table, column, kind, each) for each in kinds for column in columns()[table] for kind in DAMAGES)


def empty_tables(path: Path) -> set[str]:
    with closing(sqlite3.connect(path)) as connection:
        return {each for each in columns() if not connection.execute(f"SELECT COUNT(*) FROM {each}").fetchone()[0]}


def change(path: Path, statement: str, value: object) -> None:
    with closing(sqlite3.connect(path)) as connection:
        connection.execute(statement, [value])
        connection.commit()


@contextmanager
def touched_tables() -> Generator[set[str]]:
    """The tables that statements read or change, of connections that are opened in the block."""
    found = set[str]()
    connect = sqlite3.connect

    def note(action: int, table: str | None, *_: object) -> int:
        if table and action in (
            sqlite3.SQLITE_READ,
            sqlite3.SQLITE_INSERT,
            sqlite3.SQLITE_UPDATE,
            sqlite3.SQLITE_DELETE,
        ):
            found.add(table)
        return sqlite3.SQLITE_OK

    def connected(*arguments: Any, **options: Any) -> sqlite3.Connection:
        connection = connect(*arguments, **options)
        connection.set_authorizer(note)
        return connection

    with patch.object(sqlite3, "connect", connected):
        yield found


@asynccontextmanager
async def opened(path: Path, **more: dict[str, Any]) -> AsyncGenerator[Memory]:
    sections: dict[str, Any] = {
        "search": {"enabled": True},
        "notes": {"enabled": True},
        "background": {"enabled": False, "backoff_seconds": 0.01},
        "summary": {"enabled": True, "trigger_message_count": 12, "recent_message_count": 4},
        "context": {"record": "all"},
        "tokens": {"counter": "estimate"},
    }
    chosen = Settings(**{"store": {"url": f"sqlite:///{path}"}, **sections, **more})
    async with open_memory(chosen, configure=_knowing) as memory:
        yield memory


@asynccontextmanager
async def opened_with_tiers(path: Path) -> AsyncGenerator[Memory]:
    tiers = {"recent_count": 4, "condensed_count": 6, "auto_threshold": 8}
    async with opened(path, history={"strategy": "progressive"}, summary={"enabled": False}, tiers=tiers) as memory:
        yield memory


def _knowing(container: Container) -> None:
    container.embedder.override(providers.Object(FakeEmbedder()))  # pyright: ignore[reportUnknownMemberType]


async def fill(path: Path) -> None:
    async with staged(f"sqlite:///{path}") as service:
        world = await service.world()
        response = world.responses["own"]
        answers = f"/v1/agent/conversations/{world.own}/responses/{response.running_id}/chunks"
        await service.done("agent", "POST", answers, {"fence": response.fence, "firstEvent": 1, "texts": ["It "]})
        once = {**service.headers["owner"], "Idempotency-Key": "once"}
        said = await service.client.post(f"{USER}/conversations", json={"title": "once"}, headers=once)
        assert said.is_success, said.text
    async with opened(path, background={"poll_seconds": 3600}) as memory:
        for session_id in ("damaged", "whole"):
            for turn in range(10):
                said = [
                    Message.user(f"My order number is A-{turn}, for {turn} people and a cat.", metadata={"turn": turn}),
                    Message.assistant("Noted.", parts=({"type": "text", "text": "Noted."},)),
                ]
                await memory.save_history(session_id, said, user_id="ann", idempotency_key=f"k{turn}")
            await memory.summarize(session_id, user_id="ann")
            await memory.pins.add(session_id, seq=1, user_id="ann")
        [fact, *_] = await memory.facts.list("damaged", user_id="ann")
        await memory.facts.correct("damaged", fact=(fact.anchor, fact.key), value="A-70", user_id="ann")
        await memory.fork("damaged", at_seq=5, user_id="ann")
        for session_id in ("damaged", "whole"):
            await memory.load_history(session_id, user_id="ann", budget=160)
            await memory.load_history(session_id, user_id="ann", message="What was my order number?", budget=500)
        await memory.container.summary_poster().post("whole", text="They ordered.", until_seq=4, user_id="ann")
        await memory.sessions.get_or_create("ann", "a")
        note = Notes(user_id="ann", agent_name="a", version=1, text="likes tea")
        database = memory.container.database()
        await database.write(note_rows.put_notes, note)
        await database.write(fact_rows.add_spending, "damaged", day=1, tokens=5)
        await database.write(item_rows.change_items, "ann", [ItemChange(namespace="n", key="k", value={"v": 1})], now=1)
        await memory.container.background_work().run_once()
    async with opened_with_tiers(path) as memory:
        await memory.tiers.summarize("damaged", user_id="ann")
