"""Answers that are still being written: what a store of response streams keeps of them.

A producer posts pieces of text, numbered from 1; readers follow from any piece on, while it runs and afterwards until
it expires. Of two producers in one conversation the newer fences the older one.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, Protocol, TypeAlias

from reactor_memory.models import Value

ResponseState: TypeAlias = Literal["running", "completed", "failed", "stopped", "superseded", "expired"]
"""All but ``running`` are final."""


class Response(Value, frozen=True, kw_only=True):
    """`fence` grows with every response of the conversation; `last_event` is the number of its newest piece.

    `stop_requested` asks the producer to end. A running response whose producer was silent beyond `expires_at` is
    expired.
    """

    conversation_id: str
    response_id: str
    fence: int
    producer: str
    state: ResponseState = "running"
    last_event: int = 0
    stop_requested: bool = False
    message_id: str | None = None
    created_at: int
    updated_at: int
    expires_at: int

    @property
    def is_final(self) -> bool:
        return self.state != "running"


class Piece(Value, frozen=True, kw_only=True):
    """One piece of the text of a response; `event` is its number, from 1."""

    event: int
    text: str


class ResponseStore(Protocol):
    """Keeps responses and their pieces until they expire, and lets any process follow them.

    Who may ask is decided before. Faults become `StoreError`s.
    """

    async def open(self) -> None: ...

    async def close(self) -> None: ...

    async def start(self, response: Response) -> Response:
        """Begin a response: it gets the next `fence`, and a running one of the conversation becomes ``superseded``.
        One of this id that is there already is returned as it is.
        """
        ...

    async def append(
        self,
        conversation_id: str,
        response_id: str,
        *,
        fence: int,
        first_event: int,
        texts: Sequence[str],
        now: int,
        expires_at: int,
    ) -> Response | None:
        """Add pieces behind the newest one, and tell how the response stands (`stop_requested` among it).

        Pieces that are there already are passed over, so a repetition does no harm; a gap raises `InvalidInputError`.
        None for an unknown response. One that is final, or whose fence is older, is returned unchanged.
        """
        ...

    async def finish(
        self,
        conversation_id: str,
        response_id: str,
        *,
        fence: int,
        state: ResponseState,
        message_id: str | None,
        now: int,
        expires_at: int,
    ) -> Response | None: ...

    async def request_stop(self, conversation_id: str, response_id: str, *, now: int) -> Response | None: ...

    async def get(self, conversation_id: str, response_id: str, *, now: int) -> Response | None: ...

    async def newest(self, conversation_id: str, *, now: int) -> Response | None:
        """The newest response of the conversation, running or final, that did not expire."""
        ...

    async def read(self, conversation_id: str, response_id: str, *, after: int, limit: int) -> tuple[Piece, ...]:
        """The pieces behind number `after`."""
        ...

    async def wait(
        self, conversation_id: str, response_id: str, *, after: int, state: ResponseState, timeout_seconds: float
    ) -> None:
        """Return when there may be pieces behind `after` or another state, at the latest after the timeout."""
        ...

    async def forget(self, conversation_ids: Sequence[str]) -> None: ...

    async def remove_expired(self, *, now: int, limit: int = 1000) -> int: ...
