"""The example of a chat server, over HTTP: what the design of its sessions and its memory asks to be verified."""

from __future__ import annotations

import asyncio
import os
import re
import subprocess
import sys
from collections.abc import AsyncGenerator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
import uvicorn
from dependency_injector import providers
from examples.chat_server.app import create_app
from langchain_core.language_models import BaseChatModel

from reactor_memory import Container, Settings
from tests.adapters.langchain.scripted import ScriptedModel
from tests.doubles.faulty_database import FaultyDatabase
from tests.scenes.stores import memory_database

pytestmark = [pytest.mark.anyio, pytest.mark.blocking]

ROOT = Path(__file__).parents[3]
ANN, BOB = {"authorization": "Dev ann"}, {"authorization": "Dev bob"}
RUNNING = re.compile(r"running on (http://127\.0\.0\.1:\d+)")


def settings(url: str) -> Settings:
    return Settings(store={"url": url}, notes={"enabled": True}, summary={"enabled": True})  # pyright: ignore


@asynccontextmanager
async def serving(
    url: str = "memory://", *, model: BaseChatModel | None = None, store: Any = None
) -> AsyncGenerator[httpx.AsyncClient]:
    """A client of a server on a real socket; the client is Ann unless it says otherwise."""

    def configure(container: Container) -> None:
        if store is not None:
            container.database.override(providers.Object(store))

    app = create_app(settings(url), model=model, configure=configure)
    server = uvicorn.Server(uvicorn.Config(app, host="127.0.0.1", port=0, log_level="warning"))
    running = asyncio.create_task(server.serve())
    while not server.started:
        await asyncio.sleep(0.01)
        assert not running.done()
    port = server.servers[0].sockets[0].getsockname()[1]
    try:
        async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{port}", headers=ANN, timeout=60) as client:
            yield client
    finally:
        server.should_exit = True
        await running


@contextmanager
def process(url: str) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """The server in a process of its own, and its address."""
    command = [sys.executable, "-m", "uvicorn", "--factory", "examples.chat_server.app:create_app", "--port", "0"]
    environment = os.environ | {"REACTOR_MEMORY_STORE__URL": url}
    with subprocess.Popen(command, cwd=ROOT, env=environment, stderr=subprocess.PIPE, text=True) as server:
        try:
            assert server.stderr is not None
            lines = (RUNNING.search(line) for line in server.stderr)
            yield server, next(found[1] for found in lines if found)
        finally:
            server.kill()


async def post(client: httpx.AsyncClient, path: str, status: int = 200, **body: Any) -> Any:
    headers = body.pop("headers", None)
    response = await client.post(path, json=body, headers=headers)
    assert response.status_code == status, response.text
    return response.json()


async def resolve(client: httpx.AsyncClient, agent_id: str = "assistant", **more: Any) -> tuple[str, str]:
    found = await post(client, "/api/sessions/resolve", agent_id=agent_id, **more)
    return found["session_id"], found["source"]


async def say(client: httpx.AsyncClient, session_id: str, message: str, **more: Any) -> str:
    body = {"agent_id": "assistant"} | more
    return (await post(client, "/api/chat", message=message, session_id=session_id, **body))["answer"]


async def said(client: httpx.AsyncClient, session_id: str) -> list[str]:
    return [each["content"] for each in (await client.get(f"/api/sessions/{session_id}/messages")).json()]


class TestSessionIds:
    """Section 6, testing: the lifecycle of a session id."""

    async def test_persists_across_refreshes_devices_and_restarts(self, tmp_path: Path) -> None:
        url = f"sqlite:///{tmp_path / 'memory.db'}"
        async with serving(url) as client:
            session_id, source = await resolve(client)
            assert source == "new"
            assert await resolve(client, cached_id=session_id) == (session_id, "cached")
        async with serving(url) as client:
            assert await resolve(client, cached_id=session_id) == (session_id, "cached")
            assert await resolve(client) == (session_id, "active")
            assert await resolve(client, cached_id="an old one") == (session_id, "active")

    async def test_different_agents_of_a_user_have_different_sessions(self) -> None:
        async with serving() as client:
            ids = {(await resolve(client, agent_id))[0] for agent_id in ("assistant", "travel", "assistant")}
            assert len(ids) == 2
            listed = (await client.get("/api/sessions")).json()
            assert {each["session_id"] for each in listed} == ids

    async def test_different_users_have_different_sessions(self) -> None:
        async with serving() as client:
            assert (await resolve(client))[0] != (await resolve(client, headers=BOB))[0]

    async def test_tabs_that_begin_at_once_agree(self) -> None:
        async with serving() as client:
            found = await asyncio.gather(*(resolve(client) for _ in range(50)))
            assert len({session_id for session_id, _ in found}) == 1

    async def test_the_active_session_can_be_asked_for(self) -> None:
        async with serving() as client:
            path = "/api/sessions/active?agent_id=assistant"
            assert (await client.get(path)).status_code == 404
            session_id, _ = await resolve(client)
            assert (await client.get(path)).json()["session_id"] == session_id

    async def test_starting_anew_and_switching_back(self) -> None:
        async with serving() as client:
            first, _ = await resolve(client)
            second = (await post(client, "/api/sessions/new", 201, agent_id="assistant"))["session_id"]
            assert second != first
            assert await resolve(client, cached_id=first) == (second, "active")
            back = {"agent_id": "assistant", "expected": second, "session_id": first}
            assert (await client.put("/api/sessions/active", json=back)).json()["session_id"] == first
            assert (await client.put("/api/sessions/active", json=back)).status_code == 409
            assert await resolve(client, cached_id=second) == (first, "active")

    async def test_a_tab_learns_that_its_session_is_no_longer_active(self) -> None:
        async with serving() as client:
            first, _ = await resolve(client)
            body = {"message": "hello", "session_id": first, "agent_id": "assistant"}
            assert (await post(client, "/api/chat", **body))["is_active"] is True
            await post(client, "/api/sessions/new", 201, agent_id="assistant")
            assert (await post(client, "/api/chat", **body))["is_active"] is False

    async def test_an_outage_overwrites_nothing(self) -> None:
        store = FaultyDatabase(memory_database(), at=1, mode="before", for_ever=True)
        async with serving(store=store) as client:
            assert await resolve(client, cached_id="cached") == ("cached", "unverified")
            await post(client, "/api/sessions/resolve", 503, agent_id="assistant")
            body = {"message": "hello", "session_id": "cached", "agent_id": "assistant"}
            await post(client, "/api/chat", 503, **body)
            store.heal()
            assert (await resolve(client, cached_id="cached"))[1] == "new"


class TestConversations:
    """Section 6, testing: continuity, and what belongs to which session."""

    async def test_goes_on_where_it_was_after_a_restart(self, tmp_path: Path) -> None:
        url = f"sqlite:///{tmp_path / 'memory.db'}"
        async with serving(url) as client:
            session_id, _ = await resolve(client)
            assert await say(client, session_id, "I need a hotel in Oslo") == "You said: I need a hotel in Oslo"
        async with serving(url) as client:
            assert await say(client, session_id, "What did I say first?") == "I need a hotel in Oslo"
            assert await said(client, session_id) == [
                *("I need a hotel in Oslo", "You said: I need a hotel in Oslo"),
                *("What did I say first?", "I need a hotel in Oslo"),
            ]

    async def test_every_turn_is_there_when_its_answer_is(self, tmp_path: Path) -> None:
        """Killed without warning, the server has kept what it answered."""
        url = f"sqlite:///{tmp_path / 'memory.db'}"
        with process(url) as (server, address):
            async with httpx.AsyncClient(base_url=address, headers=ANN, timeout=60) as client:
                session_id, _ = await resolve(client)
                await say(client, session_id, "keep this")
            server.kill()
            server.wait()
        async with serving(url) as client:
            assert await resolve(client) == (session_id, "active")
            assert await said(client, session_id) == ["keep this", "You said: keep this"]

    async def test_sessions_at_once_do_not_cross(self) -> None:
        """Of one user and one agent: nothing of a session is kept on what requests share."""
        async with serving() as client:
            names = [f"session-{number}" for number in range(8)]
            await asyncio.gather(*(say(client, name, f"I am {name}") for name in names))
            asked = [say(client, name, "What did I say first?") for name in names]
            assert await asyncio.gather(*asked) == [f"I am {name}" for name in names]
            for name in names:
                assert len(await said(client, name)) == 4

    async def test_a_long_one_is_summarised_and_still_answered(self) -> None:
        async with serving() as client:
            for number in range(15):
                await say(client, "long", f"My booking number is B-{1000 + number}")
            assert len(await said(client, "long")) == 30

    async def test_a_model_that_fails_leaves_a_session_that_works(self) -> None:
        model = ScriptedModel(answers=[RuntimeError("down"), "here I am"])
        async with serving(model=model) as client:
            await post(client, "/api/chat", 502, message="hello", session_id="s", agent_id="assistant")
            assert await say(client, "s", "hello again") == "here I am"


class TestLongTermMemory:
    """Section 7: preferences persist across sessions."""

    async def test_outlasts_the_session(self) -> None:
        async with serving() as client:
            first, _ = await resolve(client)
            assert await say(client, first, "Remember I like window seats") == "I have written that down."
            second = (await post(client, "/api/sessions/new", 201, agent_id="assistant"))["session_id"]
            assert await say(client, second, "What do you know?") == "- I like window seats"

    async def test_is_read_afresh_in_each_turn(self) -> None:
        async with serving() as client:
            await say(client, "one", "Remember I like tea")
            await say(client, "two", "Remember I like figs")
            assert await say(client, "one", "What do you know?") == "- I like tea\n- I like figs"

    async def test_is_of_one_user_and_one_agent(self) -> None:
        async with serving() as client:
            await say(client, "s", "Remember I like tea")
            assert await say(client, "of bob", "What do you know?", headers=BOB) == "Nothing yet."
            assert await say(client, "travels", "What do you know?", agent_id="travel") == "Nothing yet."


class TestWhoMayWhat:
    async def test_without_a_user_nothing_is_answered(self) -> None:
        async with serving() as client:
            for headers in ({"authorization": ""}, {"authorization": "Bearer x"}, {"authorization": "Dev"}):
                await post(client, "/api/sessions/resolve", 401, agent_id="assistant", headers=headers)
                await post(client, "/api/chat", 401, message="a", session_id="s", agent_id="assistant", headers=headers)
                assert (await client.get("/api/sessions", headers=headers)).status_code == 401

    async def test_the_session_of_someone_else_is_not_there(self) -> None:
        async with serving() as client:
            session_id, _ = await resolve(client)
            await say(client, session_id, "this is mine")
            body = {"session_id": session_id, "agent_id": "assistant"}
            refused = await post(client, "/api/chat", 404, message="let me in", headers=BOB, **body)
            assert refused == {"detail": "no such session"}
            response = await client.put("/api/sessions/active", json=body, headers=BOB)
            assert response.status_code == 404
            assert (await client.get(f"/api/sessions/{session_id}/messages", headers=BOB)).status_code == 404
            assert (await resolve(client, cached_id=session_id, headers=BOB))[0] != session_id
            assert await said(client, session_id) == ["this is mine", "You said: this is mine"]

    @pytest.mark.parametrize(
        ("body", "status"),
        [
            ({}, 422),
            ({"message": "a", "session_id": "s"}, 422),
            ({"message": 3, "session_id": "s", "agent_id": "assistant"}, 422),
            ({"message": " ", "session_id": "s", "agent_id": "assistant"}, 422),
            ({"message": "a", "session_id": "a\nb", "agent_id": "assistant"}, 422),
            ({"message": "a", "session_id": "s", "agent_id": "assistant", "user_id": "bob"}, 422),
            ({"message": "a", "session_id": "s", "agent_id": "nobody"}, 404),
        ],
    )
    async def test_a_request_that_makes_no_sense(self, body: dict[str, Any], status: int) -> None:
        async with serving() as client:
            await post(client, "/api/chat", status, **body)
            assert (await client.post("/api/chat", content=b"{")).status_code == 422

    async def test_the_page_of_the_client(self) -> None:
        async with serving() as client:
            page = await client.get("/")
            assert page.headers["content-type"].startswith("text/html")
            assert "chatSession_${user.value}_${agent.value}" in page.text
