"""`copy`: what was in one database is in the other, whole and once, also when it was interrupted."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from pathlib import Path
from typing import Any

import pytest

from reactor_memory import Memory, Message, Settings, open_memory
from reactor_memory.models.requests import Appended
from reactor_memory.models.session_pages import SessionPage
from tests.acceptance.conftest import Run, rich_messages, small_talk


def talk(
    database: Path, session_id: str, messages: list[Message], *, user_id: str | None = None, key: str = "k"
) -> Any:
    async def save(memory: Memory) -> Appended:
        return await memory.save_history(session_id, messages, user_id=user_id, idempotency_key=key)

    return using(f"sqlite:///{database}", save)


def using(url: str, act: Any) -> Any:
    """What `act` gives of the manager of this database."""

    async def run() -> Any:
        settings = Settings(store={"url": url}, background={"enabled": False})
        async with open_memory(settings) as memory:
            done: Coroutine[Any, Any, Any] = act(memory)
            return await done

    return asyncio.run(run())


@pytest.fixture
def source(folder: Path) -> Path:
    """A database with a session of Ann that has a fork, one of Bob, and an open one."""
    database = folder / "from.db"
    talk(database, "ann", rich_messages(), user_id="ann")

    async def branch(memory: Memory) -> None:
        fork = await memory.fork("ann", at_seq=3, user_id="ann")
        await memory.save_history(fork.session_id, small_talk(2), user_id="ann")
        await memory.pins.add("ann", seq=1, user_id="ann")

    using(f"sqlite:///{database}", branch)
    talk(database, "bob", small_talk(4), user_id="bob")
    talk(database, "open", small_talk(6))
    return database


def test_a_copy_holds_what_the_original_holds(run: Run, source: Path, folder: Path) -> None:
    done = run("copy", source.name, "to.db", "--json")
    assert done.json == {"sessions": 4, "messages": 7 + 2 + 4 + 6, "copied": 19, "notes_copied": 0}
    for session, user in (("ann", "ann"), ("bob", "bob"), ("open", "nobody")):
        there = run("show", session, "--user", user, "--store", "to.db", "--all", "--json")
        assert there.json == run("show", session, "--user", user, "--store", source.name, "--all", "--json").json
        assert there.json["messages"]
    assert run("pins", "ann", "--user", "ann", "--store", "to.db", "--json").json
    assert run("doctor", "--store", "to.db", "--json").json["problems"] == []


def test_a_table_says_what_was_copied(run: Run, source: Path) -> None:
    done = run("copy", source, "to.db")
    assert (done.code, done.err, done.out.split()[-4:]) == (0, "", ["4", "19", "19", "0"])
    assert run("copy", source, "to.db").out.split()[-4:] == ["4", "19", "0", "0"]


def test_save_that_is_repeated_in_the_new_database_is_recognised(run: Run, source: Path, folder: Path) -> None:
    run("copy", source, "to.db")
    again = talk(folder / "to.db", "bob", small_talk(4), user_id="bob")
    assert (again.replayed, again.last_seq) == (True, 4)


def test_one_user_or_one_session(run: Run, source: Path) -> None:
    assert run("copy", source, "users.db", "--user", "ann", "--json").json["sessions"] == 2
    assert run("copy", source, "one.db", "--session", "bob", "--json").json == {
        "sessions": 1,
        "messages": 4,
        "copied": 4,
        "notes_copied": 0,
    }
    assert run("show", "ann", "--user", "ann", "--store", "one.db").code == 2
    assert "--session" in run("copy", source, "x.db", "--user", "ann", "--session", "bob").err


def test_a_fork_brings_its_group(run: Run, source: Path) -> None:
    async def list_sessions(memory: Memory) -> SessionPage:
        return await memory.list_sessions(user_id="ann")

    fork = using(f"sqlite:///{source}", list_sessions).sessions[0].session_id
    assert "~" in fork
    assert run("copy", source, "to.db", "--session", fork, "--json").json["sessions"] == 2


def test_another_session_of_the_same_id_stops_it_before_writing(run: Run, source: Path, folder: Path) -> None:
    talk(folder / "to.db", "open", small_talk(1))
    refused = run("copy", source, "to.db")
    assert refused.code == 2
    assert "'open'" in refused.err
    assert "nothing is overwritten" in refused.err
    assert run("show", "ann", "--user", "ann", "--store", "to.db").code == 2


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (("nothing.db", "to.db"), "there is no database nothing.db; FROM_URL names one that exists"),
        (("from.db", "nowhere://x"), "nowhere"),
        (("from.db", "to.db", "--session", "unknown"), "does not exist"),
    ],
)
def test_what_cannot_be_copied_is_refused(run: Run, source: Path, arguments: tuple[str, ...], problem: str) -> None:
    refused = run("copy", *arguments)
    assert refused.code == 2
    assert problem in refused.err


@pytest.mark.postgres
def test_to_postgres_and_back(run: Run, source: Path, postgres_dsn: str) -> None:
    assert run("copy", source, postgres_dsn, "--json").json["copied"] == 19
    assert run("copy", postgres_dsn, "back.db", "--json").json["copied"] == 19
    there = run("show", "ann", "--user", "ann", "--store", "back.db", "--json").json
    assert there == run("show", "ann", "--user", "ann", "--store", source, "--json").json
