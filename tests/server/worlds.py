"""A service with every kind of caller, and conversations that some of them share."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any
from uuid import uuid4

import httpx2
from litestar.testing import AsyncTestClient

from reactor_memory.features.sharing import key_operations
from reactor_memory.features.sharing.principals import OPERATIONS, Grant, Operation
from reactor_memory.server.admission import admission_of
from reactor_memory.server.api_keys import new_key
from reactor_memory.server.app import create_app
from reactor_memory.settings.service_settings import ServiceSettings
from reactor_memory.wiring.service_container import ServiceContainer, open_service_container
from tests.scenes.signing import AUDIENCE, ISSUER, SECRET, token
from tests.server.authorization import WHO

OTHER_ISSUER = "https://partner.example.com/"
AGENT_NAME = "travel"
USER = "/v1/user"
FAR_FUTURE = 4_000_000_000


@dataclass(frozen=True)
class Responses:
    """Those of one conversation: one that was ended, and one that is being written under a fence."""

    ended_id: str
    running_id: str
    fence: int


@dataclass(frozen=True)
class World:
    """A group of conversations, one of which was deleted; another one is offered to the manager."""

    own: str
    fork: str
    deleted: str
    absent: str
    message_id: str
    fork_message_id: str
    transfer_id: str
    responses: Mapping[str, Responses]

    def fill(self, text: str, target: str, *, reading: bool) -> str:
        """With the ids of this world as the parameters in braces."""
        responses = self.responses.get(target, self.responses["own"])
        return (
            text.replace("{conversationId}", "" if target == "-" else getattr(self, target))
            .replace("{responseId}", responses.ended_id if reading else responses.running_id)
            .replace('"{fence}"', str(responses.fence))
            .replace("{own}", self.own)
            .replace("{messageId}", self.fork_message_id if target == "fork" else self.message_id)
            .replace("{userId}", "member")
            .replace("{newcomer}", f"newcomer-{uuid4()}")
            .replace("{transferId}", self.transfer_id)
        )


@dataclass(frozen=True)
class Staged:
    """The running service, and what each of `WHO` sends along."""

    container: ServiceContainer
    client: AsyncTestClient[Any]
    headers: Mapping[str, Mapping[str, str]]

    async def ask(self, who: str, method: str, path: str, body: object = None) -> httpx2.Response:
        options = {} if body is None else {"json": body}
        return await self.client.request(method, path, headers=self.headers[who], **options)

    async def done(self, who: str, method: str, path: str, body: object = None) -> Any:
        """What a request that must succeed answers."""
        answer = await self.ask(who, method, path, body)
        assert answer.is_success, (who, method, path, answer.text)
        return answer.json() if answer.content else None

    async def world(self) -> World:
        own, message_id = await self._conversation()
        offered, _ = await self._conversation()
        deleted, _ = await self._conversation()
        await self.done("owner", "DELETE", f"{USER}/conversations/{deleted}")
        forking, content = f"{USER}/conversations/{own}/messages/{message_id}/fork", {"content": "in the fork"}
        fork = (await self.done("owner", "POST", forking, {"newMessage": content}))["id"]
        listed = await self.done("owner", "GET", f"{USER}/conversations/{fork}/messages")
        offering = f"{USER}/conversations/{offered}/transfer-ownership"
        offer = await self.done("owner", "POST", offering, {"newOwnerUserId": "manager"})
        return World(
            own=own,
            fork=fork,
            deleted=deleted,
            absent=str(uuid4()),
            message_id=message_id,
            fork_message_id=listed["data"][-1]["id"],
            transfer_id=offer["id"],
            responses={"own": await self._responses(own), "fork": await self._responses(fork)},
        )

    async def _responses(self, conversation_id: str) -> Responses:
        path = f"/v1/agent/conversations/{conversation_id}/responses"
        ended = await self.done("agent", "POST", path, {})
        await self.done("agent", "POST", f"{path}/{ended['id']}/complete", {"fence": ended["fence"]})
        running = await self.done("agent", "POST", path, {})
        return Responses(ended["id"], running["id"], running["fence"])

    async def _conversation(self) -> tuple[str, str]:
        """One that `former` began and handed over, with two messages; the id of the second."""
        begun = await self.done("former", "POST", f"{USER}/conversations", {"agentName": AGENT_NAME, "title": "A trip"})
        path = f"{USER}/conversations/{begun['id']}"
        await self.done("former", "POST", f"{path}/messages", {"content": "first"})
        await self._share(path, "owner", "manager")
        offer = await self.done("former", "POST", f"{path}/transfer-ownership", {"newOwnerUserId": "owner"})
        await self.done("owner", "POST", f"{USER}/ownership-transfers/{offer['id']}/accept")
        for who, level in (("reader", "reader"), ("writer", "writer"), ("manager", "manager"), ("removed", "manager")):
            await self._share(path, who, level)
        await self._share(path, "member", "reader")
        await self.done("owner", "DELETE", f"{path}/memberships/removed")
        message = await self.done("owner", "POST", f"{path}/messages", {"content": "second"})
        return begun["id"], message["id"]

    async def _share(self, path: str, who: str, level: str) -> None:
        sharing = "former" if who == "owner" else "owner"
        await self.done(sharing, "POST", f"{path}/memberships", {"userId": who, "accessLevel": level})


@asynccontextmanager
async def staged(store_url: str) -> AsyncGenerator[Staged]:
    """The service over a new database, with the door that it has in production."""
    settings = ServiceSettings(
        store={"url": store_url, "delete_grace_days": 30, "auto_migrate": True},
        auth={
            "issuers": [_issuer(ISSUER, ""), _issuer(OTHER_ISSUER, "partner:")],
            "allow_shared_secrets": True,
            "user_requests_per_minute": 0,
            "agent_requests_per_minute": 0,
            "failures_per_minute": 0,
        },
    )
    async with open_service_container(settings) as container:
        headers = await _credentials(container)
        door = admission_of(settings.auth, database=container.database(), clock=container.clock())
        async with AsyncTestClient(create_app(container, authenticator=door)) as client:
            yield Staged(container, client, headers)


def _issuer(name: str, prefix: str) -> dict[str, str]:
    return {"issuer": name, "audience": AUDIENCE, "algorithm": "HS256", "secret": SECRET, "user_prefix": prefix}


async def _credentials(container: ServiceContainer) -> dict[str, dict[str, str]]:
    async def key(client_id: str, agent_name: str, *operations: Operation) -> dict[str, str]:
        grant = Grant(agent_names=(agent_name,), operations=operations)
        made = new_key(client_id, grant, now=container.clock()())
        await container.database().write(key_operations.add_api_key, made.key)
        return {"X-API-Key": made.text}

    own, foreign = await key("bot", AGENT_NAME, *OPERATIONS), await key("seller", "sales", *OPERATIONS)
    revoked, limited = await key("bot", AGENT_NAME, *OPERATIONS), await key("viewer", AGENT_NAME, "read")
    await container.database().write(key_operations.revoke_api_key, revoked["X-API-Key"][3:11], now=container.clock()())
    special = {
        "nobody": {},
        "expired": _bearer("owner", exp=1),
        "revoked": revoked,
        "namesake": _bearer("owner", iss=OTHER_ISSUER),
        "agent": own,
        "foreign-agent": foreign,
        "for-reader": own | _bearer("reader"),
        "names-writer": own | {"X-On-Behalf-Of": "writer"},
        "for-stranger": own | _bearer("stranger"),
        "for-foreign": foreign | _bearer("owner"),
        "limited": limited | _bearer("owner"),
    }
    return {who: special.get(who) or ({} if who == "nobody" else _bearer(who)) for who in WHO}


def _bearer(user_id: str, **claims: Any) -> dict[str, str]:
    text = token(SECRET.encode(), algorithm="HS256", sub=user_id, **({"exp": FAR_FUTURE} | claims))
    return {"Authorization": f"Bearer {text}"}
