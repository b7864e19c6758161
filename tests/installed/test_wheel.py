"""The wheel holds everything and works away from the checkout."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path
from typing import get_args

import pytest

from reactor_memory.text.documents import Page
from tests.installed.conftest import CHECKOUT, Run

IMPORT_EVERYTHING = """
import importlib, json, pkgutil
import reactor_memory
from reactor_memory.settings.settings import Settings

for module in pkgutil.walk_packages(reactor_memory.__path__, "reactor_memory."):
    if "_migrations" not in module.name and not module.name.endswith("__main__"):
        importlib.import_module(module.name)
print(json.dumps({"file": reactor_memory.__file__, "url": Settings().store.url}))
"""

MIGRATE_SAVE_AND_LOAD = """
import anyio
from reactor_memory import Message, open_container

async def main():
    async with open_container() as container:
        manager = container.conversation_manager()
        await manager.save_history("s1", [Message.user("hello")])
        print((await manager.load_history("s1")).messages[0].content)

anyio.run(main)
"""


def files_below(folder: Path, prefix: str) -> set[str]:
    return {
        f"{prefix}/{path.relative_to(folder).as_posix()}"
        for path in folder.rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }


@pytest.mark.slow
def test_wheel_holds_package_migrations_pages_of_messages_and_nothing_else(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        names = {name for name in archive.namelist() if ".dist-info/" not in name}
    package = files_below(CHECKOUT / "reactor_memory", "reactor_memory")
    migrations = files_below(CHECKOUT / "migrations", "reactor_memory/_migrations")
    pages = {f"reactor_memory/_docs/{name}.md" for name in get_args(Page)}
    assert names == package | migrations | pages
    assert "reactor_memory/py.typed" in names
    assert "reactor_memory/_migrations/env.py" in names
    assert any(name.startswith("reactor_memory/_migrations/versions/") for name in names)


@pytest.mark.slow
def test_every_module_imports_away_from_the_checkout(site: Path, run_python: Run) -> None:
    done = run_python([site], "-c", IMPORT_EVERYTHING)
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert Path(told["file"]).is_relative_to(site)
    assert told["url"] == "sqlite:///reactor-memory.db"


@pytest.mark.slow
def test_new_database_is_migrated_and_used_away_from_the_checkout(site: Path, run_python: Run, tmp_path: Path) -> None:
    done = run_python([site], "-c", MIGRATE_SAVE_AND_LOAD)
    assert (done.returncode, done.stdout) == (0, "hello\n"), done.stderr
    assert (tmp_path / "reactor-memory.db").is_file()
