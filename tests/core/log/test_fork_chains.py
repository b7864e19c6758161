"""Forks of forks: what is read along a branch takes as many statements as a plain session, or a few more."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest

from reactor_memory.core.log import forks
from reactor_memory.core.log import operations as log
from reactor_memory.database.operations import Batch, Query, Statement, Steps
from reactor_memory.errors import LimitExceededError
from reactor_memory.features.facts import operations as fact_operations
from reactor_memory.features.recall import operations as recall
from reactor_memory.features.sharing import operations as conversations
from reactor_memory.models import Message, Session
from reactor_memory.models.index_requests import RecallQuery
from reactor_memory.models.requests import ContextQuery
from reactor_memory.settings.settings import Settings
from reactor_memory.wiring.container import Container
from reactor_memory.wiring.opening import open_container

pytestmark = pytest.mark.anyio

DEPTH = 24


@pytest.fixture
async def container(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Container]:
    monkeypatch.setattr(forks, "MAX_FORK_DEPTH", DEPTH)
    store = {"url": f"sqlite:///{tmp_path}/memory.db"}
    async with open_container(Settings(store=store)) as container:
        yield container


async def chain(container: Container, depth: int) -> Session:
    """The last of `depth` forks of forks, of one turn each."""
    manager = container.conversation_manager()
    session_id = "root"
    for number in range(depth + 1):
        if number:
            session_id = (await manager.fork(session_id, at_seq=2 * number + 1, user_id="ann")).session_id
        turn = [Message.user(f"Order A-{number} is ready"), Message.assistant("I see")]
        await manager.save_history(session_id, turn, user_id="ann")
    await manager.summarize(session_id, user_id="ann")
    await container.background_work().drain()
    return await manager.get_session(session_id, user_id="ann")


def context_of(session: Session) -> Steps[Any]:
    query = ContextQuery(
        session_id=session.session_id,
        user_id="ann",
        last_count=10,
        trigger_message_count=20,
        max_messages=200,
        max_tokens=4000,
        overhead=4,
        budget=4000,
        settings_fingerprint="",
    )
    return log.read_context(query)


def search_of(session: Session) -> Steps[Any]:
    words = (("order",), ("ready",))
    return recall.search(
        RecallQuery(session_id=session.session_id, branch=session.branch, text="order", words=words, limit=10)
    )


READS: dict[str, Callable[[Session], Steps[Any]]] = {
    "context": context_of,
    "messages": lambda session: log.read(session.session_id, "ann", after=0, until=None, last=None, limit=50),
    "newest": lambda session: log.read(session.session_id, "ann", after=0, until=None, last=30, limit=None),
    "ledger": lambda session: fact_operations.read_ledger(session.branch),
    "facts": lambda session: fact_operations.read_facts_about(session.branch, ["A-1", "A-7"]),
    "search": search_of,
    "find": lambda session: conversations.find_message(session, "no such message"),
    "described": lambda session: conversations.get_conversation(session.session_id, "ann", described=True),
    "forks": lambda session: conversations.list_group(session.group_id, "ann", limit=20),
}


def counted(steps: Steps[Any], names: list[str]) -> Steps[Any]:
    answer: Any = None
    try:
        step: Query | Batch | Statement = next(steps)
        while True:
            names.append(step.name if isinstance(step, Query) else "other")
            step = steps.send((yield step))
    except StopIteration as end:
        answer = end.value
    return answer


async def test_statements_do_not_grow_with_the_depth(container: Container) -> None:
    session = await chain(container, DEPTH)
    assert len(session.branch) == DEPTH + 1
    for name, read in READS.items():
        names: list[str] = []
        await container.needed_database().read(counted, read(session), names)
        assert 0 < len(names) <= 8, (name, names)


async def test_facts_and_messages_of_all_ancestors_are_there(container: Container) -> None:
    session = await chain(container, DEPTH)
    manager = container.conversation_manager()
    read = await manager.read_messages(session.session_id, user_id="ann")
    assert [message.seq for message in read] == list(range(1, 2 * DEPTH + 3))
    newest = await manager.read_messages(session.session_id, user_id="ann", last=30)
    assert newest == read[-30:]
    assert await manager.read_messages(session.session_id, user_id="ann", after=5, limit=9) == read[5:14]
    found = await manager.search(session.session_id, "A-7", user_id="ann")
    assert any("A-7 " in hit.text + " " for hit in found)
    facts = await container.facts().list(session.session_id, user_id="ann")
    assert {fact.source_seq for fact in facts} >= set(range(1, 31, 2))


async def test_a_fork_of_too_many_forks_is_refused_before_writing(container: Container) -> None:
    session = await chain(container, DEPTH)
    manager = container.conversation_manager()
    with pytest.raises(LimitExceededError, match=r"at_seq: has 25 .* the limit is 24: fork at an earlier message"):
        await manager.fork(session.session_id, at_seq=session.last_seq + 1, user_id="ann")
    page = await manager.list_sessions(user_id="ann", limit=100)
    assert len(page.sessions) == DEPTH + 1
    beside = await manager.fork(session.session_id, at_seq=session.last_seq - 1, user_id="ann")
    assert len(beside.branch) == DEPTH + 1
