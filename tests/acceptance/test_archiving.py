"""Archiving, clearing and restoring through the library: what contexts, facts, recall and search show."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any

import pytest
from dependency_injector import providers

from reactor_memory import Container, Memory, Message, Settings, open_memory, sync
from reactor_memory.errors import InvalidInputError, SessionNotFoundError, SessionOwnershipError
from reactor_memory.features.search.message_search import MessageSearch
from reactor_memory.models.ledger import Extraction
from reactor_memory.testing import ScriptedSummarizer
from tests.acceptance.scenes import USER, extract, talk

pytestmark = pytest.mark.anyio


def opened(
    url: str, tell: Callable[[Sequence[Message]], Extraction] = extract, **sections: Any
) -> AbstractAsyncContextManager[Memory]:
    summarizer = ScriptedSummarizer(default=tell)

    def configure(container: Container) -> None:
        container.summarizer.override(providers.Object(summarizer))

    values: dict[str, Any] = {"store": {"url": url}, "tokens": {"counter": "estimate"}}
    return open_memory(Settings(**values, **sections), configure=configure)


@pytest.fixture
async def memory(url: str) -> AsyncIterator[Memory]:
    async with opened(url) as memory:
        yield memory


async def shown(memory: Memory, session_id: str = "s", **load: Any) -> str:
    return repr((await memory.load_history(session_id, user_id=USER, **load)).messages)


async def window(memory: Memory, session_id: str = "s", **load: Any) -> list[int | None]:
    context = await memory.load_history(session_id, user_id=USER, **load)
    return [message.seq for message in context.part("window")]


@pytest.mark.parametrize("count", [8, 20, 60])
async def test_archived_messages_leave_window_and_their_facts_speak_for_them(memory: Memory, count: int) -> None:
    await memory.save_history("s", talk(count), user_id=USER)
    assert (await memory.archive("s", user_id=USER)).message_count == count
    await memory.drain()
    context = await memory.load_history("s", user_id=USER)
    assert context.report.unread == ()
    assert all(f"A-{number:04}" in repr(context.messages) for number in range(1, count, 2))
    assert await window(memory) == []
    await memory.save_history("s", talk(2, start=count + 1), user_id=USER)
    assert await window(memory) == [count + 1, count + 2]
    assert "A-0001" in await shown(memory)
    assert await memory.restore("s", user_id=USER) == count
    assert (await window(memory))[-3:] == [count, count + 1, count + 2]


@pytest.mark.parametrize("count", [8, 60])
async def test_after_a_clear_memory_shows_nothing_until_it_is_restored(memory: Memory, count: int) -> None:
    await memory.save_history("s", talk(count), user_id=USER)
    await memory.drain()
    if count == 60:
        await memory.pins.add("s", seq=1, user_id=USER)
    await memory.archive("s", clear=True, user_id=USER)
    await memory.drain()
    loads: list[dict[str, Any]] = [{}, {"message": "what about A-0001?"}, {"query": "A-0001"}, {"budget": 500}]
    for load in loads:
        context = await memory.load_history("s", user_id=USER, **load)
        assert set(context.report.parts) <= {"current"}
        assert context.report.unread == ()
    assert await memory.facts.list("s", user_id=USER) == ()
    assert await memory.facts.trace("s", everything=True, user_id=USER) == ()
    assert await memory.recall("s", "A-0001", user_id=USER) == ()
    assert await memory.pins.list("s", user_id=USER) == ()
    assert await memory.read_messages("s", user_id=USER) == ()
    summary = await memory.get_summary("s", user_id=USER)
    assert summary is None or (summary.narrative, summary.facts()) == ("", ())
    originals = await memory.read_messages("s", archived=True, user_id=USER)
    assert [message.content for message in originals] == [message.content for message in talk(count)]
    assert [message.seq async for message in memory.stream_messages("s", archived=True, user_id=USER)] == [
        message.seq for message in originals
    ]
    assert len(await memory.facts.list("s", cleared=True, user_id=USER)) == count // 2
    await memory.save_history("s", talk(30, start=101), user_id=USER)
    await memory.drain()
    assert "A-0001" not in await shown(memory, query="A-0001")
    assert "A-0101" in await shown(memory)
    assert await memory.restore("s", user_id=USER) == count
    await memory.drain()
    assert "A-0001" in await shown(memory)
    assert memory_finds(await memory.recall("s", "A-0001", user_id=USER))
    assert {fact.source_seq for fact in await memory.facts.list("s", user_id=USER)} >= set(range(1, count, 2))


def memory_finds(hits: Any) -> bool:
    return any("A-0001" in hit.text for hit in hits)


async def test_what_a_clear_meets_unsealed_stays_untold_once_sealed(url: str) -> None:
    async with opened(url, background={"enabled": False}) as memory:
        await memory.save_history("s", talk(30), user_id=USER)
        await memory.archive("s", clear=True, user_id=USER)
        await memory.save_history("s", talk(30, start=101), user_id=USER)
        await memory.summarize("s", user_id=USER)
        assert "A-0001" not in await shown(memory)
        assert "A-0101" in await shown(memory)
        told = {fact.source_seq for fact in await memory.facts.list("s", user_id=USER)}
        assert told
        assert min(told) > 30
        segments = await memory.facts.segments("s", user_id=USER)
        assert all(each.end_seq <= 30 or each.start_seq > 30 for each in segments)


async def test_a_summary_stands_in_the_place_of_what_it_tells(memory: Memory) -> None:
    await memory.save_history("s", talk(40), user_id=USER)
    await memory.drain()
    archived = await memory.archive(
        "s", until_seq=30, clear=True, summary="Fifteen orders were placed.", idempotency_key="k", user_id=USER
    )
    assert archived.message_count == 30
    assert archived.summary is not None
    again = await memory.archive(
        "s", until_seq=30, clear=True, summary="Fifteen orders were placed.", idempotency_key="k", user_id=USER
    )
    assert (again.message_count, again.summary) == (0, archived.summary)
    text = await shown(memory)
    assert "Fifteen orders were placed." in text
    assert "A-0001" not in text
    assert "A-0031" in text


async def test_search_over_conversations_finds_archived_messages_but_no_cleared_ones(url: str) -> None:
    async with opened(url, search={"enabled": True}) as memory:
        await memory.save_history("s", talk(6), user_id=USER)
        await memory.container.background_work().run_once()

        async def found() -> bool:
            await memory.container.background_work().run_once()
            return bool((await memory.search.search(MessageSearch(user_id=USER, text="A-0001"))).hits)

        assert await found()
        await memory.archive("s", user_id=USER)
        assert await found()
        await memory.archive("s", clear=True, user_id=USER)
        assert not await found()
        await memory.restore("s", user_id=USER)
        assert await found()


async def test_full_summaries_are_made_of_what_is_not_cleared(url: str) -> None:
    def tell(messages: Sequence[Message]) -> Extraction:
        return Extraction(
            narrative=" ".join(f"There is {each.content[-6:]}." for each in messages if each.role == "user")
        )

    async with opened(url, tell, summary={"mode": "full"}) as memory:
        await memory.save_history("s", talk(40), user_id=USER)
        await memory.summarize("s", user_id=USER)
        assert "A-0001" in await shown(memory)
        await memory.archive("s", until_seq=20, clear=True, user_id=USER)
        await memory.summarize("s", user_id=USER)
        text = await shown(memory)
        assert "A-0001" not in text
        assert "A-0021" in text
        await memory.restore("s", user_id=USER)
        await memory.summarize("s", user_id=USER)
        assert "A-0001" in await shown(memory)


async def test_branch_archives_its_own_and_forks_keep_what_they_show(memory: Memory) -> None:
    await memory.save_history("s", talk(40), user_id=USER)
    await memory.drain()
    fork = (await memory.fork("s", at_seq=41, user_id=USER)).session_id
    await memory.save_history(fork, talk(4, start=201), user_id=USER)
    await memory.load_history(fork, user_id=USER)
    await memory.drain()
    before = await shown(memory, fork)
    await memory.archive("s", clear=True, user_id=USER)
    assert await shown(memory) == "[]"
    await memory.drain()
    assert await shown(memory, fork) == before
    with pytest.raises(InvalidInputError, match="inherited"):
        await memory.archive(fork, until_seq=40, user_id=USER)
    assert (await memory.archive(fork, user_id=USER)).message_count == 4
    await memory.drain()
    assert "A-0201" in await shown(memory, fork)
    assert await window(memory, fork, budget=4000) == list(range(21, 41)) or (await window(memory, fork))[-1] == 40
    assert await memory.restore(fork, user_id=USER) == 4


async def test_what_cannot_be_archived_is_refused(memory: Memory) -> None:
    await memory.save_history("s", [Message.user("hi")], user_id=USER)
    refused: list[tuple[dict[str, Any], str]] = [
        ({"until_seq": 0}, "until_seq"),
        ({"until_seq": 2}, "until_seq"),
        ({"until_seq": True}, "until_seq"),
        ({"summary": " "}, "text"),
        ({"idempotency_key": "k"}, "idempotency_key"),
    ]
    for arguments, field in refused:
        with pytest.raises(InvalidInputError) as raised:
            await memory.archive("s", user_id=USER, **arguments)
        assert raised.value.field == field
    with pytest.raises(InvalidInputError, match="from_seq"):
        await memory.restore("s", user_id=USER, from_seq=0)
    for call in (memory.archive, memory.restore):
        with pytest.raises(SessionOwnershipError):
            await call("s", user_id="eve")
        with pytest.raises(SessionNotFoundError):
            await call("nothing", user_id=USER)


def test_without_awaiting(tmp_path: Path) -> None:
    with sync.open_memory(tmp_path / "memory.db") as memory:
        memory.save_history("s", ["hello"])
        assert memory.archive("s", clear=True).message_count == 1
        assert memory.read_messages("s") == ()
        assert memory.restore("s") == 1
