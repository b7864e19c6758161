"""Answers that are still being written: what a store of response streams keeps of them, and the rules of it.

A producer posts pieces of text, numbered from 1; readers follow from any piece on, while it runs and afterwards until
it expires. Of two producers in one conversation the newer fences the older one.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, runtime_checkable

from msgspec.structs import replace

from reactor_memory.errors import InvalidInputError, LimitExceededError
from reactor_memory.models import ResponseState, Value

"""All but ``running`` are final."""


class Response(Value, frozen=True, kw_only=True):
    """`fence` grows with every response of the conversation; `last_event` is the number of its newest piece, `size` the
    bytes of all of them.

    `client_id` is who may add to it, `producer` what they call themselves. `stop_requested` asks them to end. Until
    `expires_at` a running response waits for its producer, and a final one can be read.
    """

    conversation_id: str
    response_id: str
    fence: int = 0
    client_id: str
    producer: str | None = None
    state: ResponseState = "running"
    last_event: int = 0
    size: int = 0
    stop_requested: bool = False
    message_id: str | None = None
    created_at: int
    updated_at: int
    expires_at: int

    @property
    def is_final(self) -> bool:
        return self.state != "running"

    def is_running(self, now: int) -> bool:
        """Whether its producer may still add to it."""
        return not self.is_final and now < self.expires_at

    def is_open(self, to: Addition | Ending) -> bool:
        """Whether this producer may still add to it, or end it."""
        return self.is_running(to.now) and (self.client_id, self.fence) == (to.client_id, to.fence)


class Piece(Value, frozen=True, kw_only=True):
    """One piece of the text of a response; `event` is its number, from 1."""

    event: int
    text: str


class Addition(Value, frozen=True, kw_only=True):
    """Pieces that a producer adds: `texts`, the first of them under the number `first_event`.

    `expires_at` is how long the response waits for the next ones. At most `max_events` pieces and `max_size` bytes
    become of a response.
    """

    conversation_id: str
    response_id: str
    client_id: str
    fence: int
    first_event: int
    texts: tuple[str, ...]
    now: int
    expires_at: int
    max_events: int
    max_size: int


class Ending(Value, frozen=True, kw_only=True):
    """How a producer ends a response; it can be read until `expires_at`."""

    conversation_id: str
    response_id: str
    client_id: str
    fence: int
    state: ResponseState
    message_id: str | None = None
    now: int
    expires_at: int


def as_of(response: Response, *, now: int, keep_microseconds: int) -> Response | None:
    """The response as it stands at this time: one whose producer was silent for too long is expired, and kept for a
    while like every other final one. None if its time is over.
    """
    if now < response.expires_at:
        return response
    gone_at = response.expires_at + keep_microseconds
    if response.is_final or now >= gone_at:
        return None
    return replace(response, state="expired", updated_at=response.expires_at, expires_at=gone_at)


def with_pieces(response: Response, addition: Addition) -> tuple[Response, tuple[Piece, ...]]:
    """The response after the addition, and what is new of it: pieces that are there already are passed over.

    Raises `InvalidInputError` for a gap and `LimitExceededError` for too much; then nothing is to be added.
    """
    known = response.last_event + 1 - addition.first_event
    if known < 0:
        raise gap(response.last_event)
    texts = addition.texts[known:]
    pieces = tuple(Piece(event=event, text=text) for event, text in enumerate(texts, start=response.last_event + 1))
    last_event, size = response.last_event + len(pieces), response.size + sum(len(text.encode()) for text in texts)
    check_size(last_event=last_event, size=size, addition=addition)
    added = replace(response, last_event=last_event, size=size, updated_at=addition.now, expires_at=addition.expires_at)
    return added, pieces


def gap(last_event: int) -> InvalidInputError:
    """The error for pieces that do not follow the newest one."""
    return InvalidInputError("firstEvent", f"leaves a gap: the next piece of this response is number {last_event + 1}")


def check_size(*, last_event: int, size: int, addition: Addition) -> None:
    for actual, limit, unit, setting in (
        (last_event, addition.max_events, "pieces", None),
        (size, addition.max_size, "bytes", "streams.max_bytes"),
    ):
        if actual > limit:
            instead = "finish the response"
            raise LimitExceededError("texts", actual=actual, limit=limit, unit=unit, setting=setting, instead=instead)


class ResponseStore(Protocol):
    """Keeps responses and their pieces until they expire, for every process that asks.

    Who may ask is decided before. Faults become `StoreError`s. Whether a response expired is not decided here: it is
    given as it was written (see `as_of`), until it is removed.
    """

    async def open(self) -> None: ...

    async def close(self) -> None: ...

    async def start_response(self, response: Response, *, keep_until: int) -> Response:
        """Begin a response: it gets the next `fence`, and a running one of the conversation becomes ``superseded``, to
        be read until `keep_until`. One of this id that is there already is returned as it is.

        A store that holds the conversations, too, raises `SessionNotFoundError` or `SessionDeletedError`.
        """
        ...

    async def append_pieces(self, addition: Addition) -> Response | None:
        """Add the pieces, and tell how the response stands (`stop_requested` among it).

        None for an unknown response; one that is not open to this producer is returned unchanged. Raises as
        `with_pieces`.
        """
        ...

    async def finish_response(self, ending: Ending) -> Response | None:
        """End the response. None for an unknown one; one that is not open to this producer is returned unchanged."""
        ...

    async def request_stop(self, conversation_id: str, response_id: str, *, now: int) -> Response | None:
        """Ask the producer to end. None for an unknown response; one that does not run is returned unchanged."""
        ...

    async def get_response(self, conversation_id: str, response_id: str) -> Response | None: ...

    async def list_responses(self, conversation_ids: Sequence[str], *, limit: int) -> tuple[Response, ...]:
        """Of each conversation the newest ones, at most `limit`, the newest first. Only the first of a conversation can
        be running.
        """
        ...

    async def read_pieces(self, conversation_id: str, response_id: str, *, after: int, limit: int) -> tuple[Piece, ...]:
        """The pieces behind number `after`, in order."""
        ...

    async def forget_responses(self, conversation_ids: Sequence[str]) -> None:
        """Remove all responses of these conversations with their pieces."""
        ...

    async def forget_answers(self, conversation_ids: Sequence[str], message_ids: Sequence[str]) -> None:
        """Remove those responses of these conversations that became one of these messages."""
        ...

    async def remove_expired_responses(self, *, now: int, keep_microseconds: int, limit: int = 1000) -> int:
        """Remove at most `limit` responses whose time is over; how many there were."""
        ...


@runtime_checkable
class ResponseSignals(Protocol):
    """What tells of changes that other processes make. A store that offers this too is not polled."""

    async def wait_for_change(self, known: Response, *, timeout_seconds: float) -> Response | None:
        """The response as soon as it differs from `known`, at the latest after the timeout as it stands then. None if
        it is not there any more.
        """
        ...
