"""From what may be shown to a context.

Modules are imported when they are first used: a load that fits its window needs none of these.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from reactor_memory.core.context import reporting as reporting

_MODULES = ("reporting",)


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return import_module(f"{__name__}.{name}")
