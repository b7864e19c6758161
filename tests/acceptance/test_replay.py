"""What the model saw at a turn of the past: byte for byte from its record, or the nearest that can be made."""

from __future__ import annotations

from pathlib import Path
from random import Random
from typing import Any

import anyio
import pytest

from reactor_memory import InvalidInputError, Memory, Message, SessionNotFoundError, SessionOwnershipError, ToolCall
from reactor_memory.core.context.report import digest
from reactor_memory.errors import StoreUnavailableError
from reactor_memory.features.replay.replayer import NO_RECORD
from tests.acceptance.conftest import Run
from tests.acceptance.scenes import USER, agent_memory, scripted

pytestmark = pytest.mark.anyio

RECORDED = {"record": "turns"}


async def talk(memory: Memory, turns: int, session: str = "s", *, seed: int = 0, budget: int = 500) -> dict[int, Any]:
    """Turns with tools, long questions and pins between them: what the model got, by the seq of the user message."""
    chance, got = Random(seed), dict[int, Any]()
    for number in range(turns):
        said = f"My order {number} has the number A-{1000 + number}. " + "please " * chance.choice([1, 1, 60, 900])
        async with memory.turn(session, said, user_id=USER, budget=budget, on_overflow="drop_memory") as turn:
            shown = turn.context
            if chance.random() < 0.3:
                call = ToolCall(id=f"c{number}", name="track", arguments={"number": number})
                turn.add(
                    Message(role="assistant", content="", tool_calls=(call,)),
                    Message.tool(f"on its way {number}", tool_call_id=f"c{number}"),
                )
            turn.answer(f"The order {number} is noted.")
        last = (await memory.get_session(session, user_id=USER)).last_seq
        asked = [m.seq for m in await memory.read_messages(session, user_id=USER, last=4) if m.role == "user"]
        got[asked[-1] or 0] = shown
        if chance.random() < 0.1:
            await memory.pins.add(session, seq=last, user_id=USER)
        if chance.random() < 0.3:
            await memory.drain()
    return got


async def test_each_recorded_turn_is_replayed_byte_for_byte(url: str) -> None:
    async with agent_memory(scripted(), url, context=RECORDED) as memory:
        got = await talk(memory, 40)
        assert any(context.report.clamped for context in got.values())
        assert any(context.part("facts") for context in got.values())
        assert any(context.part("pins") for context in got.values())
        for seq, context in got.items():
            replay = await memory.replay("s", seq=seq, user_id=USER)
            assert (replay.is_exact, replay.missing) == (True, ())
            assert digest(replay.messages) == context.report.digest == replay.digest
            assert (replay.parts, replay.budget) == (context.report.parts, 500)


async def test_first_turn_of_a_new_session_is_recorded(url: str) -> None:
    said = "My order has the number A-1000. " + "please " * 900
    async with agent_memory(scripted(), url, context=RECORDED) as memory:
        with pytest.raises(ZeroDivisionError):
            async with memory.turn("failed", said, user_id=USER, budget=500, on_overflow="drop_memory"):
                raise ZeroDivisionError
        async with memory.turn("s", said, user_id=USER, budget=500, on_overflow="drop_memory") as turn:
            turn.answer("Noted.")
        for session in ("failed", "s"):
            replay = await memory.replay(session, seq=1, user_id=USER)
            assert replay.is_exact
            assert replay.digest == turn.context.report.digest
        await memory.save_history("s", ["And now?"], user_id=USER)
        await memory.erasure.erase("s", seq=1, user_id=USER)
        await memory.drain()
        with pytest.raises(InvalidInputError):
            await memory.replay("s", seq=1, user_id=USER)
        assert not (await memory.replay("s", seq=3, user_id=USER)).is_exact


async def test_two_first_turns_at_once_are_both_recorded(url: str) -> None:
    async with agent_memory(scripted(), url, context=RECORDED) as memory:
        async with memory.turn("s", "Hello", user_id=USER) as first:
            async with memory.turn("s", "Hello", user_id=USER) as second:
                second.answer("Hi.")
            first.answer("Hi again.")
        assert (await memory.replay("s", seq=1, user_id=USER)).is_exact
        assert (await memory.get_session("s", user_id=USER)).last_seq == 4


async def test_a_message_inside_a_turn_stands_for_its_turn() -> None:
    async with agent_memory(scripted(), context=RECORDED) as memory:
        got = await talk(memory, 12)
        first, second = list(got)[5:7]
        for seq in range(first, second):
            assert (await memory.replay("s", seq=seq, user_id=USER)).seq == first


async def test_fork_replays_what_it_inherits_and_what_it_said_itself(url: str) -> None:
    async with agent_memory(scripted(), url, context=RECORDED) as memory:
        got = await talk(memory, 16)
        at_seq = list(got)[10]
        fork = (await memory.fork("s", at_seq=at_seq, user_id=USER)).session_id
        other = await talk(memory, 4, fork, seed=1)
        for seq, context in {**dict(list(got.items())[1:10]), **other}.items():
            replay = await memory.replay(fork, seq=seq, user_id=USER)
            assert (replay.is_exact, replay.digest) == (True, context.report.digest)


async def test_after_an_erasure_later_turns_name_what_is_missing(url: str) -> None:
    async with agent_memory(scripted(), url, context=RECORDED) as memory:
        got = await talk(memory, 16)
        gone = list(got)[8]
        await memory.erasure.erase("s", seq=gone, user_id=USER)
        await memory.drain()
        before = await memory.replay("s", seq=list(got)[5], user_id=USER)
        assert before.is_exact
        after = await memory.replay("s", seq=list(got)[12], user_id=USER, budget=500)
        assert not after.is_exact
        assert after.missing == (NO_RECORD, f"messages that are gone since: {gone}")
        assert after.messages[-1].role == "user"
        assert "A-1008" not in " ".join(message.content for message in after.messages)


async def test_without_records_nearest_context_is_made_of_the_messages_before() -> None:
    async with agent_memory(scripted()) as memory:
        got = await talk(memory, 16)
        seq = list(got)[12]
        replay = await memory.replay("s", seq=seq, user_id=USER, budget=500)
        assert (replay.is_exact, replay.missing) == (False, (NO_RECORD,))
        assert replay.messages[-1].content.startswith("My order 12 ")
        assert all(shown is None or shown < seq for shown in replay.seqs)
        assert (await memory.read_messages("s", user_id=USER, last=1))[0].content == "The order 15 is noted."


async def test_only_turns_are_recorded_unless_all_loads_are() -> None:
    for record, exact in (("turns", False), ("all", True)):
        async with agent_memory(scripted(), context={"record": record}) as memory:
            await memory.save_history("s", ["hello", Message.assistant("hi")], user_id=USER)
            await memory.load_history("s", message="what now?", user_id=USER)
            await memory.save_history("s", ["what now?", Message.assistant("this")], user_id=USER)
            assert (await memory.replay("s", seq=3, user_id=USER)).is_exact is exact


async def test_what_is_stored_otherwise_than_shown_is_not_called_exact() -> None:
    async with agent_memory(scripted(), context={"record": "all"}) as memory:
        await memory.save_history("s", ["hello", Message.assistant("hi")], user_id=USER)
        await memory.load_history("s", message=Message.user("what now?", name="Ann"), user_id=USER)
        await memory.save_history("s", [Message.user("what now?", name="Bob")], user_id=USER)
        replay = await memory.replay("s", seq=3, user_id=USER)
        assert (replay.is_exact, len(replay.missing)) == (False, 1)


async def test_a_load_does_without_a_record_that_cannot_be_stored(monkeypatch: pytest.MonkeyPatch) -> None:
    async with agent_memory(scripted(), context=RECORDED) as memory:
        database = memory.container.database()

        async def refuse(*_: Any, **__: Any) -> None:
            raise StoreUnavailableError("the disk is full")

        monkeypatch.setattr(database, "write_relaxed", refuse)
        got = await talk(memory, 3)
        assert len(got) == 3
        assert not (await memory.replay("s", seq=list(got)[2], user_id=USER)).is_exact


async def test_wrong_turns_are_refused_and_other_users_see_nothing() -> None:
    async with agent_memory(scripted(), context=RECORDED) as memory:
        await talk(memory, 2)
        with pytest.raises(InvalidInputError, match="ends with message"):
            await memory.replay("s", seq=99, user_id=USER)
        with pytest.raises(InvalidInputError, match="seq"):
            await memory.replay("s", seq=0, user_id=USER)
        with pytest.raises(SessionNotFoundError):
            await memory.replay("nobody", seq=1, user_id=USER)
        with pytest.raises(SessionOwnershipError):
            await memory.replay("s", seq=1, user_id="mallory")
        await memory.save_history("only-answers", [Message.assistant("hi")], user_id=USER)
        with pytest.raises(InvalidInputError, match="no user message"):
            await memory.replay("only-answers", seq=1, user_id=USER)


def test_the_command_line_shows_a_turn_of_the_past(run: Run, folder: Path) -> None:
    async def six_turns() -> None:
        async with agent_memory(scripted(), f"sqlite:///{folder / 'agent.db'}", context=RECORDED) as memory:
            await talk(memory, 6)

    anyio.run(six_turns)
    store = ("--store", f"sqlite:///{folder / 'agent.db'}")
    shown = run("context", "s", "--turn", 9, *store)
    assert "byte for byte" in shown.out, shown.err
    found = run("context", "s", "--turn", 9, *store, "--json").json
    assert (found["is_exact"], found["messages"][-1]["part"]) == (True, "current")
    both = run("context", "s", "--turn", 9, "--why", *store)
    assert (both.code, "--turn shows a turn of the past" in both.err) == (2, True)
