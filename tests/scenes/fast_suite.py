"""What belongs to the fast suite beyond what is marked: `make test` leaves out what is slow (CONTRIBUTING.md).

Of a table of cases that several stores run, SQLite runs all rows. Every other store runs the same code of the library,
and its own for each statement: one row shows that, and the rest is in the long proofs. So is what a test runs in memory
beside a file: most tests that name no store are in memory, and so are all rules for stores.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path

import pytest

STORES = ("memory", "sqlite", "postgres")
CONFORMANCE = "tests/conformance/"

_SLOW_MODULE = re.compile(r"^pytestmark = .*\bpytest\.mark\.slow\b", re.MULTILINE)


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """A module of slow tests alone is not even imported where none of them is asked for."""
    if collection_path.suffix != ".py" or "not slow" not in config.option.markexpr:
        return None
    is_named = any(Path(argument.partition("::")[0]).name == collection_path.name for argument in config.args)
    return True if not is_named and is_slow(collection_path.read_text(encoding="utf-8")) else None


def is_slow(module: str) -> bool:
    return _SLOW_MODULE.search(module) is not None


@pytest.hookimpl(tryfirst=True)  # before slow tests are left out
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in repeated(item for item in items if isinstance(item, pytest.Function) and "slow" not in item.keywords):
        item.add_marker(pytest.mark.slow)


def repeated(items: Iterable[pytest.Function]) -> list[pytest.Function]:
    """Of each test that SQLite runs as well, all rows but the first of every other store, and all in memory."""
    tests: defaultdict[str, defaultdict[str, list[pytest.Function]]] = defaultdict(lambda: defaultdict(list))
    for item in items:
        store = store_of(item)
        if store is not None:
            tests[f"{item.function.__module__}.{item.function.__qualname__}"][store].append(item)
    return [
        item
        for stores in tests.values()
        for store, rows in stores.items()
        if any(map(_is_sqlite, stores)) and not _is_sqlite(store)
        for item in (rows if store == "memory" else rows[1:])
    ]


def store_of(item: pytest.Function) -> str | None:
    """The store that a parameter names; in the suites for stores, the class that makes one."""
    given = [] if getattr(item, "callspec", None) is None else list(item.callspec.params.values())
    named = [value for value in given if isinstance(value, str) and value in STORES]
    if named:
        return named[0]
    in_suite = item.nodeid.startswith(CONFORMANCE) and item.cls is not None
    return f"{item.path.name} {item.cls.__name__}" if in_suite else None


def _is_sqlite(store: str) -> bool:
    return store == "sqlite" or store.startswith("test_sqlite.py TestSqlite")
