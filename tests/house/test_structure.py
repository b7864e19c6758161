"""The structure of the package: directions, circles, names. Sizes are reported by `make house`, not judged."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tomllib
from collections import Counter
from collections.abc import Callable, Iterable
from pathlib import Path

import pytest

from reactor_memory import __version__
from tests.house.picture import CHECKOUT, PACKAGE, PAGE, arrows, diagram, floor_of, imports, rooms

OF_EVERY_ROOM = {"__init__", "operations", "hooks", "wiring", "models", "settings"}

SAVE_AND_LOAD = """
import asyncio, json, sys
from reactor_memory import Settings, open_memory

async def turn(url):
    async with open_memory(Settings(store={"url": url})) as memory:
        await memory.save_history("session", ["What was my order number?"])
        await memory.load_history("session", message="Well?")

asyncio.run(turn(sys.argv[1]))
own = [module.__file__ for name, module in sys.modules.items() if name.startswith("reactor_memory")]
print(json.dumps([path for path in own if path]))
"""


def test_each_room_lies_on_a_floor() -> None:
    assert {floor_of(room) for room in rooms()} == set(range(11))


def test_no_arrow_runs_up_or_in_a_circle() -> None:
    assert [(room, other) for room, other in arrows() if floor_of(room) > floor_of(other)] == []
    assert {room for room in rooms() if room in below(room)} == set()


def below(room: str) -> set[str]:
    """The rooms that arrows lead to from `room`, over others, too."""
    return reached(room, lambda here: {other for start, other in arrows() if start == here})


def reached(start: str, following: Callable[[str], Iterable[str]]) -> set[str]:
    found, waiting = set[str](), [start]
    while waiting:
        new = set(following(waiting.pop())) - found
        found |= new
        waiting += new
    return found


def test_no_files_import_each_other_in_a_circle() -> None:
    """Imports for type checkers and inside of functions count, too."""
    imported = imports(everywhere=True)
    assert {name for name in imported if name in reached(name, lambda here: imported[here])} == set()


def test_the_package_and_the_project_have_one_version() -> None:
    project = tomllib.loads((CHECKOUT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert project["version"] == __version__


def test_features_know_each_other_by_few_arrows() -> None:
    """What else they have to do with each other is in the hooks of the log."""
    known = {(room.split(".")[1], other.split(".")[1]) for room, other in arrows() if is_feature(room, other)}
    assert known == MAY_KNOW


def is_feature(*names: str) -> bool:
    return all(name.startswith("features.") for name in names)


MAY_KNOW = {
    *((name, "entries") for name in ("facts", "notes", "pins", "posted_summaries", "tiers", "transfer")),
    *(
        (name, "facts")
        for name in ("explain", "notes", "pins", "posted_summaries", "recall", "record_store", "sharing", "tiers")
    ),
    *((name, "redaction") for name in ("facts", "recall", "search")),
    ("search", "recall"),
    ("responses", "sharing"),
    ("sharing", "posted_summaries"),
    ("retention", "erasure"),
    ("archiving", "posted_summaries"),
    # what is made of others: a chat, the chat memory, a copy of everything
    *(("chat", name) for name in ("facts", "pins", "tiers")),
    *(("chat_memory", name) for name in ("erasure", "tiers")),
    *(("transfer", name) for name in ("active_sessions", "facts", "items")),
    *(("transfer", name) for name in ("sharing",)),
}


@pytest.mark.slow
def test_a_load_imports_nothing_of_a_report_that_nobody_reads(tmp_path: Path) -> None:
    """Nor of turns that have to be cut, nor of histories that are the caller's."""
    of_contexts = {path.stem for path in imported_by_a_save_and_a_load(tmp_path) if path.parent.name == "context"}
    assert {"budget", "context"} <= of_contexts
    assert of_contexts & {"report", "report_entries", "turn_clamp", "own_history", "verification"} == set()


def imported_by_a_save_and_a_load(folder: Path) -> list[Path]:
    """The modules of the package, in a folder without a file of settings."""
    command = [sys.executable, "-c", SAVE_AND_LOAD, f"sqlite:///{folder / 'memory.db'}"]
    environment = {"PATH": "", "PYTHONPATH": str(CHECKOUT)}
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, check=True, timeout=60)
    return [Path(path) for path in json.loads(done.stdout)]


def test_a_process_without_a_file_of_settings_imports_no_yaml(tmp_path: Path) -> None:
    code = "import sys; from reactor_memory import Settings; Settings(); sys.exit('yaml' in sys.modules)"
    environment = {"PATH": "", "PYTHONPATH": str(CHECKOUT)}
    subprocess.run([sys.executable, "-c", code], cwd=tmp_path, env=environment, check=True, timeout=60)


def test_code_of_contexts_names_nothing_that_features_bring() -> None:
    """It knows blocks. What a posted summary is, is a property of a message."""
    named = [
        f"{path.name}:{number}: {line.strip()}"
        for path in (PACKAGE / "core" / "context").glob("*.py")
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1)
        if OF_FEATURES.search(line)
    ]
    assert named == []


OF_FEATURES = re.compile(
    r"(?i)(?<![a-z])(pin(s|ned)?|notes?|facts?|narratives?|compressed|condensed|recall(ed|s)?|tiers?)(?![a-z])"
)


def test_name_of_a_module_says_in_which_room_it_is() -> None:
    names = Counter(path.stem for path in PACKAGE.rglob("*.py") if path.stem not in OF_EVERY_ROOM)
    assert {name for name, count in names.items() if count > 2} == set()
    assert names.keys() & SAYING_NOTHING == set()


SAYING_NOTHING = {"service", "utils", "helpers", "common", "base", "impl"}


def test_the_page_shows_the_picture() -> None:
    """If not: replace it by what ``python -m tests.house.picture`` prints."""
    assert diagram() in PAGE.read_text(encoding="utf-8")
