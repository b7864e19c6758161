"""Older turns and facts come back when they are asked for, and only then."""

from __future__ import annotations

from typing import Any

import pytest

from reactor_memory import Context, Memory, Message, SessionOwnershipError
from reactor_memory.core.context.verification import verify
from reactor_memory.errors import InvalidInputError, StoreUnavailableError
from tests.acceptance.scenes import USER, agent_memory, save, scripted, talk
from tests.scenes.fixtures_stores import memory_or_sqlite

pytestmark = pytest.mark.anyio

PLAN = [Message.user("We meet Ann Walrus at the Blue Door, floor 17"), Message.assistant("I will remember the floor")]
BUDGET = 300
LARGE = "and so on " * 20
"""Takes more than what messages to come move the window for: made for it, the window stays for smaller ones."""

url = memory_or_sqlite


async def filled(memory: Memory, session_id: str = "s", length: int = 80) -> None:
    """The plan, then talk that pushes it out of the window; everything sealed and indexed."""
    await save(memory, session_id, PLAN)
    await save(memory, session_id, talk(length, start=3))
    await memory.drain()


async def load(memory: Memory, text: str, query: str | None = None, session_id: str = "s") -> Context:
    context = await memory.load_history(
        session_id, user_id=USER, message=Message.user(text), budget=BUDGET, query=query
    )
    assert verify(context, count=memory.container.message_counter().of) == []
    return context


def recalled(context: Context) -> str:
    pairs = zip(context.messages, context.report.parts, strict=True)
    return "\n".join(message.content for message, part in pairs if part == "recalled")


def counted(part: Any, method: str) -> list[tuple[object, ...]]:
    """The calls of a method from now on."""
    calls: list[tuple[object, ...]] = []
    original = getattr(part, method)

    async def call(*args: Any, **kwargs: Any) -> Any:
        calls.append(args)
        return await original(*args, **kwargs)

    setattr(part, method, call)
    return calls


async def test_a_message_that_names_something_old_brings_it_back(url: str) -> None:
    async with agent_memory(scripted(), url) as memory:
        await filled(memory)
        context = await load(memory, "Which floor was it with Ann Walrus again?")
    assert "floor 17" in recalled(context)
    assert context.report.parts[-1] == "current"


@pytest.mark.parametrize(
    "text", ["It was the floor", "Yes please", "Is anything forgotten?", "And A-0081", "Is A-0081 the newest?"]
)
async def test_naming_nothing_old_or_what_is_in_view_brings_nothing(url: str, text: str) -> None:
    async with agent_memory(scripted(), url) as memory:
        await filled(memory)
        assert recalled(await load(memory, text)) == ""


async def test_an_empty_query_never_recalls_and_a_query_always(url: str) -> None:
    async with agent_memory(scripted(), url) as memory:
        await filled(memory)
        assert recalled(await load(memory, "And Ann Walrus?", "")) == ""
        assert recalled(await load(memory, "And Ann Walrus?", "  ")) == ""
        assert "floor 17" in recalled(await load(memory, "Well?", "which floor"))


async def test_passages_come_as_lines_of_a_block_of_their_own(url: str) -> None:
    async with agent_memory(scripted(), url) as memory:
        await filled(memory)
        context = await load(memory, "Was it?", "Was there an order A-0031?")
    block = next(m for m, part in zip(context.messages, context.report.parts, strict=True) if part == "recalled")
    header, notice, *lines = block.content.split("\n")
    assert header == "Recalled from earlier in this conversation:"
    assert "not instructions" in notice
    assert any("A-0031" in line and line.startswith("[#31-32, ") for line in lines)
    assert context.report.offered["recalled"] >= len(lines)
    assert context.report.why(31).outcome == "remembered"


@pytest.mark.parametrize(
    ("text", "query", "remark"),
    [
        ("Which floor was it with Ann Walrus?", None, "recall: brought back for a question"),
        ("Is there anything of the zyx?", None, "recall: nothing that is not shown was found"),
        ("Well", "the floor", "recall: brought back for the query"),
    ],
)
async def test_the_report_says_why(url: str, text: str, query: str | None, remark: str) -> None:
    async with agent_memory(scripted(), url) as memory:
        await filled(memory)
        assert remark in (await load(memory, text, query)).report.remarks


@pytest.mark.parametrize(("default", "finds"), [("off", False), ("question", True), ("always", True)])
async def test_a_setting_says_when_messages_bring_something_back(url: str, default: str, finds: bool) -> None:
    async with agent_memory(scripted(), url, recall={"default": default}) as memory:
        await filled(memory)
        assert ("floor 17" in recalled(await load(memory, "Which floor was it with Ann Walrus?"))) is finds
        assert ("floor 17" in recalled(await load(memory, "We meet Ann Walrus"))) is (default == "always")


async def test_an_ordinary_load_asks_no_index(url: str) -> None:
    async with agent_memory(scripted(), url) as memory:
        await filled(memory)
        await load(memory, LARGE, "")
        await memory.drain()
        searches = counted(memory.container.recall_index(), "search")
        reads = counted(memory.container.message_store(), "read_ranges")
        for text in ("It was the floor", "Yes, go ahead"):
            await load(memory, text)
        assert (searches, reads) == ([], [])
        await load(memory, "And Ann Walrus?")
        assert (len(searches), len(reads)) == (1, 1)


async def test_a_query_reads_what_it_found_and_not_the_log(url: str) -> None:
    async with agent_memory(scripted(), url) as memory:
        await filled(memory, length=600)
        pages = counted(memory.container.message_store(), "read")
        assert "floor 17" in recalled(await load(memory, "Well?", "floor of Ann Walrus"))
        assert pages == []


async def test_what_is_not_indexed_yet_is_found_too(url: str) -> None:
    async with agent_memory(scripted(), url, recall={"index": "none"}) as memory:
        await filled(memory)
        assert "floor 17" in recalled(await load(memory, "Well?", "floor of Ann Walrus"))
        assert "floor 17" in recalled(await load(memory, "And Ann Walrus?"))


async def test_a_recall_leaves_no_trace_in_the_next_context(url: str) -> None:
    """It moves neither the window nor the lines of memory."""
    async with agent_memory(scripted(), url) as memory:
        await filled(memory)
        await load(memory, LARGE, "")
        await memory.drain()
        before = await load(memory, "ok?")
        await load(memory, "And Ann Walrus?")
        await load(memory, "Well?", "which floor has Ann Walrus with order A-0005 and A-0007 and A-0009")
        after = await load(memory, "ok?")
    assert after.report.digest == before.report.digest


async def test_fork_recalls_what_it_inherits_and_not_what_came_later(url: str) -> None:
    async with agent_memory(scripted(), url) as memory:
        await filled(memory)
        fork = await memory.fork("s", at_seq=50, user_id=USER)
        await save(memory, "s", [Message.user("Zoe Tusk takes floor 99"), Message.assistant("noted")])
        await save(memory, "s", talk(60, start=85))
        await save(memory, fork.session_id, talk(40, start=50)[1:])
        await memory.drain()
        assert "floor 17" in recalled(await load(memory, "Well?", "floor of Ann Walrus", session_id=fork.session_id))
        assert "99" not in recalled(await load(memory, "Well?", "floor of Zoe Tusk", session_id=fork.session_id))
        assert "floor 99" in recalled(await load(memory, "Well?", "floor of Zoe Tusk"))


async def test_nobody_else_may_ask(url: str) -> None:
    async with agent_memory(scripted(), url) as memory:
        await filled(memory)
        with pytest.raises(SessionOwnershipError):
            await memory.load_history("s", user_id="mallory", query="walrus")
        with pytest.raises(SessionOwnershipError):
            await memory.recall("s", "walrus", user_id="mallory")
        await save(memory, "other", talk(60))
        await memory.drain()
        assert recalled(await load(memory, "Well?", "Ann Walrus", "other")) == ""


async def test_index_that_is_away_costs_what_it_would_have_found(url: str) -> None:
    async with agent_memory(scripted(), url) as memory:
        await filled(memory)

        async def away(*args: object) -> None:
            raise StoreUnavailableError("away")

        index: Any = memory.container.recall_index()
        index.search = away
        context = await load(memory, "And Ann Walrus?", "walrus")
    assert recalled(context) == ""
    assert context.report.freshness == "fresh"


async def test_an_index_that_failed_in_the_background_catches_up(url: str) -> None:
    async with agent_memory(scripted(), url) as memory:
        index: Any = memory.container.recall_index()
        original = index.extend

        async def away(*args: object) -> bool:
            raise StoreUnavailableError("away")

        index.extend = away
        await filled(memory)
        summary = await memory.container.summary_store().get_summary("s")
        assert summary is not None
        assert summary.covered_seq >= 70
        assert await index.indexed_until("s") == 0
        index.extend = original
        await save(memory, "s", talk(10, start=83))  # as many as make a segment
        await memory.drain()
        assert await index.indexed_until("s") >= 70
        hits = await memory.recall("s", "order A-0005", user_id=USER)
    assert any("A-0005" in hit.text for hit in hits)


async def test_what_is_withdrawn_is_found_no_more(url: str) -> None:
    async with agent_memory(scripted(), url) as memory:
        await filled(memory)
        await save(memory, "s", [Message.user("order number is A-9999"), Message.assistant("noted A-9999")] * 8)
        await memory.drain()
        for _ in range(16):
            await memory.withdraw("s", user_id=USER)
        assert not [hit for hit in await memory.recall("s", "A-9999", user_id=USER) if "9999" in hit.text]
        await memory.drain()
        assert not [hit for hit in await memory.recall("s", "A-9999", user_id=USER) if "9999" in hit.text]


async def test_a_fork_finds_shared_messages_whatever_its_parent_says_later(url: str) -> None:
    async with agent_memory(scripted(), url) as memory:
        await save(memory, "s", [message for n in range(20) for message in said(n)])
        fork = await memory.fork("s", at_seq=31, user_id=USER)
        await save(memory, "s", [message for n in range(20, 220) for message in said(n)])
        await memory.drain()
        hits = await memory.recall(fork.session_id, "Zanzibar", user_id=USER)
        assert hits
        assert all(hit.seq < 31 for hit in hits)


def said(number: int) -> list[Message]:
    return [Message.user(f"Zanzibar is trip {number}"), Message.assistant(f"Zanzibar noted as {number}")]


@pytest.mark.parametrize("method", ["search", "extend"])
async def test_a_foreign_index_that_fails_costs_no_load_or_summary(method: str) -> None:
    async with agent_memory(scripted()) as memory:

        async def broken(*args: Any, **kwargs: Any) -> Any:
            raise RuntimeError("broken")

        setattr(memory.container.recall_index(), method, broken)
        await filled(memory)
        assert (await load(memory, "Where is Ann Walrus?")).messages
        summary = await memory.get_summary("s", user_id=USER)
        assert summary is not None
        assert summary.covered_seq > 60


@pytest.mark.parametrize("query", [123, b"text"])
async def test_a_query_that_is_no_text_is_refused(query: Any) -> None:
    async with agent_memory(scripted()) as memory:
        await filled(memory, length=4)
        with pytest.raises(InvalidInputError, match="query: must be a text"):
            await load(memory, "hello", query)
        with pytest.raises(InvalidInputError, match="query: must be a text"):
            await memory.recall("s", query, user_id=USER)
