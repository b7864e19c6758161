"""A store that fails at its N-th call, for every N: errors are typed, nothing is lost, doubled, invented or stuck."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator, Sequence
from contextlib import asynccontextmanager, closing
from functools import partial
from itertools import count, product
from pathlib import Path
from typing import Any

import anyio
import pytest
from dependency_injector import providers

from reactor_memory import Container, ConversationManager, Message, SessionDeletedError, open_container
from reactor_memory.core.context.context import Context
from reactor_memory.core.log import summaries
from reactor_memory.database.database import Database
from reactor_memory.errors import InvalidInputError, StoreUnavailableError
from reactor_memory.models.ledger import Extraction, Fact
from reactor_memory.testing import ScriptedSummarizer
from tests.acceptance.scenes import USER, extract, memory, save, scripted, settings, talk, texts
from tests.doubles.faulty_database import FaultyDatabase, Mode
from tests.scenes.stores import memory_database, sqlite_database

pytestmark = pytest.mark.anyio

ORDER_NUMBER = re.compile(r"A-\d{4}")
LIE = "A-9999"
BATCH = 8
LENGTH = 40
SESSIONS = ("s", "t")
"""Saves that follow each other at once may be read together: two sessions make more than ten calls, however fast."""
SEALED = 30
BACKGROUND_CALLS = frozenset(
    {"claim", "renew", "release", "record_segment", "put_summary", "get_summary", "get_summary_head"}
    | {"read_background", "read_ledger"}
)
FAULTS: list[tuple[Mode, bool]] = [("before", False), ("after", False), ("before", True), ("after", True)]


def extract_with_a_lie(messages: Sequence[Message]) -> Extraction:
    """What `extract` finds, and an order number that nobody ever named."""
    honest = extract(messages)
    lie = Fact(anchor="order", key="number", value=LIE, source_seq=messages[0].seq or 0, verified=True)
    return Extraction(facts=(*honest.facts, lie), narrative=f"{honest.narrative} They meant {LIE}.")


@asynccontextmanager
async def memory_on(store: FaultyDatabase, **sections: Any) -> AsyncGenerator[Container]:
    """A lease that a lost answer leaves behind ends soon, so that somebody else can go on."""
    background = {"lease_seconds": 0.05, "close_grace_seconds": 0.05}

    def configure(container: Container) -> None:
        container.database.override(providers.Object(store))
        container.summarizer.override(providers.Object(ScriptedSummarizer(default=extract_with_a_lie)))

    async with open_container(settings(background=background, **sections), configure=configure) as container:
        yield container


class Agent:
    """A caller that does everything the library offers, and repeats what failed."""

    def __init__(self, container: Container) -> None:
        self.container = container
        self.manager: ConversationManager = container.conversation_manager()
        self.contexts: list[Context] = []
        self._asked_to_withdraw: set[int] = set()
        self._asked_to_delete = False

    def steps(self) -> Iterator[Callable[[], Awaitable[None]]]:
        yield self.begin_what_is_deleted_later
        for number in range(1, LENGTH // BATCH + 1):
            yield partial(self.save_to, "s", number)
            yield partial(self.load, "s")
        yield self.manager.drain
        yield partial(self.load, "s")
        yield partial(self.withdraw, LENGTH)
        yield partial(self.withdraw, LENGTH - 1)
        yield partial(self.load, "s")
        yield self.fork
        yield self.delete

    async def save_to(self, session_id: str, number: int) -> None:
        batch = talk(BATCH, start=(number - 1) * BATCH + 1)
        await self.manager.save_history(session_id, batch, user_id=USER, idempotency_key=f"batch {number}")

    async def begin_what_is_deleted_later(self) -> None:
        try:
            await self.save_to("doomed", 1)
        except SessionDeletedError:
            assert self._asked_to_delete

    async def delete(self) -> None:
        self._asked_to_delete = True
        await self.manager.delete("doomed", user_id=USER)

    async def load(self, session_id: str) -> None:
        self.contexts.append(await self.manager.load_history(session_id, user_id=USER))

    async def withdraw(self, seq: int) -> None:
        """Naming the message makes it safe to repeat: one that is gone already is refused."""
        try:
            await self.container.erasure().withdraw("s", user_id=USER, seq=seq)
        except InvalidInputError:
            assert seq in self._asked_to_withdraw
        finally:
            self._asked_to_withdraw.add(seq)

    async def fork(self) -> None:
        fork = await self.manager.fork("s", user_id=USER, at_seq=31)
        await self.load(fork.session_id)

    async def live(self, store: FaultyDatabase) -> None:
        """What fails is repeated at once, and once more when the store is healed."""
        failed = [step for step in self.steps() if not await succeeded(step) and not await succeeded(step)]
        store.heal()
        for step in failed:
            await step()


async def succeeded(step: Callable[[], Awaitable[object]]) -> bool:
    try:
        await step()
    except StoreUnavailableError:
        return False
    return True


async def caught_up(container: Container) -> Context:
    """The context of "s" when background work has read all there is to read, as a poll after a lost lease makes it."""
    manager = container.conversation_manager()
    with anyio.fail_after(30):
        while True:
            await container.background_work().run_once()
            context = await manager.load_history("s", user_id=USER)
            summary = await manager.get_summary("s", user_id=USER)
            if summary and summary.covered_seq >= SEALED and not (summary.stale_ranges or context.report.unread):
                return context
            await anyio.sleep(0.01)


def check_context(context: Context) -> None:
    """Every order number is shown, or its message is in a range that the report names; nothing is made up."""
    shown = set(ORDER_NUMBER.findall("\n".join(texts(context.messages))))
    window = [message.seq for message in context.messages if message.seq is not None]
    named = {seq for first, last in context.report.unread for seq in range(first, last + 1)}
    assert all(f"A-{seq:04}" in shown for seq in range(1, window[0] if window else 1, 2) if seq not in named)
    assert window == list(range(window[0], window[-1] + 1)) if window else not shown
    assert LIE not in shown


async def check_everything(container: Container, agent: Agent) -> None:
    manager = agent.manager
    messages = await manager.read_messages("s", user_id=USER)
    assert [message.seq for message in messages] == list(range(1, LENGTH - 1))
    assert texts(messages) == texts(talk(LENGTH - 2))
    with pytest.raises(SessionDeletedError):
        await manager.load_history("doomed", user_id=USER)
    agent.contexts.append(await caught_up(container))
    for context in agent.contexts:
        check_context(context)
    assert f"A-{LENGTH - 1:04}" not in "\n".join(texts(agent.contexts[-1].messages))
    assert (await manager.save_history("s", talk(2, start=LENGTH + 1), user_id=USER)).first_seq == LENGTH + 1


async def survives(store: FaultyDatabase) -> bool:
    """Whether the fault took place; everything else is checked."""
    async with memory_on(store) as container:
        agent = Agent(container)
        await agent.live(store)
        faulted = store.failures > 0
        await check_everything(container, agent)
    return faulted


@pytest.mark.slow
@pytest.mark.parametrize(("mode", "for_ever"), FAULTS)
async def test_a_fault_at_any_call_leaves_log_and_memory_whole(mode: Mode, for_ever: bool) -> None:
    for at in count(1):
        if not await survives(FaultyDatabase(memory_database(), at=at, mode=mode, for_ever=for_ever)):
            break
    assert at > 40, "the scenario makes more calls than that"


@pytest.mark.parametrize("places", [(3, 21), pytest.param((1, 8, 55), marks=pytest.mark.slow)])
@pytest.mark.parametrize(("mode", "for_ever"), FAULTS)
async def test_a_fault_at_any_call_of_sqlite(
    tmp_path: Path, mode: Mode, for_ever: bool, places: tuple[int, ...]
) -> None:
    for at in places:
        store = sqlite_database(tmp_path / f"{at}.db")
        assert await survives(FaultyDatabase(store, at=at, mode=mode, for_ever=for_ever)) or at > 40


@pytest.mark.slow
async def test_background_work_that_hangs_holds_up_no_load() -> None:
    """Whatever call of it never returns, loads answer, saves are stored, and closing ends."""
    for at in count(1):
        store = FaultyDatabase(memory_database(), at=at, mode="hang", operations=BACKGROUND_CALLS)
        async with memory_on(store, summary={"lazy_timeout_seconds": 0.02}) as container:
            agent = Agent(container)
            with anyio.fail_after(30):
                for number in range(1, LENGTH // BATCH + 1):
                    await agent.save_to("s", number)
                    await agent.load("s")
        for context in agent.contexts:
            check_context(context)
        assert len(agent.contexts[-1].messages) >= 20
        if not store.failures:
            break
    assert at > 10


async def test_a_load_does_without_the_layout_that_it_cannot_store() -> None:
    """It is an optimisation of later loads, so a fault there is none of this one."""
    store = FaultyDatabase(memory_database(), at=1, mode="before", for_ever=True, operations={"put_layout"})
    async with memory_on(store) as container:
        agent = Agent(container)
        for number in range(1, LENGTH // BATCH + 1):
            await agent.save_to("s", number)
        await agent.manager.drain()
        await agent.load("s")
    assert store.failures == 1
    check_context(agent.contexts[0])


async def test_load_does_not_wait_for_the_writer_of_another_process(tmp_path: Path) -> None:
    path = tmp_path / "memory.db"
    async with memory(scripted(), f"sqlite:///{path}", store={"timeout_seconds": 60}) as container:
        manager = container.conversation_manager()
        await save(manager, "s", talk(40))
        await manager.drain()
        with closing(sqlite3.connect(path, isolation_level=None)) as other:
            other.execute("BEGIN IMMEDIATE")
            with anyio.fail_after(30):
                context = await manager.load_history("s", user_id=USER)
    assert context.report.freshness == "fresh"


async def test_background_work_goes_on_after_a_fault_of_the_store() -> None:
    """Nobody has to ask again: the worker itself tries again."""
    for at in count(1):
        log = memory_database()
        store = FaultyDatabase(log, at=at, mode="before", operations=BACKGROUND_CALLS)
        async with memory_on(store) as container:
            agent = Agent(container)
            for number, session in product(range(1, LENGTH // BATCH + 1), SESSIONS):
                await agent.save_to(session, number)
            with anyio.fail_after(30):
                while not await cover(log, LENGTH):  # noqa: ASYNC110 - what is waited for is a state
                    await anyio.sleep(0.005)
        if not store.failures:
            break
    assert at > 10


async def cover(database: Database, seq: int) -> bool:
    """Whether the summaries of all sessions do."""
    found = [await database.read(summaries.get_summary, session) for session in SESSIONS]
    return all(summary is not None and summary.covered_seq >= seq for summary in found)


@pytest.mark.parametrize("mode", ["before", "after"])
async def test_a_summary_that_was_posted_in_vain_is_posted_again(mode: Mode) -> None:
    store = FaultyDatabase(memory_database(), at=1, mode=mode, operations={"post_summary"})
    async with memory_on(store) as container:
        manager = container.conversation_manager()
        await manager.save_history("s", talk(4), user_id=USER)
        with pytest.raises(StoreUnavailableError):
            await container.summary_poster().post("s", text="Orders.", until_seq=4, user_id=USER, idempotency_key="k")
        posted = await container.summary_poster().post(
            "s", text="Orders.", until_seq=4, user_id=USER, idempotency_key="k"
        )
        assert await manager.read_messages("s", user_id=USER, after=4) == (posted,)
