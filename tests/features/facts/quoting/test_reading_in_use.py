"""The reader that quotes, through the public surface: shown, explained, retracted, erased, written once."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from msgspec.structs import replace

from reactor_memory import Memory, open_memory
from reactor_memory.features.facts import rendering
from reactor_memory.settings.settings import Settings
from tests.features.facts.quoting.reading import calls, result, says, user

pytestmark = pytest.mark.anyio

BUDGET = 900
TURNS = [
    [user("I can't eat hazelnuts.", "Odile"), says("Noted.")],
    [user("Book the ferry to Hvar.", "Tamsin"), calls(("c1", "book_ferry", {"to": "Hvar", "seats": 4}))],
    [result({"ref": "FE-771"}), says("It is booked.")],
    *([user(f"What about kites, number {n}?"), says(f"Kites {n} fly high in the wind.")] for n in range(40)),
]
"""A conversation whose beginning leaves the window."""


@asynccontextmanager
async def told() -> AsyncIterator[Memory]:
    async with open_memory(Settings(store={"url": "memory://"})) as memory:
        for turn in TURNS:
            await memory.save_history("s", turn, user_id="u")
        await memory.drain()
        yield memory


async def shown(memory: Memory) -> str:
    context = await memory.load_history("s", user_id="u", budget=BUDGET)
    memories = [message.content or "" for message in context.messages if message.role == "system"]
    return "\n".join(memories)


async def test_a_context_shows_who_said_what_and_what_was_done() -> None:
    async with told() as memory:
        lines = (await shown(memory)).splitlines()
        assert 'Odile: "I can\'t eat hazelnuts."' in lines
        assert any(line.startswith("book_ferry: ") and "Hvar" in line and "FE-771" in line for line in lines)
        assert not any(line.startswith("Tamsin") and "hazelnut" in line for line in lines)


async def test_a_retracted_statement_is_not_shown() -> None:
    async with told() as memory:
        (fact,) = [each for each in await memory.facts.list("s", user_id="u") if "hazelnuts" in each.value]
        await memory.facts.retract("s", fact=(fact.anchor, fact.key), user_id="u")
        assert "hazelnuts" not in await shown(memory)


async def test_a_corrected_argument_is_shown_in_its_call() -> None:
    async with told() as memory:
        (fact,) = [each for each in await memory.facts.list("s", user_id="u") if each.value == "Hvar"]
        await memory.facts.correct("s", fact=(fact.anchor, fact.key), value="Vis", user_id="u")
        memories = await shown(memory)
        assert "book_ferry: Vis" in memories or "to=Vis" in memories
        assert not any("Hvar" in line for line in memories.splitlines() if line.startswith("book_ferry"))


@pytest.mark.parametrize("word", ["vegan", "On Monday.", "素食", "Nej.", "KX-1"])
async def test_a_short_correction_of_words_leaves_their_call(word: str) -> None:
    async with told() as memory:
        (fact,) = [each for each in await memory.facts.list("s", user_id="u") if "ferry to Hvar" in each.value]
        await memory.facts.correct("s", fact=(fact.anchor, fact.key), value=word, user_id="u")
        (line,) = [line for line in (await shown(memory)).splitlines() if line.startswith("book_ferry")]
        assert "Hvar" in line


async def test_corrected_words_take_the_value_out_of_their_call() -> None:
    async with told() as memory:
        (fact,) = [each for each in await memory.facts.list("s", user_id="u") if "ferry to Hvar" in each.value]
        await memory.facts.correct("s", fact=(fact.anchor, fact.key), value="Book the ferry to Vis.", user_id="u")
        (line,) = [line for line in (await shown(memory)).splitlines() if line.startswith("book_ferry")]
        assert "Hvar" not in line
        assert "seats=4" in line


async def test_an_erased_message_leaves_no_line() -> None:
    async with told() as memory:
        await memory.erasure.erase("s", seq=1, user_id="u")
        await memory.drain()
        assert "hazelnuts" not in await shown(memory)
        assert all("hazelnuts" not in fact.value for fact in await memory.facts.list("s", user_id="u"))


async def test_each_shown_line_names_the_messages_it_was_made_from() -> None:
    async with told() as memory:
        explained = await memory.explain("s", user_id="u", budget=BUDGET)
        (line,) = [line for line in explained.lines if "hazelnuts" in line.text and line.kept]
        assert line.sources == (1,)


async def test_a_load_writes_no_lines_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    async with told() as memory:
        expected = await shown(memory)

    def refuse(*_: object) -> None:
        raise AssertionError("a load wrote the lines itself")

    async with told() as memory:
        monkeypatch.setattr(rendering, "quotation_lines", refuse)
        assert await shown(memory) == expected


async def test_lines_of_other_facts_are_not_shown() -> None:
    async with told() as memory:
        expected = await shown(memory)
    async with told() as memory:
        store = memory.container.summary_store()
        summary = await store.get_summary("s")
        assert summary is not None
        assert summary.lines()
        other = replace(summary, facts_json=summary.facts_json.replace("hazelnuts", "walnuts"))
        assert other.lines() is None
        assert replace(summary, lines_json="{damaged").lines() is None
        assert replace(summary, lines_json="").lines() is None
        assert await shown(memory) == expected


async def test_many_segments_in_a_row_have_lines_at_last() -> None:
    async with open_memory(Settings(store={"url": "memory://"})) as memory:
        await memory.save_history("s", [message for turn in TURNS * 3 for message in turn], user_id="u")
        await memory.drain()
        summary = await memory.container.summary_store().get_summary("s")
        assert summary is not None
        assert summary.lines()


@pytest.mark.parametrize(
    "rule",
    [
        "Never book ink without a receipt.",
        "Ida is allergic to dairy.",
        "Bitte niemals nach acht klingeln.",
        "小邵对青霉素过敏。",
        "By the way, never ring at 40.",
    ],
)
async def test_a_rule_stands_before_what_was_done(rule: str) -> None:
    async with open_memory("memory://") as memory:
        await memory.save_history("s", [user(rule), says("Noted.")], user_id="u")
        for number in range(60):
            booked = calls(
                (
                    f"c{number}",
                    "book_boat",
                    {"boat": f"Amber {number}", "day": f"2026-05-{number % 28 + 1:02}", "skipper": f"Osei {number}"},
                )
            )
            made = result({"booking": f"BK-{7000 + number}", "berth": f"N{number}"}, f"c{number}")
            await memory.save_history("s", [user(f"Boat {number} please."), booked, made, says("Done.")], user_id="u")
        await memory.drain()
        assert rule in await shown(memory)
