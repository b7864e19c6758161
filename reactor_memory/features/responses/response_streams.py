"""Responses that are being written, for those who may: an agent writes, members read, and any process serves both."""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import AsyncGenerator, Generator, Iterable, Sequence
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

import anyio

from reactor_memory.core.validation import check_text
from reactor_memory.database.database import Database
from reactor_memory.database.deadlines import forget_deadline
from reactor_memory.errors import (
    InvalidInputError,
    NotGrantedError,
    ResponseConflictError,
    ResponseNotFoundError,
    SessionError,
    StoreError,
    StoreUnavailableError,
    StreamPositionError,
    TooManyStreamsError,
)
from reactor_memory.features.responses.models import Addition, Ending, Response, ResponseStore, as_of
from reactor_memory.features.responses.reader import Follower, FollowOptions, StreamEvent, until
from reactor_memory.features.responses.watch import Watches
from reactor_memory.features.sharing import operations as conversations
from reactor_memory.features.sharing.access import Access, client_of
from reactor_memory.features.sharing.models import AccessLevel, Conversation
from reactor_memory.features.sharing.principals import Operation, Principal
from reactor_memory.features.sharing.repeated_requests import new_id
from reactor_memory.models import ResponseState, Value

if TYPE_CHECKING:
    from reactor_memory.core.ports import Clock

log = logging.getLogger(__name__)

MAX_LISTED = 100
"""Responses of a conversation, and conversations of which one asks whether they have a running one."""

MAX_WAIT_SECONDS = 60.0
SWEEP_SECONDS = 60.0


class StreamOptions(Value, frozen=True, kw_only=True):
    """Limits of a response, and how readers follow it. Times are microseconds."""

    expires_microseconds: int
    max_size: int
    max_events: int
    max_open: int
    follow: FollowOptions

    @property
    def keep_microseconds(self) -> int:
        return self.follow.keep_microseconds


class StreamBackend(NamedTuple):
    """Where responses are kept, and what notices their changes."""

    store: ResponseStore
    watches: Watches


class ResponseStreams:
    """Each call checks the access of its caller first (`Access`), and raises what that raises.

    Without a `backend` each call that was allowed raises `ResponseConflictError` (``streams_disabled``).
    """

    def __init__(
        self,
        *,
        access: Access,
        database: Database,
        backend: StreamBackend | None,
        clock: Clock,
        options: StreamOptions,
    ) -> None:
        self._access = access
        self._database = database
        self._backend = backend
        self._clock = clock
        self._options = options
        self._open: Counter[str] = Counter()
        self._is_draining = False
        self._sweeping: asyncio.Task[None] | None = None

    @property
    def open_streams(self) -> int:
        """Streams that are being read in this process."""
        return self._open.total()

    # Who writes

    async def start(
        self,
        principal: Principal,
        conversation_id: str,
        *,
        producer: str | None = None,
        request_key: str | None = None,
    ) -> Response:
        """A new response of the conversation; the one that runs there is superseded. A repetition with the same
        `request_key` returns the first one, as it stands.
        """
        store, _ = await self._allowed(principal, conversation_id, needs="writer", operation="respond")
        if producer is not None:
            check_text("producer", producer)
        now = self._clock()
        response = Response(
            conversation_id=conversation_id,
            response_id=new_id(principal, request_key, "response", conversation_id),
            client_id=client_of(principal),
            producer=producer,
            created_at=now,
            updated_at=now,
            expires_at=now + self._options.expires_microseconds,
        )
        started = await store.start_response(response, keep_until=now + self._options.keep_microseconds)
        return self._announced(conversation_id, started)

    async def append(
        self,
        principal: Principal,
        conversation_id: str,
        response_id: str,
        *,
        fence: int,
        first_event: int,
        texts: Sequence[str],
    ) -> Response:
        """Add pieces, the first of them under the number `first_event`; how the response stands then, and whether it is
        to stop. Pieces that are there already are passed over.

        Raises `InvalidInputError` for a gap, `LimitExceededError`, `ResponseConflictError` for one that is superseded
        or ended, `ResponseNotFoundError`.
        """
        store, _ = await self._allowed(principal, conversation_id, needs="writer", operation="respond")
        for place, text in enumerate(texts):
            check_text(f"texts[{place}]", text)
        now = self._clock()
        addition = Addition(
            conversation_id=conversation_id,
            response_id=response_id,
            client_id=client_of(principal),
            fence=fence,
            first_event=first_event,
            texts=tuple(texts),
            now=now,
            expires_at=now + self._options.expires_microseconds,
            max_events=self._options.max_events,
            max_size=self._options.max_size,
        )
        response = self._announced(conversation_id, await store.append_pieces(addition))
        _check_own(response, principal)
        _check_open(response, fence)
        return response

    async def finish(
        self,
        principal: Principal,
        conversation_id: str,
        response_id: str,
        *,
        fence: int,
        state: ResponseState,
        message_id: str | None = None,
    ) -> Response:
        """End the response. Ending it again in the same way returns it as it is.

        Raises `InvalidInputError` for a message that is not in the conversation, otherwise as `append`.
        """
        store, conversation = await self._allowed(principal, conversation_id, needs="writer", operation="respond")
        if message_id is not None:
            await self._check_message(conversation, message_id)
        now = self._clock()
        ending = Ending(
            conversation_id=conversation_id,
            response_id=response_id,
            client_id=client_of(principal),
            fence=fence,
            state=state,
            message_id=message_id,
            now=now,
            expires_at=now + self._options.keep_microseconds,
        )
        response = self._announced(conversation_id, await store.finish_response(ending))
        _check_own(response, principal)
        if (response.fence, response.state, response.message_id) != (fence, state, message_id):
            _check_open(response, fence)
        return response

    async def _check_message(self, conversation: Conversation, message_id: str) -> None:
        check_text("messageId", message_id)
        if await self._database.read(conversations.find_message, conversation.session, message_id) is None:
            raise InvalidInputError("messageId", "is no message of this conversation: store it first")

    async def get_as_producer(
        self, principal: Principal, conversation_id: str, response_id: str, *, wait_seconds: float = 0
    ) -> Response:
        """How the response stands, as soon as it is to stop or ended, at the latest after `wait_seconds`."""
        client_of(principal)
        response = await self._get(principal, conversation_id, response_id, operation="respond")
        return await self._until_stopping(response, wait_seconds) if wait_seconds > 0 else response

    # Who reads

    async def get(self, principal: Principal, conversation_id: str, response_id: str) -> Response:
        return await self._get(principal, conversation_id, response_id, operation="read")

    async def list(self, principal: Principal, conversation_id: str) -> tuple[Response, ...]:
        """Those of the conversation that are not over, the newest first, `MAX_LISTED` at most."""
        store, _ = await self._allowed(principal, conversation_id, needs="reader", operation="read")
        return self._unexpired(await store.list_responses([conversation_id], limit=MAX_LISTED))

    async def running(self, principal: Principal, conversation_ids: Sequence[str]) -> tuple[Response, ...]:
        """The running responses of those of these conversations that the caller may read."""
        wanted = tuple(dict.fromkeys(conversation_ids))
        if len(wanted) > MAX_LISTED:
            raise InvalidInputError("conversationIds", f"names {len(wanted)}, at most {MAX_LISTED} are allowed")
        visible = [each for each in wanted if await self._is_visible(principal, each)]
        if not visible:
            return ()
        newest = self._unexpired(await self._enabled(visible[0]).store.list_responses(visible, limit=1))
        return tuple(response for response in newest if not response.is_final)

    async def stop(self, principal: Principal, conversation_id: str, response_id: str) -> Response:
        """Ask the producer to end; of one that ended already nothing is asked."""
        store, _ = await self._allowed(principal, conversation_id, needs="writer", operation="respond")
        asked = await store.request_stop(conversation_id, response_id, now=self._clock())
        return self._announced(conversation_id, asked)

    async def follow(
        self, principal: Principal, conversation_id: str, response_id: str, *, after: int = 0
    ) -> AsyncGenerator[StreamEvent]:
        """The events of the response behind piece `after`, to its end. The iterator is to be closed.

        Raises `ResponseNotFoundError`, `StreamPositionError`, `TooManyStreamsError`,
        and `StoreUnavailableError` while this process stops. Afterwards a store that is away only makes readers wait.
        """
        if self._is_draining:
            raise StoreUnavailableError("streams: this process stops; connect again")
        response = await self.get(principal, conversation_id, response_id)
        if not 0 <= after <= response.last_event:
            raise StreamPositionError
        events = self._events(principal, response, after)
        # The first event is there at once. From here on the stream counts, until it is closed
        return _joined(await anext(events), events)

    async def _events(self, principal: Principal, response: Response, after: int) -> AsyncGenerator[StreamEvent]:
        conversation_id = response.conversation_id
        store, watches = self._enabled(conversation_id)
        with self._counted(principal):
            async with watches.watching(response) as watch:
                follower = Follower(
                    watch,
                    response,
                    after=after,
                    store=store,
                    check=partial(
                        self._access.conversation, principal, conversation_id, needs="reader", operation="read"
                    ),
                    is_draining=lambda: self._is_draining,
                    clock=self._clock,
                    options=self._options.follow,
                )
                async for event in follower.events():
                    yield event

    @contextmanager
    def _counted(self, principal: Principal) -> Generator[None]:
        caller, limit = principal.principal_id, self._options.max_open
        if self._open[caller] >= limit:
            raise TooManyStreamsError(limit)
        self._open[caller] += 1
        try:
            yield
        finally:
            self._open[caller] -= 1
            if not self._open[caller]:
                del self._open[caller]

    # Life

    async def open(self) -> None:
        """Remove from now on what is over."""
        if self._backend is not None:
            self._sweeping = asyncio.create_task(self._sweep_again_and_again())

    async def close(self) -> None:
        self.drain()
        if self._sweeping is not None:
            self._sweeping.cancel()
            await asyncio.wait([self._sweeping])

    def drain(self) -> None:
        """Let every stream end with the notice ``restart``, and every waiting call return; begin no new ones."""
        self._is_draining = True
        if self._backend is not None:
            self._backend.watches.wake_all()

    async def sweep(self) -> int:
        """Remove some of what is over; how many responses."""
        if self._backend is None:
            return 0
        keep = self._options.keep_microseconds
        return await self._backend.store.remove_expired_responses(now=self._clock(), keep_microseconds=keep)

    async def _sweep_again_and_again(self) -> None:
        forget_deadline()
        while True:
            try:
                removed = await self.sweep()
            except StoreError as error:
                removed = 0
                log.warning("cannot remove responses", extra={"reason": type(error).__name__})
            if not removed:
                await anyio.sleep(SWEEP_SECONDS)

    # How a response is looked up

    async def _allowed(
        self, principal: Principal, conversation_id: str, *, needs: AccessLevel, operation: Operation
    ) -> tuple[ResponseStore, Conversation]:
        conversation = await self._access.conversation(principal, conversation_id, needs=needs, operation=operation)
        return self._enabled(conversation_id).store, conversation

    def _enabled(self, conversation_id: str) -> StreamBackend:
        if self._backend is None:
            raise ResponseConflictError(
                conversation_id, "streams_disabled", "responses are not streamed here; read the messages"
            )
        return self._backend

    async def _is_visible(self, principal: Principal, conversation_id: str) -> bool:
        try:
            await self._access.conversation(principal, conversation_id, needs="reader", operation="read")
        except (SessionError, InvalidInputError):
            return False
        return True

    async def _get(
        self, principal: Principal, conversation_id: str, response_id: str, *, operation: Operation
    ) -> Response:
        store, _ = await self._allowed(principal, conversation_id, needs="reader", operation=operation)
        return self._known(conversation_id, await store.get_response(conversation_id, response_id))

    async def _until_stopping(self, response: Response, seconds: float) -> Response:
        """How it stands when it is to stop or has ended, or the time is over."""
        watches = self._enabled(response.conversation_id).watches
        async with watches.watching(response) as watch:
            with anyio.move_on_after(min(seconds, MAX_WAIT_SECONDS)):
                while not (response.is_final or response.stop_requested or self._is_draining):
                    await watch.changed(response, timeout_seconds=until(response.expires_at, self._clock))
                    response = self._known(response.conversation_id, watch.latest)
        return response

    def _known(self, conversation_id: str, response: Response | None) -> Response:
        """As it stands now."""
        standing = response and as_of(response, now=self._clock(), keep_microseconds=self._options.keep_microseconds)
        if standing is None:
            raise ResponseNotFoundError(conversation_id)
        return standing

    def _announced(self, conversation_id: str, response: Response | None) -> Response:
        """As `_known`, of what was changed here: readers in this process get it at once."""
        if response is not None:
            self._enabled(conversation_id).watches.note(response)
        return self._known(conversation_id, response)

    def _unexpired(self, responses: Iterable[Response]) -> tuple[Response, ...]:
        now, keep = self._clock(), self._options.keep_microseconds
        standing = (as_of(response, now=now, keep_microseconds=keep) for response in responses)
        return tuple(response for response in standing if response is not None)


async def _joined(first: StreamEvent, rest: AsyncGenerator[StreamEvent]) -> AsyncGenerator[StreamEvent]:
    try:
        yield first
        async for event in rest:
            yield event
    finally:
        await rest.aclose()


def _check_own(response: Response, principal: Principal) -> None:
    if response.client_id != principal.client_id:
        raise NotGrantedError("the key of the agent that writes this response")


def _check_open(response: Response, fence: int) -> None:
    """Raises `ResponseConflictError` unless it is running under this fence."""
    if response.state == "superseded" or response.fence != fence:
        raise ResponseConflictError(
            response.conversation_id, "superseded", "a newer response of this conversation took over; end this one"
        )
    if response.is_final:
        raise ResponseConflictError(
            response.conversation_id, "response_ended", f"the response is {response.state}; start another one"
        )
