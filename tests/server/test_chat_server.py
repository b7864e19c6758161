"""The chat server over HTTP: what the design of its sessions and its memory asks to be verified."""

from __future__ import annotations

import asyncio
import json
import re
import subprocess
from collections.abc import AsyncGenerator, Generator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

import httpx2
import jwt
import pytest
from dependency_injector import providers

from reactor_memory.errors import ChatModelError, ConfigurationError
from reactor_memory.features.sharing import key_operations
from reactor_memory.features.sharing.principals import Grant, Operation
from reactor_memory.server.api_keys import new_key
from reactor_memory.server.chat_agents import ChatAgent, agents_of
from reactor_memory.server.chat_server import chat_routes
from reactor_memory.settings.service_sections import AuthSettings
from reactor_memory.settings.service_settings import ServiceSettings
from reactor_memory.settings.settings import Settings
from reactor_memory.wiring import stores
from reactor_memory.wiring.plugins import Plugin
from reactor_memory.wiring.service_container import ServiceContainer, open_service_container
from tests.doubles.faulty_database import FaultyDatabase
from tests.doubles.offline_agent import OfflineAgent
from tests.scenes.stores import memory_database
from tests.server.listening import listening_service
from tests.server.processes import command, environment

pytestmark = [pytest.mark.anyio]

PAGE = re.compile(r"^(http://127\.0\.0\.1:\d+)/#token=(\S+)$")
AGENTS: dict[str, Any] = {"assistant": {}, "travel": {"system": "You plan journeys."}}


class Client(httpx2.AsyncClient):
    """Ann, unless a request says otherwise; `bob` are the headers of somebody else."""

    bob: dict[str, str]


@asynccontextmanager
async def serving(
    folder: Path, *, agent: ChatAgent | None = None, store: Any = None, **sections: Any
) -> AsyncGenerator[Client]:
    """A client of a server on a real socket."""

    def configure(container: ServiceContainer) -> None:
        if store is not None:
            container.database.override(providers.Object(store))  # pyright: ignore[reportUnknownMemberType]

    told = {
        "notes": {"enabled": True},
        "summary": {"enabled": True},
        "chat_server": {"agents": AGENTS, "any_agent": False},
    }
    routes = chat_routes(agent or OfflineAgent())
    async with (
        listening_service(folder, configure=configure, routes=routes, **(told | sections)) as service,
        Client(base_url=service.address, headers=service.user("ann"), timeout=60) as client,
    ):
        client.bob = service.user("bob")
        yield client


@contextmanager
def process(folder: Path) -> Generator[tuple[subprocess.Popen[str], str, dict[str, str]]]:
    """`reactor-memory chat-server --dev` in a process of its own, its address and the headers of its user."""
    started = [*command()[:-1], "chat-server", "--dev", "--port", "0", "--store", "memory.db", "--user", "ann"]
    with subprocess.Popen(
        started, cwd=folder, env=environment(folder), stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as server:
        try:
            assert server.stdout is not None
            found = next(match for match in map(PAGE.match, server.stdout) if match)
            yield server, found[1], {"authorization": f"Bearer {found[2]}"}
        finally:
            server.kill()


async def post(client: Client, path: str, status: int = 200, **body: Any) -> Any:
    headers = body.pop("headers", None)
    response = await client.post(path, json=body, headers=headers)
    assert response.status_code == status, response.text
    return response.json()


async def resolve(client: Client, agent_id: str = "assistant", **more: Any) -> tuple[str, str]:
    found = await post(client, "/api/sessions/resolve", agent_id=agent_id, **more)
    return found["session_id"], found["source"]


async def say(client: Client, session_id: str, message: str, **more: Any) -> str:
    body: dict[str, Any] = {"agent_id": "assistant"} | more
    return (await post(client, "/api/chat", message=message, session_id=session_id, **body))["answer"]


async def said(client: Client, session_id: str) -> list[str]:
    return [each["content"] for each in (await client.get(f"/api/sessions/{session_id}/messages")).json()]


class TestSessionIds:
    """Section 6, testing: the lifecycle of a session id."""

    async def test_persists_across_refreshes_devices_and_restarts(self, tmp_path: Path) -> None:
        async with serving(tmp_path) as client:
            session_id, source = await resolve(client)
            assert source == "new"
            assert await resolve(client, cached_id=session_id) == (session_id, "cached")
        async with serving(tmp_path) as client:
            assert await resolve(client, cached_id=session_id) == (session_id, "cached")
            assert await resolve(client) == (session_id, "active")
            assert await resolve(client, cached_id="an old one") == (session_id, "active")

    async def test_different_agents_of_a_user_have_different_sessions(self, tmp_path: Path) -> None:
        async with serving(tmp_path) as client:
            ids = {(await resolve(client, agent_id))[0] for agent_id in ("assistant", "travel", "assistant")}
            assert len(ids) == 2
            listed = (await client.get("/api/sessions")).json()
            assert {each["session_id"] for each in listed} == ids

    async def test_different_users_have_different_sessions(self, tmp_path: Path) -> None:
        async with serving(tmp_path) as client:
            assert (await resolve(client))[0] != (await resolve(client, headers=client.bob))[0]

    async def test_tabs_that_begin_at_once_agree(self, tmp_path: Path) -> None:
        async with serving(tmp_path) as client:
            found = await asyncio.gather(*(resolve(client) for _ in range(50)))
            assert len({session_id for session_id, _ in found}) == 1

    async def test_the_active_session_can_be_asked_for(self, tmp_path: Path) -> None:
        async with serving(tmp_path) as client:
            path = "/api/sessions/active?agent_id=assistant"
            assert (await client.get(path)).status_code == 404
            session_id, _ = await resolve(client)
            assert (await client.get(path)).json()["session_id"] == session_id

    async def test_starting_anew_and_switching_back(self, tmp_path: Path) -> None:
        async with serving(tmp_path) as client:
            first, _ = await resolve(client)
            second = (await post(client, "/api/sessions/new", 201, agent_id="assistant"))["session_id"]
            assert second != first
            assert await resolve(client, cached_id=first) == (second, "active")
            back = {"agent_id": "assistant", "expected": second, "session_id": first}
            assert (await client.put("/api/sessions/active", json=back)).json()["session_id"] == first
            assert (await client.put("/api/sessions/active", json=back)).status_code == 409
            assert await resolve(client, cached_id=second) == (first, "active")

    async def test_a_tab_learns_that_its_session_is_no_longer_active(self, tmp_path: Path) -> None:
        async with serving(tmp_path) as client:
            first, _ = await resolve(client)
            body: dict[str, Any] = {"message": "hello", "session_id": first, "agent_id": "assistant"}
            assert (await post(client, "/api/chat", **body))["is_active"] is True
            await post(client, "/api/sessions/new", 201, agent_id="assistant")
            assert (await post(client, "/api/chat", **body))["is_active"] is False

    async def test_an_outage_overwrites_nothing(self, tmp_path: Path) -> None:
        store = FaultyDatabase(memory_database(), at=1, mode="before", for_ever=True)
        async with serving(tmp_path, store=store) as client:
            assert await resolve(client, cached_id="cached") == ("cached", "unverified")
            await post(client, "/api/sessions/resolve", 503, agent_id="assistant")
            body = {"message": "hello", "session_id": "cached", "agent_id": "assistant"}
            await post(client, "/api/chat", 503, **body)
            store.heal()
            assert (await resolve(client, cached_id="cached"))[1] == "new"


class TestConversations:
    """Section 6, testing: continuity, and what belongs to which session."""

    async def test_goes_on_where_it_was_after_a_restart(self, tmp_path: Path) -> None:
        async with serving(tmp_path) as client:
            session_id, _ = await resolve(client)
            assert await say(client, session_id, "I need a hotel in Oslo") == "You said: I need a hotel in Oslo"
        async with serving(tmp_path) as client:
            assert await say(client, session_id, "What did I say first?") == "I need a hotel in Oslo"
            assert await said(client, session_id) == [
                *("I need a hotel in Oslo", "You said: I need a hotel in Oslo"),
                *("What did I say first?", "I need a hotel in Oslo"),
            ]

    @pytest.mark.slow
    async def test_every_turn_is_there_when_its_answer_is(self, tmp_path: Path) -> None:
        """Killed without warning, the server has kept what it answered."""
        with process(tmp_path) as (server, address, headers):
            async with Client(base_url=address, headers=headers, timeout=60) as client:
                session_id, _ = await resolve(client)
                answer = await say(client, session_id, "keep this")
            server.kill()
            server.wait()
        async with serving(tmp_path) as client:
            assert await resolve(client) == (session_id, "active")
            assert await said(client, session_id) == ["keep this", answer]

    async def test_sessions_at_once_do_not_cross(self, tmp_path: Path) -> None:
        """Of one user and one agent: nothing of a session is kept on what requests share."""
        async with serving(tmp_path) as client:
            names = [f"session-{number}" for number in range(8)]
            await asyncio.gather(*(say(client, name, f"I am {name}") for name in names))
            asked = [say(client, name, "What did I say first?") for name in names]
            assert await asyncio.gather(*asked) == [f"I am {name}" for name in names]
            for name in names:
                assert len(await said(client, name)) == 4

    @pytest.mark.slow
    async def test_a_long_one_is_summarised_and_still_answered(self, tmp_path: Path) -> None:
        async with serving(tmp_path) as client:
            for number in range(15):
                await say(client, "long", f"My booking number is B-{1000 + number}")
            assert len(await said(client, "long")) == 30

    async def test_a_model_that_fails_leaves_a_session_that_works(self, tmp_path: Path) -> None:
        agent = OfflineAgent()
        agent.failure = ChatModelError("unavailable", "is down")
        async with serving(tmp_path, agent=agent) as client:
            body = {"message": "hello", "session_id": "s", "agent_id": "assistant"}
            assert (await post(client, "/api/chat", 502, **body))["code"] == "model_failed"
            await post(client, "/api/chat", 502, stream=True, **body)  # nothing was told yet
            agent.failure = None
            assert await say(client, "s", "hello again") == "You said: hello again"


class TestLongTermMemory:
    """Section 7: preferences persist across sessions."""

    async def test_outlasts_the_session(self, tmp_path: Path) -> None:
        async with serving(tmp_path) as client:
            first, _ = await resolve(client)
            assert await say(client, first, "Remember I like window seats") == "I have written that down."
            second = (await post(client, "/api/sessions/new", 201, agent_id="assistant"))["session_id"]
            assert await say(client, second, "What do you know?") == "- I like window seats"

    async def test_is_read_afresh_in_each_turn(self, tmp_path: Path) -> None:
        async with serving(tmp_path) as client:
            await say(client, "one", "Remember I like tea")
            await say(client, "two", "Remember I like figs")
            assert await say(client, "one", "What do you know?") == "- I like tea\n- I like figs"

    async def test_is_of_one_user_and_one_agent(self, tmp_path: Path) -> None:
        async with serving(tmp_path) as client:
            await say(client, "s", "Remember I like tea")
            assert await say(client, "of bob", "What do you know?", headers=client.bob) == "Nothing yet."
            assert await say(client, "travels", "What do you know?", agent_id="travel") == "Nothing yet."


class TestWhoMayWhat:
    async def test_without_a_user_nothing_is_answered(self, tmp_path: Path) -> None:
        async with serving(tmp_path) as client:
            for headers in ({"authorization": ""}, {"authorization": "Bearer x"}, {"authorization": "Dev ann"}):
                await post(client, "/api/sessions/resolve", 401, agent_id="assistant", headers=headers)
                await post(client, "/api/chat", 401, message="a", session_id="s", agent_id="assistant", headers=headers)
                assert (await client.get("/api/sessions", headers=headers)).status_code == 401

    async def test_the_session_of_someone_else_is_not_there(self, tmp_path: Path) -> None:
        async with serving(tmp_path) as client:
            session_id, _ = await resolve(client)
            await say(client, session_id, "this is mine")
            body = {"session_id": session_id, "agent_id": "assistant"}
            refused = await post(client, "/api/chat", 404, message="let me in", headers=client.bob, **body)
            assert refused["code"] == "not_found"
            response = await client.put("/api/sessions/active", json=body, headers=client.bob)
            assert response.status_code == 404
            assert (await client.get(f"/api/sessions/{session_id}/messages", headers=client.bob)).status_code == 404
            assert (await resolve(client, cached_id=session_id, headers=client.bob))[0] != session_id
            assert await said(client, session_id) == ["this is mine", "You said: this is mine"]

    @pytest.mark.parametrize(
        ("body", "status"),
        [
            ({}, 422),
            ({"message": "a", "session_id": "s"}, 422),
            ({"message": 3, "session_id": "s", "agent_id": "assistant"}, 422),
            ({"message": " ", "session_id": "s", "agent_id": "assistant"}, 422),
            ({"message": "a", "session_id": "a\nb", "agent_id": "assistant"}, 404),
            ({"message": "a", "session_id": "s", "agent_id": "assistant", "user_id": "bob"}, 422),
            ({"message": "a", "session_id": "s", "agent_id": "nobody"}, 404),
        ],
    )
    async def test_a_request_that_makes_no_sense(self, tmp_path: Path, body: dict[str, Any], status: int) -> None:
        async with serving(tmp_path) as client:
            await post(client, "/api/chat", status, **body)
            assert (await client.post("/api/chat", content=b"{")).status_code == 400

    async def test_the_page_of_the_client(self, tmp_path: Path) -> None:
        async with serving(tmp_path) as client:
            page = await client.get("/", headers={"authorization": ""})
            assert page.headers["content-type"].startswith("text/html")
            assert "script-src 'self'" in page.headers["content-security-policy"]
            script = await client.get("/chat.js", headers={"authorization": ""})
            assert "chatSession_${userId()}_${agent.value}" in script.text

    async def test_tokens_of_supabase_count(self, tmp_path: Path) -> None:
        """Signed with the JWT secret of the project, which is a setting."""
        secret, url = "s" * 32, "https://project.supabase.co"
        claims = {"iss": f"{url}/auth/v1", "aud": "authenticated", "role": "authenticated", "sub": "ann"}
        auth = {"supabase_url": url, "supabase_jwt_secret": secret}
        async with serving(tmp_path, auth=auth) as client:
            for signed, status in ((secret, 200), ("x" * 32, 401)):
                token = jwt.encode(claims | {"exp": 4_000_000_000}, signed, algorithm="HS256")
                headers = {"authorization": f"Bearer {token}"}
                await post(client, "/api/sessions/resolve", status, agent_id="assistant", headers=headers)

    @pytest.mark.parametrize(
        "given", [{"supabase_jwt_secret": "s" * 32}, {"supabase_url": "https://a.b", "supabase_jwt_secret": "s"}]
    )
    def test_half_of_a_project_is_refused(self, given: dict[str, str]) -> None:
        with pytest.raises(ConfigurationError, match="supabase_"):
            AuthSettings(**given)  # type: ignore[arg-type]

    def test_project_without_a_secret_has_public_keys(self) -> None:
        (issuer,) = AuthSettings(supabase_url="https://a.b").all_issuers  # type: ignore[arg-type]
        assert (issuer.algorithm, issuer.jwks_url) == ("ES256", "https://a.b/auth/v1/.well-known/jwks.json")


class TestKeys:
    async def test_key_speaks_for_a_user_as_it_is_granted(self, tmp_path: Path) -> None:
        async with listening_service(tmp_path, routes=chat_routes(OfflineAgent())) as service:
            database, clock = service.container.database(), service.container.clock()
            async with Client(base_url=service.address, timeout=60) as client:
                body = {"message": "hello", "session_id": "s", "agent_id": "a"}
                cases: list[tuple[tuple[Operation, ...], int]] = [
                    (("append", "on-behalf-of"), 200),
                    (("read", "on-behalf-of"), 403),
                ]
                for operations, status in cases:
                    made = new_key("app", Grant(agent_names=("*",), operations=operations), now=clock())
                    await database.write(key_operations.add_api_key, made.key)
                    headers = {"X-API-Key": made.text, "X-On-Behalf-Of": "ann"}
                    await post(client, "/api/chat", status, headers=headers, **body)


class TestStreaming:
    async def test_pieces_come_as_they_are_made(self, tmp_path: Path) -> None:
        async with serving(tmp_path) as client:
            events = await stream(client, "s", "one two")
            assert [value["text"] for name, value in events if name == "piece"] == ["You", " said:", " one", " two"]
            assert events[-1] == ("done", {"answer": "You said: one two", "session_id": "s", "is_active": False})
            assert await said(client, "s") == ["one two", "You said: one two"]

    async def test_failure_on_the_way_is_told(self, tmp_path: Path) -> None:
        class Breaking(OfflineAgent):
            async def answer(self, memory: Any, asked: Any) -> AsyncGenerator[str]:
                yield "half"
                raise ChatModelError("unavailable", "broke")

        async with serving(tmp_path, agent=Breaking()) as client:
            _, (name, told) = await stream(client, "s", "hello")
            assert (name, told["status"], told["code"]) == ("error", 502, "model_failed")


async def stream(client: Client, session_id: str, message: str) -> list[tuple[str, Any]]:
    body = {"message": message, "session_id": session_id, "agent_id": "assistant", "stream": True}
    response = await client.post("/api/chat", json=body)
    assert response.headers["content-type"].startswith("text/event-stream")
    found = [
        dict(line.split(": ", 1) for line in event.splitlines()) for event in response.text.split("\r\n\r\n") if event
    ]
    return [(event["event"], json.loads(event["data"])) for event in found]


class TestAgents:
    async def test_any_id_is_an_agent_unless_settings_say(self, tmp_path: Path) -> None:
        sections: dict[str, Any] = {"chat_server": {"agents": AGENTS}, "chat": {"system": "You help."}}
        async with serving(tmp_path, **sections) as client:
            assert await say(client, "s", "who are you?", agent_id="travel") == "You plan journeys."
            assert await say(client, "t", "who are you?", agent_id="assistant") == "You help."
            assert await say(client, "u", "hello", agent_id="anybody at all") == "You said: hello"
            assert (await client.get("/api/agents")).json() == ["assistant", "travel"]

    async def test_model_of_the_settings_answers(self, tmp_path: Path) -> None:
        async with (
            listening_service(tmp_path, routes=chat_routes()) as service,
            Client(base_url=service.address, headers=service.user("ann"), timeout=60) as client,
        ):
            assert (await say(client, "s", "hello")).startswith("You said: hello")

    async def test_plugin_brings_an_agent_with_tools(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        def offline(settings: Settings) -> OfflineAgent:
            return OfflineAgent()

        plugin = Plugin(name="sample", provides={"chat_agent": {"offline": offline}})
        monkeypatch.setattr(stores, "discover", lambda: (plugin,))
        sections: dict[str, Any] = {
            "chat_server": {"agents": {"travel": {"agent": "offline"}}},
            "notes": {"enabled": True},
        }
        async with (
            listening_service(tmp_path, routes=chat_routes(), **sections) as service,
            Client(base_url=service.address, headers=service.user("ann"), timeout=60) as client,
        ):
            assert await say(client, "s", "Remember tea", agent_id="travel") == "I have written that down."
            assert await say(client, "t", "What do you know?", agent_id="travel") == "- tea"

    async def test_agent_that_nobody_provides_is_refused(self, tmp_path: Path) -> None:
        settings = ServiceSettings(chat_server={"agent": "booking"}, store={"url": "memory://"})  # pyright: ignore
        async with open_service_container(settings) as container:
            with pytest.raises(ConfigurationError, match="no chat_agent is called 'booking'"):
                agents_of(container)
