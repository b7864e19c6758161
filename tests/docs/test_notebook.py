"""The notebook runs, cell by cell, as in a notebook: with await at the top, and the last value of a cell shown."""

from __future__ import annotations

import ast
import inspect
import json
from pathlib import Path
from typing import Any

import pytest

NOTEBOOK = Path(__file__).parents[2] / "examples" / "growing_contexts.ipynb"


async def shown(source: str, names: dict[str, Any]) -> Any:
    """The value of the last expression of a cell."""
    tree = ast.parse(source)
    last = tree.body.pop() if isinstance(tree.body[-1], ast.Expr) else None
    ran = eval(compile(tree, "cell", "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT), names)
    if inspect.iscoroutine(ran):
        await ran
    return None if last is None else eval(compile(ast.Expression(last.value), "cell", "eval"), names)


@pytest.mark.anyio
@pytest.mark.slow
async def test_the_notebook_runs_and_keeps_the_first_turn(capsys: pytest.CaptureFixture[str]) -> None:
    cells = json.loads(NOTEBOOK.read_text(encoding="utf-8"))["cells"]
    assert all(not cell.get("outputs") for cell in cells)
    names: dict[str, Any] = {"__name__": "__main__"}
    values = [await shown("".join(cell["source"]), names) for cell in cells if cell["cell_type"] == "code"]
    printed = capsys.readouterr().out
    assert "after 200 turns the context holds the number: True; it did after every turn: True" in printed
    assert "A-1042" in printed.partition("[facts]")[2]
    drawn = values[1]._repr_svg_()
    assert drawn.count("<rect") == 200 * 4
    assert max(sum(tokens.values()) for tokens in names["sizes"]) <= names["BUDGET"]
