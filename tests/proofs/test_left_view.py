"""What left view is told by nothing, unless the caller asks for it: every way with every source."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from random import Random
from typing import Any

import pytest

from reactor_memory import open_memory
from reactor_memory.errors import ReactorMemoryError, SessionDeletedError, SessionNotFoundError
from tests.acceptance.scenes import USER, settings, summarized_by
from tests.proofs.left_view import COLUMNS, FACT, SOURCES, TIERS, WAYS, Model, Scene, Told, Way

pytestmark = pytest.mark.anyio

SECRETS = ("zyx-48213", "plum harbour", "梅の港番号", "tonight at nine behind the old mill")
SILENT = {"context: current", "context: condensed", "studio context: condensed", "studio context"}
"""Sources that have nothing to tell of the secrets of the histories tried: they are old, and not asked for."""

SUMMARY = {"trigger_message_count": 8, "recent_message_count": 4, "segment_message_count": 4}


@asynccontextmanager
async def history(way: Way, seed: int, chance: Random) -> AsyncGenerator[Scene]:
    """A session that tells a secret, and everything that may be made of it; the bits of `seed` say whether there are
    tiers, a pin and a posted summary.
    """
    sections: dict[str, Any] = {"history": {"strategy": "progressive"}, "tiers": TIERS} if seed & 1 else {}
    chosen = settings(summary=SUMMARY, search={"enabled": True}, context={"record": "all"}, **sections)
    secret = chance.choice(SECRETS)
    async with open_memory(chosen, configure=summarized_by(Model())) as memory:
        scene = Scene(memory, chance, secret)
        scene.is_kept = way.is_kept
        await scene.talk(chance.randint(1, 4))
        if way.is_newest:
            await scene.talk(8)
        await scene.tell(is_answered=not way.is_newest)
        if not way.is_newest:
            await scene.talk(chance.randint(8, 12))
        await scene.settle()
        if seed & 2 and not seed & 1 and not (scene.is_kept or way.is_newest):  # what a tier archived is not pinned
            await memory.pins.add("s", fact=FACT, user_id=USER)
        if seed & 4 and not (scene.is_kept or way.is_newest):
            text = f"They talked of orders. The locker code is {secret}. Then more orders came."
            await memory.post_summary("s", text=text, until_seq=scene.seq, user_id=USER)
            await scene.settle()
        yield scene


async def told_by_all(scene: Scene) -> Told:
    """Everything that the sources tell. Of what is gone they tell nothing, and say so."""
    told: Told = {}
    is_gone = False
    try:
        await scene.memory.get_session(scene.session_id, user_id=USER)
    except (SessionDeletedError, SessionNotFoundError):
        is_gone = True
    for source in SOURCES:
        with suppress(*([ReactorMemoryError] if is_gone else [])):
            told |= await source(scene)
    return told


def telling(told: Told, scene: Scene) -> set[str]:
    return {name for name, text in told.items() if scene.secret in text}


async def go_on(scene: Scene) -> None:
    """What may follow, and must bring nothing back."""
    acts = [0, 1, 2, 3]
    match scene.chance.choice(acts):
        case 1:
            await scene.talk(6)
        case 2:
            await scene.memory.facts.rebuild(scene.session_id, user_id=USER)
        case 3:
            last = (await scene.memory.get_session(scene.session_id, user_id=USER)).last_seq
            fork = await scene.memory.fork(scene.session_id, at_seq=last + 1, user_id=USER)
            scene.session_id = fork.session_id
        case _:
            pass
    await scene.settle()


async def check(name: str, seed: int) -> None:
    chance = Random(f"{name} {seed}")
    way = WAYS[name]
    async with history(way, seed, chance) as scene:
        await way.leave(scene)
        with suppress(SessionDeletedError, SessionNotFoundError):
            await go_on(scene)
        assert telling(await told_by_all(scene), scene) <= way.may_tell, (name, seed)


@pytest.mark.parametrize("name", sorted(WAYS)[::3])
async def test_no_source_tells_what_left_view(name: str) -> None:
    await check(name, 6)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(16))  # each of the eight combinations twice
@pytest.mark.parametrize("name", WAYS)
async def test_no_source_tells_it_in_any_history(name: str, seed: int) -> None:
    await check(name, seed)


async def test_every_source_tells_what_is_in_view() -> None:
    """So that silence means something."""
    seen = set[str]()
    known = set[str]()
    for seed in (2, 5):
        async with history(WAYS["retract"], seed, Random(seed)) as scene:
            told = await told_by_all(scene)
            seen |= telling(told, scene)
            known |= told.keys()
    assert known - seen == SILENT


def test_the_table_of_the_docs_says_the_same() -> None:
    page = (Path(__file__).parents[2] / "docs" / "erasing.md").read_text(encoding="utf-8")
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in page.splitlines() if line.startswith("|")]
    head = next(row for row in rows if row[1:] == list(COLUMNS))
    documented = {row[0]: row[1:] for row in rows[rows.index(head) + 2 :][: len(WAYS)]}
    assert documented == {
        name: ["stays" if sources & way.may_tell else "-" for sources in COLUMNS.values()] for name, way in WAYS.items()
    }
