"""Of a table that several stores run, one store runs all rows in the fast suite; what costs too much is named."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

from tests.scenes.fast_suite import is_slow, repeated, store_of
from tests.scenes.processor_time import TEST_SECONDS, processor_seconds, told
from tests.scenes.tables import each_row


def cell(store: str, row: int, name: str = "test") -> Any:
    """A row of a test with a parameter for the store."""
    function = SimpleNamespace(__module__="tests.some", __qualname__=name)
    return SimpleNamespace(function=function, callspec=SimpleNamespace(params={"url": store, "row": row}), cls=None)


def suite_cell(module: str, name: str, row: int) -> Any:
    """A row of a rule for stores."""
    function = SimpleNamespace(__module__="reactor_memory.testing.log", __qualname__="LogRules.test")
    given = SimpleNamespace(params={"row": row})
    path = Path("tests/conformance") / module
    return SimpleNamespace(function=function, callspec=given, cls=type(name, (), {}), path=path, nodeid=str(path))


def test_postgres_runs_one_row_and_memory_none_beside_sqlite() -> None:
    cells = [cell(store, row) for row in range(3) for store in ("memory", "sqlite", "postgres")]
    slow = [(each.callspec.params["url"], each.callspec.params["row"]) for each in repeated(cells)]
    assert sorted(slow) == [*(("memory", row) for row in range(3)), ("postgres", 1), ("postgres", 2)]


def test_each_class_of_the_suites_runs_each_rule() -> None:
    homes = (
        ("test_sqlite.py", "TestSqliteLog"),
        ("test_sqlite.py", "TestInlineLoads"),
        ("test_postgres.py", "TestLog"),
    )
    cells = [suite_cell(*home, row) for row in range(2) for home in homes]
    slow = [(each.cls.__name__, each.callspec.params["row"]) for each in repeated(cells)]
    assert sorted(slow) == [("TestInlineLoads", 1), ("TestLog", 1)]


def test_what_sqlite_does_not_run_keeps_its_rows() -> None:
    assert repeated([cell("postgres", row) for row in range(3)] + [cell("sqlite", 0, "another")]) == []


def test_a_test_of_no_store_keeps_its_rows() -> None:
    assert store_of(SimpleNamespace(callspec=None, nodeid="tests/text/test_words.py", cls=None)) is None  # type: ignore[arg-type]


@each_row(
    ("text", "expected"),
    [
        ("pytestmark = pytest.mark.slow\n", True),
        ('"""Doc."""\n\npytestmark = [pytest.mark.anyio, pytest.mark.slow]\n', True),
        ("pytestmark = pytest.mark.anyio\n", False),
        ("@pytest.mark.slow\ndef test() -> None: ...\n", False),
    ],
)
def test_a_module_that_says_so_is_slow_as_a_whole(text: str, expected: bool) -> None:
    assert is_slow(text) is expected


def test_the_sum_is_told_and_what_takes_too_much() -> None:
    lines = list(told({"cheap": 0.1, "dear": TEST_SECONDS + 0.5, "dearer": TEST_SECONDS + 1}, 200.4))
    assert lines[0].startswith("200 s of processor time")
    assert [line.split()[2] for line in lines[1:]] == ["dearer:", "dear:"]


def test_time_of_this_process_is_counted() -> None:
    began = processor_seconds()
    sum(range(300_000))
    assert processor_seconds() > began
