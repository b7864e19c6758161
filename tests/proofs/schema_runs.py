"""Runs of schemathesis against the whole service, in this process: how much it asked, and what it found wrong."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, NamedTuple

import schemathesis
from requests import Session
from schemathesis.config import SchemathesisConfig
from schemathesis.engine import events, from_schema
from schemathesis.engine.recorder import CheckNode, ScenarioRecorder
from schemathesis.python import asgi

from reactor_memory.server.openapi import document
from tests.server.running import RunningService, running_service

OWNER = "owner"
MEMBERS = ("reader", "writer", "manager")
AGENT, ON_BEHALF, NOBODY = "agent", "agent on behalf of the owner", "nobody"
ROLES = (NOBODY, *MEMBERS, OWNER, AGENT, ON_BEHALF)
SHARED = 12
ON_BEHALF_PARAMETER = "#/components/parameters/OnBehalfOf"
REFUSALS = [400, 401, 403, 404, 405, 406, 409, 413, 414, 415, 422]
NO_FAILURES = ["2xx", "3xx", "4xx", 501]
"""What is not set up is no failure of the service: 501 is right where it is described, and nowhere else."""
RULES = ("bad_page_token", "uri_too_long", "invalid", "too_large")
"""Codes that answer what the schema allows: it cannot tell which page tokens were given, or which message is whose."""
POSITIONS = ("Last-Event-ID", "after")
"""Where to go on in a stream: only an event of this very stream."""


class IndexAnswer(NamedTuple):
    """How many requests were made, and what was wrong with which."""

    cases: int
    problems: list[str]


class OpenedByLifespan:
    """The service as an application that opens its store when it is started, on the event loop of the runs."""

    def __init__(self, url: str) -> None:
        self._url = url
        self.service: RunningService
        self.key: str

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "lifespan":
            await receive()
            async with running_service(self._url) as self.service:
                self.key = await self.service.key("assistant")
                await send({"type": "lifespan.startup.complete"})
                await receive()
            await send({"type": "lifespan.shutdown.complete"})
        else:
            await self.service.app(scope, receive, send)

    def headers(self, role: str) -> dict[str, str]:
        if role == NOBODY:
            return {}
        if role in (AGENT, ON_BEHALF):
            return {"X-API-Key": self.key, **({"X-On-Behalf-Of": OWNER} if role == ON_BEHALF else {})}
        return self.service.user(role)


@contextmanager
def opened(url: str) -> Iterator[OpenedByLifespan]:
    app = OpenedByLifespan(url)
    try:
        with asgi.get_client(app):
            yield app
    finally:
        asgi.shutdown_lifespans()


def run(app: OpenedByLifespan, role: str, *, examples: int, scenarios: int) -> IndexAnswer:
    """Ask as `role`: `examples` of each operation; with `scenarios`, also those of several steps, and what covers every
    bound of every value. The same questions every time.
    """
    config = SchemathesisConfig.from_dict(_config(app, role, examples, scenarios))
    schema = schemathesis.openapi.from_dict(_described(), config=config)
    schema.app = app
    cases, problems = 0, list[str]()
    for event in from_schema(schema).execute():
        if isinstance(event, events.ScenarioFinished):
            cases += len(event.recorder.interactions)
            problems += _problems(event)
        elif isinstance(event, events.NonFatalError):
            problems.append(f"{event.label}: {event.value!r}")
    return IndexAnswer(cases, problems)


def _described() -> dict[str, Any]:
    """The interface without X-On-Behalf-Of, which says who asks: a made up one would be answered 403 every time."""
    described = copy.deepcopy(document())
    for item in described["paths"].values():
        for operation in item.values():
            parameters = operation.get("parameters", [])
            operation["parameters"] = [one for one in parameters if one.get("$ref") != ON_BEHALF_PARAMETER]
    return described


def _config(app: OpenedByLifespan, role: str, examples: int, scenarios: int) -> dict[str, Any]:
    known = _begin(app)
    phases = {
        "examples": {"enabled": scenarios > 0},
        "coverage": {"enabled": scenarios > 0},
        "fuzzing": {"generation": {"max-examples": examples}},
        "stateful": {"enabled": scenarios > 0, "generation": {"max-examples": max(scenarios, 1)}},
    }
    return {
        "seed": 1,
        "dictionaries": {name: {"values": values} for name, values in known.items()},
        "headers": app.headers(role),
        "parameters": {f"path.{name}": {"dictionary": name, "probability": 0.6} for name in known} | {"query.wait": 0},
        "generation": {"deterministic": True, "no-shrink": True, "with-security-parameters": False},
        "checks": {
            "negative_data_rejection": {"expected-statuses": REFUSALS},
            "not_a_server_error": {"expected-statuses": NO_FAILURES},
        },
        "continue-on-failure": True,
        "request-timeout": 5,
        "phases": phases,
    }


def _begin(app: OpenedByLifespan) -> dict[str, list[str]]:
    """Conversations of the owner with everybody in them; the ids that a run may use."""
    with asgi.get_client(app) as http:
        talks = [_talk(app, http) for _ in range(SHARED)]
    return {
        "conversationId": [conversation for conversation, _ in talks],
        "messageId": [message for _, message in talks],
        "userId": [*MEMBERS, OWNER, "stranger"],
    }


def _talk(app: OpenedByLifespan, http: Session) -> tuple[str, str]:
    def post(path: str, body: Mapping[str, object]) -> dict[str, Any]:
        answer = http.post(f"/v1/user/conversations{path}", json=body, headers=app.headers(OWNER))
        assert answer.status_code == 201, answer.text
        return answer.json()

    conversation = post("", {"title": "Trip to Lisbon"})["id"]
    for level in MEMBERS:
        post(f"/{conversation}/memberships", {"userId": level, "accessLevel": level})
    message = post(f"/{conversation}/messages", {"content": "Which hotel did we choose?"})
    return conversation, message["id"]


def _problems(event: events.ScenarioFinished) -> Iterator[str]:
    for case_id, checks in event.recorder.checks.items():
        for check in checks:
            if check.failure_info is not None and not _follows_a_rule(event, case_id, check.name):
                yield _told(event, case_id, check)


def _follows_a_rule(event: events.ScenarioFinished, case_id: str, check: str) -> bool:
    """Whether the answer is right by a rule that no description can tell."""
    recorder = event.recorder
    interaction = recorder.interactions[case_id]
    if check == "negative_data_rejection":
        return "=null" in interaction.request.uri  # as if it were not given
    if check == "ensure_resource_availability":
        return _was_repeated(recorder, case_id)
    if check != "positive_data_acceptance" or interaction.response is None:
        return False
    problem = interaction.response.json()
    return problem["code"] in RULES or problem["detail"].startswith(POSITIONS)


def _was_repeated(recorder: ScenarioRecorder, case_id: str) -> bool:
    """Whether what is asked for came from a request with a key: its first answer comes again, whatever became of it."""
    parent_id = recorder.cases[case_id].parent_id
    return parent_id is not None and "Idempotency-Key" in recorder.interactions[parent_id].request.headers


def _told(event: events.ScenarioFinished, case_id: str, check: CheckNode) -> str:
    """What was asked, what came, and what is wrong with it."""
    assert check.failure_info is not None
    interaction = event.recorder.interactions[case_id]
    asked = event.recorder.cases[case_id].value.operation.label
    answer = "" if interaction.response is None else interaction.response.text[:500]
    failure = check.failure_info
    return f"{asked}: {check.name}: {failure.failure.message}\n{failure.code_sample}\n{answer}"
