"""What a kind of background work is, as the engine sees it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from math import inf
from typing import Protocol

from reactor_memory.models.leases import Lease, WorkState
from reactor_memory.models.requests import EVER, Ahead


class Leases(Protocol):
    """Leases: which process works on what. The part of `SummaryStore` that keeps them."""

    async def claim(
        self, session_id: str, kind: str, *, now: int, lease_microseconds: int, wait_microseconds: int | None = None
    ) -> Lease | None: ...

    async def renew(self, lease: Lease, *, now: int, lease_microseconds: int) -> bool: ...

    async def release(
        self, lease: Lease, *, due_at: int | None, attempts: int = 0, parked: bool = False, error: str | None = None
    ) -> None: ...

    async def due(
        self, kinds: Sequence[str], *, now: int, limit: int = 100, ahead: Ahead = EVER
    ) -> Mapping[str, tuple[str, ...]]: ...

    async def work_state(self, session_id: str, kind: str) -> WorkState | None: ...


class NoLeases:
    """`Leases` of work that does no harm when two processes do it at once."""

    async def claim(
        self, session_id: str, kind: str, *, now: int, lease_microseconds: int, wait_microseconds: int | None = None
    ) -> Lease | None:
        return Lease(session_id=session_id, kind=kind, fence=0, lease_until=now + lease_microseconds)

    async def renew(self, lease: Lease, *, now: int, lease_microseconds: int) -> bool:
        return True

    async def release(
        self, lease: Lease, *, due_at: int | None, attempts: int = 0, parked: bool = False, error: str | None = None
    ) -> None:
        """Nothing was leased."""

    async def due(
        self, kinds: Sequence[str], *, now: int, limit: int = 100, ahead: Ahead = EVER
    ) -> Mapping[str, tuple[str, ...]]:
        return {}

    async def work_state(self, session_id: str, kind: str) -> WorkState | None:
        return None


class Find(Protocol):
    """Finds conversations with work to do now: those behind `after`, in the order of their ids."""

    async def __call__(self, *, after: str, limit: int) -> Sequence[str]: ...


async def _nowhere(session_id: str) -> int:
    return 0


def _keep(session_ids: Sequence[str]) -> None:
    """Nothing is known of these conversations."""


@dataclass(frozen=True, kw_only=True)
class Kind:
    """A kind of background work.

    `step` does a piece of it under a lease and returns how far it is then, or None if nothing was left to do. Doing it
    twice changes nothing: the fence of the lease refuses the second write, or the step finds nothing.
    """

    name: str
    """Of its rows in `background_work`."""

    step: Callable[[Lease], Awaitable[int | None]]

    find: Find | None = None
    """Finds work that no row of this kind says is due."""

    every_seconds: float = 1.0
    """How often `find` is called."""

    is_leased: bool = True
    """Whether one process at a time does it, and rows of this kind say what is due."""

    wants: Callable[[str, int], bool] | None = None
    """Whether a conversation may have work after a save that made it so many messages long. Without it, a save is no
    hint, and a request for a conversation by name does not mean this kind.
    """

    reached: Callable[[str], Awaitable[int]] = _nowhere
    """How far the work on a conversation is, for callers that wait for it."""

    forget: Callable[[Sequence[str]], None] = _keep
    """Forget what this process knows of conversations that are gone or changed."""

    concurrency: int = 4

    parks: bool = True
    """Whether work that failed too often is given up until somebody asks for it by name."""

    longest_pause_seconds: float = inf
    """How long work that failed is put off at most; ``background.max_backoff_seconds`` counts, too."""
