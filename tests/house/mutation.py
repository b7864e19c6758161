"""Where a mutant of `mutants.toml` stands in the source, and the text of that file with the guard removed.

Python is found by the name of a function, a method or a constant, and changed as a tree, so that neither a move to
another file nor another layout matters; of several functions of a name it is the one that can be changed so. SQL is
found by the name of its statement.
"""

from __future__ import annotations

import ast
import re
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache, partial
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias, TypeVar, cast

SOURCES = ("reactor_memory", "migrations")
_SQL_HEADER = re.compile(r"^-- (?:name|part): (.+)$", re.MULTILINE)
_SIMPLE = (ast.Expr, ast.Assign, ast.AnnAssign, ast.AugAssign, ast.Return, ast.Raise, ast.Delete)

T = TypeVar("T")
Edits: TypeAlias = Iterator[Callable[[], None]]
"""The places that a change may mean, each as what makes the change there."""


class PlaceError(Exception):
    """A mutant does not name exactly one place."""


class Mutant(NamedTuple):
    """A guard, the function, constant or statement that it stands in, the change that removes it, and the tests that
    must notice.
    """

    guard: str
    at: str
    kind: str
    what: str
    to: str
    tests: str


class _Slot(NamedTuple):
    """Where a node hangs in a tree."""

    node: Any
    owner: ast.AST
    field: str
    position: int | None

    def put(self, node: ast.AST) -> None:
        if self.position is None:
            setattr(self.owner, self.field, node)
        else:
            getattr(self.owner, self.field)[self.position] = node

    def take(self) -> None:
        del getattr(self.owner, self.field)[self.position]


def read(table: Path) -> list[Mutant]:
    """The mutants of the table. Raises `PlaceError`."""
    return [mutant_of(row) for row in tomllib.loads(table.read_text(encoding="utf-8"))["mutant"]]


def mutant_of(row: Mapping[str, str]) -> Mutant:
    """A mutant from a row of the table. Raises `PlaceError` unless it has the keys that it needs, and no others."""
    kinds = row.keys() - {"guard", "at", "to", "tests"}
    if len(kinds) != 1 or not kinds <= PYTHON.keys() | SQL or not row.keys() >= {"guard", "at", "tests"}:
        raise PlaceError(f"needs guard, at, tests, one change and perhaps to; has {sorted(row)}")
    kind = kinds.pop()
    return Mutant(row["guard"], row["at"], kind, row[kind], row.get("to", ""), row["tests"])


def mutated(mutant: Mutant, root: Path) -> tuple[Path, str]:
    """The file, below the checkout `root`, and its text without the guard. Raises `PlaceError`."""
    return _mutated_sql(mutant, root) if mutant.kind in SQL else _mutated_python(mutant, root)


def _mutated_python(mutant: Mutant, root: Path) -> tuple[Path, str]:
    files = _files_with(mutant.at.rpartition(".")[2], root)
    trees = {file: ast.parse(file.read_text(encoding="utf-8")) for file in files}
    places = [(file, place) for file, tree in trees.items() for name, place in _named(tree) if name == mutant.at]
    edits = [(file, edit) for file, at in places for edit in PYTHON[mutant.kind](at, mutant.what, mutant.to)]
    file, edit = _only(edits, f"{len(places)} of {mutant.at}, {len(edits)} places to {mutant.kind} {mutant.what!r}")
    edit()
    return file, ast.unparse(trees[file]) + "\n"


def _mutated_sql(mutant: Mutant, root: Path) -> tuple[Path, str]:
    blocks = _statements(root).get(mutant.at, ())
    file, start, end = _only(blocks, f"{len(blocks)} statements {mutant.at}")
    text = file.read_text(encoding="utf-8")
    fragment = re.compile(r"\s+".join(map(re.escape, mutant.what.split())))
    found = list(fragment.finditer(text, start, end))
    match = _only(found, f"{len(found)} places in {mutant.at} to {mutant.kind} {mutant.what!r}")
    return file, text[: match.start()] + mutant.to + text[match.end() :]


def _only(found: Sequence[T], fault: str) -> T:
    if len(found) != 1:
        raise PlaceError(fault)
    return found[0]


# -- finding ----------------------------------------------------------------------------------------------------------


def _files_with(name: str, root: Path) -> list[Path]:
    """The files that may define the name."""
    definition = re.compile(rf"^ *((async )?def {name}\(|{name}(: .+)? = )", re.MULTILINE)
    return [file for file, text in _texts(root, "py").items() if name in text and definition.search(text)]


@cache
def _statements(root: Path) -> dict[str, list[tuple[Path, int, int]]]:
    statements: dict[str, list[tuple[Path, int, int]]] = {}
    for file, text in _texts(root, "sql").items():
        headers = list(_SQL_HEADER.finditer(text))
        ends = [*(header.start() for header in headers), len(text)][1:]
        for header, end in zip(headers, ends, strict=True):
            statements.setdefault(header[1].strip(), []).append((file, header.end(), end))
    return statements


@cache
def _texts(root: Path, suffix: str) -> dict[Path, str]:
    files = [file for folder in SOURCES for file in sorted((root / folder).rglob(f"*.{suffix}"))]
    return {file: file.read_text(encoding="utf-8") for file in files}


def _named(owner: ast.AST, prefix: str = "") -> Iterator[tuple[str, ast.AST]]:
    """Functions and methods by their dotted names, also those inside functions; constants of modules and classes."""
    for node in ast.iter_child_nodes(owner):
        if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            if not isinstance(node, ast.ClassDef):
                yield prefix + node.name, node
            yield from _named(node, f"{prefix}{node.name}.")
        elif isinstance(node, ast.Assign | ast.AnnAssign) and isinstance(owner, ast.Module | ast.ClassDef):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            yield from ((prefix + target.id, node) for target in targets if isinstance(target, ast.Name))


def _slots(tree: ast.AST) -> Iterator[_Slot]:
    for owner in ast.walk(tree):
        for field, value in ast.iter_fields(owner):
            if isinstance(value, ast.AST):
                yield _Slot(value, owner, field, None)
            elif isinstance(value, list):
                nodes = enumerate(cast("list[object]", value))
                yield from (_Slot(each, owner, field, n) for n, each in nodes if isinstance(each, ast.AST))


def _mentions(node: ast.AST, words: str) -> bool:
    """Whether each of the words is a name or a text in the node."""
    said = {getattr(each, field, None) for each in ast.walk(node) for field in ("id", "attr", "arg")}
    said |= {each.value for each in ast.walk(node) if isinstance(each, ast.Constant) and isinstance(each.value, str)}
    return said.issuperset(words.split())


# -- changes: each yields what can be changed so in `place`, where one is expected ------------------------------------


def _drop(place: ast.AST, words: str, _: str) -> Edits:
    """A statement that mentions the words is not made."""
    for slot in _slots(place):
        if isinstance(slot.node, _SIMPLE) and _mentions(slot.node, words):
            yields = any(isinstance(each, ast.Yield | ast.YieldFrom) for each in ast.walk(slot.node))
            yield partial(slot.put, _statement("yield from ()" if yields else "pass"))


def _decide(place: ast.AST, words: str, _: str, *, outcome: bool) -> Edits:
    """A condition that mentions the words always has this outcome."""
    for slot in _slots(place):
        if slot.field in ("test", "ifs") and _mentions(slot.node, words):
            yield partial(slot.put, ast.Constant(outcome))


def _leave_out(place: ast.AST, words: str, _: str) -> Edits:
    """An operand of `and` or `or` that mentions the words is not there."""
    for slot in _slots(place):
        if isinstance(slot.owner, ast.BoolOp) and slot.field == "values" and _mentions(slot.node, words):
            yield slot.take


def _unwrap(place: ast.AST, words: str, _: str) -> Edits:
    """In place of a call stands its first argument; the words are in what is called."""
    for slot in _slots(place):
        if isinstance(slot.node, ast.Call) and slot.node.args and _mentions(slot.node.func, words):
            yield partial(slot.put, slot.node.args[0])


def _unguard(place: ast.AST, words: str, _: str) -> Edits:
    """A context manager that mentions the words is not entered."""
    for slot in _slots(place):
        if isinstance(slot.node, ast.withitem) and _mentions(slot.node, words):
            yield partial(slot.put, ast.withitem(_expression("__import__('contextlib').nullcontext()")))


def _uncaught(place: ast.AST, words: str, _: str) -> Edits:
    """A handler for exceptions of these names catches another one, which nothing raises."""
    for slot in _slots(place):
        if isinstance(slot.owner, ast.ExceptHandler) and slot.field == "type" and _mentions(slot.node, words):
            yield partial(slot.put, _expression("FloatingPointError"))


def _returns(place: ast.AST, constant: str, _: str) -> Edits:
    """The function returns this, and nothing else is done."""
    if isinstance(place, ast.FunctionDef | ast.AsyncFunctionDef):
        yield partial(setattr, place, "body", [ast.Return(_expression(constant))])


def _change(place: ast.AST, expression: str, to: str) -> Edits:
    """In place of the expression stands another one."""
    wanted = ast.dump(_expression(expression))
    for slot in _slots(place):
        if isinstance(slot.node, ast.expr) and ast.dump(slot.node) == wanted:
            yield partial(slot.put, _expression(to))


def _expression(text: str) -> ast.expr:
    return ast.parse(text, mode="eval").body


def _statement(text: str) -> ast.stmt:
    return ast.parse(text).body[0]


PYTHON: Mapping[str, Callable[[ast.AST, str, str], Edits]] = {
    "drop": _drop,
    "always": partial(_decide, outcome=True),
    "never": partial(_decide, outcome=False),
    "leave_out": _leave_out,
    "unwrap": _unwrap,
    "unguard": _unguard,
    "uncaught": _uncaught,
    "returns": _returns,
    "change": _change,
}
SQL = {"fragment"}
"""A fragment of a statement, however its lines are broken, is not there or, with `to`, another one."""
