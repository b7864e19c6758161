"""A table of cases as one test, which goes on after a row that fails and names each of them."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Generator, Iterable, Sequence
from contextlib import contextmanager
from functools import wraps
from typing import Any, TypeVar

import pytest

Test = TypeVar("Test", bound=Callable[..., Any])


def each_row(names: str | Sequence[str], rows: Iterable[Any]) -> Callable[[Test], Test]:
    """Like `pytest.mark.parametrize`, but all rows share one test and its fixtures, so that rows must not change what
    the fixtures give. Where it stands above another one, each row of the other is tried with each of its own.
    """
    columns = names.replace(" ", "").split(",") if isinstance(names, str) else list(names)
    table = [dict(zip(columns, row if len(columns) > 1 else (row,), strict=True)) for row in rows]
    if not table:
        raise ValueError(f"the table of {names} has no rows")
    return lambda test: _over(table, test)


def _over(table: list[dict[str, Any]], test: Any) -> Any:
    @wraps(test)
    def run(*args: Any, **fixtures: Any) -> None:
        with _collected() as failures:
            for row in table:
                with _noted(row, failures):
                    test(*args, **fixtures, **row)

    @wraps(test)
    async def run_async(*args: Any, **fixtures: Any) -> None:
        with _collected() as failures:
            for row in table:
                with _noted(row, failures):
                    await test(*args, **fixtures, **row)

    chosen: Any = run_async if inspect.iscoroutinefunction(test) else run
    signature = inspect.signature(test)
    given = [parameter for name, parameter in signature.parameters.items() if name not in table[0]]
    chosen.__signature__ = signature.replace(parameters=given)
    return chosen


@contextmanager
def _collected() -> Generator[list[BaseException]]:
    failures: list[BaseException] = []
    yield failures
    if failures:
        raise BaseExceptionGroup("rows that fail", failures)


@contextmanager
def _noted(row: dict[str, Any], failures: list[BaseException]) -> Generator[None]:
    try:
        yield
    except (Exception, pytest.fail.Exception) as failure:
        failure.add_note(f"row: {row!r:.1000}")
        failures.append(failure)
