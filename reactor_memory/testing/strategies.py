"""The suite for a strategy: what holds for every context, whichever strategy proposes it."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any, ClassVar

import pytest
from dependency_injector import providers

from reactor_memory.core.context.context import Context
from reactor_memory.core.context.verification import verify
from reactor_memory.errors import BudgetExceededError, SummarizationError
from reactor_memory.models import Message, ToolCall
from reactor_memory.settings.settings import Settings
from reactor_memory.testing.doubles import ScriptedCondenser
from reactor_memory.wiring.container import Container
from reactor_memory.wiring.opening import open_container

CURRENT = Message.user("And which of them do I pay for?")
BUDGETS = (40, 60, 90, 150, 250, 400, 700, 1200, 2500, 20_000)
TURNS = 16
OWNER = "owner"


def turn(number: int) -> list[Message]:
    """A turn of four messages: a wish, a call of a tool, its result, the answer."""
    call = ToolCall(id=f"call-{number % 3}", name="book_table", arguments={"guests": number + 2, "city": "Lisbon"})
    return [
        Message.user(f"Please book a table for {number + 2} people in Lisbon on May {number % 28 + 1}."),
        Message.assistant(tool_calls=[call]),
        Message.tool(f'{{"booked": true, "number": "R-{number:03}"}}', tool_call_id=call.id),
        Message.assistant(f"It is booked: R-{number:03}."),
    ]


@pytest.mark.anyio
class StrategyConformance:
    """What every strategy promises. The fixture `store_url` gives the address of an empty store.

    `sections` are the settings that select the strategy; `configure` may put it into the container instead.
    """

    sections: ClassVar[Mapping[str, Mapping[str, Any]]] = {}

    def configure(self, container: Container) -> None:
        """Called with each container before anything is made."""

    @asynccontextmanager
    async def opened(self, url: str, *, failing: bool = False) -> AsyncGenerator[Container]:
        """A container with the strategy; with `failing` its summarizer never answers."""

        def configure(container: Container) -> None:
            if failing:
                container.summarizer.override(providers.Object(failing_summarizer()))  # pyright: ignore[reportUnknownMemberType]
            self.configure(container)

        async with open_container(settings_for(url, self.sections), configure=configure) as container:
            yield container

    async def test_the_context_of_unknown_sessions_is_the_message_to_come(self, store_url: str) -> None:
        async with self.opened(store_url) as container:
            context = await load(container, "unknown")
            assert context.messages == [CURRENT]

    async def test_no_context_is_over_its_budget_and_the_verifier_agrees(self, store_url: str) -> None:
        async with self.opened(store_url) as container:
            await talk(container, "s")
            for budget in BUDGETS:
                assert (await load_or_least(container, "s", budget)).report.total_tokens <= budget

    async def test_the_message_to_come_stands_last_and_whole(self, store_url: str) -> None:
        async with self.opened(store_url) as container:
            await talk(container, "s")
            for budget in BUDGETS:
                context = await load_or_least(container, "s", budget)
                assert context.messages[-1] == CURRENT
                assert context.report.parts.count("current") == 1

    async def test_calls_stand_with_their_results_at_every_budget(self, store_url: str) -> None:
        async with self.opened(store_url) as container:
            await talk(container, "s")
            for budget in range(60, 600, 12):
                context = await load_or_least(container, "s", budget)
                calls = [call.id for message in context.messages for call in message.tool_calls]
                results = [message.tool_call_id for message in context.messages if message.role == "tool"]
                assert calls == results

    async def test_in_the_middle_of_tool_loops_calls_are_there(self, store_url: str) -> None:
        async with self.opened(store_url) as container:
            await talk(container, "s")
            async with container.conversation_manager().turn("s", CURRENT, user_id=OWNER, budget=400) as running:
                call = Message.assistant(tool_calls=[ToolCall(id="now", name="look_up")])
                running.add(call, Message.tool("found", tool_call_id="now"))
                context = running.current_context()
                running.answer("Done.")
            assert [message.tool_call_id for message in context.messages][-1] == "now"
            assert context.messages[-2] == call
            assert context.report.total_tokens <= 400

    async def test_the_report_says_of_every_message_where_it_went(self, store_url: str) -> None:
        async with self.opened(store_url) as container:
            await talk(container, "s")
            for budget in BUDGETS:
                report = (await load_or_least(container, "s", budget)).report
                fates = [report.why(seq) for seq in range(1, 4 * TURNS + 1)]
                assert [fate.seq for fate in fates if fate.reason == "unknown"] == []

    async def test_what_is_pinned_is_there_byte_for_byte(self, store_url: str) -> None:
        async with self.opened(store_url) as container:
            await talk(container, "s")
            manager = container.conversation_manager()
            newest = (await manager.read_messages("s", user_id=OWNER, last=1))[0]
            await container.pins().add("s", seq=newest.seq, user_id=OWNER)
            for budget in BUDGETS[2:]:
                context = await load_or_least(container, "s", budget)
                assert [message.content for message in context.part("pins")] == [newest.content]

    async def test_a_failing_summarizer_leaves_no_less_than_take_last(self, store_url: str) -> None:
        async with open_container(settings_for(store_url, {"history": {"strategy": "take_last"}})) as container:
            await talk(container, "least")
            least = [visible_seqs(await load_or_least(container, "least", budget)) for budget in (*BUDGETS, None)]
        async with self.opened(store_url, failing=True) as container:
            await talk(container, "s")
            for budget, expected in zip((*BUDGETS, None), least, strict=True):
                assert expected <= visible_seqs(await load_or_least(container, "s", budget))

    async def test_the_same_saves_and_loads_give_the_same_bytes(self, store_url: str) -> None:
        async with self.opened(store_url) as container:
            once, again = await digests(container, "a"), await digests(container, "b")
            assert once == again
            assert len(set(once)) == TURNS

    async def test_loading_changes_nothing(self, store_url: str) -> None:
        async with self.opened(store_url) as container:
            await talk(container, "s")
            await load(container, "s", budget=700)
            first, second = await load(container, "s", budget=700), await load(container, "s", budget=700)
            assert first.messages == second.messages
            assert first.report == second.report


def settings_for(url: str, sections: Mapping[str, Mapping[str, Any]]) -> Settings:
    """The settings of a suite: a short back-off, no exact tokenizer, and `sections`."""
    values: dict[str, Any] = {
        "store": {"url": url},
        "background": {"backoff_seconds": 0.01, "max_backoff_seconds": 0.02},
        "tokens": {"counter": "estimate"},
    }
    return Settings(**values, **sections)


def failing_summarizer() -> ScriptedCondenser:
    failure = SummarizationError("unavailable", "down")
    summarizer = ScriptedCondenser(default=failure)
    summarizer.fail_after(0, failure)
    return summarizer


async def talk(container: Container, session_id: str) -> None:
    """`TURNS` turns, saved one by one, with all background work done."""
    manager = container.conversation_manager()
    for number in range(TURNS):
        await manager.save_history(session_id, turn(number), user_id=OWNER)
        await manager.drain()


async def load(container: Container, session_id: str, *, budget: int | None = None) -> Context:
    """A context against which the verifier has nothing to say."""
    manager = container.conversation_manager()
    context = await manager.load_history(session_id, user_id=OWNER, message=CURRENT, budget=budget)
    pins = await container.pins().list(session_id, user_id=OWNER) if context.report.verbatim else ()
    verbatim = {"pins": [pin.sha256 for pin in pins]}
    assert verify(context, count=container.message_counter().of, verbatim=verbatim) == []
    return context


async def load_or_least(container: Container, session_id: str, budget: int | None) -> Context:
    """The context of this budget; of the smallest that works, if there is none, which the error must name."""
    try:
        return await load(container, session_id, budget=budget)
    except BudgetExceededError as error:
        least = error.minimum
    assert least > (budget or 0)
    return await load(container, session_id, budget=least)


def visible_seqs(context: Context) -> set[int]:
    return {message.seq for message in context.messages if message.seq is not None}


async def digests(container: Container, session_id: str) -> Sequence[str]:
    """What the contexts of a conversation look like, turn by turn."""
    manager = container.conversation_manager()
    found: list[str] = []
    for number in range(TURNS):
        found.append((await load(container, session_id, budget=700)).report.digest)
        await manager.save_history(session_id, turn(number), user_id=OWNER)
        await manager.drain()
    return found
