"""How pins are wired."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from reactor_memory.core.context.blocks import Verbatim
from reactor_memory.core.load_requests import LoadRequest
from reactor_memory.core.sources import Source
from reactor_memory.models import Role
from reactor_memory.models.requests import ContextRows

if TYPE_CHECKING:
    from reactor_memory.features.pins.pins import Pins, PinWriter


def pin_writer(*args: Any, **parts: Any) -> PinWriter:
    from reactor_memory.features.pins.pins import PinWriter

    return PinWriter(*args, **parts)


def pins(*args: Any, **parts: Any) -> Pins:
    from reactor_memory.features.pins.pins import Pins

    return Pins(*args, **parts)


class PinSource(Source):
    """The pins of the session; those of facts have the role of memory."""

    name = "pins"

    def __init__(self, memory_role: Role) -> None:
        self._memory_role: Role = memory_role

    def stands(self, rows: ContextRows) -> bool:
        return bool(rows.pins)

    async def before_window(self, request: LoadRequest, rows: ContextRows) -> Verbatim | None:
        from reactor_memory.features.pins.verbatim_pins import verbatim_pins

        return verbatim_pins(rows.pins, self._memory_role)
