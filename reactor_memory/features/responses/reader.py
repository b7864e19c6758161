"""What one reader of a response gets, from any piece on to its end."""

from __future__ import annotations

from collections import deque
from collections.abc import AsyncGenerator, Awaitable, Callable
from typing import TYPE_CHECKING, Literal, TypeAlias

from msgspec.structs import replace

from reactor_memory.errors import NotGrantedError, SessionError, StoreUnavailableError
from reactor_memory.features.responses.models import Piece, Response, ResponseStore, as_of
from reactor_memory.features.responses.watch import Watch
from reactor_memory.models import Value

if TYPE_CHECKING:
    from reactor_memory.core.ports import Clock

Notice: TypeAlias = Literal["idle", "revoked", "restart"]
"""``idle``: nothing new for a while. ``revoked``: the caller may not read on. ``restart``: this process stops, another
one goes on. Nothing comes after the latter two.
"""

StreamEvent: TypeAlias = Piece | Response | Notice
"""A `Response` tells how it stands; nothing comes after a final one."""

BATCH = 100
"""Pieces that are read at a time, so that a slow reader holds no more."""


class FollowOptions(Value, frozen=True, kw_only=True):
    """Every `recheck_seconds` the access is checked again; without news there is a notice every `heartbeat_seconds`."""

    keep_microseconds: int
    recheck_seconds: float
    heartbeat_seconds: float


class Follower:
    """Follows one response for one reader. `check` raises what the access of the reader raises."""

    def __init__(
        self,
        watch: Watch,
        shown: Response,
        *,
        after: int,
        store: ResponseStore,
        check: Callable[[], Awaitable[object]],
        is_draining: Callable[[], bool],
        clock: Clock,
        options: FollowOptions,
    ) -> None:
        self._watch = watch
        self._shown = shown
        self._after = after
        self._store = store
        self._check = check
        self._is_draining = is_draining
        self._clock = clock
        self._options = options
        self._checked_at = clock()
        self._pieces: deque[Piece] = deque()

    async def events(self) -> AsyncGenerator[StreamEvent]:
        """First how the response stands, if it still runs."""
        if not self._shown.is_final:
            yield self._shown
        while True:
            event = await self._next()
            if event is None:
                continue
            yield event
            if event in ("revoked", "restart") or (isinstance(event, Response) and event.is_final):
                return

    async def _next(self) -> StreamEvent | None:
        """The next event; None to look again."""
        if self._is_draining():
            return "restart"
        if self._is_check_due() and not await self._may_read():
            return "revoked"
        if self._pieces:
            self._after = self._pieces[0].event
            return self._pieces.popleft()
        known = self._watch.latest
        latest = known and as_of(known, now=self._clock(), keep_microseconds=self._options.keep_microseconds)
        if latest is None:
            return await self._lost()
        if latest.last_event > self._after:
            return await self._read()
        if latest.is_final:
            return latest
        if latest.stop_requested != self._shown.stop_requested:
            self._shown = latest
            return latest
        return None if await self._watch.changed(known, timeout_seconds=self._patience(latest)) else "idle"

    async def _read(self) -> StreamEvent | None:
        """Take the next pieces. What has a hole in it is no answer: the response is as good as gone."""
        of, after = self._shown, self._after
        try:
            found = await self._store.read_pieces(of.conversation_id, of.response_id, after=after, limit=BATCH)
        except StoreUnavailableError:
            await self._watch.changed(self._watch.latest, timeout_seconds=self._options.heartbeat_seconds)
            return "idle"
        if not found or found[0].event != after + 1:
            return await self._lost()
        self._pieces.extend(found)
        return None

    async def _lost(self) -> StreamEvent:
        """Its conversation was deleted, or the store lost it."""
        if not await self._may_read():
            return "revoked"
        return replace(self._shown, state="expired")

    async def _may_read(self) -> bool:
        try:
            await self._check()
        except (SessionError, NotGrantedError):
            return False
        except StoreUnavailableError:
            return True
        self._checked_at = self._clock()
        return True

    def _is_check_due(self) -> bool:
        return self._clock() - self._checked_at >= self._options.recheck_seconds * 1e6

    def _patience(self, latest: Response) -> float:
        """Seconds until there is something to do without news."""
        options = self._options
        return min(options.heartbeat_seconds, options.recheck_seconds, until(latest.expires_at, self._clock))


def until(time: int, clock: Clock) -> float:
    """Seconds from now."""
    return max(0.0, (time - clock()) / 1e6)
