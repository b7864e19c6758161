"""The module for those who write plug-ins: all of it is documented, and they import nothing else of the inside."""

from __future__ import annotations

import ast
import inspect
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from reactor_memory import extend
from tests.house.picture import CHECKOUT
from tests.scenes.tables import each_row

PAGE = CHECKOUT / "docs" / "extending.md"
PUBLIC = {"reactor_memory", "reactor_memory.extend", "reactor_memory.testing"}
PLUGINS = [*sorted((CHECKOUT / "tests" / "sample_plugin").rglob("*.py")), PAGE, CHECKOUT / "docs" / "chat-server.md"]


def test_type_checkers_and_programs_see_the_same_names() -> None:
    (block,) = [node for node in ast.parse(inspect.getsource(extend)).body if isinstance(node, ast.If)]
    seen: dict[str, str] = {}
    for node in block.body:
        assert isinstance(node, ast.ImportFrom)
        seen |= {alias.name: node.module or "" for alias in node.names}
        assert all(alias.asname == alias.name for alias in node.names)
    assert sorted(seen) == dir(extend)
    for name, module in seen.items():
        assert getattr(extend, name) is getattr(sys.modules[module], name)


def test_a_name_that_there_is_not_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="has no attribute 'Plugins'"):
        extend.Plugins  # type: ignore[attr-defined]  # noqa: B018  # pyright: ignore[reportAttributeAccessIssue]


@each_row("name", dir(extend))
def test_every_name_is_documented(name: str) -> None:
    listed = PAGE.read_text(encoding="utf-8").partition("## All names")[2]
    assert f"`{name}`" in listed
    thing = getattr(extend, name)
    if inspect.isclass(thing) or inspect.isfunction(thing):
        assert thing.__doc__


def test_the_page_lists_no_name_that_there_is_not() -> None:
    listed = PAGE.read_text(encoding="utf-8").partition("| for | names |")[2]
    assert sorted(re.findall(r"`(\w+)`", listed)) == dir(extend)


@pytest.mark.parametrize("path", PLUGINS, ids=lambda path: str(path.relative_to(CHECKOUT)))
def test_plug_ins_import_nothing_inner(path: Path) -> None:
    assert {module for module in imported(path) if module.startswith("reactor_memory")} <= PUBLIC


def imported(path: Path) -> Iterator[str]:
    text = path.read_text(encoding="utf-8")
    blocks = re.findall(r"```python\n(.*?)```", text, re.DOTALL) if path.suffix == ".md" else [text]
    for node in [each for block in blocks for each in ast.walk(ast.parse(block))]:
        if isinstance(node, ast.ImportFrom):
            yield node.module or ""
        elif isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)


def test_announcing_a_plug_in_imports_little() -> None:
    code = (
        "import sys; from reactor_memory.extend import Given, Plugin\n"
        "heavy = {'reactor_memory.memory', 'reactor_memory.wiring.container', 'litestar', 'click', 'rich'}\n"
        "sys.exit(', '.join(heavy & set(sys.modules)) or 0)"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=CHECKOUT, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
