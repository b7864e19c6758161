"""A context is shown in the budget of the agent's last load, unless --budget names another."""

from __future__ import annotations

import io
import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import pytest

from reactor_memory.core.log.last_budgets import MOST_SESSIONS, LastBudgets, read_last_budget
from reactor_memory.memory import open_memory
from reactor_memory.models import Message
from reactor_memory.settings.settings import Settings
from tests.acceptance.conftest import Run, small_talk, write_sessions
from tests.proofs.damages import change


async def talk(folder: Path, *budgets: int | None, **sections: Any) -> None:
    """An agent that loads once in each of these budgets."""
    settings = Settings(store={"url": f"sqlite:///{folder / 'reactor-memory.db'}"}, **sections)  # type: ignore[arg-type]
    async with open_memory(settings) as memory:
        await memory.save_history("s", [Message.user(f"My order number is QX-{number}.") for number in range(40)])
        await memory.drain()
        for number, budget in enumerate(budgets):
            async with memory.turn("s", f"question {number}", budget=budget) as turn:
                turn.answer("an answer")
        await memory.drain()


@pytest.mark.parametrize("record", ["off", "turns"])
def test_context_takes_the_budget_of_the_last_load(run: Run, folder: Path, record: str) -> None:
    anyio.run(lambda: talk(folder, 300, 400, 350, context={"record": record}))
    shown = run("context", "s", "--json").json
    assert (shown["report"]["budget"], shown["budget_from"]) == (350, "last_load")
    assert "budget: 350 tokens, as in the last load of this session" in run("context", "s").out
    assert run("context", "s", "--why", "--json").json["budget"] == 350


def test_looking_leaves_the_budget_of_the_agent(run: Run, folder: Path) -> None:
    anyio.run(lambda: talk(folder, 500))
    given = run("context", "s", "--budget", "1500", "--json").json
    assert (given["report"]["budget"], given["budget_from"]) == (1500, "option")
    assert "budget:" not in run("context", "s", "--budget", "1500").out
    assert run("context", "s", "--json").json["report"]["budget"] == 500


async def loads(url: str, *budgets: int | None, saves_after: Sequence[int] = (), messages: int = 4) -> None:
    """A session in which everything fits, so that no load leaves a trace of its own."""
    async with open_memory(url) as memory:
        await memory.save_history("s", [Message.user(f"word {number}") for number in range(messages)])
        for number, budget in enumerate(budgets):
            await memory.load_history("s", budget=budget)
            if number in saves_after:
                await memory.save_history("s", [Message.assistant("an answer")])


@pytest.mark.parametrize(("saves_after", "messages"), [((), 1), ((), 60), ((1,), 60), ((0, 2), 1)])
def test_loads_count_whether_or_not_anything_is_saved(
    run: Run, folder: Path, saves_after: Sequence[int], messages: int
) -> None:
    anyio.run(partial(loads, "reactor-memory.db", 900, 300, 700, saves_after=saves_after, messages=messages))
    shown = run("context", "s", "--json").json
    assert (shown["report"]["budget"], shown["budget_from"]) == (700, "last_load")


@pytest.mark.parametrize("budgets", [(500, None), (None, 500), (500, 800), (None,)])
def test_of_two_processes_the_one_that_loaded_last_counts(
    run: Run, folder: Path, budgets: tuple[int | None, ...]
) -> None:
    for budget in budgets:
        anyio.run(loads, "reactor-memory.db", budget)
    shown = run("context", "s", "--json").json
    assert shown["budget_from"] == "last_load"
    assert (shown["report"]["budget"] > 10_000) == (budgets[-1] is None)
    assert budgets[-1] in (None, shown["report"]["budget"])


@pytest.fixture(params=["memory", "sqlite", pytest.param("postgres", marks=pytest.mark.postgres)])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "postgres":
        return request.getfixturevalue("postgres_dsn")
    return "memory://" if request.param == "memory" else str(tmp_path / "m.db")


@pytest.mark.anyio
async def test_the_next_save_stores_the_budget_on_every_store(url: str) -> None:
    async with open_memory(url) as memory:
        last_budget, database = memory.container.replayer().last_budget, memory.container.database()
        assert await last_budget("s") is None
        names = [f"s{number}" for number in range(20)]
        for name in ("s", *names):
            await memory.load_history(name, budget=500)
        assert await last_budget("s") == 500, "known to this process before the session is there"
        async with anyio.create_task_group() as together:  # saves that meet share a statement
            for name in ("s", *names):
                together.start_soon(memory.save_history, name, "a")
        assert {await database.read(read_last_budget, each) for each in ("s", *names)} == {500}
        await memory.save_history("s", "b")
        assert await last_budget("s") == 500, "a save without a load leaves it"
        async with memory.turn("s", "c", budget=700) as turn:
            assert await database.read(read_last_budget, "s") == 700, "the turn is kept while it runs"
            turn.answer("d")
        await memory.load_history("s")
        assert (await last_budget("s"), await database.read(read_last_budget, "s")) == (0, 700)
        await memory.save_history("s", "e", idempotency_key="k")
        assert await database.read(read_last_budget, "s") == 0
        await memory.preview("s", budget=5000)
        await memory.load_history("s", budget=900)
        assert (await memory.save_history("s", "e", idempotency_key="k")).replayed
        assert await last_budget("s") == 900, "what was not stored is not forgotten"


@pytest.mark.parametrize("damage", ["x7", b"\xff", -(2**62), "{bad"])
def test_a_damaged_budget_is_none(run: Run, folder: Path, damage: object) -> None:
    anyio.run(loads, "reactor-memory.db", 500)
    change(folder / "reactor-memory.db", "UPDATE conversations SET last_budget = ?", damage)
    assert run("context", "s", "--json").json["budget_from"] == "default"


def test_few_budgets_are_remembered_the_newest_ones() -> None:
    budgets = LastBudgets()
    for number in range(MOST_SESSIONS + 5):
        budgets.asked(f"s{number}", number + 1)
        budgets.asked("s0", 7)
    assert (budgets.of("s0"), budgets.of("s1"), budgets.of(f"s{MOST_SESSIONS + 4}")) == (7, None, MOST_SESSIONS + 5)
    assert len(budgets.taken()) == MOST_SESSIONS
    assert not budgets.taken()


def test_a_load_without_a_budget_counts_too(run: Run, folder: Path) -> None:
    anyio.run(lambda: talk(folder, 500, None))
    shown = run("context", "s", "--json").json
    assert shown["budget_from"] == "last_load"
    assert shown["report"]["budget"] > 10_000
    assert "budget: context.max_tokens, as in the last load" in run("context", "s").out


def test_without_a_load_there_is_a_default(run: Run, folder: Path) -> None:
    run("import", write_sessions(folder / "f.jsonl", {"s": small_talk(4)}))
    shown = run("context", "s", "--json").json
    assert (shown["report"]["budget"], shown["budget_from"]) == (2000, "default")
    assert "budget: 2,000 tokens, as no load of this session is known" in run("context", "s").out


def test_a_chat_goes_on_in_the_budget_of_the_agent(run: Run, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    anyio.run(lambda: talk(folder, 500))
    monkeypatch.setattr(sys, "stdin", io.StringIO("/context\n"))
    talked = run("chat", "s")
    assert "of 500 tokens" in talked.out
    assert "budget: 500 tokens, as in the last load" in talked.err


def test_a_budget_that_holds_nothing_is_refused(run: Run, folder: Path) -> None:
    run("import", write_sessions(folder / "f.jsonl", {"s": small_talk(4)}))
    for budget in (1, 5):
        told = f"error: {budget} tokens hold nothing of this session: give a larger --budget\n"
        assert run("context", "s", "--budget", budget) == (2, "", told)
