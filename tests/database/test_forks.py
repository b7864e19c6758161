"""No verb of a database does anything in another process than the one that opened it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from reactor_memory import Memory, Message, open_memory
from reactor_memory.core.log import operations as log
from reactor_memory.database import forks
from reactor_memory.database.database import Database
from reactor_memory.errors import OtherProcessError
from reactor_memory.features.facts import operations as facts
from tests.acceptance.scenes import settings

pytestmark = pytest.mark.anyio

VERBS: dict[str, Callable[[Database], Awaitable[Any]]] = {
    "read": lambda database: database.read(log.find_session, "s"),
    "read_long": lambda database: database.read_long(log.find_session, "s"),
    "write": lambda database: database.write(facts.add_spending, "s", day=1, tokens=1),
    "write_relaxed": lambda database: database.write_relaxed(facts.add_spending, "s", day=1, tokens=1),
    "one": lambda database: database.one("summary_head", {"group_id": "s", "conversation_id": "s"}),
}
CALLS: dict[str, Callable[[Memory], Awaitable[Any]]] = {
    "load": lambda memory: memory.load_history("s"),
    "save": lambda memory: memory.save_history("s", [Message.user("again")]),
    "drain": lambda memory: memory.drain(),
    "list": lambda memory: memory.list_sessions(),
}


@pytest.fixture(params=["memory", "sqlite"])
async def memory(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Memory]:
    url = "memory://" if request.param == "memory" else f"sqlite:///{tmp_path}/memory.db"
    async with open_memory(settings(url)) as opened:
        await opened.save_history("s", [Message.user("hi")])
        yield opened
        assert len(await opened.read_messages("s")) == 1


@pytest.fixture
def forked(memory: Memory, monkeypatch: pytest.MonkeyPatch) -> Memory:
    """As a child has it that the process was forked into: what it opened is there, and of no use."""
    monkeypatch.setattr(forks, "_forks", forks._forks + 1)  # pyright: ignore[reportPrivateUsage]
    return memory


@pytest.mark.parametrize("verb", VERBS)
async def test_every_verb_is_refused_in_a_fork(forked: Memory, verb: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(OtherProcessError, match="open it in this process"):
        await VERBS[verb](forked.container.database())
    monkeypatch.undo()


@pytest.mark.parametrize("call", CALLS)
async def test_every_call_is_refused_in_a_fork(forked: Memory, call: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in VERBS:  # not by the database: before anything waits for it
        monkeypatch.setattr(type(forked.container.database()), name, _reached)
    with pytest.raises(OtherProcessError, match="open it in this process"):
        await CALLS[call](forked)
    monkeypatch.undo()


def _reached(*arguments: object, **options: object) -> None:
    raise AssertionError("the database was asked")
