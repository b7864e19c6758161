"""Responses that are being written, through the service: agents write, members follow, nobody else learns a thing."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any, NamedTuple
from uuid import uuid4

import anyio
import httpx2
import pytest
from dependency_injector import providers
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from reactor_memory.features.responses import wiring as responses
from reactor_memory.features.sharing.principals import Principal
from reactor_memory.server.app import create_app
from reactor_memory.settings.service_settings import ServiceSettings
from reactor_memory.testing import FakeClock
from reactor_memory.wiring.service_container import ServiceContainer, open_service_container
from tests.server.sse import agent, open_stream, serving, text_until_end, user, who_says_so

pytestmark = pytest.mark.anyio

SECOND = 1_000_000
STREAMS = {
    "keep_seconds": 600,
    "max_bytes": 3_000_000,
}
ANN, BOT = user("ann"), agent("bot", of="ann")


class Service(NamedTuple):
    client: httpx2.AsyncClient
    container: ServiceContainer
    clock: FakeClock

    async def begin(self, owner: str = "ann", agent_name: str | None = None) -> str:
        """A conversation."""
        body = {} if agent_name is None else {"agentName": agent_name}
        answer = await self.client.post("/v1/user/conversations", json=body, headers=user(owner))
        assert answer.status_code == 201, answer.text
        return answer.json()["id"]

    async def share(self, conversation_id: str, name: str, level: str) -> None:
        answer = await self.client.post(
            f"/v1/user/conversations/{conversation_id}/memberships",
            json={"userId": name, "accessLevel": level},
            headers=ANN,
        )
        assert answer.status_code == 201, answer.text

    async def start(self, conversation_id: str, headers: dict[str, str] = BOT) -> Written:
        answer = await self.client.post(agents(conversation_id), json={"producer": "writer"}, headers=headers)
        assert answer.status_code == 201, answer.text
        return Written(self, answer.json(), headers)


class Written:
    """A response from its producer's side."""

    def __init__(self, service: Service, body: dict[str, Any], headers: dict[str, str]) -> None:
        self.service = service
        self.body = body
        self.headers = headers
        self.sent = 0
        self.conversation_id, self.id = body["conversationId"], body["id"]

    async def post(self, what: str, body: dict[str, Any]) -> httpx2.Response:
        path = f"{agents(self.conversation_id)}/{self.id}/{what}"
        return await self.service.client.post(path, json={"fence": self.body["fence"], **body}, headers=self.headers)

    async def add(self, *texts: str) -> dict[str, Any]:
        answer = await self.post("chunks", {"firstEvent": self.sent + 1, "texts": texts})
        assert answer.status_code == 200, answer.text
        self.sent += len(texts)
        return answer.json()

    async def finish(self, state: str = "completed", **more: Any) -> dict[str, Any]:
        answer = await self.post("complete", {"state": state, **more})
        assert answer.status_code == 200, answer.text
        return answer.json()

    @property
    def path(self) -> str:
        return f"{users(self.conversation_id)}/{self.id}"

    def event_id(self, event: int | str) -> str:
        return f"{self.id}.{event}"

    async def get(self, headers: dict[str, str] = ANN) -> httpx2.Response:
        return await self.service.client.get(self.path, headers=headers)

    def read(self, headers: dict[str, str] = ANN, query: str = ""):
        return open_stream(self.service.client, f"{self.path}/events{query}", headers)

    async def refused(self, headers: dict[str, str] = ANN, query: str = "") -> tuple[int, str]:
        answer = await self.service.client.get(f"{self.path}/events{query}", headers=headers)
        return answer.status_code, answer.json()["code"] if answer.content else ""


def agents(conversation_id: str) -> str:
    return f"/v1/agent/conversations/{conversation_id}/responses"


def users(conversation_id: str) -> str:
    return f"/v1/user/conversations/{conversation_id}/responses"


@pytest.fixture(scope="module")
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(scope="module")
async def service(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Service]:
    clock = FakeClock()
    chosen = ServiceSettings(
        store={"url": f"sqlite:///{tmp_path_factory.mktemp('responses')}/log.db"}, streams=STREAMS, clock="system"
    )
    patch = pytest.MonkeyPatch()
    patch.setattr(responses, "LEAST_POLL_SECONDS", 0.005)
    patch.setattr(responses, "MAX_PIECES", 400)
    patch.setattr(responses, "EXPIRES_SECONDS", 60)
    patch.setattr(responses, "HEARTBEAT_SECONDS", 0.05)
    patch.setattr(responses, "MOST_OPEN", 4)
    async with (
        open_service_container(
            chosen, configure=lambda parts: parts.clock.override(providers.Object(clock))
        ) as container,
        serving(create_app(container, authenticator=who_says_so)) as url,
        httpx2.AsyncClient(base_url=url) as client,
    ):
        yield Service(client, container, clock)
    patch.undo()


class TestWriting:
    async def test_a_response_is_started_added_to_and_finished(self, service: Service) -> None:
        written = await service.start(await service.begin())
        assert written.body["state"] == "running"
        assert written.body["producer"] == "writer"
        added = await written.add("Hel", "lo")
        assert (added["lastEvent"], added["stopRequested"]) == (2, False)
        message = await service.client.post(
            f"/v1/agent/conversations/{written.conversation_id}/messages",
            json={"messages": [{"role": "assistant", "content": "Hello"}]},
            headers=BOT,
        )
        message_id = message.json()["data"][0]["id"]
        ended = await written.finish(messageId=message_id)
        assert (ended["state"], ended["messageId"]) == ("completed", message_id)
        assert await written.finish(messageId=message_id) == ended
        assert (await written.get()).json() == ended

    async def test_a_repeated_start_is_one_start(self, service: Service) -> None:
        conversation_id = await service.begin()
        keyed = {**BOT, "idempotency-key": "k1"}
        first, again = await service.start(conversation_id, keyed), await service.start(conversation_id, keyed)
        assert again.body == first.body
        other = await service.client.post(agents(conversation_id), json={}, headers=keyed)
        assert (other.status_code, other.json()["code"]) == (409, "idempotency_conflict")

    async def test_repeated_chunks_do_no_harm_and_gaps_are_refused(self, service: Service) -> None:
        written = await service.start(await service.begin())
        await written.add("a", "b")
        again = await written.post("chunks", {"firstEvent": 2, "texts": ["b", "c"]})
        assert (again.status_code, again.json()["lastEvent"]) == (200, 3)
        gap = await written.post("chunks", {"firstEvent": 5, "texts": ["e"]})
        assert (gap.status_code, gap.json()["errors"][0]["field"]) == (422, "firstEvent")
        await written.finish()
        async with written.read() as events:
            assert await text_until_end(events) == "abc"

    async def test_the_newer_of_two_producers_fences_the_older(self, service: Service) -> None:
        conversation_id = await service.begin()
        old, new = await service.start(conversation_id), await service.start(conversation_id)
        for late in (
            await old.post("chunks", {"firstEvent": 1, "texts": ["x"]}),
            await old.post("complete", {}),
            await new.post("chunks", {"firstEvent": 1, "texts": ["x"], "fence": old.body["fence"]}),
        ):
            assert (late.status_code, late.json()["code"]) == (409, "superseded")
        await new.add("y")
        async with old.read() as events:
            assert [(event.kind, event.data["state"]) async for event in events if event.data] == [
                ("end", "superseded")
            ]

    async def test_what_ended_takes_no_more(self, service: Service) -> None:
        written = await service.start(await service.begin())
        await written.finish("failed")
        for late in (
            await written.post("chunks", {"firstEvent": 1, "texts": ["x"]}),
            await written.post("complete", {"state": "completed"}),
        ):
            assert (late.status_code, late.json()["code"]) == (409, "response_ended")

    async def test_a_response_has_an_end_to_its_length(self, service: Service) -> None:
        written = await service.start(await service.begin())
        many = await written.post("chunks", {"firstEvent": 1, "texts": ["x"] * 401})
        assert (many.status_code, many.json()["errors"][0]["field"]) == (413, "texts")
        for _ in range(5):
            await written.add("é" * 300_000)
        long = await written.post("chunks", {"firstEvent": 6, "texts": ["x"]})
        assert long.status_code == 413

    @pytest.mark.parametrize(
        ("body", "status"),
        [
            ({"texts": ["a\0b"]}, 422),
            ({"texts": []}, 422),
            ({"texts": ["x"], "firstEvent": 0}, 422),
            ({"texts": ["x"], "fence": 0}, 422),
            ({"texts": ["x"], "fence": 2**80}, 409),
            ({"texts": ["x"], "firstEvent": 2**80}, 422),
        ],
    )
    async def test_what_cannot_be_accepted(self, service: Service, body: dict[str, Any], status: int) -> None:
        written = await service.start(await service.begin())
        answer = await written.post("chunks", {"firstEvent": 1, **body})
        assert answer.status_code == status, answer.text

    async def test_half_a_surrogate_pair_is_refused(self, service: Service) -> None:
        written = await service.start(await service.begin())
        raw = b'{"fence": 1, "firstEvent": 1, "texts": ["\\ud83d"]}'
        answer = await service.client.post(
            f"{agents(written.conversation_id)}/{written.id}/chunks",
            content=raw,
            headers={**BOT, "content-type": "application/json"},
        )
        assert answer.status_code == 422

    async def test_a_message_that_is_not_there_finishes_nothing(self, service: Service) -> None:
        written = await service.start(await service.begin())
        for message_id in (str(uuid4()), "a\0b"):
            answer = await written.post("complete", {"messageId": message_id})
            assert (answer.status_code, answer.json()["errors"][0]["field"]) == (422, "messageId")
        assert (await written.get()).json()["state"] == "running"


class TestWhoMay:
    async def test_a_key_without_the_grant_writes_nothing(self, service: Service) -> None:
        conversation_id = await service.begin()
        headers = agent("bot", of="ann", grant="read,append")
        answer = await service.client.post(agents(conversation_id), json={}, headers=headers)
        assert (answer.status_code, answer.json()["code"]) == (403, "forbidden")

    async def test_an_agent_alone_writes_where_its_grant_reaches(self, service: Service) -> None:
        conversation_id = await service.begin(agent_name="writer")
        mine, others = {**agent("bot"), "x-test-names": "writer"}, {**agent("bot"), "x-test-names": "other"}
        written = await service.start(conversation_id, mine)
        await written.add("a")
        answer = await service.client.post(agents(conversation_id), json={}, headers=others)
        assert answer.status_code == 404

    @pytest.mark.parametrize(("level", "status"), [(None, 404), ("reader", 403), ("writer", 201)])
    async def test_on_behalf_of_a_user_as_that_user(self, service: Service, level: str | None, status: int) -> None:
        conversation_id = await service.begin()
        if level:
            await service.share(conversation_id, "bob", level)
        answer = await service.client.post(agents(conversation_id), json={}, headers=agent("bot", of="bob"))
        assert answer.status_code == status, answer.text

    async def test_nobody_adds_to_the_response_of_another_agent(self, service: Service) -> None:
        written = await service.start(await service.begin())
        written.headers = agent("eve", of="ann")
        for answer in (
            await written.post("chunks", {"firstEvent": 1, "texts": ["x"]}),
            await written.post("complete", {}),
        ):
            assert (answer.status_code, answer.json()["code"]) == (403, "forbidden")
        assert (await written.get()).json()["lastEvent"] == 0

    @pytest.mark.parametrize("path", ["", "/{id}", "/{id}/events"])
    async def test_to_who_is_no_member_there_is_nothing(self, service: Service, path: str) -> None:
        written = await service.start(await service.begin())
        answer = await service.client.get(
            users(written.conversation_id) + path.format(id=written.id), headers=user("eve")
        )
        assert (answer.status_code, answer.json()["code"]) == (404, "not_found")

    async def test_a_reader_follows_and_does_not_stop(self, service: Service) -> None:
        written = await service.start(await service.begin())
        await service.share(written.conversation_id, "bob", "reader")
        stop = await service.client.post(f"{written.path}/stop", headers=user("bob"))
        assert stop.status_code == 403
        async with written.read(user("bob")) as events:
            assert (await anext(events)).kind == "state"

    async def test_of_several_conversations_only_ones_own_are_told(self, service: Service) -> None:
        mine, idle, others = await service.begin(), await service.begin(), await service.begin("bob")
        written = await service.start(mine)
        await (await service.start(idle)).finish()
        await service.start(others, agent("bot", of="bob"))

        async def running(ids: str) -> list[str]:
            answer = await service.client.get(f"/v1/user/responses?conversationIds={ids}", headers=ANN)
            assert answer.status_code == 200, answer.text
            return [each["id"] for each in answer.json()["data"]]

        assert await running(f"{others},{idle},{mine},{mine},unknown,,%00") == [written.id]
        assert await running(others) == []
        assert (await service.client.get("/v1/user/responses", headers=ANN)).status_code == 400
        many = ",".join(str(number) for number in range(101))
        assert (await service.client.get(f"/v1/user/responses?conversationIds={many}", headers=ANN)).status_code == 400


class TestReading:
    async def test_the_list_is_newest_first(self, service: Service) -> None:
        conversation_id = await service.begin()
        written = [await service.start(conversation_id) for _ in range(3)]
        answer = await service.client.get(users(conversation_id), headers=ANN)
        assert [(each["id"], each["state"]) for each in answer.json()["data"]] == [
            (written[2].id, "running"),
            (written[1].id, "superseded"),
            (written[0].id, "superseded"),
        ]

    async def test_pieces_reach_several_readers_while_they_are_written(self, service: Service) -> None:
        written = await service.start(await service.begin())
        async with written.read() as one, written.read() as other:
            for events in (one, other):
                assert (await anext(events)).kind == "state"
            await written.add("a")
            for events in (one, other):
                event = await next_piece(events)
                assert (event.data, event.last_id) == ({"event": 1, "text": "a"}, written.event_id(1))
            await written.add("b")
            await written.finish()
            assert [await text_until_end(events) for events in (one, other)] == ["b", "b"]

    async def test_after_the_end_it_replays_until_it_expires(self, service: Service) -> None:
        written = await service.start(await service.begin())
        await written.add("a", "b", "c")
        await written.finish()
        for query, headers, text in (
            ("", {}, "abc"),
            ("?after=2", {}, "c"),
            ("?after=3", {}, ""),
            ("?after=2", {"last-event-id": written.event_id(1)}, "bc"),
            ("", {"last-event-id": written.event_id(0)}, "abc"),
        ):
            async with written.read({**ANN, **headers}, query) as events:
                assert await text_until_end(events) == text
        service.clock.advance(STREAMS["keep_seconds"] + 1)
        assert await written.refused() == (404, "not_found")
        assert (await written.get()).status_code == 404

    async def test_who_saw_the_end_is_told_not_to_come_back(self, service: Service) -> None:
        written = await service.start(await service.begin())
        await written.finish()
        async with written.read() as events:
            (end,) = [event async for event in events]
        assert end.kind == "end"
        assert await written.refused({**ANN, "last-event-id": str(end.last_id)}) == (204, "")

    @pytest.mark.parametrize(
        "wrong",
        [
            *["x", "-1", "1", "{id}", "{id}.", "{id}.-1", "{id}.1.5", "{id}.2", "{id}.9999999", "{id}.1e1", "{id}.END"],
            *[f"{{id}}.{10**14}", f"{{id}}.{'9' * 400}", "{id}.٣", "13f3841d-04b2-4740-8dcd-f6ff8458836c.1"],
        ],
    )
    async def test_an_event_of_another_stream_is_refused(self, service: Service, wrong: str) -> None:
        written = await service.start(await service.begin())
        await written.add("a")
        header = wrong.format(id=written.id).encode()
        answer = await service.client.get(f"{written.path}/events", headers={**ANN, "last-event-id": header})
        assert (answer.status_code, answer.json()["errors"][0]["field"]) == (400, "Last-Event-ID")

    @pytest.mark.parametrize("after", ["-1", "x", "2", str(10**30), "1.5"])
    async def test_a_piece_that_is_not_there_is_refused(self, service: Service, after: str) -> None:
        written = await service.start(await service.begin())
        await written.add("a")
        assert (await written.refused(query=f"?after={after}"))[0] == 400

    async def test_hostile_text_comes_through_as_it_is(self, service: Service) -> None:
        texts = [
            "\n\nevent: end\ndata: {}\n\n",
            "data: x\r\n\r\n",
            "\r",
            ": c",
            "\u2028\u2029\x85",
            "\x1b[0m\x07",
            "😀",
        ]
        texts += ["id: 9\n", "", "retry: 1\n\n", "</script>", '"}\n\ndata: {"']
        written = await service.start(await service.begin())
        await written.add(*texts)
        await written.finish()
        async with written.read() as events:
            pieces = [event async for event in events]
        assert [event.kind for event in pieces] == ["piece"] * len(texts) + ["end"]
        assert [event.data["text"] for event in pieces[:-1] if event.data] == texts

    @given(cuts=st.lists(st.integers(0, 6), max_size=8), sizes=st.lists(st.integers(1, 4), min_size=1, max_size=6))
    @settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
    async def test_any_disconnects_give_the_text_once(
        self, service: Service, cuts: list[int], sizes: list[int]
    ) -> None:
        written = await service.start(await service.begin())
        whole = ""

        async def write() -> None:
            nonlocal whole
            for size in sizes:
                texts = [f"{written.sent + place} " for place in range(size)]
                whole += "".join(texts)
                await written.add(*texts)
            await written.finish()

        text, last_id = "", None
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(write)
            for cut in [*cuts, None]:
                headers = ANN if last_id is None else {**ANN, "last-event-id": last_id}
                async with written.read(headers) as events:
                    seen = 0
                    while cut is None or seen < cut:
                        event = await anext(events)
                        last_id = event.last_id or last_id
                        if event.kind == "end":
                            break
                        if event.kind == "piece":
                            assert event.data is not None
                            text += event.data["text"]
                            seen += 1
                    else:
                        continue
                    break
        assert text == whole

    async def test_without_news_there_are_comments(self, service: Service) -> None:
        written = await service.start(await service.begin())
        async with written.read() as events:
            assert [(await anext(events)).kind for _ in range(3)] == ["state", "comment", "comment"]

    async def test_a_caller_has_so_many_streams_and_no_more(self, service: Service) -> None:
        written = await service.start(await service.begin())
        await service.share(written.conversation_id, "bob", "reader")
        streams = service.container.response_streams()
        async with written.read(), written.read(), written.read():
            async with written.read():
                assert streams.open_streams == 4
                assert await written.refused() == (429, "rate_limited")
                async with written.read(user("bob")) as others:
                    assert (await anext(others)).kind == "state"
            await until(lambda: streams.open_streams == 3)
            async with written.read() as events:
                assert (await anext(events)).kind == "state"
        await until(lambda: streams.open_streams == 0)

    async def test_a_slow_reader_holds_a_few_pieces_only(self, service: Service) -> None:
        written = await service.start(await service.begin())
        for _ in range(3):
            await written.add(*["x"] * 100)
        await written.finish()
        asked: list[int] = []
        store, real = service.container.response_store(), service.container.response_store().read_pieces

        async def counted(*args: Any, **kwargs: Any) -> Any:
            asked.append(kwargs["after"])
            return await real(*args, **kwargs)

        store.read_pieces = counted
        try:
            events = await service.container.response_streams().follow(
                Principal(user_id="ann"), written.conversation_id, written.id
            )
            for _ in range(50):
                await anext(events)
            assert asked == [0]
            await events.aclose()
        finally:
            del store.read_pieces


class TestStopping:
    async def test_a_stop_reaches_the_producer_with_its_next_chunk(self, service: Service) -> None:
        written = await service.start(await service.begin())
        async with written.read() as events:
            await written.add("a")
            stop = await service.client.post(f"{written.path}/stop", headers=ANN)
            assert (stop.status_code, stop.json()["state"], stop.json()["stopRequested"]) == (202, "running", True)
            assert (await written.add("b"))["stopRequested"] is True
            await written.finish("stopped")
            kinds = [(event.kind, event.data.get("state")) async for event in events if event.data]
        assert ("end", "stopped") in kinds
        again = await service.client.post(f"{written.path}/stop", headers=ANN)
        assert (again.status_code, again.json()["state"]) == (202, "stopped")

    async def test_a_stop_reaches_a_producer_that_waits(self, service: Service) -> None:
        written = await service.start(await service.begin())
        path = f"{agents(written.conversation_id)}/{written.id}?wait=60"
        answers: list[dict[str, Any]] = []

        async def wait() -> None:
            answers.append((await service.client.get(path, headers=BOT, timeout=60)).json())

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(wait)
            await written.add("a")
            await service.client.post(f"{written.path}/stop", headers=ANN)
        assert answers[0]["stopRequested"] is True

    async def test_waiting_has_an_end(self, service: Service) -> None:
        written = await service.start(await service.begin())
        path = f"{agents(written.conversation_id)}/{written.id}"
        answer = await service.client.get(f"{path}?wait=0.01", headers=BOT)
        assert (answer.status_code, answer.json()["stopRequested"]) == (200, False)
        assert (await service.client.get(f"{path}?wait=61", headers=BOT)).status_code == 400

    async def test_a_reader_who_leaves_stops_nothing(self, service: Service) -> None:
        written = await service.start(await service.begin())
        async with written.read() as events:
            await anext(events)
        assert (await written.add("a"))["stopRequested"] is False


class TestOverTime:
    async def test_a_silent_producer_loses_its_response(self, service: Service) -> None:
        written = await service.start(await service.begin())
        await written.add("a")
        service.clock.advance(59)
        await written.post("chunks", {"firstEvent": 1, "texts": ["a"]})
        service.clock.advance(59)
        async with written.read() as events:
            assert (await next_piece(events)).data == {"event": 1, "text": "a"}
            service.clock.advance(2)
            end = [event async for event in events if event.data]
        assert [(event.kind, event.data["state"]) for event in end if event.data] == [("end", "expired")]
        late = await written.post("chunks", {"firstEvent": 2, "texts": ["b"]})
        assert (late.status_code, late.json()["code"]) == (409, "response_ended")
        service.clock.advance(STREAMS["keep_seconds"])
        assert (await written.get()).status_code == 404
        assert await service.container.response_streams().sweep() > 0

    async def test_a_member_who_is_removed_is_cut_off(self, service: Service) -> None:
        written = await service.start(await service.begin())
        await service.share(written.conversation_id, "bob", "reader")
        async with written.read(user("bob")) as bobs, written.read() as anns:
            await written.add("a")
            assert (await next_piece(bobs)).kind == (await next_piece(anns)).kind == "piece"
            path = f"/v1/user/conversations/{written.conversation_id}/memberships/bob"
            assert (await service.client.delete(path, headers=ANN)).status_code == 204
            service.clock.advance(31)
            last = [event async for event in bobs if event.kind != "comment"]
            assert [(event.kind, event.data) for event in last] == [("revoked", {})]
            await written.add("b")
            assert (await next_piece(anns)).data == {"event": 2, "text": "b"}
        assert await written.refused({**user("bob"), "last-event-id": written.event_id(1)}) == (404, "not_found")

    async def test_a_deleted_conversation_ends_its_streams(self, service: Service) -> None:
        written = await service.start(await service.begin())
        async with written.read() as events:
            assert (await anext(events)).kind == "state"
            path = f"/v1/user/conversations/{written.conversation_id}"
            assert (await service.client.delete(path, headers=ANN)).status_code == 204
            service.clock.advance(31)
            last = [event async for event in events if event.kind != "comment"]
        assert [event.kind for event in last] == ["revoked"]
        late = await written.post("chunks", {"firstEvent": 1, "texts": ["a"]})
        assert late.status_code == 404

    async def test_an_answer_with_a_hole_is_not_passed_off(self, service: Service) -> None:
        written = await service.start(await service.begin())
        await written.add("a", "b", "c")
        await written.finish()
        store = service.container.response_store()
        whole = await store.read_pieces(written.conversation_id, written.id, after=0, limit=9)

        async def holed(*args: Any, **kwargs: Any) -> Any:
            return whole[1:]

        store.read_pieces = holed
        try:
            async with written.read() as events:
                assert [(event.kind, event.data["state"]) async for event in events if event.data] == [
                    ("end", "expired")
                ]
        finally:
            del store.read_pieces


async def next_piece(events: AsyncIterator[Any]) -> Any:
    """The next event that is neither a comment nor a state."""
    while True:
        event = await anext(events)
        if event.kind not in ("comment", "state"):
            return event


async def until(holds: Callable[[], bool]) -> None:
    """A server notices a while later that a client has left."""
    while not holds():  # noqa: ASYNC110 (nothing tells)
        await anyio.sleep(0.01)


class TestWithoutStreams:
    async def test_every_call_says_so_to_members_only(self, tmp_path: Path) -> None:
        chosen = ServiceSettings(store={"url": f"sqlite:///{tmp_path}/log.db"}, streams={"backend": "none"})
        async with (
            open_service_container(chosen) as container,
            serving(create_app(container, authenticator=who_says_so)) as url,
            httpx2.AsyncClient(base_url=url) as client,
        ):
            conversation_id = await Service(client, container, FakeClock()).begin()
            one = f"{users(conversation_id)}/r1"
            calls = [
                client.post(agents(conversation_id), json={}, headers=BOT),
                client.get(users(conversation_id), headers=ANN),
                client.get(one, headers=ANN),
                client.get(f"{one}/events", headers=ANN),
                client.post(f"{one}/stop", headers=ANN),
                client.get(f"/v1/user/responses?conversationIds={conversation_id}", headers=ANN),
            ]
            for call in calls:
                answer = await call
                assert (answer.status_code, answer.json()["code"]) == (409, "streams_disabled")
            assert (await client.get(one, headers=user("eve"))).status_code == 404


class TestADrain:
    async def test_streams_end_so_that_clients_connect_to_another_process(self, tmp_path: Path) -> None:
        chosen = ServiceSettings(store={"url": f"sqlite:///{tmp_path}/log.db"})
        async with (
            open_service_container(chosen) as container,
            serving(create_app(container, authenticator=who_says_so)) as url,
            httpx2.AsyncClient(base_url=url) as client,
        ):
            service = Service(client, container, FakeClock())
            written = await service.start(await service.begin())
            await written.add("a")
            async with written.read() as events:
                assert (await next_piece(events)).kind == "piece"
                container.response_streams().drain()
                assert [event.kind async for event in events] == ["comment"]
            refused = await client.get(f"{written.path}/events", headers=ANN)
            assert (refused.status_code, refused.json()["code"]) == (503, "unavailable")
            assert container.response_streams().open_streams == 0
            assert (await written.add("b"))["lastEvent"] == 2
