"""What `ResponseWriter` posts, and how it ends."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import UTC, datetime

import anyio
import pytest
from msgspec.structs import replace

from reactor_memory.client import ResponseWriter
from reactor_memory.errors import ServiceError, StoreUnavailableError
from reactor_memory.features.sharing.bodies import Response

pytestmark = pytest.mark.anyio

NOW = datetime(2026, 11, 21, tzinfo=UTC)
BEGUN = Response(
    id="r-1",
    conversation_id="c-1",
    fence=7,
    state="running",
    last_event=0,
    stop_requested=False,
    message_id=None,
    producer=None,
    created_at=NOW,
    updated_at=NOW,
    expires_at=NOW,
)
SUPERSEDED = ServiceError("superseded", "a newer one has begun", status=409)


class Responses:
    """Keeps what is posted. `failure` is raised by posts; `changed` is set when something came in."""

    def __init__(self) -> None:
        self.response = BEGUN
        self.pieces: list[str] = []
        self.repeated = 0
        self.failure: Exception | None = None
        self.gate = anyio.Event()
        self.gate.set()
        self._changed = anyio.Event()

    async def until(self, condition: Callable[[], bool]) -> None:
        while not condition():
            await self._changed.wait()

    async def start_response(self, conversation_id: str, *, producer: str | None = None) -> Response:
        return self.response

    async def append_response_chunks(
        self, conversation_id: str, response_id: str, texts: Sequence[str], *, fence: int, first_event: int
    ) -> Response:
        await self.gate.wait()
        if self.failure:
            raise self.failure
        assert (fence, len(texts)) == (7, 1)
        if first_event == len(self.pieces) + 1:
            self.pieces += texts
        else:
            assert texts[0] == self.pieces[first_event - 1]
            self.repeated += 1
        self.response = replace(self.response, last_event=len(self.pieces))
        self._tell()
        return self.response

    async def finish_response(
        self, conversation_id: str, response_id: str, *, fence: int, state: str, message_id: str | None
    ) -> Response:
        assert fence == 7
        self.response = replace(self.response, state=state, message_id=message_id)
        return self.response

    def _tell(self) -> None:
        self._changed.set()
        self._changed = anyio.Event()


async def test_everything_that_is_written_is_posted_in_order() -> None:
    service = Responses()
    async with ResponseWriter(service, "c-1") as writer:
        for number in range(500):
            assert await writer.write(f"{number} ")
        writer.message_id = "m-1"
    assert "".join(service.pieces) == "".join(f"{number} " for number in range(500))
    assert (service.response.state, service.response.message_id) == ("completed", "m-1")
    assert writer.response == service.response


async def test_tokens_that_come_while_piece_is_posted_become_one_piece() -> None:
    service = Responses()
    service.gate = anyio.Event()
    async with ResponseWriter(service, "c-1") as writer:
        await writer.write("first")
        await anyio.wait_all_tasks_blocked()
        for token in ("a", "b", "c"):
            await writer.write(token)
        service.gate.set()
    assert service.pieces == ["first", "abc"]


async def test_a_token_is_posted_without_waiting_for_the_next_one() -> None:
    service = Responses()
    async with ResponseWriter(service, "c-1") as writer:
        await writer.write("Let me look.")
        await service.until(lambda: service.pieces == ["Let me look."])


async def test_a_stop_is_told_and_ends_the_response_as_stopped() -> None:
    service = Responses()
    async with ResponseWriter(service, "c-1") as writer:
        service.response = replace(service.response, stop_requested=True)
        await writer.write("one")
        await service.until(lambda: bool(service.pieces))
        await anyio.wait_all_tasks_blocked()
        assert writer.stop_requested
        assert not await writer.write("two")
    assert service.response.state == "stopped"


async def test_a_silent_producer_asks_whether_it_is_to_stop(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("reactor_memory.client.writer._SILENCE_SECONDS", 0.001)
    service = Responses()
    async with ResponseWriter(service, "c-1") as writer:
        service.response = replace(service.response, stop_requested=True)
        await service.until(lambda: service.repeated > 1)
        assert writer.stop_requested
    assert service.pieces == [""]


async def test_a_silent_producer_repeats_its_last_piece(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("reactor_memory.client.writer._SILENCE_SECONDS", 0.001)
    service = Responses()
    async with ResponseWriter(service, "c-1") as writer:
        await writer.write("Let me look.")
        await service.until(lambda: service.repeated > 1)
        await writer.write(" Here it is.")
    assert [piece for piece in service.pieces if piece] == ["Let me look.", " Here it is."]


async def write(service: Responses, *texts: str, then: Exception | None = None) -> None:
    """Write these texts, and raise what is given."""
    async with ResponseWriter(service, "c-1") as writer:
        for text in texts:
            await writer.write(text)
        if then is not None:
            raise then


async def test_an_error_ends_it_as_failed_with_what_was_written() -> None:
    service = Responses()
    with pytest.raises(ZeroDivisionError):
        await write(service, "half an ans", then=ZeroDivisionError())
    assert (service.response.state, service.pieces) == ("failed", ["half an ans"])


async def test_a_producer_that_is_cancelled_leaves_it_as_failed() -> None:
    service = Responses()
    with anyio.CancelScope() as scope:
        async with ResponseWriter(service, "c-1"):
            scope.cancel()
            await anyio.sleep_forever()
    assert scope.cancelled_caught
    assert service.response.state == "failed"


async def test_who_is_superseded_is_told_and_ends_nothing() -> None:
    service = Responses()
    service.failure = SUPERSEDED
    with pytest.raises(ServiceError) as caught:
        await write(service, *["x"] * 5000)  # more than may wait
    assert caught.value.code == "superseded"
    assert service.response.state == "running"


async def test_failure_is_raised_at_the_end_if_nobody_wrote_since() -> None:
    service = Responses()
    service.failure = StoreUnavailableError("gone")
    with pytest.raises(StoreUnavailableError):
        await write(service, "x")
    assert service.response.state == "failed"


async def test_a_failure_does_not_hide_the_error_of_the_producer() -> None:
    service = Responses()
    service.failure = StoreUnavailableError("gone")
    with pytest.raises(ZeroDivisionError):
        await write(service, "x", then=ZeroDivisionError())
