"""Names of a package that are imported when they are first used."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any


def modules_of(package: str) -> Callable[[str], Any]:
    """A `__getattr__` for `package` that gives each of its modules."""

    def module(name: str) -> Any:
        path = f"{package}.{name}"
        try:
            return import_module(path)
        except ModuleNotFoundError as error:
            if error.name != path:
                raise
        raise _no_attribute(package, name)

    return module


def names_of(package: str, homes: Mapping[str, str], *, below: str | None = None) -> Callable[[str], Any]:
    """A `__getattr__` for `package`: `homes` tells of each name in which of its modules it is, or of those `below`
    another package.
    """

    def found(name: str) -> Any:
        if name not in homes:
            raise _no_attribute(package, name)
        value = getattr(import_module(f"{below or package}.{homes[name]}"), name)
        setattr(sys.modules[package], name, value)
        return value

    return found


def _no_attribute(package: str, name: str) -> AttributeError:
    return AttributeError(f"module {package!r} has no attribute {name!r}")
