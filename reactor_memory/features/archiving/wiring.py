"""How archiving is wired."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from reactor_memory.features.archiving.archiver import Archiver


def archiver(**parts: Any) -> Archiver:
    from reactor_memory.features.archiving.archiver import Archiver

    return Archiver(**parts)
