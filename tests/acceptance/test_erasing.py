"""Erasing through the library: contexts, branches, pairs, what runs meanwhile, and the command."""

from __future__ import annotations

import gc
from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import pairwise
from pathlib import Path
from typing import Any

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st

from reactor_memory import Memory, Message, ToolCall
from reactor_memory.errors import InvalidInputError, SessionDeletedError, SessionNotFoundError, SessionOwnershipError
from reactor_memory.features.erasure.eraser import ranges_of
from reactor_memory.models.ledger import NOTHING_KNOWN, Extraction, Known
from reactor_memory.testing import ScriptedSummarizer
from reactor_memory.text import caches as memos
from tests.acceptance.conftest import Run, small_talk, write_sessions
from tests.acceptance.scenes import USER, agent_memory, extract, memory_blocks, save, scripted, talk, texts

pytestmark = pytest.mark.anyio

SMALL_TIERS = {"recent_count": 4, "condensed_count": 6, "auto_summarize": False}


async def shown(memory: Memory, session_id: str, **load: Any) -> str:
    return repr((await memory.load_history(session_id, user_id=USER, **load)).messages)


async def test_an_erased_message_leaves_at_once_and_others_are_reread() -> None:
    async with agent_memory(scripted()) as memory:
        await save(memory, "s", talk(60))
        await memory.drain()
        assert "A-0005" in await shown(memory, "s")
        erased = await memory.erasure.erase("s", seq=5, user_id=USER)
        assert (erased.message_count, erased.session_ids) == (1, ("s",))
        assert "A-0005" not in await shown(memory, "s", query="A-0005")
        await memory.drain()
        context = await memory.load_history("s", user_id=USER)
        assert context.report.unread == ()
        assert "A-0005" not in repr(context)
        assert "A-0003" in repr(memory_blocks(context.messages))
        facts = await memory.facts.list("s", user_id=USER)
        assert {fact.source_seq for fact in facts} == set(range(1, 61, 2)) - {5}
        assert "A-0005" not in repr(await memory.recall("s", "A-0005", user_id=USER))
        assert "A-0003" in repr(await memory.recall("s", "A-0003", user_id=USER))


async def test_until_it_was_read_again_the_report_names_the_range(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/memory.db"
    async with agent_memory(scripted(), url) as memory:
        await save(memory, "s", talk(60))
        await memory.drain()
    async with agent_memory(scripted(), url, background={"enabled": False}) as memory:
        await memory.erasure.erase("s", seq=5, user_id=USER)
        report = (await memory.load_history("s", user_id=USER)).report
        assert report.unread == ((1, 10),)
    async with agent_memory(scripted(), url) as memory:
        await memory.summarize("s", user_id=USER)
        assert (await memory.load_history("s", user_id=USER)).report.unread == ()


async def test_half_a_pair_hides_the_other_half_but_keeps_it() -> None:
    call = ToolCall(id="c1", name="look_up", arguments={"order": "A-1"})
    turn = [
        Message.user("where is my order?"),
        Message.assistant("", tool_calls=[call]),
        Message.tool("it is in Lyon", tool_call_id="c1"),
        Message.assistant("it is on its way"),
    ]
    for half in (2, 3):
        async with agent_memory(scripted()) as memory:
            await save(memory, "s", turn)
            await memory.erasure.erase("s", seq=half, user_id=USER)
            context = await memory.load_history("s", user_id=USER)
            assert texts(context.messages) == ["where is my order?", "it is on its way"]
            left = await memory.read_messages("s", user_id=USER)
            assert [message.seq for message in left] == [seq for seq in (1, 2, 3, 4) if seq != half]


async def test_it_reaches_every_branch_whichever_is_asked() -> None:
    async with agent_memory(scripted()) as memory:
        await save(memory, "s", talk(60))
        await memory.drain()
        fork = await memory.fork("s", at_seq=41, user_id=USER)
        await save(memory, fork.session_id, talk(30, start=41))
        await memory.drain()
        for session_id in ("s", fork.session_id):
            assert "A-0005" in await shown(memory, session_id)
        erased = await memory.erasure.erase(fork.session_id, seq=[5, 45], user_id=USER)
        assert (erased.message_count, set(erased.session_ids)) == (2, {"s", fork.session_id})
        await memory.drain()
        for session_id in ("s", fork.session_id):
            assert "A-0005" not in await shown(memory, session_id, query="A-0005")
        assert "A-0045" in repr(await memory.read_messages("s", user_id=USER))
        assert "A-0045" not in repr(await memory.read_messages(fork.session_id, user_id=USER))


async def test_the_worker_of_this_process_is_stopped_and_begins_again() -> None:
    reading = anyio.Event()
    calls: list[str] = []

    async def held(messages: Sequence[Message]) -> Extraction:
        calls.append(repr(messages))
        if len(calls) == 1:
            reading.set()
            await anyio.sleep_forever()
        return extract(messages)

    class Held(ScriptedSummarizer):
        async def summarize(self, messages: Sequence[Message], *, known: Known = NOTHING_KNOWN) -> Extraction:
            return await held(messages)

    async with agent_memory(Held(default=extract)) as memory:
        await save(memory, "s", talk(60))
        await reading.wait()
        await memory.erasure.erase("s", seq=5, user_id=USER)
        await memory.drain()
        assert "A-0005" in calls[0]
        assert not any("A-0005" in call for call in calls[1:])
        facts = await memory.facts.list("s", user_id=USER)
        assert {fact.source_seq for fact in facts} >= {1, 3, 7, 9}


async def test_a_late_repetition_of_the_save_stores_nothing() -> None:
    async with agent_memory(scripted()) as memory:
        first = await memory.save_history("s", talk(4), user_id=USER, idempotency_key="k")
        await memory.erasure.erase("s", seq=3, user_id=USER)
        again = await memory.save_history("s", talk(4), user_id=USER, idempotency_key="k")
        assert again.replayed
        assert (again.first_seq, again.last_seq) == (first.first_seq, first.last_seq)
        assert [message.seq for message in await memory.read_messages("s", user_id=USER)] == [1, 2, 4]


async def test_no_memo_of_this_process_holds_it() -> None:
    """What was rendered, counted or taken apart once is remembered; not what was erased."""
    async with agent_memory(scripted()) as memory:
        await save(memory, "s", [Message.user("my order number is zyxmarker"), *talk(59, start=2)])
        await memory.drain()
        await memory.load_history("s", user_id=USER, query="zyxmarker", message=Message.user("which one?"))
        assert remembered("zyxmarker")
        await memory.erasure.erase("s", seq=1, user_id=USER)
        await memory.drain()
        assert not remembered("zyxmarker")


@pytest.fixture
def thawed() -> Iterator[None]:
    """Shows also the objects that were there when the first test began."""
    gc.unfreeze()
    yield
    gc.freeze()


@pytest.mark.usefixtures("thawed")
@pytest.mark.slow
async def test_texts_of_tiers_and_notes_do_not_stay_in_memory() -> None:
    settings: dict[str, Any] = {
        "history": {"strategy": "progressive"},
        "tiers": SMALL_TIERS,
        "notes": {"enabled": True},
    }
    async with agent_memory(scripted(), summary={"enabled": False}, **settings) as memory:
        await save(memory, "s", [Message.user("the zyxmarker"), Message.assistant("noted"), *talk(18)])
        await memory.container.tiers().summarize("s", user_id=USER)
        await memory.container.long_term_memory().apply(USER, "a", "append", content="a vwumarker")
        context = await memory.load_history("s", user_id=USER, agent_name="a")
        assert "zyxmarker" in repr(context.messages)
        assert "vwumarker" in repr(context.messages)
        caches = caches_of_the_library()
        assert "zyxmarker" in held_in(caches)
        assert "vwumarker" in held_in(caches)
        del context
        await memory.erasure.erase_user(USER)
        gc.collect()
        assert "zyxmarker" not in held_in(caches)
        assert "vwumarker" not in held_in(caches)


def caches_of_the_library() -> list[Any]:
    """The caches of pure functions in this process, whichever module made them."""
    kind = type(lru_cache(len))
    caches = [each for each in gc.get_objects() if type(each) is kind]
    return [each for each in caches if each.__module__.startswith("reactor_memory")]


def held_in(caches: list[Any]) -> str:
    return repr([gc.get_referents(each) for each in caches])


def remembered(text: str) -> bool:
    """Whether an argument that a memo of the library holds, or what it answered, contains the text."""
    return any(text in repr(gc.get_referents(each)) for each in memos._memos)  # pyright: ignore[reportPrivateUsage]


async def test_owners_are_checked_and_bad_input_is_named() -> None:
    async with agent_memory(scripted()) as memory:
        await save(memory, "s", talk(4))
        with pytest.raises(SessionOwnershipError):
            await memory.erasure.erase("s", seq=1, user_id="mallory")
        with pytest.raises(SessionNotFoundError):
            await memory.erasure.erase("other", seq=1, user_id=USER)
        for seq in (0, 5, [], [1, 9], "1", 1.5, True, [None], [(3, 2)], None):
            with pytest.raises(InvalidInputError, match="seq"):
                await memory.erasure.erase("s", seq=seq, user_id=USER)  # pyright: ignore[reportArgumentType]
        for user_id in (None, "", 7):
            with pytest.raises(InvalidInputError, match="user_id"):
                await memory.erasure.erase_user(user_id)  # pyright: ignore[reportArgumentType]
        assert len(await memory.read_messages("s", user_id=USER)) == 4


async def test_erasing_a_user_takes_all_of_theirs_and_nothing_else() -> None:
    async with agent_memory(scripted(), store={"delete_grace_days": 30}) as memory:
        for number in range(3):
            await save(memory, f"s{number}", talk(30))
        fork = await memory.fork("s0", at_seq=5, user_id=USER)
        await memory.delete("s1", user_id=USER)
        await memory.save_history("bob's", talk(30), user_id="bob")
        await memory.save_history("open", talk(2))
        await memory.drain()
        erased = await memory.erasure.erase_user(USER)
        assert (erased.session_count, erased.row_count) == (4, 0)
        for session_id in ("s0", "s1", "s2", fork.session_id):
            with pytest.raises(SessionDeletedError):
                await memory.load_history(session_id, user_id=USER)
        assert (await memory.list_sessions(user_id=USER)).sessions == ()
        assert await memory.facts.list("bob's", user_id="bob")
        assert len(await memory.read_messages("open")) == 2
        assert await memory.erasure.erase_user(USER) == type(erased)(session_count=0, row_count=0)


@given(
    st.lists(
        st.one_of(st.integers(1, 60), st.tuples(st.integers(1, 60), st.integers(0, 9)).map(lambda p: (p[0], sum(p))))
    )
)
def test_ranges_are_the_positions_that_were_named(seq: list[Any]) -> None:
    named = {each for item in seq for each in ([item] if isinstance(item, int) else range(item[0], item[1] + 1))}
    runs = ranges_of(seq)
    assert [each for start, end in runs for each in range(start, end + 1)] == sorted(named)
    assert all(before[1] + 1 < after[0] for before, after in pairwise(runs))
    for positions in (named, range(3, 9), range(9, 3, -1), range(1, 30, 7), 4):
        expected = [positions] if isinstance(positions, int) else sorted(positions)
        assert [each for start, end in ranges_of(positions) for each in range(start, end + 1)] == expected


# -- the command ------------------------------------------------------------------------------------------------------


@pytest.fixture
def two_users(run: Run, folder: Path) -> None:
    run("import", write_sessions(folder / "a.jsonl", {"s1": small_talk(6), "s2": small_talk(2)}), "--user", "ann")
    run("import", write_sessions(folder / "b.jsonl", {"s3": small_talk(2)}), "--user", "bob")


def test_messages_are_erased_by_position_and_range(run: Run, two_users: None) -> None:
    done = run("erase", "s1", "--seq", "2-3", "--seq", 5, "--user", "ann", "--yes", "--json").json
    assert done == {"message_count": 3, "session_ids": ["s1"], "is_scrubbed": True, "left": []}
    left = run("show", "s1", "--user", "ann", "--json").json["messages"]
    assert [message["seq"] for message in left] == [1, 4, 6]
    again = run("erase", "s1", "--seq", 2, "--user", "ann", "--yes", "--rewrite")
    assert again.out == "messages destroyed: 0, in the contexts of: s1\n"


def test_a_user_is_erased(run: Run, two_users: None) -> None:
    assert run("erase", "--user", "ann", "--yes", "--json").json == {
        "session_count": 2,
        "row_count": 0,
        "is_scrubbed": True,
        "left": [],
    }
    assert (
        run("show", "s1", "--user", "ann").err
        == "error: session 's1': was deleted; begin a new session under a new id\n"
    )
    assert [each["session_id"] for each in run("sessions", "--user", "bob", "--json").json["sessions"]] == ["s3"]
    assert run("erase", "--user", "ann", "--yes").out == (
        "sessions destroyed: 0, rows of notes and active sessions: 0\n"
    )


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (["s1", "--seq", "1"], "asks first"),
        (["--yes"], "--user without a session"),
        (["--user", "ann", "--seq", "1", "--yes"], "name a SESSION"),
        (["s1", "--user", "ann", "--yes"], "name the messages with --seq"),
        (["s1", "--user", "bob", "--seq", "1", "--yes"], "another user"),
        (["s1", "--user", "ann", "--seq", "7", "--yes"], "from 1 to 6"),
        (["s1", "--user", "ann", "--seq", "3-2"], "neither a position"),
        (["s1", "--user", "ann", "--seq", "0"], "neither a position"),
        (["s1", "--user", "ann", "--seq", "x", "--yes"], "neither a position"),
    ],
)
def test_what_is_refused_changes_nothing(run: Run, two_users: None, arguments: list[str], problem: str) -> None:
    refused = run("erase", *arguments)
    assert (refused.code, refused.out) == (2, "")
    assert problem in refused.err
    assert len(run("show", "s1", "--user", "ann", "--json").json["messages"]) == 6
