"""A request with an idempotency key is done once and answered alike, whatever happens in between."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from reactor_memory.database.database import Database
from reactor_memory.errors import StoreUnavailableError
from reactor_memory.features.sharing import answered_requests
from reactor_memory.features.sharing.principals import AnsweredRequest, Principal
from reactor_memory.server.idempotency import LEASE_MICROSECONDS, AnsweredRequests, KeyedRequest
from reactor_memory.server.problems import ProblemError
from reactor_memory.server.request_ids import HEADER as REQUEST_ID
from reactor_memory.wiring.service_container import ServiceContainer
from tests.doubles.scripted_database import ScriptedDatabase
from tests.server.callers import Service

pytestmark = pytest.mark.anyio


@pytest.fixture(scope="module", params=["sqlite", pytest.param("postgres", marks=pytest.mark.postgres)])
def kind(request: pytest.FixtureRequest) -> str:
    return request.param


@pytest.fixture(scope="module")
def store_url(kind: str, request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Any:
    if kind == "sqlite":
        yield f"sqlite:///{tmp_path_factory.mktemp('idempotency') / 'log.db'}"
        return
    with request.getfixturevalue("postgres_server").database(migrated=True) as dsn:
        yield dsn


async def titles(service: Service) -> list[str]:
    return [row["title"] for row in (await service.get("/conversations")).json()["data"]]


async def test_a_repetition_gets_the_same_answer(service: Service) -> None:
    first = await service.post("/conversations", {"title": "A"}, key="k")
    second = await service.post("/conversations", {"title": "A"}, key="k")
    assert (second.status_code, second.content) == (first.status_code, first.content) == (201, first.content)
    assert second.headers[REQUEST_ID] != first.headers[REQUEST_ID]
    assert await titles(service) == ["A"]


async def test_the_order_of_fields_makes_no_other_request(service: Service) -> None:
    first = await service.post("/conversations", {"title": "A", "metadata": {"a": 1, "b": 2}}, key="k")
    second = await service.post("/conversations", {"metadata": {"b": 2, "a": 1}, "title": "A"}, key="k")
    assert second.content == first.content


async def test_another_body_under_the_key_is_a_conflict(service: Service) -> None:
    await service.post("/conversations", {"title": "A"}, key="k")
    answer = await service.post("/conversations", {"title": "B"}, key="k")
    assert (answer.status_code, answer.json()["code"]) == (409, "idempotency_conflict")
    assert await titles(service) == ["A"]


async def test_another_route_under_the_key_is_a_conflict(service: Service) -> None:
    conversation = await service.created()
    body = {"userId": "bob", "accessLevel": "reader"}
    await service.post(f"/conversations/{conversation}/memberships", body, key="k")
    other = await service.created()
    answer = await service.post(f"/conversations/{other}/memberships", body, key="k")
    assert (answer.status_code, answer.json()["code"]) == (409, "idempotency_conflict")


async def test_callers_have_keys_of_their_own(service: Service) -> None:
    mine = await service.post("/conversations", {"title": "A"}, key="k")
    theirs = await service.of("other").post("/conversations", {"title": "A"}, key="k")
    assert mine.json()["id"] != theirs.json()["id"]


async def test_every_post_takes_a_key(service: Service) -> None:
    conversation = await service.created()
    bob = service.of(f"{service.user}-friend")
    (said,) = await service.said(conversation, "hello")
    path = f"/conversations/{conversation}"
    twice = [
        (service, f"{path}/messages", {"content": "again"}),
        (service, f"{path}/messages/{said}/fork", {"newMessage": {"content": "other"}}),
        (service, f"{path}/memberships", {"userId": bob.user, "accessLevel": "writer"}),
        (service, f"{path}/transfer-ownership", {"newOwnerUserId": bob.user}),
        (service.by("bot", service.user), f"{path}/messages", {"messages": [{"role": "assistant", "content": "yes"}]}),
    ]
    for number, (caller, address, body) in enumerate(twice):
        first, second = [await caller.post(address, body, key=f"key {number}".replace(" ", "-")) for _ in range(2)]
        assert first.status_code in (201, 202), first.text
        assert (second.status_code, second.content) == (first.status_code, first.content), address
    (offer,) = (await bob.get("/ownership-transfers")).json()["data"]
    accepted = [await bob.post(f"/ownership-transfers/{offer['id']}/accept", key="accept") for _ in range(2)]
    assert [answer.status_code for answer in accepted] == [204, 204]
    assert len((await service.get(f"{path}/messages")).json()["data"]) == 3
    assert len((await service.get(f"{path}/forks")).json()["data"]) == 2


@pytest.mark.parametrize("key", ["", "a" * 256, "a b", "\x7f", "é"])
async def test_a_key_that_is_none_is_refused(service: Service, key: str) -> None:
    answer = await service.post("/conversations", {"title": "A"}, headers={"Idempotency-Key": key.encode()})
    assert (answer.status_code, answer.json()["errors"][0]["field"]) == (400, "Idempotency-Key")


async def test_a_request_that_was_refused_may_be_repeated(service: Service) -> None:
    conversation = await service.created()
    path, body = f"/conversations/{conversation}/transfer-ownership", {"newOwnerUserId": "carol"}
    refused = await service.post(path, body, key="k")
    await service.post(f"/conversations/{conversation}/memberships", {"userId": "carol", "accessLevel": "reader"})
    accepted = await service.post(path, body, key="k")
    assert (refused.status_code // 100, accepted.status_code) == (4, 202)


async def test_who_was_removed_does_not_get_the_first_answer_again(service: Service) -> None:
    conversation = await service.created(title="secret")
    (said,) = await service.said(conversation, "hello")
    bob = service.of(f"{service.user}-friend")
    members = f"/conversations/{conversation}/memberships"
    body = {"userId": bob.user, "accessLevel": "manager"}
    assert (await service.post(members, body)).status_code == 201
    requests = [
        (f"/conversations/{conversation}/messages/{said}/fork", {"newMessage": {"content": "other"}}),
        (members, {"userId": f"{service.user}-other", "accessLevel": "reader"}),
    ]
    for number, (path, asked) in enumerate(requests):
        assert (await bob.post(path, asked, key=f"k{number}")).status_code == 201
    assert (await service.ask("DELETE", f"{members}/{bob.user}")).status_code == 204
    for number, (path, asked) in enumerate(requests):
        answer = await bob.post(path, asked, key=f"k{number}")
        assert (answer.status_code, answer.json()["code"]) == (404, "not_found"), path
    assert (await service.post(members, body)).status_code == 201
    assert (await bob.post(*requests[0], key="k0")).status_code == 201


async def test_no_answer_keeps_id_of_a_user_who_was_erased(service: Service, container: ServiceContainer) -> None:
    bob = f'"{service.user}" of Köln'
    conversation = await service.created()
    members = f"/conversations/{conversation}/memberships"
    body = {"userId": bob, "accessLevel": "writer"}
    assert (await service.post(members, body, key="k-share")).json()["userId"] == bob
    await service.post(f"/conversations/{conversation}/transfer-ownership", {"newOwnerUserId": bob}, key="k-offer")
    await service.post("/conversations", {"title": "kept"}, key="k-kept")
    await container.erasure().erase_user(bob)
    again = await service.post(members, body | {"accessLevel": "reader"}, key="k-share")
    assert (again.status_code, again.json()["accessLevel"]) == (201, "reader")
    offered = await service.post(
        f"/conversations/{conversation}/transfer-ownership", {"newOwnerUserId": "nobody"}, key="k-offer"
    )
    assert offered.json()["code"] == "not_a_member"
    await service.post("/conversations", {"title": "kept"}, key="k-kept")
    assert (await titles(service)).count("kept") == 1


# -- what happens in between ------------------------------------------------------------------------------------------


@pytest.fixture
def requests(container: ServiceContainer) -> AnsweredRequests:
    return AnsweredRequests(database=container.database(), access=container.access(), clock=container.clock())


def unchanged(done: Any) -> Any:
    return done


def asked(user_id: str, what: str = "createConversation") -> KeyedRequest:
    return KeyedRequest(principal=Principal(user_id=user_id), operation=(what,))


async def test_one_that_is_being_worked_on_is_told_apart(requests: AnsweredRequests, kind: str) -> None:
    begun, goes_on = asyncio.Event(), asyncio.Event()

    async def slowly(request_key: str | None) -> str:
        begun.set()
        await goes_on.wait()
        return "done"

    first = asyncio.create_task(requests.once("k", asked("slow"), slowly, unchanged))
    await begun.wait()
    with pytest.raises(ProblemError) as refused:
        await requests.once("k", asked("slow"), slowly, unchanged)
    goes_on.set()
    assert (await first).content == "done"
    assert (refused.value.code, refused.value.kind.status) == ("in_progress", 409)
    assert int(refused.value.headers["Retry-After"]) > 0


@pytest.mark.parametrize("failure", [StoreUnavailableError("gone"), RuntimeError(), asyncio.CancelledError()])
async def test_a_request_that_failed_is_a_new_attempt(requests: AnsweredRequests, failure: BaseException) -> None:
    keys: list[str | None] = []

    async def fails_once(request_key: str | None) -> str:
        keys.append(request_key)
        if len(keys) == 1:
            raise failure
        return "done"

    user = f"failing {type(failure).__name__}"
    with pytest.raises(type(failure)):
        await requests.once("k", asked(user), fails_once, unchanged)
    assert (await requests.once("k", asked(user), fails_once, unchanged)).content == "done"
    assert keys[0] == keys[1]


class Died(BaseException):
    """The process is gone: nothing runs any more, nothing is cleaned up."""


class DyingDatabase(ScriptedDatabase):
    """Lets a process die between a deed and the record of its answer."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def claim_request(self, *given: Any, **options: Any) -> AnsweredRequest | None:
        return await self._database.write(answered_requests.claim_request, *given, **options)

    async def answer_request(self, request: AnsweredRequest) -> None:
        raise Died

    async def release_request(self, principal_id: str, request_key: str) -> None:
        raise Died


def later(clock: Callable[[], int]) -> Callable[[], int]:
    """When the one that died has lost its claim."""
    return lambda: clock() + LEASE_MICROSECONDS + 1


Deed = Callable[[str | None], Awaitable[Any]]


async def _done_by_the_dying_and_the_next(
    container: ServiceContainer, asked: KeyedRequest, deed: Deed
) -> tuple[Any, Any]:
    """What two attempts came to, of which the first died after the deed."""
    database, access, clock = container.database(), container.access(), container.clock()
    dying = AnsweredRequests(database=DyingDatabase(database), access=access, clock=clock)
    done: list[Any] = []

    async def noted(request_key: str | None) -> Any:
        done.append(await deed(request_key))
        return done[-1]

    with pytest.raises(Died):
        await dying.once("k", asked, noted, unchanged)
    with pytest.raises(ProblemError, match="worked on"):
        await AnsweredRequests(database=database, access=access, clock=clock).once("k", asked, noted, unchanged)
    await AnsweredRequests(database=database, access=access, clock=later(clock)).once("k", asked, noted, unchanged)
    first, second = done
    return first, second


async def test_a_conversation_is_created_once_though_its_maker_died(
    container: ServiceContainer, service: Service
) -> None:
    principal = Principal(user_id=service.user)

    async def create(request_key: str | None) -> str:
        made = await container.conversations().create(principal, title="A", request_key=request_key)
        return made.conversation_id

    asked = KeyedRequest(principal=principal, operation=("createConversation",))
    first, second = await _done_by_the_dying_and_the_next(container, asked, create)
    assert first == second
    assert await titles(service) == ["A"]


async def test_fork_and_offer_are_made_once_though_their_maker_died(
    container: ServiceContainer, service: Service
) -> None:
    principal = Principal(user_id=service.user)
    conversation = await service.created()
    (said,) = await service.said(conversation, "hello")
    await service.post(f"/conversations/{conversation}/memberships", {"userId": "dave", "accessLevel": "reader"})

    async def fork(request_key: str | None) -> str:
        return (
            await container.conversations().fork(principal, conversation, said, request_key=request_key)
        ).conversation_id

    async def offer(request_key: str | None) -> str:
        return (await container.sharing().offer(principal, conversation, "dave", request_key=request_key)).transfer_id

    forks = await _done_by_the_dying_and_the_next(
        container,
        KeyedRequest(principal=principal, operation=("forkConversation",), conversation_id=conversation),
        fork,
    )
    assert forks[0] == forks[1]
    other_key = KeyedRequest(
        principal=Principal(user_id=service.user, client_id="bot"), operation=("transferOwnership",)
    )
    offers = await _done_by_the_dying_and_the_next(container, other_key, offer)
    assert offers[0] == offers[1]
    assert len((await service.get(f"/conversations/{conversation}/forks")).json()["data"]) == 2


async def test_many_repetitions_at_once_do_it_once(service: Service) -> None:
    answers = await asyncio.gather(*(service.post("/conversations", {"title": "A"}, key="k") for _ in range(8)))
    assert {answer.status_code for answer in answers} <= {201, 409}
    assert len({answer.json()["id"] for answer in answers if answer.status_code == 201}) == 1
    assert await titles(service) == ["A"]
