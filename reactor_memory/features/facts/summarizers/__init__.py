"""Implementations of the summarizer plug point, and what they share.

The rules of extraction are imported when they are first used: a turn that seals no segment needs none of them.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from reactor_memory.features.facts.summarizers import extraction as extraction


def __getattr__(name: str) -> Any:
    if name != "extraction":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return import_module(f"{__name__}.{name}")
