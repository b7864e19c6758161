"""150 turns with reasoning and tools against a server that refuses broken pairing, as the real one does."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from typing import Any

import pytest
from agents import (
    Agent,
    Model,
    OpenAIChatCompletionsModel,
    OpenAIResponsesModel,
    Runner,
    Session,
    function_tool,
)
from openai import AsyncOpenAI, BadRequestError

from reactor_memory import Memory
from reactor_memory.adapters.openai_agents import ReactorMemorySession
from tests.doubles.fake_openai import RefusingOpenAI, called, said, thought

pytestmark = pytest.mark.anyio

Json = dict[str, Any]

TURNS = 150
STEPS = 12
"""How many times in a row the model calls tools in the longest turns."""


@pytest.fixture
async def fake() -> AsyncIterator[RefusingOpenAI]:
    async with RefusingOpenAI.running() as fake:
        yield fake


@pytest.fixture
async def client(fake: RefusingOpenAI) -> AsyncIterator[AsyncOpenAI]:
    async with AsyncOpenAI(base_url=fake.base_url, api_key="none", max_retries=0) as client:
        yield client


@function_tool
def find_order(number: str) -> str:
    """The state of an order."""
    return f"Order {number} is on its way and will arrive on day {len(number)}. " * 3


def turn_outputs(turn: int) -> list[list[Json]]:
    """What the model gives in a turn: now only an answer, now calls at once or after another, now many of them."""
    answer = [thought("done"), said(f"Order A-{turn} is on its way, as far as I can see. " * (1 + turn % 4))]
    match turn % 5:
        case 0:
            return [answer]
        case 1:
            at_once = [called("find_order", f"c{turn}_{number}", number=f"A-{number}") for number in range(3)]
            return [[thought("three"), said("I look them up."), *at_once], answer]
        case 2:
            first, second = (called("find_order", f"c{turn}_{number}", number=f"A-{number}") for number in range(2))
            return [[thought("one"), first], [thought("two"), thought("really"), second], answer]
        case 3:
            return [[called("find_order", f"c{turn}", number="A-1")], [said("Done.")]]
        case _ if turn % 25 == 4:
            steps = ([thought("next"), called("find_order", f"c{turn}_{n}", number=f"A-{n}")] for n in range(STEPS))
            return [*steps, answer]
        case _:
            return [[thought("hm"), said("One moment."), thought("so"), said(f"It is A-{turn}.")]]


async def hold(
    memory: Memory, model: Model, fake: RefusingOpenAI, budget: int | None, others: Sequence[Session] = ()
) -> None:
    """Every turn as a run with this budget; what `others` would give the run is checked, too. Summaries grow beside it,
    as they do for a user: a window that waits for them begins where the last segment ends.
    """
    session, agent = (
        ReactorMemorySession(memory, "s", budget=budget),
        Agent(name="desk", model=model, tools=[find_order]),
    )
    for turn in range(TURNS):
        said = f"Where is order A-{turn}?"
        for other in others:
            items: list[Any] = [*await other.get_items(), {"role": "user", "content": said}]
            fake.refusals.extend(fake.item_problems(items))
        fake.outputs.extend(turn_outputs(turn))
        await Runner.run(agent, said, session=session, max_turns=STEPS + 2)
    await memory.drain()


async def test_no_request_of_a_long_conversation_is_refused(
    memory: Memory, fake: RefusingOpenAI, client: AsyncOpenAI
) -> None:
    """With the default settings and in many budgets; and a limit of items parts nothing, either."""
    others = [ReactorMemorySession(memory, "s", budget=budget) for budget in (4000, 1500, 700, 500)]
    limited = [ReactorMemorySession(memory, "s", session_settings={"limit": limit}) for limit in (1, 7)]
    await hold(memory, OpenAIResponsesModel("fake", client), fake, None, [*others, *limited])
    assert fake.refusals == []
    assert len(fake.questions) > 2 * TURNS
    shown = [item["content"] for item in fake.questions[-1].body["input"] if item.get("role") == "system"]
    assert "A-1" in str(shown), "there is memory of what was sealed"


async def test_no_chat_completion_in_a_small_budget_is_refused(
    memory: Memory, fake: RefusingOpenAI, client: AsyncOpenAI
) -> None:
    await hold(memory, OpenAIChatCompletionsModel("fake", client), fake, 700)
    assert fake.refusals == []


USER: Json = {"role": "user", "content": "And?"}
OUTPUT: Json = {"type": "function_call_output", "call_id": "c", "output": "found"}


async def given(fake: RefusingOpenAI, client: AsyncOpenAI) -> list[Any]:
    """A user message, and the reasoning, text and two calls that the server answered with, and their results."""
    fake.outputs.append([thought("hm"), said("So."), called("find_order", "c"), called("find_order", "d")])
    response = await client.responses.create(model="fake", input="Where is it?")
    items = [item.model_dump(exclude_none=True) for item in response.output]
    return [USER, *items, OUTPUT, {**OUTPUT, "call_id": "d"}]


@pytest.mark.parametrize(
    ("left_out", "problem"),
    [
        ({2, 3, 4, 5, 6}, "reasoning ends the input"),
        ({2}, "'reasoning' was provided without its required following item"),
        ({1}, "'message' was provided without its required 'reasoning' item"),
        ({1, 2}, "'function_call' was provided without its required 'reasoning' item"),
        ({1, 2, 3, 5}, "'function_call' was provided without its required 'reasoning' item"),
        ({5}, "a call has no output"),
        ({3}, "an output has no call"),
    ],
)
async def test_the_server_refuses_items_without_those_that_belong_to_them(
    fake: RefusingOpenAI, client: AsyncOpenAI, left_out: set[int], problem: str
) -> None:
    items = await given(fake, client)
    with pytest.raises(BadRequestError, match=problem):
        await client.responses.create(
            model="fake", input=[item for index, item in enumerate(items) if index not in left_out]
        )
    fake.outputs.append([said("Yes.")])
    assert (await client.responses.create(model="fake", input=[*items, USER])).output_text == "Yes."


CALL: Any = {"id": "c", "type": "function", "function": {"name": "find_order", "arguments": "{}"}}
CALLS: Any = {"role": "assistant", "content": None, "tool_calls": [CALL, {**CALL, "id": "d"}]}
RESULTS: list[Any] = [{"role": "tool", "tool_call_id": call_id, "content": "found"} for call_id in "cd"]


@pytest.mark.parametrize("messages", [[USER, *RESULTS], [USER, CALLS, RESULTS[0]], [USER, CALLS, USER]])
async def test_the_server_refuses_messages_without_their_calls_or_results(
    fake: RefusingOpenAI, client: AsyncOpenAI, messages: list[Any]
) -> None:
    with pytest.raises(BadRequestError, match=r"a (call|result) has no"):
        await client.chat.completions.create(model="fake", messages=messages)
    fake.outputs.append([said("Yes.")])
    completion = await client.chat.completions.create(model="fake", messages=[USER, CALLS, *RESULTS])
    assert completion.choices[0].message.content == "Yes."
