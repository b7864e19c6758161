"""Every regular expression of the package, with the methods that it is used with, and how its time grows."""

from __future__ import annotations

import ast
import importlib
import re
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache
from typing import Any, NamedTuple

from tests.house.near_matches import NearMatch, near_matches
from tests.house.picture import PACKAGE

EVERYWHERE = ("search", "finditer", "findall", "split", "sub", "subn")
"""Methods that try a pattern at each place of a text; they count as one, ``search``."""
METHODS = ("match", "fullmatch", *EVERYWHERE)

SIZE = 2_000
MOST_GROWTH = 8
"""Four times the text takes four times as long, and sixteen times if the time is quadratic."""
QUICK_SECONDS = 0.0007
"""A text of `SIZE` that takes less is no sign: at half a nanosecond a step, quadratic time is more."""
GROWING = (16, 18, 20, 22, 24, 28, 60, 120, 250, 500, 1_000)
"""Sizes that are tried before, so that exponential time, and that of a high power, is found while it is short."""
ENDLESS_SECONDS = 0.05


_MENTIONED = re.compile(rf"\bimport re\b|\bpattern=|\b_?[A-Z][A-Z_0-9]*\.(?:{'|'.join(METHODS)})\(")


class Use(NamedTuple):
    """A pattern as one method uses it."""

    where: str
    pattern: re.Pattern[Any]
    method: str


class Slow(NamedTuple):
    use: Use
    text: NearMatch
    growth: float

    def __str__(self) -> str:
        head, unit, tail = self.text
        return (
            f"{self.use.where}: {self.use.method} of {self.use.pattern.pattern!r:.100} on {head!r:.60} +"
            f" {unit!r:.60} * n + {tail!r} takes {self.growth:.1f} times as long for 4 times the text"
        )


class Made(NamedTuple):
    """A pattern that the source makes, in a function or in none (""). Where only the run tells it, it is None."""

    module: str
    function: str
    method: str
    pattern: re.Pattern[Any] | None


@cache
def uses() -> list[Use]:
    """Every pattern with every method that it is used with, one in a table with those that its module calls at all."""
    found: dict[tuple[str | bytes, int, str], Use] = {}
    for where, pattern, method in (*_of_constants(), *_of_calls()):
        kind = "search" if method in EVERYWHERE else method
        found.setdefault((pattern.pattern, pattern.flags, kind), Use(where, pattern, kind))
    return list(found.values())


def _of_constants() -> Iterator[Use]:
    called = _called()
    for module, name, pattern in constants():
        own = {method for of, each, method in called if each == name and (of == module or not name.startswith("_"))}
        others = {method for of, each, method in called if of == module and each != "re" and not each.isupper()}
        for method in own or others or {"search"}:
            yield Use(f"{module}.{name}", pattern, method)


def _of_calls() -> Iterator[Use]:
    for module, function, method, pattern in made():
        if pattern is not None and (function or method != "compile"):
            yield Use(f"{module}.{function}", pattern, "search" if method == "compile" else method)


def constants() -> Iterator[tuple[str, str, re.Pattern[Any]]]:
    """The module and name of each pattern that a module holds, also in a table."""
    for name, tree in _modules():
        for each in {target for node in tree.body for target in _targets(node)} if _makes_patterns(tree) else ():
            for pattern in _patterns_in(_names_in(name).get(each)):
                yield name, each, pattern


@cache
def made() -> Sequence[Made]:
    """Calls of `re`, and `pattern=` of a schema, which is searched for."""
    return [
        Made(name, function, method, _evaluated(pattern, flags, name))
        for name, tree in _modules()
        for function, method, pattern, flags in _expressions(tree, "")
    ]


@cache
def _modules() -> Sequence[tuple[str, ast.Module]]:
    """Those that may make a pattern or use one."""
    found: list[tuple[str, ast.Module]] = []
    for path in sorted(PACKAGE.rglob("*.py")):
        source = path.read_text(encoding="utf-8")
        if _MENTIONED.search(source):
            name = ".".join((PACKAGE.name, *path.relative_to(PACKAGE).with_suffix("").parts))
            found.append((name.removesuffix(".__init__"), ast.parse(source)))
    return found


@cache
def _names_in(module: str) -> Mapping[str, Any]:
    """Only `re` where a framework is missing that has an environment of its own."""
    if module.endswith("__main__"):
        return {"re": re}
    try:
        return vars(importlib.import_module(module))
    except ImportError:
        return {"re": re}


def _makes_patterns(tree: ast.Module) -> bool:
    return any(isinstance(node, ast.Import) and any(name.name == "re" for name in node.names) for node in tree.body)


def _targets(node: ast.stmt) -> Iterator[str]:
    targets = node.targets if isinstance(node, ast.Assign) else [node.target] if isinstance(node, ast.AnnAssign) else []
    yield from (target.id for target in targets if isinstance(target, ast.Name))


def _patterns_in(value: object) -> Iterator[re.Pattern[Any]]:
    if isinstance(value, re.Pattern):
        yield value
    elif isinstance(value, Mapping | tuple | list):
        for each in value.values() if isinstance(value, Mapping) else value:
            yield from _patterns_in(each)


def _expressions(node: ast.AST, function: str) -> Iterator[tuple[str, str, ast.expr, list[ast.expr]]]:
    """The function, the method, and the expressions of the pattern and its flags."""
    for child in ast.iter_child_nodes(node):
        inner = child.name if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef) else function
        if isinstance(child, ast.Call):
            named = {keyword.arg: keyword.value for keyword in child.keywords}
            if _owner(child.func) == "re" and isinstance(child.func, ast.Attribute) and child.args:
                if child.func.attr in ("compile", *METHODS):
                    flags = child.args[1:2] if child.func.attr == "compile" else []
                    flags = [*flags, *(value for name, value in named.items() if name == "flags")]
                    yield inner, child.func.attr, child.args[0], flags
            elif "pattern" in named:
                yield inner, "search", named["pattern"], []
        yield from _expressions(child, inner)


def _owner(called: ast.expr) -> str:
    """``_WORD`` of ``_WORD.match`` and of ``lexicon._WORD.match``."""
    owner = called.value if isinstance(called, ast.Attribute) else None
    return owner.id if isinstance(owner, ast.Name) else owner.attr if isinstance(owner, ast.Attribute) else ""


def _evaluated(pattern: ast.expr, flags: list[ast.expr], module: str) -> re.Pattern[Any] | None:
    names = {"re": re} if isinstance(pattern, ast.Constant) else _names_in(module)
    try:
        text, *flag = (eval(compile(ast.Expression(each), "", "eval"), dict(names)) for each in (pattern, *flags))
    except NameError:
        return None
    return re.compile(text, *flag)


@cache
def _called() -> set[tuple[str, str, str]]:
    """A module, a name in it, and a method that it calls on it. Where a match begins at a place, all are tried."""
    found: set[tuple[str, str, str]] = set()
    for name, tree in _modules():
        for node in ast.walk(tree):
            if isinstance(node, ast.Attribute) and node.attr in METHODS:
                found.add((name, _owner(node), node.attr))
            called = node.func if isinstance(node, ast.Call) and len(node.args) > 1 else None
            if isinstance(called, ast.Attribute) and called.attr in METHODS[:2]:
                found.add((name, _owner(called), "search"))
    return found


def slow_texts(use: Use, texts: Iterable[NearMatch]) -> Iterator[Slow]:
    """The texts whose time grows faster than they do."""
    for text in texts:
        growth = _growth(use, text)
        if growth > MOST_GROWTH and (again := _growth(use, text)) > MOST_GROWTH:  # not by accident
            yield Slow(use, text, min(growth, again))


def _growth(use: Use, text: NearMatch) -> float:
    """By processor time."""
    seconds, most = 0.0, ENDLESS_SECONDS * len(text.unit) ** 0.5  # as much longer as the texts are
    for size in (*GROWING, SIZE):
        if (seconds := seconds_of(use, text, size)) > most:
            return float("inf")
    if seconds < QUICK_SECONDS:
        return 0.0
    size = SIZE // 2 if seconds > 5 * QUICK_SECONDS else SIZE
    small = min(seconds_of(use, text, size) for _ in range(3))
    return seconds_of(use, text, 4 * size) / small if small > QUICK_SECONDS else 0.0


def seconds_of(use: Use, text: NearMatch, size: int) -> float:
    """What one use takes of the processor. Texts of a longer unit are longer: they have fewer places to begin at."""
    written = text.of(round(size * len(text.unit) ** 0.5))
    given = written.encode("latin-1", "replace") if isinstance(use.pattern.pattern, bytes) else written
    run: Callable[[Any], object] = getattr(use.pattern, "sub" if use.method == "search" else use.method)
    begin = time.thread_time()
    run("" if isinstance(given, str) else b"", given) if use.method == "search" else run(given)  # type: ignore[call-arg]
    return time.thread_time() - begin


def texts_for(use: Use, *, most: int) -> list[NearMatch]:
    """Near matches; of more than `most` some from everywhere, those that are tried with any pattern among them."""
    found = near_matches(use.pattern)
    return found[:: -(-len(found) // most)]
