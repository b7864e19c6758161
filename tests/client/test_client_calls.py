"""How the client sends, repeats and reads, against a transport that answers as it is told."""

from __future__ import annotations

import logging
import subprocess
import sys

import httpx2
import pytest

from reactor_memory import errors
from reactor_memory.client import MemoryServiceClient, Retries
from reactor_memory.features.sharing import bodies

pytestmark = pytest.mark.anyio

SECRETS = ("token-4711", "key-4711", "nobody-may-read-this")
CONVERSATION = {
    "id": "c-1",
    "conversationGroupId": "c-1",
    "title": None,
    "ownerUserId": "u",
    "createdAt": "2026-11-21T10:00:00.000000Z",
    "updatedAt": "2026-11-21T10:00:00.000000Z",
    "lastMessagePreview": None,
    "accessLevel": "owner",
    "metadata": {},
    "agentName": None,
    "forkedAtConversationId": None,
    "forkedAtMessageId": None,
    "vectorizedAt": None,
}


class Service:
    """Answers with what it is given, in order, the last one again and again; keeps what came in."""

    def __init__(self, *answers: httpx2.Response | Exception) -> None:
        self.answers = list(answers)
        self.requests: list[httpx2.Request] = []

    def __call__(self, request: httpx2.Request) -> httpx2.Response:
        self.requests.append(request)
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if isinstance(answer, Exception):
            raise answer
        return httpx2.Response(answer.status_code, headers=answer.headers, content=answer.content)

    @property
    def keys(self) -> set[str | None]:
        return {request.headers.get("idempotency-key") for request in self.requests}

    def client(self, **options: object) -> MemoryServiceClient:
        return MemoryServiceClient(
            "http://memory.test",
            retries=Retries(first_seconds=0.0),
            transport=httpx2.MockTransport(self),
            **options,  # type: ignore[arg-type]
        )


def answers(body: object, status: int = 200) -> httpx2.Response:
    return httpx2.Response(status, json=body)


def refuses(status: int, code: str, detail: str = "no", **more: object) -> httpx2.Response:
    body = {"type": "about:blank", "title": "No", "status": status, "code": code, "detail": detail, "requestId": "r-1"}
    return httpx2.Response(status, json={**body, **more}, headers={"Content-Type": "application/problem+json"})


NO_CONNECTION = httpx2.ConnectError("to 10.0.0.1 with secrets")


async def test_a_call_says_who_calls() -> None:
    service = Service(answers(CONVERSATION))
    async with service.client(token="t", api_key="k", on_behalf_of="u") as client:
        await client.get_conversation("c-1")
    headers = service.requests[0].headers
    assert (headers["authorization"], headers["x-api-key"], headers["x-on-behalf-of"]) == ("Bearer t", "k", "u")


@pytest.mark.parametrize("asynchronous", [False, True])
async def test_a_function_is_asked_for_the_token_of_every_request(asynchronous: bool) -> None:
    given = iter(["first", "second"])

    async def later() -> str:
        return next(given)

    service = Service(answers(CONVERSATION))
    async with service.client(token=later if asynchronous else lambda: next(given)) as client:
        await client.get_conversation("c-1")
        await client.get_conversation("c-1")
    assert [request.headers["authorization"] for request in service.requests] == ["Bearer first", "Bearer second"]


async def test_an_agent_acts_for_several_users_over_the_same_connections() -> None:
    service = Service(answers(CONVERSATION))
    async with service.client(api_key="k", on_behalf_of="ann") as client:
        await client.acting_for("ben").get_conversation("c-1")
        await client.get_conversation("c-1")
    assert [request.headers["x-on-behalf-of"] for request in service.requests] == ["ben", "ann"]
    assert {request.headers["x-api-key"] for request in service.requests} == {"k"}


async def test_what_is_not_given_is_not_sent() -> None:
    service = Service(answers({"data": [], "nextCursor": None}))
    async with service.client() as client:
        await client.list_messages("c-1", limit=3, inherit=False)
    assert str(service.requests[0].url) == "http://memory.test/v1/user/conversations/c-1/messages?limit=3&inherit=false"
    assert not {"authorization", "x-api-key", "x-on-behalf-of", "idempotency-key"} & set(service.requests[0].headers)


async def test_pages_are_read_until_the_last_one() -> None:
    fork = {"conversationId": "c-1", "role": "user", "visibility": "user", "channel": "HISTORY", "content": "hi"}
    rest = {"metadata": {}, "parentMessageId": None, "userId": "u", "createdAt": "2026-11-21T10:00:00Z"}
    message = [{"id": str(seq), "seq": seq, **fork, **rest} for seq in (1, 2, 3)]
    service = Service(
        answers({"data": message[:2], "nextCursor": "behind 2"}), answers({"data": message[2:], "nextCursor": None})
    )
    async with service.client() as client:
        assert [message.seq async for message in client.messages("c-1", page_size=2)] == [1, 2, 3]
    assert [request.url.params.get("after") for request in service.requests] == [None, "behind 2"]


# -- repetitions ------------------------------------------------------------------------------------------------------

PASSING = [NO_CONNECTION, httpx2.ReadTimeout("late"), httpx2.Response(502), refuses(503, "unavailable"),
           refuses(429, "rate_limited"), refuses(409, "in_progress")]  # fmt: skip


@pytest.mark.parametrize("failure", PASSING, ids=repr)
async def test_what_may_pass_is_repeated_as_the_same_request(failure: httpx2.Response | Exception) -> None:
    service = Service(failure, failure, answers(CONVERSATION, 201))
    async with service.client() as client:
        assert (await client.create_conversation(title="t")).id == "c-1"
    assert len(service.requests) == 3
    assert len(service.keys) == 1
    assert None not in service.keys
    assert len({request.content for request in service.requests}) == 1


async def test_every_post_has_its_own_key_unless_one_is_given() -> None:
    service = Service(answers(CONVERSATION, 201))
    async with service.client() as client:
        await client.create_conversation()
        await client.create_conversation()
        await client.create_conversation(idempotency_key="mine")
    assert len(service.keys) == 3
    assert "mine" in service.keys


@pytest.mark.parametrize("failure", [NO_CONNECTION, refuses(503, "unavailable")], ids=repr)
async def test_a_change_that_has_no_key_is_sent_once(failure: httpx2.Response | Exception) -> None:
    service = Service(failure, answers(CONVERSATION))
    async with service.client() as client:
        with pytest.raises(errors.StoreUnavailableError):
            await client.update_conversation("c-1", title="t")
        service.answers.insert(0, failure)
        with pytest.raises(errors.StoreUnavailableError):
            await client.delete_conversation("c-1")
    assert len(service.requests) == 2


async def test_repetitions_end() -> None:
    service = Service(NO_CONNECTION)
    async with service.client() as client:
        with pytest.raises(errors.StoreUnavailableError) as caught:
            await client.get_health()
    assert len(service.requests) == 1 + Retries().most
    assert "10.0.0.1" not in str(caught.value)
    assert caught.value.__cause__ is None


@pytest.mark.parametrize("refusal", [refuses(500, "internal"), refuses(403, "forbidden"), refuses(409, "conflict")])
async def test_what_does_not_pass_is_not_repeated(refusal: httpx2.Response) -> None:
    service = Service(refusal)
    async with service.client() as client:
        with pytest.raises(errors.ServiceError):
            await client.create_conversation()
    assert len(service.requests) == 1


def test_waits_grow_at_random_and_have_an_end() -> None:
    retries = Retries(most=3, first_seconds=1.0, longest_seconds=3.0)
    assert [retries.wait(n, None, lambda: 1.0) for n in (1, 2, 3, 4)] == [1.0, 2.0, 3.0, None]
    assert retries.wait(2, None, lambda: 0.25) == 0.5


def test_service_is_left_alone_as_long_as_it_asks_for() -> None:
    retries = Retries(first_seconds=1.0, longest_seconds=10.0)
    assert retries.wait(1, 7.0, lambda: 0.5) == 7.5
    assert retries.wait(1, 10.5, lambda: 0.0) is None


async def test_retry_after_is_read() -> None:
    later = refuses(429, "rate_limited")
    later.headers["Retry-After"] = "3600"
    service = Service(later)
    async with service.client() as client:
        with pytest.raises(errors.ServiceError) as caught:
            await client.get_health()
    assert (len(service.requests), caught.value.code) == (1, "rate_limited")


# -- errors -----------------------------------------------------------------------------------------------------------


FIELD = [{"field": "title", "problem": "is too long"}]


@pytest.mark.parametrize(
    ("refusal", "kind", "told"),
    [
        (refuses(404, "not_found"), errors.SessionNotFoundError, {"session_id": "c-1"}),
        (refuses(422, "invalid", errors=FIELD), errors.InvalidInputError, {"field": "title", "problem": "is too long"}),
        (refuses(422, "invalid"), errors.ServiceError, {"code": "invalid", "status": 422}),
        (refuses(400, "bad_page_token", errors=FIELD), errors.PageTokenError, {}),
        (refuses(409, "already_member"), errors.SharingConflictError, {"reason": "already_member"}),
        (refuses(409, "idempotency_conflict"), errors.IdempotencyConflictError, {"key": "mine"}),
        (refuses(507, "storage_full"), errors.StoreFullError, {}),
        (refuses(403, "forbidden"), errors.ServiceError, {"code": "forbidden", "status": 403, "request_id": "r-1"}),
        (refuses(409, "a_new_code"), errors.ServiceError, {"code": "a_new_code", "problem": "no"}),
    ],
)
async def test_an_error_is_raised_by_what_it_means(
    refusal: httpx2.Response, kind: type[Exception], told: dict[str, object]
) -> None:
    async with Service(refusal).client() as client:
        with pytest.raises(kind) as caught:
            await client.share_conversation("c-1", "ben", "reader", idempotency_key="mine")
    assert {name: getattr(caught.value, name) for name in told} == told
    assert caught.value.__notes__ == ["request r-1"]


async def test_a_missing_transfer_is_named() -> None:
    async with Service(refuses(404, "not_found")).client() as client:
        for call in (client.accept_ownership_transfer, client.decline_ownership_transfer):
            with pytest.raises(errors.TransferNotFoundError, match="t-1"):
                await call("t-1")


async def test_where_several_things_may_be_missing_none_is_named() -> None:
    async with Service(refuses(404, "not_found")).client() as client:
        with pytest.raises(errors.ServiceError) as caught:
            await client.fork_conversation("c-1", "m-1")
    assert caught.value.code == "not_found"


@pytest.mark.parametrize(
    "answer",
    [
        httpx2.Response(404, content=b"<html>nginx</html>"),
        httpx2.Response(200, content=b"<html>welcome</html>"),
        httpx2.Response(200, json={"id": 5}),
        httpx2.Response(302, headers={"Location": "http://elsewhere.test/"}),
        httpx2.Response(400, content=b"\xff"),
    ],
)
async def test_what_no_memory_service_says_is_an_error(answer: httpx2.Response) -> None:
    service = Service(answer)
    async with service.client(token="t") as client:
        with pytest.raises(errors.ServiceError) as caught:
            await client.list_forks("c-1")
    assert (caught.value.code, caught.value.status) == ("unreadable", answer.status_code)
    assert len(service.requests) == 1


async def test_a_service_that_is_not_ready_tells_so() -> None:
    service = Service(answers({"status": "stopping", "checks": {"store": "ok"}}, 503))
    async with service.client() as client:
        assert await client.get_readiness() == bodies.Readiness(status="stopping", checks={"store": "ok"})


@pytest.mark.parametrize("part", ["", ".", ".."])
async def test_an_id_that_leads_elsewhere_is_refused(part: str) -> None:
    service = Service(httpx2.Response(204))
    async with service.client() as client:
        with pytest.raises(errors.InvalidInputError):
            await client.remove_membership("c-1", part)
        with pytest.raises(errors.InvalidInputError):
            await client.delete_conversation(part)
    assert service.requests == []


async def test_an_id_is_one_part_of_the_path() -> None:
    service = Service(httpx2.Response(204))
    async with service.client() as client:
        await client.remove_membership("c-1", "a/../b?x#y")
    assert service.requests[0].url.raw_path == b"/v1/user/conversations/c-1/memberships/a%2F..%2Fb%3Fx%23y"


# -- what is kept to itself -------------------------------------------------------------------------------------------


async def test_nothing_private_is_logged_or_shown(caplog: pytest.LogCaptureFixture) -> None:
    token, key, text = SECRETS
    body = {"conversationId": "c-1", "messages": [], "nextAfterMessageId": None, "tokens": 0}
    service = Service(answers(body))
    with caplog.at_level(logging.DEBUG):
        async with service.client(token=token, api_key=key) as client:
            await client.get_context("c-1", query=text)
            service.answers = [refuses(403, "forbidden")]
            with pytest.raises(errors.ServiceError) as caught:
                await client.append_message("c-1", text)
            shown = repr(client._caller.identity) + repr(caught.value)
    assert service.requests[0].url.params["query"] == text
    assert "/context" in caplog.text
    assert not [secret for secret in SECRETS if secret in caplog.text + shown]


def test_the_client_needs_nothing_of_the_service() -> None:
    script = "import sys, reactor_memory.client; print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout.split()
    assert not {"litestar", "granian", "uvicorn", "jwt", "sqlalchemy", "pydantic", "numpy"} & set(loaded)
