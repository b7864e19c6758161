"""What one user may have: refused beyond it with what is left, and given back by what goes."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest

from reactor_memory import Message, ToolCall
from reactor_memory.cli.defaults import SERVICE
from reactor_memory.core.log import forks
from reactor_memory.database.database import Database
from reactor_memory.database.operations import Query, Steps
from reactor_memory.features.facts import operations as fact_operations
from reactor_memory.features.facts.spending_caps import day_of
from reactor_memory.features.transfer.copy import SessionCopier
from reactor_memory.models import JsonObject
from reactor_memory.settings.service_settings import ServiceSettings
from reactor_memory.wiring.service_container import ServiceContainer, open_service_container
from tests.server.callers import Service

pytestmark = pytest.mark.anyio

ROOM = {
    "max_conversations": 3,
    "max_forks": 2,
    "max_members": 2,
    "max_stored_bytes": 5000,
    "max_summary_tokens_per_day": 100,
}


@pytest.fixture(scope="module", params=["sqlite", pytest.param("postgres", marks=pytest.mark.postgres)])
def store_url(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    if request.param == "sqlite":
        yield f"sqlite:///{tmp_path_factory.mktemp('quotas') / 'log.db'}"
        return
    with request.getfixturevalue("postgres_server").database(migrated=True) as dsn:
        yield dsn


@pytest.fixture(scope="module")
async def container(store_url: str) -> AsyncIterator[ServiceContainer]:
    store = {"url": store_url, "delete_grace_days": 30}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(forks, "MAX_FORK_DEPTH", 2)
        async with open_service_container(ServiceSettings(store=store, quotas=ROOM)) as container:
            yield container


def refused(answer: Any, limit: int) -> bool:
    body = answer.json()
    found = answer.status_code, body["code"], body["left"], body["limit"]
    return found == (413, "quota_exceeded", 0, limit)


async def test_conversations(service: Service) -> None:
    made = [await service.created() for _ in range(3)]
    assert refused(await service.post("/conversations", {}), 3)
    assert len((await service.get("/conversations")).json()["data"]) == 3
    await service.of("somebody-with-room").created()
    await service.ask("DELETE", f"/conversations/{made[0]}")
    await service.created()


async def test_a_repeated_request_is_answered_where_no_room_is_left(service: Service) -> None:
    made = [(await service.post("/conversations", {}, key=f"k{number}")).json()["id"] for number in range(3)]
    again = await service.post("/conversations", {}, key="k0")
    assert (again.status_code, again.json()["id"]) == (201, made[0])


async def test_forks(service: Service) -> None:
    conversation = await service.created()
    _, second = await service.said(conversation, "one", "two")
    path = f"/conversations/{conversation}/messages/{second}/fork"
    forks = [(await service.post(path, {})).json()["id"] for _ in range(2)]
    assert refused(await service.post(path, {"newMessage": {"content": "more"}}), 2)
    listed = (await service.get(f"/conversations/{conversation}/forks")).json()["data"]
    assert [row["forkId"] for row in listed] == [conversation, *forks]
    await service.ask("DELETE", f"/conversations/{forks[0]}")
    assert (await service.post(path, {})).status_code == 201


async def test_members_of_all_conversations_of_the_owner(service: Service) -> None:
    paths = [f"/conversations/{await service.created()}/memberships" for _ in range(2)]
    for path, user in zip(paths, ("bob", "cem"), strict=True):
        assert (await service.post(path, {"userId": user, "accessLevel": "reader"})).status_code == 201
    dan = {"userId": "dan", "accessLevel": "reader"}
    assert refused(await service.post(paths[1], dan), 2)
    assert (await service.ask("PATCH", f"{paths[1]}/cem", {"accessLevel": "writer"})).status_code == 200
    await service.ask("DELETE", f"{paths[0]}/bob")
    assert (await service.post(paths[1], dan)).status_code == 201


async def test_what_somebody_gives_away_needs_room(service: Service) -> None:
    for _ in range(3):
        await service.created()
    ann = service.of("ann-who-gives")
    given = f"/conversations/{await ann.created()}"
    share = {"userId": service.user, "accessLevel": "manager"}
    assert (await ann.post(f"{given}/memberships", share)).status_code == 201
    offer = (await ann.post(f"{given}/transfer-ownership", {"newOwnerUserId": service.user})).json()
    assert refused(await service.post(f"/ownership-transfers/{offer['id']}/accept"), 3)
    assert (await service.get(given)).json()["accessLevel"] == "manager", "nothing is half done"


async def test_what_was_deleted_needs_room_to_come_back(service: Service) -> None:
    gone = await service.created()
    await service.ask("DELETE", f"/conversations/{gone}")
    for _ in range(3):
        await service.created()
    assert refused(await service.post(f"/conversations/{gone}/restore"), 3)


async def test_stored_bytes_of_all_conversations_of_the_owner(service: Service) -> None:
    one, other = [await service.created() for _ in range(2)]
    kept, last = await service.said(one, "a" * 2000, "\u00e9" * 1000)
    posted = await service.post(f"/conversations/{other}/messages", {"content": "b" * 1001}, key="too-much")
    body = posted.json()
    assert (posted.status_code, body["code"], body["left"], body["limit"]) == (413, "quota_exceeded", 1000, 5000)
    assert (await service.get(f"/conversations/{other}/messages")).json()["data"] == []
    fork = await service.post(f"/conversations/{one}/messages/{last}/fork", {"newMessage": {"content": "b" * 1001}})
    assert fork.status_code == 413
    assert (await service.post(f"/conversations/{other}/messages", {"content": "b" * 1000}, key="fits")).is_success
    assert (await service.post(f"/conversations/{other}/messages", {"content": "b" * 1000}, key="fits")).is_success
    await service.ask("DELETE", f"/conversations/{one}")
    await service.said(other, "c" * 4000)
    assert (await service.post(f"/conversations/{one}/restore")).status_code == 413
    assert kept


async def test_stored_bytes_follow_messages_erasures_and_copies(service: Service, container: ServiceContainer) -> None:
    conversation = await service.created()
    await service.said(conversation, "a" * 1000, "\u00e9" * 1000)
    memory, database = container.conversation_manager(), container.needed_database()
    call = ToolCall(id="1", name="find", arguments={"at": "\u00e9"})
    image: JsonObject = {"type": "image", "data": "b" * 500}
    answer = Message(role="assistant", parts=(image,), tool_calls=(call,))
    await memory.save_history(conversation, [answer], user_id=service.user)
    stored = await bytes_of(database, service.user)
    assert 3500 < stored < 3800
    async with open_service_container(ServiceSettings(store={"url": "memory://"})) as other:
        target = other.needed_database()
        await SessionCopier(database, target, clock=container.clock()).copy(lambda _: None)
        assert await bytes_of(target, service.user) == stored
    await container.erasure().erase(conversation, seq=2, user_id=service.user)
    assert await bytes_of(database, service.user) == stored - 2000
    await container.erasure().erase(conversation, seq=3, user_id=service.user)
    assert await bytes_of(database, service.user) == 1000
    await container.erasure().erase(conversation, seq=3, user_id=service.user)
    assert await bytes_of(database, service.user) == 1000
    await memory.delete(conversation, user_id=service.user)
    assert await bytes_of(database, service.user) == 0


async def bytes_of(database: Database, owner_id: str | None) -> int:
    def stored() -> Steps[int]:
        asked = {"roots": 0, "forks": 0, "members": 0, "bytes": 1, "owner_id": owner_id}
        return (yield Query("holdings_of_owner", asked))[0][3]

    return await database.read(stored)


async def test_tokens_of_summarizers_on_a_day(service: Service, container: ServiceContainer) -> None:
    one, other = await service.created(), await service.created()
    somebody = await service.of("somebody-who-spent-nothing").created()
    caps = container.spending_caps()
    await caps.note(one, 99)
    assert not await caps.are_reached(other)
    await caps.note(one, 1)
    assert [await caps.are_reached(each) for each in (one, other, somebody)] == [True, True, False]
    database = container.needed_database()
    tomorrow = day_of(container.clock()()) + 1
    assert await database.read(fact_operations.spent_for_owner, other, day=tomorrow) == 0


async def test_forks_of_too_many_forks(service: Service) -> None:
    conversation = await service.created()
    await service.said(conversation, "one")
    answers: list[Any] = []
    for depth in range(3):
        (last,) = await service.said(conversation, f"at depth {depth}")
        path = f"/conversations/{conversation}/messages/{last}/fork"
        answers.append(await service.post(path, {"newMessage": {"content": "else"}}))
        conversation = answers[-1].json().get("id", conversation)
    problem = answers[-1].json()
    assert [answer.status_code for answer in answers] == [201, 201, 422]
    assert (problem["code"], problem["errors"][0]["field"]) == ("invalid", "messageId")


async def test_forks_are_listed_in_pages(service: Service) -> None:
    conversation = await service.created()
    _, second = await service.said(conversation, "one", "two")
    forks = [
        (await service.post(f"/conversations/{conversation}/messages/{second}/fork", {})).json()["id"] for _ in range(2)
    ]
    shown: list[str] = []
    cursor = ""
    while cursor is not None:
        params = {"limit": 1} | ({"after": cursor} if cursor else {})
        answer = (await service.get(f"/conversations/{conversation}/forks", params=params)).json()
        assert len(answer["data"]) == 1
        shown += [row["forkId"] for row in answer["data"]]
        cursor = answer["nextCursor"]
    assert shown == [conversation, *forks]
    forged = await service.get(f"/conversations/{conversation}/forks?after=x")
    assert (forged.status_code, forged.json()["code"]) == (400, "bad_page_token")


def test_a_service_has_quotas_by_default_the_library_has_none() -> None:
    quotas = {key for key, default in SERVICE.items() if key.startswith("quotas.") and default.value}
    assert quotas == {f"quotas.{name}" for name in ROOM}
    assert set(ServiceSettings().quotas.model_dump().values()) == {0}
