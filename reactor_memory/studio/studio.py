"""What every page stands on: the memory, the templates, and whether anything may be changed."""

from __future__ import annotations

from typing import NamedTuple

from litestar.exceptions import PermissionDeniedException

from reactor_memory.memory import Memory
from reactor_memory.models import Session
from reactor_memory.studio.measuring import Evaluations
from reactor_memory.studio.rendering import Pages


class Studio(NamedTuple):
    """The parts of one Studio. `writes`: whether it was started with ``--write``."""

    memory: Memory
    pages: Pages
    writes: bool
    evaluations: Evaluations

    async def session(self, session_id: str) -> Session:
        """A session, asked for as its owner: whoever may open the store may see all of it."""
        return await self.memory.get_session(session_id, user_id=await self.owner_of(session_id))

    async def budget_of(self, session_id: str, given: int | None) -> int | None:
        """What was `given`, else what the last load of the session asked for; None: ``context.max_tokens`` decides."""
        return given or await self.memory.container.replayer().last_budget(session_id) or None

    async def owner_of(self, session_id: str) -> str | None:
        return await self.memory.overview.owner_of(session_id)

    def require_writing(self) -> None:
        """Raises `PermissionDeniedException` without ``--write``."""
        if not self.writes:
            raise PermissionDeniedException(
                "The Studio only looks. Start reactor-memory studio --write to change things."
            )
