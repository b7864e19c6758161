"""Retention by age: a dry run first, then whole sessions go."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest
from dependency_injector import providers

from reactor_memory import Container, open_memory
from reactor_memory.errors import SessionDeletedError
from reactor_memory.testing import FakeClock
from tests.acceptance.conftest import Run, small_talk, write_sessions
from tests.acceptance.scenes import settings, talk

pytestmark = pytest.mark.anyio

DAY = 86_400


def with_clock(clock: FakeClock) -> Callable[[Container], None]:
    return lambda container: container.clock.override(providers.Object(clock))


async def test_what_is_old_goes_whole_and_the_rest_stays() -> None:
    clock = FakeClock()
    async with open_memory(settings(), configure=with_clock(clock)) as memory:
        memory, pruner = memory, memory.container.pruner()
        await memory.save_history("old", talk(40), user_id="ann")
        await memory.drain()
        clock.advance(seconds=60 * DAY)
        await memory.save_history("young", talk(2), user_id="bob")
        clock.advance(seconds=31 * DAY)
        found = [group.session_id async for group in pruner.idle(older_than_seconds=90 * DAY)]
        assert found == ["old"]
        assert len(await memory.read_messages("old", user_id="ann")) == 40
        assert (await pruner.prune(older_than_seconds=90 * DAY)).session_ids == ("old",)
        with pytest.raises(SessionDeletedError):
            await memory.load_history("old", user_id="ann")
        assert await memory.container.summary_store().get_summary("old") is None
        assert len(await memory.read_messages("young", user_id="bob")) == 2
        assert (await pruner.prune(older_than_seconds=90 * DAY)).session_ids == ()


# -- the command ------------------------------------------------------------------------------------------------------


def test_without_yes_nothing_is_deleted(run: Run, folder: Path) -> None:
    run("import", write_sessions(folder / "f.jsonl", {"s1": small_talk(4), "s2": small_talk(2)}))
    assert run("prune", "--older-than", "90d").out == "nothing is that old\n"
    assert run("prune", "--older-than", "1h", "--yes").out == "nothing is that old\n"
    age_by_a_year(folder / "reactor-memory.db", "s1")
    (found,) = run("prune", "--older-than", "90d", "--json").json["would_delete"]
    assert (found["session_id"], found["session_count"], found["message_count"]) == ("s1", 1, 4)
    assert "nothing was deleted" in run("prune", "--older-than", "90d").out
    assert run("show", "s1").code == 0
    assert run("prune", "--older-than", "90d", "--yes", "--json").json["deleted"] == ["s1"]
    assert run("show", "s1").code == 2
    assert run("show", "s2").code == 0


def age_by_a_year(path: Path, session_id: str) -> None:
    with closing(sqlite3.connect(path)) as connection:
        year = 365 * DAY * 1_000_000
        connection.execute(
            "UPDATE conversations SET updated_at = updated_at - ? WHERE conversation_id = ?", (year, session_id)
        )
        connection.commit()


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (["--older-than", "90"], "is no age"),
        (["--older-than", "0d"], "is no age"),
        (["--older-than", "-1d"], "is no age"),
        ([], "--older-than"),
        (["--older-than", "90d", "--user", "ann"], "without --user"),
    ],
)
def test_what_is_refused(run: Run, folder: Path, arguments: list[str], problem: str) -> None:
    run("import", write_sessions(folder / "f.jsonl", {"s1": small_talk(2)}))
    refused = run("prune", *arguments)
    assert (refused.code, refused.out) == (2, "")
    assert problem in refused.err
