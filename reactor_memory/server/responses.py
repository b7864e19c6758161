"""Responses that are being written: agents write them, users follow them by server-sent events."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Annotated, Any, cast

import msgspec
from litestar import Controller, Response, get, post
from litestar.enums import MediaType
from litestar.openapi import ResponseSpec
from litestar.params import HeaderParameter, JSONBody, QueryParameter
from litestar.response import ServerSentEventMessage, Stream
from litestar.types import Receive, Scope, Send

from reactor_memory.database.deadlines import forget_deadline
from reactor_memory.errors import StreamPositionError
from reactor_memory.features.responses.models import Piece
from reactor_memory.features.responses.reader import StreamEvent
from reactor_memory.features.responses.response_streams import MAX_WAIT_SECONDS, ResponseStreams
from reactor_memory.features.sharing import bodies
from reactor_memory.server import event_ids, serializers
from reactor_memory.server.idempotency import AnsweredRequests, KeyedRequest
from reactor_memory.server.parameters import Caller, ConversationId, Key, ResponseId

RECONNECT_MILLISECONDS = 1000

Wait = Annotated[
    float,
    QueryParameter(
        name="wait",
        ge=0,
        le=MAX_WAIT_SECONDS,
        description="Answer when the response is to stop or has ended, at the latest after so many seconds.",
    ),
]
AfterPiece = Annotated[
    int,
    QueryParameter(name="after", ge=0, le=10**15 - 1, description="Leave out the pieces up to this number."),
]
LastEventId = Annotated[
    str | None,
    HeaderParameter(
        name=event_ids.HEADER,
        max_length=600,
        description="The id of the last event that the client got; it goes before `after`. What follows is sent.",
    ),
]
ConversationIds = Annotated[
    str,
    QueryParameter(name="conversationIds", min_length=1, max_length=8000, description="Ids, separated by commas."),
]

_STREAM_ANSWERS = {204: ResponseSpec(None, description="The client saw the end: it is not to connect again.")}

_encode = msgspec.json.Encoder().encode


class ResponseWritingController(Controller):
    path = "/conversations/{conversationId:str}/responses"

    streams: ResponseStreams
    answered: AnsweredRequests

    @post("", operation_id="startResponse")
    async def start_response(
        self,
        principal: Caller,
        conversation_id: ConversationId,
        data: JSONBody[bodies.StartResponseRequest],
        idempotency_key: Key = None,
    ) -> Response[bodies.Response]:
        """Begin a response. One that another producer is still writing in this conversation is superseded."""
        return await self.answered.once(
            idempotency_key,
            KeyedRequest(principal=principal, operation=("startResponse",), conversation_id=conversation_id, body=data),
            lambda key: self.streams.start(principal, conversation_id, producer=data.producer, request_key=key),
            serializers.response,
        )

    @get("/{responseId:str}", operation_id="getAgentResponse")
    async def get_agent_response(
        self, principal: Caller, conversation_id: ConversationId, response_id: ResponseId, wait: Wait = 0
    ) -> bodies.Response:
        """How the response stands, and whether its producer is to stop."""
        if wait:
            forget_deadline()
        return serializers.response(
            await self.streams.get_as_producer(principal, conversation_id, response_id, wait_seconds=wait)
        )

    @post("/{responseId:str}/chunks", operation_id="appendResponseChunks", status_code=200)
    async def append_response_chunks(
        self,
        principal: Caller,
        conversation_id: ConversationId,
        response_id: ResponseId,
        data: JSONBody[bodies.ResponseChunksRequest],
    ) -> bodies.Response:
        """Add pieces of text. They are numbered, so repeating the request does no harm; repeating the last one also
        keeps a response alive whose producer has nothing to say for a while.
        """
        standing = await self.streams.append(
            principal,
            conversation_id,
            response_id,
            fence=data.fence,
            first_event=data.first_event,
            texts=data.texts,
        )
        return serializers.response(standing)

    @post("/{responseId:str}/complete", operation_id="finishResponse", status_code=200)
    async def finish_response(
        self,
        principal: Caller,
        conversation_id: ConversationId,
        response_id: ResponseId,
        data: JSONBody[bodies.FinishResponseRequest],
    ) -> bodies.Response:
        """End the response. Repeating the request does no harm."""
        ended = await self.streams.finish(
            principal,
            conversation_id,
            response_id,
            fence=data.fence,
            state=data.state,
            message_id=data.message_id,
        )
        return serializers.response(ended)


class ResponseReadingController(Controller):
    path = "/conversations/{conversationId:str}/responses"

    streams: ResponseStreams

    @get("", operation_id="listResponses")
    async def list_responses(self, principal: Caller, conversation_id: ConversationId) -> bodies.ResponseList:
        """The responses of the conversation that run or can still be read, the newest first."""
        return _listed(await self.streams.list(principal, conversation_id))

    @get("/{responseId:str}", operation_id="getResponse")
    async def get_response(
        self, principal: Caller, conversation_id: ConversationId, response_id: ResponseId
    ) -> bodies.Response:
        """How the response stands."""
        return serializers.response(await self.streams.get(principal, conversation_id, response_id))

    @post("/{responseId:str}/stop", operation_id="stopResponse", status_code=202)
    async def stop_response(
        self, principal: Caller, conversation_id: ConversationId, response_id: ResponseId
    ) -> bodies.Response:
        """Ask the producer to end; for writers. To stop reading, a client just disconnects."""
        return serializers.response(await self.streams.stop(principal, conversation_id, response_id))

    @get(
        "/{responseId:str}/events",
        operation_id="streamResponseEvents",
        media_type="text/event-stream",
        responses=_STREAM_ANSWERS,
    )
    async def stream_response_events(
        self,
        principal: Caller,
        conversation_id: ConversationId,
        response_id: ResponseId,
        after: AfterPiece = 0,
        last_event_id: LastEventId = None,
    ) -> Response[Any]:
        """The response as server-sent events, while it runs and afterwards until it expires. `piece` is a piece of the
        text, `state` how the response stands, `end` the same at its end. `revoked`: the caller may not read on.
        """
        seen = event_ids.last_seen(last_event_id, response_id) if last_event_id else after
        if seen is None:
            await self.streams.get(principal, conversation_id, response_id)
            return Response(None, status_code=204, media_type=MediaType.TEXT)
        try:
            events = await self.streams.follow(principal, conversation_id, response_id, after=seen)
        except StreamPositionError:
            if last_event_id:
                raise event_ids.not_of_this_stream() from None
            raise
        return _EventStream(
            _messages(events, response_id), media_type="text/event-stream", headers={"X-Accel-Buffering": "no"}
        )


class RunningResponseController(Controller):
    path = "/responses"

    streams: ResponseStreams

    @get("", operation_id="listRunningResponses")
    async def list_running_responses(self, principal: Caller, conversation_ids: ConversationIds) -> bodies.ResponseList:
        """Which of these conversations have a response that is being written. Those that the caller may not read are
        passed over.
        """
        return _listed(await self.streams.running(principal, conversation_ids.split(",")))


def _listed(responses: Any) -> bodies.ResponseList:
    return bodies.ResponseList(data=[serializers.response(response) for response in responses])


class _EventStream(Stream):
    """Closes its source with the answer: a caller that leaves while an event waits to be sent would leave it open."""

    def to_asgi_response(self, *args: Any, **parts: Any) -> Any:
        answer = super().to_asgi_response(*args, **parts)  # pyright: ignore[reportUnknownMemberType]

        async def closing(scope: Scope, receive: Receive, send: Send) -> None:
            async with aclosing(cast("AsyncGenerator[bytes]", self.iterator)):
                await answer(scope, receive, send)

        return closing


async def _messages(events: AsyncGenerator[StreamEvent], response_id: str) -> AsyncGenerator[bytes]:
    """A client that is cut off comes back after `RECONNECT_MILLISECONDS`. A stream lasts longer than a call."""
    forget_deadline()
    yield ServerSentEventMessage(data=None, retry=RECONNECT_MILLISECONDS).encode()
    async with aclosing(events):
        async for event in events:
            yield _message(event, response_id).encode()


def _message(event: StreamEvent, response_id: str) -> ServerSentEventMessage:
    if isinstance(event, Piece):
        event_id = event_ids.of_piece(response_id, event.event)
        return ServerSentEventMessage(event="piece", id=event_id, data=_encode(serializers.piece(event)))
    if isinstance(event, str):
        return _NOTICES[event]
    data = _encode(serializers.response(event))
    if event.is_final:
        return ServerSentEventMessage(event="end", id=event_ids.of_end(response_id), data=data)
    return ServerSentEventMessage(event="state", data=data)


_NOTICES = {
    "idle": ServerSentEventMessage(data=None, comment=""),
    "restart": ServerSentEventMessage(data=None, comment="this process stops", retry=RECONNECT_MILLISECONDS),
    "revoked": ServerSentEventMessage(event="revoked", data="{}"),
}
