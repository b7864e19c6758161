"""A turn that is kept while it runs, goes on after an interruption, and stores no step twice."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import anyio
import pytest
from dependency_injector import providers

from reactor_memory import (
    Container,
    IdempotencyConflictError,
    InvalidInputError,
    InvalidMessageError,
    Memory,
    Message,
    SessionOwnershipError,
    StoreUnavailableError,
    ToolCall,
    TurnNotFoundError,
    open_memory,
    sync,
)
from reactor_memory.core.context.context import Context
from reactor_memory.core.context.verification import verify
from reactor_memory.core.turn_log import TurnLog
from reactor_memory.models.turns import INTERRUPTED
from tests.acceptance.scenes import USER, agent_memory, scripted, settings, talk, texts
from tests.doubles.faulty_database import FaultyDatabase
from tests.proofs.provider_rules import provider_problems
from tests.scenes.stores import memory_database

pytestmark = pytest.mark.anyio

QUESTION = "Which pages name the boiler?"


def call(number: int, *more: int) -> Message:
    calls = [ToolCall(id=f"c{each}", name="read", arguments={"page": each}) for each in (number, *more)]
    return Message.assistant(tool_calls=calls)


def result(number: int) -> Message:
    return Message.tool(f"page {number}", tool_call_id=f"c{number}")


def step(number: int) -> tuple[Message, Message]:
    return call(number), result(number)


async def stored(memory: Memory, session: str = "s") -> list[str]:
    return texts(await memory.read_messages(session, user_id=USER))


def problems(memory: Memory, context: Context) -> list[str]:
    return [*verify(context, count=memory.container.message_counter().of), *provider_problems(context)]


# -- stored while it runs ---------------------------------------------------------------------------------------------


async def test_each_step_is_there_for_others_when_add_returns(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(TurnLog, "_start", lambda log: None)  # what is not awaited is stored soon, too
    url = f"sqlite:///{tmp_path / 'memory.db'}"
    async with agent_memory(scripted(), url) as memory, agent_memory(scripted(), url) as other:
        async with memory.turn("s", QUESTION, user_id=USER) as turn:
            assert await stored(other) == [QUESTION]
            assert turn.seq == 1
            await turn.add(*step(1))
            assert await stored(other) == [QUESTION, "", "page 1"]
            await turn.add(call(2))
            await turn.add(result(2))
            assert len(await stored(other)) == 5
            turn.answer("Both.")
        assert await stored(other) == [QUESTION, "", "page 1", "", "page 2", "Both."]
        assert texts(turn.saved_messages()) == await stored(other)


async def test_a_step_that_nobody_awaits_is_stored_soon() -> None:
    async with agent_memory(scripted()) as memory, memory.turn("s", QUESTION, user_id=USER) as turn:
        turn.add(*step(1))
        with anyio.fail_after(10):
            while len(await stored(memory)) < 3:
                await anyio.lowlevel.checkpoint()
        turn.answer("It.")


async def broken_off(memory: Memory, *steps: Message, said: str = QUESTION, **given: Any) -> None:
    """A turn whose block raises after these steps."""

    async def run() -> None:
        async with memory.turn("s", said, user_id=USER, **given) as turn:
            for each in steps:
                await turn.add(each)
            raise ZeroDivisionError

    await fails(run)


async def fails(turn_runs: Callable[[], Awaitable[None]]) -> None:
    with pytest.raises(ZeroDivisionError):
        await turn_runs()


async def is_cancelled_for_good(turn_runs: Callable[[], Awaitable[None]]) -> None:
    """At every await from here on, as anyio cancels."""
    with anyio.CancelScope() as scope:
        asyncio.get_running_loop().call_later(0.05, scope.cancel)
        await turn_runs()


async def is_cancelled(turn_runs: Callable[[], Awaitable[None]]) -> None:
    running = asyncio.ensure_future(turn_runs())
    await asyncio.sleep(0.05)
    running.cancel()
    await asyncio.wait([running])


@pytest.mark.parametrize("ends", [fails, is_cancelled, is_cancelled_for_good])
@pytest.mark.parametrize("awaited", [True, False])
async def test_a_turn_that_breaks_off_keeps_its_steps(ends: Any, awaited: bool) -> None:
    async with agent_memory(scripted()) as memory:

        async def run() -> None:
            async with memory.turn("s", QUESTION, user_id=USER) as turn:
                adding = turn.add(*step(1)), turn.add(call(2))
                for each in adding if awaited else ():
                    await each
                turn.answer("not to be stored")
                if ends is fails:
                    raise ZeroDivisionError
                await anyio.sleep_forever()

        await ends(run)
        assert await stored(memory) == [QUESTION, "", "page 1", ""]


async def test_a_step_of_another_thread_outlives_a_cancelled_turn() -> None:
    """There is no event loop that could store it before."""
    async with agent_memory(scripted()) as memory:
        with anyio.CancelScope() as scope:
            async with memory.turn("s", QUESTION, user_id=USER) as turn:
                await anyio.to_thread.run_sync(turn.add, *step(1))
                scope.cancel()
                await anyio.sleep_forever()
        assert await stored(memory) == [QUESTION, "", "page 1"]


async def test_what_cannot_be_stored_is_refused_at_once_and_alone() -> None:
    async with agent_memory(scripted()) as memory:
        async with memory.turn("s", QUESTION, user_id=USER) as turn:
            await turn.add(*step(1))
            with pytest.raises(InvalidMessageError, match="content"):
                turn.add(call(2), Message.tool("a\0b", tool_call_id="c2"))
            await turn.add(*step(3))
            turn.answer("So.")
        assert await stored(memory) == [QUESTION, "", "page 1", "", "page 3", "So."]


async def test_at_its_end_only_if_so_wished() -> None:
    async with agent_memory(scripted()) as memory:
        async with memory.turn("s", QUESTION, user_id=USER, durable="end") as turn:
            await turn.add(*step(1))
            assert await stored(memory) == []
            turn.answer("So.")
        assert len(await stored(memory)) == 4
        await broken_off(memory, *step(2), said="And?", durable="end")
        assert (await stored(memory))[4:] == ["And?"]
        with pytest.raises(InvalidInputError, match="durable: must be step or end"):
            await memory.turn("s", "x", user_id=USER, durable="never").__aenter__()  # type: ignore[arg-type]


# -- stored once ------------------------------------------------------------------------------------------------------


@asynccontextmanager
async def failing(at: int, mode: Any) -> AsyncGenerator[Memory]:
    """A memory of which append number `at` fails: before it is done, or after."""
    store = FaultyDatabase(memory_database(), at=at, mode=mode, operations={"append"})

    def configure(container: Container) -> None:
        container.database.override(providers.Object(store))

    async with open_memory(settings(summary={"enabled": False}), configure=configure) as memory:
        yield memory


@pytest.mark.parametrize("mode", ["before", "after"])
@pytest.mark.parametrize("again", [True, False])
async def test_a_step_of_unknown_fate_is_stored_once(mode: str, again: bool) -> None:
    """Whether it is given again or not: it is settled before the next one."""
    async with failing(2, mode) as memory:
        async with memory.turn("s", QUESTION) as turn:
            with pytest.raises(StoreUnavailableError):
                await turn.add(*step(1))
            if again:
                await turn.add(*step(1))
            await turn.add(*step(2))
            assert texts(turn.messages()) == [QUESTION, "", "page 1", "", "page 2"]
            turn.answer("So.")
        messages = await memory.read_messages("s")
    assert texts(messages) == [QUESTION, "", "page 1", "", "page 2", "So."]


@pytest.mark.parametrize("mode", ["before", "after"])
async def test_a_store_that_fails_at_first_stops_no_model(mode: str) -> None:
    async with failing(1, mode) as memory:
        async with memory.turn("s", QUESTION) as turn:
            assert turn.seq is None
            await turn.add(*step(1))
            assert turn.seq == 1
            turn.answer("So.")
        assert texts(await memory.read_messages("s")) == [QUESTION, "", "page 1", "So."]


async def test_a_turn_repeated_under_its_key_stores_nothing_twice() -> None:
    async with agent_memory(scripted()) as memory:
        await broken_off(memory, *step(1), call(2), idempotency_key="k")
        async with memory.turn("s", QUESTION, user_id=USER, idempotency_key="k") as turn:
            assert texts(turn.messages()) == [QUESTION, "", "page 1", "", INTERRUPTED]
            for each in (*step(1), *step(2)):
                await turn.add(each)
            turn.answer("So.")
        whole = [QUESTION, "", "page 1", "", "page 2", "So."]
        assert await stored(memory) == whole
        async with memory.turn("s", QUESTION, user_id=USER, idempotency_key="k") as turn:
            await turn.add(*step(1), *step(2))
            turn.answer("So.")
        assert await stored(memory) == whole
        with pytest.raises(IdempotencyConflictError):
            async with memory.turn("s", QUESTION, user_id=USER, idempotency_key="k") as turn:
                await turn.add(*step(3))
        with pytest.raises(IdempotencyConflictError):
            async with memory.turn("s", "Another question", user_id=USER, idempotency_key="k"):
                pytest.fail("the block must not run")
        assert await stored(memory) == whole


async def test_a_turn_repeated_under_its_key_may_go_another_way() -> None:
    async with agent_memory(scripted()) as memory:
        await broken_off(memory, *step(1), idempotency_key="k")
        async with memory.turn("s", QUESTION, user_id=USER, idempotency_key="k") as turn:
            await turn.add(*step(2))
            turn.answer("So.")
        assert await stored(memory) == [QUESTION, "", "page 1", "", "page 2", "So."]


# -- gone on with -----------------------------------------------------------------------------------------------------

STOPS: dict[str, list[Message]] = {
    "after the question": [],
    "at a call": [call(1)],
    "between two calls made at once": [call(1, 2), result(1)],
    "after a step": [*step(1)],
    "at a call with words": [*step(1), Message.assistant("Now page 2.", tool_calls=call(2).tool_calls)],
}


@pytest.mark.parametrize("name", STOPS)
async def test_an_interrupted_turn_is_shown_as_one_and_goes_on(name: str) -> None:
    made = STOPS[name]
    open_calls = {each.id for message in made for each in message.tool_calls}
    open_calls -= {message.tool_call_id or "" for message in made}
    async with agent_memory(scripted()) as memory:
        await memory.save_history("s", talk(6), user_id=USER)
        await broken_off(memory, *made)
        context = await memory.load_history("s", user_id=USER, message="And now?", budget=2000)
        shown = [each.tool_call_id for each in context.messages if each.content == INTERRUPTED]
        assert set(shown) == open_calls
        assert problems(memory, context) == []
        assert any("message 7 has no answer" in remark for remark in context.report.remarks)
        async with memory.turn("s", user_id=USER, resume=True, budget=2000) as turn:
            assert turn.message.content == QUESTION
            assert problems(memory, turn.current_context()) == []
            assert texts(turn.messages())[: 6 + 1] == [*texts(talk(6)), QUESTION]
            await turn.add(*step(8))
            assert problems(memory, turn.current_context()) == []
            turn.answer("So.")
        context = await memory.load_history("s", user_id=USER, budget=2000)
        assert problems(memory, context) == []
        assert texts(context.messages) == await stored(memory)
        assert (await stored(memory)).count(INTERRUPTED) == len(open_calls)
        assert context.report.remarks == ()


async def test_results_of_open_calls_may_be_told_after_all(url: str) -> None:
    async with agent_memory(scripted(), url) as memory:
        await broken_off(memory, call(1, 2, 3), result(1))
        async with memory.turn("s", user_id=USER, resume=True) as turn:
            await turn.add(result(3))
            assert problems(memory, turn.current_context()) == []
            turn.answer("So.")
        assert await stored(memory) == [QUESTION, "", "page 1", "page 3", INTERRUPTED, "So."]


async def test_the_next_turn_goes_on_after_an_interrupted_one() -> None:
    async with agent_memory(scripted()) as memory:
        await broken_off(memory, *step(1), call(2))
        async with memory.turn("s", "What were you doing?", user_id=USER) as turn:
            assert problems(memory, turn.current_context()) == []
            assert texts(turn.messages()) == [QUESTION, "", "page 1", "", INTERRUPTED, "What were you doing?"]
            turn.answer("Reading.")
        context = await memory.load_history("s", user_id=USER)
        assert problems(memory, context) == []
        assert texts(context.messages)[3:] == ["", INTERRUPTED, "What were you doing?", "Reading."]
        assert INTERRUPTED not in await stored(memory)


async def test_a_withdrawn_result_is_no_interruption() -> None:
    async with agent_memory(scripted()) as memory:
        await memory.save_history("s", [QUESTION, *step(1), *step(2)], user_id=USER)
        await memory.withdraw("s", user_id=USER, seq=5)
        assert INTERRUPTED not in texts((await memory.load_history("s", user_id=USER)).messages)


async def test_only_a_turn_without_an_answer_is_resumed() -> None:
    async with agent_memory(scripted()) as memory:
        with pytest.raises(TurnNotFoundError, match="give a message"):
            await memory.turn("s", user_id=USER, resume=True).__aenter__()
        with pytest.raises(InvalidInputError, match="resume=True"):
            await memory.turn("s", user_id=USER).__aenter__()
        for number in range(2):
            async with memory.turn("s", f"question {number}", user_id=USER, resume=True) as turn:
                assert not turn.is_resumed
                turn.answer(f"answer {number}")
        with pytest.raises(TurnNotFoundError):
            await memory.turn("s", user_id=USER, resume=True).__aenter__()
        await broken_off(memory, *step(1))
        async with memory.turn("s", QUESTION, user_id=USER, resume=True) as turn:
            assert turn.is_resumed
            turn.answer("So.")
        assert (await stored(memory)).count(QUESTION) == 1
        with pytest.raises(SessionOwnershipError):
            await memory.turn("s", user_id="mallory", resume=True).__aenter__()


async def test_of_two_who_resume_a_turn_one_is_refused() -> None:
    async with agent_memory(scripted()) as memory:
        await broken_off(memory, *step(1))
        async with memory.turn("s", user_id=USER, resume=True) as turn:

            async def go_on_too() -> None:
                async with memory.turn("s", user_id=USER, resume=True) as other:
                    await turn.add(*step(2))
                    await other.add(*step(3))

            with pytest.raises(IdempotencyConflictError):
                await go_on_too()
            turn.answer("So.")
        assert await stored(memory) == [QUESTION, "", "page 1", "", "page 2", "So."]


# -- turns at once, memory while it runs, other doors -----------------------------------------------------------------


async def test_turns_at_once_stand_one_after_the_other_in_contexts(url: str) -> None:
    async with agent_memory(scripted(), url) as memory:
        async with memory.turn("s", "first", user_id=USER) as first:
            await first.add(call(1))
            async with memory.turn("s", "second", user_id=USER) as second:
                await second.add(*step(2))
                await first.add(result(1))
                second.answer("two")
            await first.add(*step(3))
            first.answer("one")
        whole = ["first", "", "page 1", "", "page 3", "one", "second", "", "page 2", "two"]
        for budget in (None, 3000):
            context = await memory.load_history("s", user_id=USER, budget=budget)
            assert texts(context.messages) == whole
            assert problems(memory, context) == []
        fork = await memory.fork("s", at_seq=11, user_id=USER)
        assert texts((await memory.load_history(fork.session_id, user_id=USER)).messages) == whole


async def test_what_the_user_says_within_a_turn_stays_in_it(url: str) -> None:
    async with agent_memory(scripted(), url) as memory:
        async with memory.turn("s", "first", user_id=USER) as turn:
            await turn.add(*step(1), Message.user("and hurry"))
            turn.answer("one")
        said = ["first", "", "page 1", "and hurry", "one"]
        assert texts((await memory.load_history("s", user_id=USER)).messages) == said


async def test_segments_are_sealed_while_a_long_turn_runs() -> None:
    async with agent_memory(scripted()) as memory, memory.turn("s", QUESTION, user_id=USER) as turn:
        for number in range(40):
            await turn.add(*step(number))
        await memory.drain()
        segments = await memory.container.facts().segments("s", user_id=USER)
        assert len(segments) > 2
        assert all(segment.end_seq % 2 for segment in segments), "a segment ends behind a result"
        turn.answer("So.")


def test_without_awaiting_each_step_is_stored_too() -> None:
    with sync.open_memory("memory://") as memory:
        with suppress(ZeroDivisionError), memory.turn("s", QUESTION) as turn:
            turn.add(*step(1))
            assert texts(memory.read_messages("s")) == [QUESTION, "", "page 1"]
            raise ZeroDivisionError
        with memory.turn("s", resume=True) as turn:
            assert turn.seq == 1
            assert texts(turn.messages()) == [QUESTION, "", "page 1"]
            turn.answer("So.")
        assert texts(memory.read_messages("s"))[-1] == "So."
