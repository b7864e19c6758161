"""The rooms of the package and the arrows between them, read from its imports.

``python -m tests.house.picture`` draws them as the mermaid diagram of docs/architecture.md.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path

CHECKOUT = Path(__file__).parents[2]
PACKAGE = CHECKOUT / "reactor_memory"
PAGE = CHECKOUT / "docs" / "architecture.md"

FLOORS = (
    ("extend",),
    ("cli",),
    ("server", "studio", "adapters", "evaluation", "imports", "testing"),
    ("memory", "sync", "client"),
    ("wiring",),
    ("features",),
    ("background", "providers", "tokens"),
    ("core", "settings"),
    ("database", "forms", "text"),
    ("models",),
    ("errors", "lazy_names", "version"),
)
"""From above. The contract of import-linter (pyproject.toml) has the same."""


@cache
def imports(*, everywhere: bool = False) -> dict[str, frozenset[str]]:
    """Of each module, by its dotted name below the package, the modules that it imports when it is imported.

    `everywhere`: also those that it imports inside of functions and for type checkers.
    """
    modules = {".".join(path.relative_to(PACKAGE).with_suffix("").parts): path for path in PACKAGE.rglob("*.py")}
    return {name: frozenset(_imported(path, modules, everywhere)) for name, path in modules.items()}


def _imported(path: Path, modules: dict[str, Path], everywhere: bool) -> Iterator[str]:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    own_package = ".".join(path.relative_to(PACKAGE).parent.parts)
    for node in ast.walk(tree) if everywhere else _run(tree.body):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("reactor_memory"):
            module = (node.module or "").removeprefix("reactor_memory").lstrip(".")
            for alias in node.names:
                inner = f"{module}.{alias.name}".lstrip(".")
                if inner == own_package:
                    continue  # it is there before its module, which asks it for others when it uses them
                found = next((name for name in (inner, module, f"{module}.__init__") if name in modules), None)
                if found is not None:
                    yield found


def _run(body: list[ast.stmt]) -> Iterator[ast.stmt]:
    """The statements that run at the import: not those for type checkers, nor those inside of functions."""
    for node in body:
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            continue
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            continue
        yield node
        for inner in ("body", "orelse", "finalbody"):
            yield from _run(getattr(node, inner, []))


def room_of(module: str) -> str:
    """The folder below the package; of the core and the features the one below that. The ports are a room, too."""
    parts = module.removesuffix(".__init__").split(".")
    if parts[:2] == ["core", "ports"]:
        return "core.ports"
    return ".".join(parts[:2]) if parts[0] == "features" or (parts[0] == "core" and len(parts) > 2) else parts[0]


@cache
def rooms() -> set[str]:
    return {room_of(module) for module in imports()} - {"__init__", "__main__", "features"}


@cache
def arrows() -> set[tuple[str, str]]:
    found = {(room_of(name), room_of(other)) for name, others in imports().items() for other in others}
    return {(a, b) for a, b in found if a != b and {a, b} <= rooms()}


def floor_of(room: str) -> int:
    return next(number for number, floor in enumerate(FLOORS) if room.split(".")[0] in floor)


def diagram() -> str:
    """The floors with their rooms. An arrow stands between floors, and between features."""
    lines = ["flowchart TB"]
    for number, floor in enumerate(FLOORS):
        inside = sorted(room for room in rooms() if room.split(".")[0] in floor)
        lines.append(f"  subgraph F{number}[ ]")
        lines += [f'    {room.replace(".", "_")}["{room.split(".")[-1]}"]' for room in inside]
        lines.append("  end")
    lines += [f"  F{number} --> F{number + 1}" for number in range(len(FLOORS) - 1)]
    features = sorted((a, b) for a, b in arrows() if a.startswith("features.") and b.startswith("features."))
    lines += [f"  {a.replace('.', '_')} --> {b.replace('.', '_')}" for a, b in features]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    sys.stdout.write(diagram())
