"""Facts and narrative: extracted once, verified, merged by rule, and laid out beside the window.

How memory is laid out is imported when a window first moves: most turns of a session show what stood there before.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from reactor_memory.features.facts import memory_layout as memory_layout


def __getattr__(name: str) -> Any:
    if name != "memory_layout":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return import_module(f"{__name__}.{name}")
