"""The structure of the package gets no worse. Where a number went down, lower it here."""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from tests.house.picture import CHECKOUT, PACKAGE, PAGE, arrows, diagram, floor_of, imports, rooms

OF_EVERY_ROOM = {"__init__", "operations", "wiring", "models", "settings"}

SAVE_AND_LOAD = """
import asyncio, json, sys
from reactor_memory import Settings, open_memory

async def turn(url, enabled):
    async with open_memory(Settings(store={"url": url}, summary={"enabled": enabled})) as memory:
        await memory.save_history("session", ["What was my order number?"])
        await memory.load_history("session", message="Well?")

asyncio.run(turn(sys.argv[1], sys.argv[2] == "on"))
own = [module.__file__ for name, module in sys.modules.items() if name.startswith("reactor_memory")]
print(json.dumps([path for path in own if path]))
"""


def lines_of(path: Path) -> int:
    return len(path.read_text(encoding="utf-8").splitlines())


def test_the_rooms_are_few_and_lie_on_ten_floors() -> None:
    assert len(rooms()) <= 37
    assert {floor_of(room) for room in rooms()} == set(range(10))


def test_only_the_core_has_arrows_that_run_up() -> None:
    """Which, module by module, stands in the contract of import-linter: each is a hook or a block to come."""
    upward = [(room, other) for room, other in arrows() if floor_of(room) > floor_of(other)]
    assert {room.split(".")[0] for room, _ in upward} == {"core"}
    of_features = {
        (name, other)
        for name, others in imports().items()
        for other in others
        if name.startswith("core.") and other.startswith("features.")
    }
    assert len(of_features) <= 23


@pytest.mark.parametrize(("summaries", "modules", "lines"), [("off", 144, 23_200), ("on", 151, 24_650)])
def test_what_one_save_and_one_load_import(summaries: str, modules: int, lines: int, tmp_path: Path) -> None:
    command = [sys.executable, "-c", SAVE_AND_LOAD, f"sqlite:///{tmp_path / 'memory.db'}", summaries]
    done = subprocess.run(command, cwd=CHECKOUT, capture_output=True, check=True, timeout=60)
    paths = [Path(path) for path in json.loads(done.stdout)]
    assert len(paths) <= modules
    assert sum(map(lines_of, paths)) <= lines


def test_the_core_is_small_and_no_module_is_long() -> None:
    core = [lines_of(path) for path in (PACKAGE / "core").rglob("*.py")]
    assert sum(core) <= 8_200
    assert max(core) <= 880
    assert max(lines_of(path) for path in PACKAGE.rglob("*.py")) <= 1_560


def test_a_name_of_a_module_says_in_which_room_it_is() -> None:
    names = Counter(path.stem for path in PACKAGE.rglob("*.py") if path.stem not in OF_EVERY_ROOM)
    assert {name for name, count in names.items() if count > 2} <= IN_SEVERAL_ROOMS


IN_SEVERAL_ROOMS = {"conversations", "failures", "memory", "messages", "service", "strategies", "summaries"}


def test_the_page_shows_the_picture() -> None:
    """If not: replace it by what ``python -m tests.house.picture`` prints."""
    assert diagram() in PAGE.read_text(encoding="utf-8")
