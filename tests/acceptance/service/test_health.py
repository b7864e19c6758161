"""What the service tells to anybody, and who may call at all."""

from __future__ import annotations

import httpx2
import pytest

from tests.acceptance.service.people import Agent, Caller, User
from tests.server.running import RunningService

pytestmark = pytest.mark.anyio


async def test_health_needs_nobody(http: httpx2.AsyncClient) -> None:
    answer = await Caller(http, "nobody", {}).get("/v1/health")
    assert (answer.status, answer.body) == (200, {"status": "ok"})


async def test_everything_else_needs_somebody(http: httpx2.AsyncClient) -> None:
    answer = await Caller(http, "nobody", {}).get("/v1/user/conversations")
    assert (answer.status, answer.code) == (401, "unauthenticated")
    assert answer.headers["www-authenticate"].startswith("Bearer")


async def test_an_unknown_key_is_nobody_even_beside_a_token(http: httpx2.AsyncClient, service: RunningService) -> None:
    headers = {**service.user("alice"), "X-API-Key": "rm_made_up"}
    assert (await Caller(http, "alice", headers).get("/v1/user/conversations")).status == 401


async def test_users_and_agents_have_paths_of_their_own(alice: User, agent: Agent) -> None:
    conversation = (await alice.begins())["id"]
    assert (await alice.get(f"/v1/agent/conversations/{conversation}/context")).status == 403
    assert (await agent.get("/v1/user/conversations")).status == 403


async def test_agent_on_behalf_of_user_is_checked_as_this_user(
    http: httpx2.AsyncClient, service: RunningService, alice: User
) -> None:
    key = await service.key("helper")
    conversation = (await alice.begins())["id"]
    for_alice = Agent(http, "helper", {"X-API-Key": key, **service.user("alice")})
    for_bob = Agent(http, "helper", {"X-API-Key": key, "X-On-Behalf-Of": "bob"})
    assert (await for_alice.get(f"/v1/agent/conversations/{conversation}/messages")).status == 200
    assert (await for_bob.get(f"/v1/agent/conversations/{conversation}/messages")).status == 404
