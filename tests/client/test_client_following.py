"""How `FollowedResponse` reads a stream that is cut again and again."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, Iterable

import httpx2
import pytest

from reactor_memory.client import FollowedResponse, MemoryServiceClient, Retries
from reactor_memory.errors import ServiceError, SessionNotFoundError, StoreUnavailableError

pytestmark = pytest.mark.anyio

TIME = "2026-11-21T10:00:00Z"
MANY = Retries().most * 3


class Events(httpx2.AsyncByteStream):
    """Server-sent events, then the end of the connection, with a fault or without."""

    def __init__(self, events: Iterable[str], *, fault: Exception | None = None) -> None:
        self._events = list(events)
        self._fault = fault

    async def __aiter__(self) -> AsyncGenerator[bytes]:
        for event in self._events:
            yield event.encode()
        if self._fault is not None:
            raise self._fault


class Service:
    """Gives these answers, one for each connection, the last one again and again."""

    def __init__(self, *answers: httpx2.Response | Exception) -> None:
        self._answers = list(answers)
        self.positions: list[tuple[str | None, str | None]] = []

    def __call__(self, request: httpx2.Request) -> httpx2.Response:
        self.positions.append((request.headers.get("last-event-id"), request.url.params.get("after")))
        answer = self._answers.pop(0) if len(self._answers) > 1 else self._answers[0]
        if isinstance(answer, Exception):
            raise answer
        return answer


def stream(*events: str, fault: Exception | None = None) -> httpx2.Response:
    return httpx2.Response(200, headers={"Content-Type": "text/event-stream"}, stream=Events(events, fault=fault))


def piece(number: int, text: str) -> str:
    return f"event: piece\r\nid: r-1.{number}\r\ndata: {json.dumps({'event': number, 'text': text})}\r\n\r\n"


def told(state: str) -> str:
    response = {"id": "r-1", "conversationId": "c-1", "producer": None, "fence": 1, "state": state, "lastEvent": 3}
    rest = {"stopRequested": False, "messageId": None, "createdAt": TIME, "updatedAt": TIME, "expiresAt": TIME}
    return (
        f"event: {'state' if state == 'running' else 'end'}\nid: r-1.{state}\ndata: {json.dumps(response | rest)}\n\n"
    )


def refuses(status: int, code: str) -> httpx2.Response:
    body = {"type": "about:blank", "title": "No", "status": status, "code": code, "detail": "no", "requestId": "r"}
    return httpx2.Response(status, json=body)


async def follow(service: Service, *, after: int = 0) -> tuple[str, FollowedResponse]:
    """The text that came, and what is known at the end."""
    transport = httpx2.MockTransport(service)
    retries = Retries(first_seconds=0.0)
    async with MemoryServiceClient("http://memory.test", retries=retries, transport=transport) as client:
        following = client.follow_response("c-1", "r-1", after=after)
        return "".join([piece.text async for piece in following]), following


async def test_the_text_comes_piece_by_piece_to_its_end() -> None:
    service = Service(stream(told("running"), piece(1, "Hel"), ": idle\n\n", piece(2, "lo\n\rä"), told("completed")))
    text, following = await follow(service)
    assert (text, following.last_event) == ("Hello\n\rä", 2)
    assert following.response is not None
    assert following.response.state == "completed"
    assert service.positions == [(None, None)]


@pytest.mark.parametrize("fault", [None, httpx2.ReadError("reset"), httpx2.ReadTimeout("silent")], ids=repr)
async def test_a_cut_connection_is_opened_where_it_was_cut(fault: Exception | None) -> None:
    half = piece(3, "!")[:30]
    service = Service(
        stream(told("running"), piece(1, "Hel"), piece(2, "lo"), half, fault=fault),
        httpx2.ConnectError("restarting"),
        refuses(503, "unavailable"),
        stream(told("running"), piece(3, "!"), told("completed")),
    )
    text, _ = await follow(service)
    assert text == "Hello!"
    assert [seen for seen, _ in service.positions] == [None, "r-1.2", "r-1.2", "r-1.2"]


async def test_a_service_that_cuts_often_is_followed_while_it_answers() -> None:
    service = Service(*(stream(told("running")) for _ in range(MANY)), stream(told("stopped")))
    _, following = await follow(service)
    assert following.response is not None
    assert (following.response.state, len(service.positions)) == ("stopped", MANY + 1)


async def test_one_goes_on_after_a_number_that_is_known() -> None:
    service = Service(stream(piece(8, "rest"), told("completed")))
    assert (await follow(service, after=7))[0] == "rest"
    assert service.positions == [(None, "7")]


async def test_nothing_more_to_come_is_an_end() -> None:
    text, following = await follow(Service(httpx2.Response(204)))
    assert (text, following.response) == ("", None)


async def test_who_may_not_read_on_is_told() -> None:
    service = Service(stream(told("running"), "event: revoked\ndata: {}\n\n"))
    with pytest.raises(SessionNotFoundError, match="c-1"):
        await follow(service)
    assert len(service.positions) == 1


async def test_what_is_not_there_is_not_waited_for() -> None:
    service = Service(refuses(404, "not_found"))
    with pytest.raises(ServiceError) as caught:
        await follow(service)
    assert (caught.value.code, len(service.positions)) == ("not_found", 1)


async def test_a_service_that_never_answers_is_given_up() -> None:
    service = Service(httpx2.ConnectError("down"))
    with pytest.raises(StoreUnavailableError):
        await follow(service)
    assert len(service.positions) == 1 + Retries().most
