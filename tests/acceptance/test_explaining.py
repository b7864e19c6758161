"""Why a context is as it is: one answer for every message and fact of a session, and nothing is stored by asking."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from reactor_memory import (
    InvalidInputError,
    Message,
    SessionDeletedError,
    SessionNotFoundError,
    SessionOwnershipError,
)
from reactor_memory.models.block_lines import Layout
from reactor_memory.models.ledger import Extraction, Fact
from reactor_memory.testing import ScriptedSummarizer
from tests.acceptance.scenes import USER, agent_memory, save, scripted, talk
from tests.proofs.outcomes import explanation_problems

pytestmark = pytest.mark.anyio


def correcting(messages: Sequence[Message]) -> Extraction:
    """Each number is stated anew by the next one, and beside it one that nobody says."""
    facts: list[Fact] = []
    for message in messages:
        if "number is" in message.content:
            seq, value = message.seq or 0, message.content.split()[-1]
            facts.append(Fact(anchor="order", key="number", value=value, source_seq=seq))
            facts.append(Fact(anchor="order", key="price", value="A-9999", source_seq=seq))
    return Extraction(facts=tuple(facts), narrative="They talked.")


async def test_every_message_and_fact_has_one_outcome_at_every_size(url: str) -> None:
    async with agent_memory(scripted(), url) as memory:
        await save(memory, "s", talk(61))
        await memory.withdraw("s", user_id=USER)
        await memory.drain()
        in_view = await memory.read_messages("s", user_id=USER)
        facts = await memory.facts.list("s", user_id=USER)
        reasons: set[str] = set()
        for budget in (120, 200, 300, 450, None):
            found = await memory.explain("s", user_id=USER, budget=budget, message=Message.user("and now?"))
            assert explanation_problems(found, last_seq=61, in_view=in_view, ledger=facts) == []
            reasons |= {fate.reason for fate in found.facts}
        assert {"shown", "verbatim", "below_floor"} <= reasons
        assert found.messages[60].reason == "withdrawn"


async def test_asking_stores_nothing_and_answers_for_context_of_next_load(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with agent_memory(scripted(), url) as memory:
        stored: list[Layout] = []
        put = memory.container.summary_store().put_layout

        async def noting(session_id: str, layout: Layout, **key: Any) -> None:
            stored.append(layout)
            await put(session_id, layout, **key)

        monkeypatch.setattr(memory.container.summary_store(), "put_layout", noting)
        await save(memory, "s", talk(60))
        await memory.drain()
        found = await memory.explain("s", user_id=USER, budget=300)
        assert stored == []
        assert found.context == await memory.load_history("s", user_id=USER, budget=300)
        assert len(stored) == 1


async def test_superseded_and_an_unverified_fact_are_named_with_the_reason(url: str) -> None:
    async with agent_memory(ScriptedSummarizer(default=correcting), url) as memory:
        await save(memory, "s", talk(60))
        await memory.drain()
        found = await memory.explain("s", fact=("order", "number"), user_id=USER)
        old = found.facts[0]
        assert (old.fact.source_seq, old.kept, old.reason) == (1, False, "superseded")
        assert old.successor is not None
        assert old.successor.value == "A-0059"
        assert old.quote == "my order number is A-0001"
        assert {fate.fact.key for fate in found.facts} == {"number"}
        assert [fate.seq for fate in found.messages] == [fate.fact.source_seq for fate in found.facts]
        prices = await memory.explain("s", fact=("order", "price"), user_id=USER)
        assert {fate.reason for fate in prices.facts} == {"unverified"}


async def test_one_message_is_answered_for_without_the_others(url: str) -> None:
    async with agent_memory(scripted(), url) as memory:
        await save(memory, "s", talk(60))
        await memory.drain()
        found = await memory.explain("s", seq=5, user_id=USER)
        (fate,), (fact,) = found.messages, found.facts
        assert (fate.seq, fate.outcome) == (5, "remembered")
        assert (fact.fact.value, fact.reason, fact.quote) == ("A-0005", "shown", "my order number is A-0005")
        assert fact.line in found.lines
        assert found.context.report.why(5) == fate


async def test_facts_are_traced_to_the_words_of_their_message(url: str) -> None:
    async with agent_memory(ScriptedSummarizer(default=correcting), url) as memory:
        await save(memory, "s", talk(30))
        await memory.drain()
        holding = await memory.facts.trace("s", user_id=USER, as_of_seq=9)
        assert [each.fact for each in holding] == list(await memory.facts.list("s", user_id=USER, as_of_seq=9))
        number = next(each for each in holding if each.fact.key == "number")
        assert (number.fact.value, number.quote, number.successor) == ("A-0009", "my order number is A-0009", None)
        everything = await memory.facts.trace("s", user_id=USER, as_of_seq=9, everything=True)
        assert len(everything) == 10
        assert {each.successor for each in everything} == {None, number.fact}
        assert [each.fact.source_seq for each in everything] == sorted(each.fact.source_seq for each in everything)


async def test_what_is_not_there_is_refused_by_name(url: str) -> None:
    async with agent_memory(scripted(), url) as memory:
        await save(memory, "s", talk(4))
        wrong: list[tuple[dict[str, Any], str]] = [
            ({"seq": 5}, "seq"),
            ({"seq": 0}, "seq"),
            ({"fact": ("order", "x")}, "fact"),
            ({"fact": "order"}, "fact"),
            ({"seq": 1, "fact": ("a", "b")}, "seq"),
            ({"budget": 0}, "budget"),
        ]
        for given, field in wrong:
            with pytest.raises(InvalidInputError) as refused:
                await memory.explain("s", user_id=USER, **given)
            assert refused.value.field == field
        with pytest.raises(InvalidInputError) as refused:
            await memory.facts.trace("s", user_id=USER, as_of_seq=-1)
        assert refused.value.field == "as_of_seq"


async def test_only_owner_of_session_that_is_there_gets_an_answer(url: str) -> None:
    async with agent_memory(scripted(), url) as memory:
        await save(memory, "s", talk(4))
        for ask in (memory.explain, memory.facts.trace):
            with pytest.raises(SessionOwnershipError):
                await ask("s", user_id="mallory")
            with pytest.raises(SessionNotFoundError):
                await ask("unknown", user_id=USER)
        await memory.delete("s", user_id=USER)
        for ask in (memory.explain, memory.facts.trace):
            with pytest.raises(SessionDeletedError):
                await ask("s", user_id=USER)


async def test_what_competed_is_memory_as_it_was_when_window_moved(url: str) -> None:
    """The number is corrected in the window: the line with the older one stays until the window moves."""
    async with agent_memory(ScriptedSummarizer(default=correcting), url) as memory:
        await save(memory, "s", [*talk(2), *[Message.user("hello"), Message.assistant("hello")] * 14])
        await memory.drain()
        before = await memory.load_history("s", user_id=USER)
        (block,) = before.part("facts")
        await save(memory, "s", talk(10, start=31))
        await memory.drain()
        found = await memory.explain("s", fact=("order", "number"), user_id=USER)
        assert found.context.part("facts") == [block]
        assert any(fate.reason == "shown" and fate.successor for fate in found.facts)
        for fate in found.facts:
            assert (fate.reason == "shown") == (f"order: {fate.fact.value}" in block.content)
