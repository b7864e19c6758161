"""What calls of a tool do is what its declaration, the settings or a plug-in say, else what its results tell."""

from __future__ import annotations

from typing import Any

import pytest
from dependency_injector import providers

from reactor_memory import open_memory
from reactor_memory.errors import ConfigurationError
from reactor_memory.memory import Memory
from reactor_memory.models import Message, ToolCall
from reactor_memory.settings.settings import Settings
from reactor_memory.wiring.container import Container
from reactor_memory.wiring.plugins import Plugin, evaluate

READS, ACTS = {"readOnlyHint": True}, {"readOnlyHint": False}
DECLARED: list[dict[str, Any]] = [
    {"name": "zorble", "inputSchema": {"type": "object"}, "annotations": READS},
    {"type": "function", "function": {"name": "zorble", "parameters": {}}, "annotations": READS},
    {"type": "function", "function": {"name": "zorble", "annotations": READS}},
    {"type": "function", "name": "zorble", "annotations": {**READS, "destructiveHint": True, "title": "Zorble"}},
    {"function_declarations": [{"name": "other"}, {"name": "zorble", "annotations": READS}]},
]


def step(tool: str, number: int) -> list[Message]:
    """A call whose result says nothing of what it does."""
    call = ToolCall(id=f"c{number}", name=tool, arguments={"ticket": f"T-{number}", "note": "as they wished"})
    return [Message.assistant(tool_calls=[call]), Message.tool("fine", tool_call_id=call.id)]


async def talk_with(memory: Memory, tool: str, *, tools: list[Any] | None = None, turns: int = 12) -> None:
    for number in range(turns):
        async with memory.turn("s", f"And ticket {number}?", user_id="u", tools=tools) as turn:
            await turn.add(*step(tool, number))
            turn.answer(f"Ticket {number} is looked after.")
    await memory.drain()


async def categories_of(memory: Memory, tool: str) -> set[str]:
    return {fact.category for fact in await memory.facts.list("s", user_id="u") if fact.anchor.startswith(f"{tool} #")}


async def told(tool: str, *, tools: list[Any] | None = None, **summary: Any) -> set[str]:
    async with open_memory(Settings(store={"url": "memory://"}, summary=summary)) as memory:
        await talk_with(memory, tool, tools=tools)
        return await categories_of(memory, tool)


@pytest.mark.anyio
async def test_without_a_word_on_it_the_result_tells() -> None:
    assert await told("zorble") == {"DECISION"}
    assert await told("get_zorble") == {"STATE"}


@pytest.mark.parametrize("tool", DECLARED)
@pytest.mark.anyio
async def test_an_annotation_of_any_form_tells_the_role(tool: dict[str, Any]) -> None:
    assert await told("zorble", tools=[tool]) == {"STATE"}


@pytest.mark.parametrize("hints", [ACTS, {"destructiveHint": True}, {**ACTS, "idempotentHint": True}])
@pytest.mark.anyio
async def test_hints_that_say_that_a_tool_changes_things(hints: dict[str, Any]) -> None:
    assert await told("get_zorble", tools=[{"name": "get_zorble", "annotations": hints}]) == {"DECISION"}


@pytest.mark.anyio
async def test_hints_that_say_nothing_leave_it_to_results() -> None:
    silent: list[Any] = [{"name": "zorble", "annotations": each} for each in ({}, {"readOnlyHint": None}, "x", None)]
    for tool in [*silent, {"name": "zorble", "annotations": {"idempotentHint": True, "readOnlyHint": "yes"}}]:
        assert await told("zorble", tools=[tool]) == {"DECISION"}


@pytest.mark.anyio
async def test_a_setting_wins_over_annotations() -> None:
    tools = [{"name": "zor-ble", "annotations": READS}]
    assert await told("zor-ble", tools=tools) == {"STATE"}
    assert await told("zor-ble", tools=tools, tool_roles={"zor_ble": "act"}) == {"DECISION"}
    assert await told("Zorble", tool_roles={"zorble": "read"}) == {"STATE"}


@pytest.mark.anyio
async def test_what_only_thinks_is_not_told() -> None:
    assert await told("zorble", tool_roles={"zorble": "think"}) == set()


@pytest.mark.anyio
async def test_long_prose_of_a_tool_that_acts_is_told() -> None:
    prose = "The parcel goes to the neighbours on the second floor, since nobody is in."
    async with open_memory(Settings(store={"url": "memory://"}, summary={"tool_roles": {"hand_on": "act"}})) as memory:
        for number in range(12):
            call = ToolCall(id=f"c{number}", name="hand_on", arguments={"text": f"{prose} {number}"})
            messages = [Message.user(f"Parcel {number}"), Message.assistant(tool_calls=[call])]
            await memory.save_history("s", [*messages, Message.tool("", tool_call_id=call.id)], user_id="u")
        await memory.drain()
        assert await categories_of(memory, "hand_on") == {"DECISION"}


@pytest.mark.anyio
async def test_messages_may_say_it_themselves() -> None:
    async with open_memory("memory://") as memory:
        await memory.load_history("s", user_id="u", tools=[{"name": "zorble", "annotations": ACTS}])
        for number in range(12):
            call, found = step("zorble", number)
            named = {"zorble": "read", "other": "nonsense"} if number else {"zorble": "read"}
            given = Message.assistant(tool_calls=call.tool_calls, metadata={"tool_roles": named, "trace": number})
            await memory.save_history("s", [Message.user(f"Ticket {number}?"), given, found], user_id="u")
        await memory.drain()
        assert await categories_of(memory, "zorble") == {"STATE"}
        assert (await memory.read_messages("s", user_id="u"))[1].metadata["trace"] == 0


@pytest.mark.anyio
async def test_saves_after_a_load_with_tools_have_the_roles() -> None:
    async with open_memory("memory://") as memory:
        await memory.load_history("s", user_id="u", tools=DECLARED[:1])
        await memory.save_history("s", [Message.user("Ticket 1?"), *step("zorble", 1)], user_id="u")
        await memory.save_history("other", [Message.user("Ticket 1?"), *step("zorble", 1)], user_id="u")
        stored = [await memory.read_messages(name, user_id="u") for name in ("s", "other")]
        assert [each[1].metadata for each in stored] == [{"tool_roles": {"zorble": "read"}}, {}]


@pytest.mark.anyio
async def test_roles_are_no_part_of_a_repeated_batch() -> None:
    async with open_memory("memory://") as memory:
        batch = [Message.user("Ticket 1?"), *step("zorble", 1)]
        first = await memory.save_history("s", batch, user_id="u", idempotency_key="k")
        await memory.load_history("s", user_id="u", tools=DECLARED[:1])
        again = await memory.save_history("s", batch, user_id="u", idempotency_key="k")
        assert (again.replayed, again.last_seq) == (True, first.last_seq)


@pytest.mark.parametrize("tools", [None, DECLARED[:1]])
@pytest.mark.anyio
async def test_a_turn_repeated_with_other_declarations_is_the_same(tools: list[Any] | None) -> None:
    async with open_memory("memory://") as memory:
        for given in (DECLARED[:1] if tools is None else None, tools):
            async with memory.turn("s", "Ticket 1?", user_id="u", idempotency_key="k", tools=given) as turn:
                await turn.add(*step("zorble", 1))
                turn.answer("Done.")
        assert len(await memory.read_messages("s", user_id="u")) == 4


@pytest.mark.anyio
async def test_hints_are_not_counted_as_what_the_provider_gets() -> None:
    bare = [{"name": "zorble", "description": "x " * 50}]
    async with open_memory(Settings(store={"url": "memory://"}, context={"max_tokens": 5_000})) as memory:
        plain = await memory.load_history("s", user_id="u", tools=bare)
        hinted = await memory.load_history("s", user_id="u", tools=[{**bare[0], "annotations": READS}])
        assert hinted.report.budget == plain.report.budget


@pytest.mark.anyio
async def test_a_plugin_tells_what_its_tools_do() -> None:
    def configure(container: Container) -> None:
        report = evaluate([Plugin(name="tickets", tool_roles={"zorble": "read"})], Settings())
        known = container.conditions()
        report = type(known)(
            **{name: getattr(known, name) for name in ("conditions", "bindings", "factories", "closers", "wrapping")},
            taking_part=(*known.taking_part, *report.taking_part),
        )
        container.conditions.override(providers.Object(report))  # pyright: ignore[reportUnknownMemberType]

    async with open_memory("memory://", configure=configure) as memory:
        await talk_with(memory, "zorble")
        assert await categories_of(memory, "zorble") == {"STATE"}
        await memory.load_history("s", user_id="u", tools=[{"name": "zorble", "annotations": ACTS}])
        await memory.save_history("s", [Message.user("Ticket 90?"), *step("zorble", 90)], user_id="u")
        stored = await memory.read_messages("s", user_id="u")
        assert stored[-2].metadata == {"tool_roles": {"zorble": "act"}}


def test_a_role_that_is_none_is_refused_by_name() -> None:
    with pytest.raises(ConfigurationError, match=r"summary\.tool_roles\.zorble"):
        Settings(summary={"tool_roles": {"zorble": "write"}})
