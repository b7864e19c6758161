"""What memory keeps with the answers of a good model: six sessions, each answered by hand, without a question."""

from __future__ import annotations

import pytest

from reactor_memory.features.facts.working_state import items_of
from tests.scenes.answered_sessions import (
    NAMES,
    SESSION,
    USER,
    Written,
    WrittenByLine,
    answers_of,
    missed,
    replayed,
    session_of,
    tallied,
)

pytestmark = [pytest.mark.anyio, pytest.mark.slow]

WANTED = {2_000: 0.90, 4_000: 0.95}
SMALL = 1_000
SLACK = 0.01
ACCEPTED = 0.90

ASKED: dict[str, dict[str, tuple[str, ...]]] = {
    "code": {
        "what is open": ("Priya", "sign-off is missing", "leave reports.py"),
        "what was decided, and why": ("babel is too slow", "since nothing new is in it"),
        "which files": ("ledgerly/money.py", "ledgerly/export.py", "migrations/0042_total_numeric.py"),
        "what was the last check": ("27 passed in tests/test_export.py",),
    },
    "service": {
        "what is open": ("claim CL-3531", "refund of 144.78 for KF632932 failed"),
        "what was decided, and why": ("away then, 15 April",),
        "which files": ("RF-73007", "125 Plover Way"),
        "what was the last check": ("refund of 75.28 for KF345201: RF-85022",),
    },
    "sql": {
        "what is open": ("Velomat", "prices of March"),
        "what was decided, and why": ("otherwise finance complains",),
        "which files": ("reports/fy2025_monthly.csv",),
        "what was the last check": ("the twelve months sum to 86199877",),
    },
    "german": {
        "what is open": ("3. Juli um 7:30 Uhr",),
        "what was decided, and why": ("Papier ist günstiger",),
        "which files": ("HV-2093",),
        "what was the last check": ("Zählerstand war 18 422",),
    },
    "spanish": {
        "what is open": ("rampa para Encarna",),
        "what was decided, and why": ("anima más a la gente",),
        "which files": ("RS-4417",),
        "what was the last check": ("autobús a las 16:30",),
    },
    "people": {
        "what is open": ("blind of the laundry", "garden pump of the attic"),
        "what was decided, and why": ("allergic to cat hair, so the cat stays out",),
        "which files": ("laundry is heated to 22 degrees",),
        "what was the last check": ("hall is heated to 19 degrees",),
    },
}
"""Words of items that answer. Where no files are worked on: what was made or booked."""


async def found(name: str, budget: int) -> tuple[int, int]:
    """Of how many probes the details are in the context, and how many there are."""
    async with replayed(name, Written(answers_of(name))) as memory:
        left = await missed(memory, name, budget)
    count = len(session_of(name).probes())
    return count - len(left), count


@pytest.mark.parametrize("budget", WANTED)
async def test_wanted_details_are_shown_without_a_question(budget: int) -> None:
    counts = {name: await found(name, budget) for name in NAMES}
    shown, wanted = (sum(each) for each in zip(*counts.values(), strict=True))
    assert shown / wanted >= WANTED[budget], counts
    assert min(shown / wanted for shown, wanted in counts.values()) >= 0.9, counts


async def test_small_budget_shows_more_than_the_offline_reader() -> None:
    """In all sessions together, and in none more than one detail less."""
    more = 0
    for name in NAMES:
        with_answers, wanted = await found(name, SMALL)
        async with replayed(name, None) as memory:
            offline = wanted - len(await missed(memory, name, SMALL))
        assert with_answers >= offline - 1, name
        more += with_answers - offline
    assert more > 0


async def test_contexts_begin_as_those_before_as_long_as_offline() -> None:
    for name in ("code", "people"):
        kept = await tallied(name, WrittenByLine(answers_of(name)), 2_000)
        offline = await tallied(name, None, 2_000)
        assert kept.violations == 0
        assert (kept.prefix_reuse or 0) >= (offline.prefix_reuse or 0) - SLACK, name


@pytest.mark.parametrize("name", NAMES)
async def test_working_state_answers_what_matters(name: str) -> None:
    async with replayed(name, Written(answers_of(name))) as memory:
        items = items_of(await memory.facts.list(SESSION, user_id=USER))
    text = "\n".join(f"{item.kind}: {item.text}" for item in items)
    wanted = {(question, words) for question, answers in ASKED[name].items() for words in answers}
    assert [each for each in wanted if each[1] not in text] == []


async def test_true_items_are_rarely_refused() -> None:
    worded = kept = 0
    for name in NAMES:
        worded += sum(len(answer["state"]) for answer in answers_of(name))
        async with replayed(name, Written(answers_of(name))) as memory:
            kept += len(items_of(await memory.facts.list(SESSION, user_id=USER)))
    assert kept / worded >= ACCEPTED, (kept, worded)


@pytest.mark.parametrize("name", NAMES)
async def test_every_answer_has_its_question(name: str) -> None:
    model = Written(answers_of(name))
    async with replayed(name, model):
        assert len(model.requests) == len(model.answers)
