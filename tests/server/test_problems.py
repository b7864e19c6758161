"""Errors on the wire: each has a status and a stable code, and tells nothing that it should not."""

from __future__ import annotations

import logging
from typing import Any

import httpx2
import pytest
from litestar import get
from litestar.exceptions import HTTPException

from reactor_memory import errors
from reactor_memory.server import app as application
from reactor_memory.server.problems import KINDS, problem_of
from reactor_memory.wiring.service_container import ServiceContainer
from tests.scenes.tables import each_row
from tests.server.callers import Service

pytestmark = pytest.mark.anyio

SECRET = "what the user said in confidence"

TOLD: list[tuple[Exception, int, str]] = [
    (errors.InvalidInputError("new_owner_user_id", "is odd"), 422, "invalid"),
    (errors.InvalidMessageError("messages[0].tool_calls", "is odd"), 422, "invalid"),
    (errors.PageTokenError(), 400, "bad_page_token"),
    (errors.BudgetExceededError(budget=1, minimum=9), 422, "invalid"),
    (errors.SessionNotFoundError("s"), 404, "not_found"),
    (errors.SessionOwnershipError("s"), 404, "not_found"),
    (errors.SessionDeletedError("s"), 404, "not_found"),
    (errors.MessageNotFoundError("s"), 404, "not_found"),
    (errors.MemberNotFoundError("s"), 404, "not_found"),
    (errors.TransferNotFoundError("t"), 404, "not_found"),
    (errors.AccessDeniedError("s", needed="writer"), 403, "forbidden"),
    (errors.NotGrantedError("a user"), 403, "forbidden"),
    (errors.SharingConflictError("s", "transfer_pending", "is pending"), 409, "transfer_pending"),
    (errors.IdempotencyConflictError("s", SECRET), 409, "idempotency_conflict"),
    (errors.ActiveSessionConflictError("s"), 409, "conflict"),
    (errors.StoreUnavailableError(SECRET), 503, "unavailable"),
    (errors.StoreClosedError(), 503, "unavailable"),
    (errors.StoreFullError(SECRET), 507, "storage_full"),
    (errors.StoreCorruptError(SECRET), 500, "internal"),
    (errors.ConfigurationError("key", SECRET), 500, "internal"),
    (errors.SummarizationError("timeout", SECRET), 500, "internal"),
    (RuntimeError(SECRET), 500, "internal"),
    (KeyError(SECRET), 500, "internal"),
]


@each_row(("error", "status", "code"), TOLD)
def test_an_error_has_a_status_and_a_code(error: Exception, status: int, code: str) -> None:
    problem = problem_of(error)
    assert (problem.kind.status, problem.code) == (status, code)
    assert SECRET not in problem.detail


def test_absent_things_are_told_like_those_of_others() -> None:
    """One answer for all, or the answer would tell which it is."""
    details = {problem_of(error).detail for error, status, _ in TOLD if status == 404}
    assert len(details) == 1


@pytest.mark.parametrize("error", [errors.StoreUnavailableError("x")])
def test_who_may_try_again_is_told_when(error: Exception) -> None:
    assert int(problem_of(error).headers["Retry-After"]) > 0


def test_fields_have_their_names_on_the_wire() -> None:
    problem = problem_of(errors.InvalidInputError("messages[0].tool_calls", "is odd"))
    assert [entry.field for entry in problem.errors] == ["messages[0].toolCalls"]


@pytest.mark.parametrize(
    "error",
    [
        errors.SharingConflictError("s", "transfer_pending", "another offer waits"),
        errors.ResponseConflictError("s", "superseded", "another offer waits"),
    ],
)
def test_a_conflict_tells_what_is_the_matter_and_nothing_else(error: Exception) -> None:
    """The client puts the id in front; here it would stand there twice."""
    assert problem_of(error).detail == "another offer waits"


@pytest.mark.parametrize(("status", "says"), [(404, "no such address"), (405, "Allow")])
def test_what_the_framework_refuses_says_what_to_look_at(status: int, says: str) -> None:
    assert says in problem_of(HTTPException(status_code=status)).detail


def test_codes_are_stable() -> None:
    assert len({kind.code for kind in KINDS}) == len(KINDS)


# -- over HTTP --------------------------------------------------------------------------------------------------------


@pytest.fixture
async def failing(container: ServiceContainer, monkeypatch: pytest.MonkeyPatch) -> Any:
    """A service whose list of conversations fails, with a text that nobody may see."""

    async def fail(*given: Any, **options: Any) -> None:
        raise RuntimeError(SECRET)

    monkeypatch.setattr(container.conversations(), "list", fail)


@pytest.mark.usefixtures("failing")
async def test_failure_tells_the_id_of_the_request_and_nothing_else(
    service: Service, caplog: pytest.LogCaptureFixture
) -> None:
    answer = await service.get("/conversations", headers={"X-Request-ID": "req-1"})
    assert (answer.status_code, answer.json()["code"], answer.json()["requestId"]) == (500, "internal", "req-1")
    assert SECRET not in answer.text
    assert [getattr(record, "request_id", None) for record in caplog.records if record.levelno == logging.ERROR] == [
        "req-1"
    ]


async def test_nobody_is_asked_to_say_who_they_are(service: Service) -> None:
    answer = await service.of(None).get("/conversations")
    assert (answer.status_code, answer.json()["code"]) == (401, "unauthenticated")
    assert answer.headers["www-authenticate"]


async def test_who_calls_is_asked_before_the_body_is_read(service: Service) -> None:
    for content in (b"{", b"x" * 2_000_000):
        answer = await service.of(None).ask("POST", "/conversations", content=content)
        assert answer.status_code == 401


async def test_agents_alone_are_no_users_and_users_are_no_agents(service: Service) -> None:
    conversation = await service.created()
    alone = await service.by("bot").get("/v1/user/conversations")
    user = await service.get(f"/v1/agent/conversations/{conversation}/context")
    assert (alone.status_code, user.status_code) == (403, 403)
    assert alone.json()["code"] == user.json()["code"] == "forbidden"
    assert "X-On-Behalf-Of" in alone.json()["detail"]
    assert "X-API-Key" in user.json()["detail"]


async def test_same_404_for_what_is_absent_deleted_or_somebody_elses(service: Service) -> None:
    theirs = await service.of("owner").created()
    deleted = await service.of("owner").created()
    await service.of("owner").ask("DELETE", f"/conversations/{deleted}")
    told = []
    for conversation in (theirs, deleted, "absent"):
        answer = await service.get(f"/conversations/{conversation}", headers={"X-Request-ID": "same"})
        told.append((answer.status_code, answer.content, sorted(answer.headers.items())))
    assert told[0][0] == 404
    assert told[0] == told[1] == told[2]


async def test_every_answer_forbids_caches_and_guesses(service: Service) -> None:
    conversation = await service.created()
    for answer in (
        await service.get("/v1/health"),
        await service.get(f"/conversations/{conversation}"),
        await service.get("/conversations/absent"),
        await service.get("/v1/nowhere"),
        await service.of(None).get("/conversations"),
        await service.ask("OPTIONS", "/conversations"),
        await service.ask("DELETE", f"/conversations/{conversation}"),
    ):
        assert answer.headers["cache-control"] == "no-store"
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert answer.headers["x-request-id"]


# -- methods and media types ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", ["PUT", "DELETE", "PATCH", "TRACE", "BREW"])
async def test_a_method_that_a_path_does_not_know(service: Service, method: str) -> None:
    answer = await service.ask(method, "/conversations")
    assert (answer.status_code, answer.json()["code"]) == (405, "method_not_allowed")
    assert {"GET", "POST"} <= {name.strip() for name in answer.headers["allow"].split(",")}


async def test_options_tell_the_methods_to_anybody(service: Service) -> None:
    answer = await service.of(None).ask("OPTIONS", "/conversations")
    assert (answer.status_code, answer.headers["allow"]) == (204, "GET, OPTIONS, POST")


async def test_head_is_get_without_the_body(service: Service) -> None:
    conversation = await service.created()
    for path in ("/v1/health", f"/conversations/{conversation}", "/conversations/absent"):
        whole, head = await service.get(path), await service.ask("HEAD", path)
        assert (head.status_code, head.content) == (whole.status_code, b"")
        assert head.headers["content-type"] == whole.headers["content-type"]


@pytest.mark.parametrize("accept", ["*/*", "application/json", "application/*", "text/html, */*;q=0.1"])
async def test_who_takes_json_gets_it(service: Service, accept: str) -> None:
    assert (await service.get("/conversations", headers={"Accept": accept})).status_code == 200


@pytest.mark.parametrize("accept", ["text/html", "application/xml, text/plain", "image/*"])
async def test_who_takes_no_json_is_told(service: Service, accept: str) -> None:
    answer = await service.get("/conversations", headers={"Accept": accept})
    assert (answer.status_code, answer.json()["code"]) == (406, "not_acceptable")


async def test_a_new_handler_needs_a_caller_unless_it_says_otherwise(
    container: ServiceContainer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nobody can forget to ask who calls."""

    @get("/v1/forgotten")
    async def forgotten() -> str:
        return SECRET

    routers = application.routers
    monkeypatch.setattr(application, "routers", lambda parts: [*routers(parts), forgotten])
    service = application.create_app(container, authenticator=_nobody)
    async with httpx2.AsyncClient(transport=httpx2.ASGITransport(service), base_url="http://service") as client:
        assert (await client.get("/v1/forgotten")).status_code == 401


async def _nobody(connection: Any) -> Any:
    from litestar.exceptions import NotAuthorizedException

    raise NotAuthorizedException("nobody")
