"""The committed description of the interface is the one that the code gives, and says what the code does."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import msgspec
import pytest

from reactor_memory.features.sharing import bodies
from reactor_memory.server.app import create_app
from reactor_memory.server.openapi import document, encoded_document
from reactor_memory.wiring.service_container import ServiceContainer
from tests.server.callers import Service, who_says_so

pytestmark = pytest.mark.anyio

COMMITTED = Path(__file__).parents[2] / "docs" / "openapi.json"


@cache
def documented() -> dict[str, Any]:
    return document()


def operations() -> Iterator[tuple[str, str, dict[str, Any]]]:
    for path, item in documented()["paths"].items():
        for method, operation in item.items():
            yield path, method, operation


def test_the_committed_description_is_the_current_one() -> None:
    """Else: python -m reactor_memory.server.openapi > docs/openapi.json"""
    assert COMMITTED.read_bytes() == encoded_document()


async def test_the_service_hands_it_out_to_anybody(service: Service) -> None:
    answer = await service.of(None).get("/v1/openapi.json")
    assert answer.content == encoded_document()


def test_every_route_is_described(container: ServiceContainer) -> None:
    app = create_app(container, authenticator=who_says_so)
    served = {(route.path_format, method) for route in app.routes for method in route.methods}  # type: ignore[attr-defined]
    described = {(path, method.upper()) for path, method, _ in operations()}
    undescribed = {(path, method) for path, method in served - described if method not in ("OPTIONS", "HEAD")}
    assert described <= served
    for_people = {"/", "/docs", "/docs/start.js", "/docs/{name}"}
    assert undescribed <= {(path, "GET") for path in for_people | {"/v1/openapi.json", "/metrics"}}


def test_operations_have_names_of_their_own_and_a_tag() -> None:
    names = [operation["operationId"] for _, _, operation in operations()]
    assert len(set(names)) == len(names)
    assert all(re.fullmatch("[a-z]+([A-Z][a-z]+)*", name) for name in names)
    for path, _, operation in operations():
        (tag,) = operation["tags"]
        assert path.startswith(f"/v1/{tag}/") or tag == "system"


def test_all_references_lead_somewhere() -> None:
    for reference in re.findall(r'"\$ref": "#/([^"]*)"', encoded_document().decode()):
        place = documented()
        for name in reference.split("/"):
            place = place[name]


def test_problems_are_described_where_they_occur() -> None:
    for path, method, operation in operations():
        statuses = set(operation["responses"])
        if operation["tags"] == ["system"]:
            continue
        assert {"400", "401", "403", "406", "429", "500", "503"} <= statuses, (path, method)
        assert ("404" in statuses) or "{" not in path
        assert {"413", "415", "422"} <= statuses or "requestBody" not in operation
        assert {"409", "507"} <= statuses or method == "get"
        assert ("501" in statuses) == (operation["operationId"] == "searchMessages")


def test_every_post_takes_an_idempotency_key() -> None:
    for path, method, operation in operations():
        found = {parameter.get("name") or parameter["$ref"].split("/")[-1] for parameter in operation["parameters"]}
        assert bool(found & {"Idempotency-Key", "IdempotencyKey"}) == (method == "post"), path


def test_requests_refuse_unknown_fields_and_answers_state_all_of_them() -> None:
    for name, schema in documented()["components"]["schemas"].items():
        body = getattr(bodies, name, None)
        if isinstance(body, type) and issubclass(body, bodies.Request):
            assert schema["additionalProperties"] is False, name


def test_examples_are_what_is_asked_for() -> None:
    found = 0
    for _, _, operation in operations():
        content = operation.get("requestBody", {}).get("content", {}).get("application/json", {})
        if "example" in content:
            body = getattr(bodies, content["schema"]["$ref"].split("/")[-1])
            msgspec.convert(content["example"], body)
            found += 1
    assert found >= 9


def test_parameters_say_what_they_may_be() -> None:
    """Nothing in an address is of any length; headers are limited by the server."""
    for path, _, operation in operations():
        for parameter in operation["parameters"]:
            schema = parameter.get("schema", {})
            if schema.get("type") == "string" and parameter["in"] != "header":
                assert {"maxLength", "pattern", "enum"} & set(schema), (path, parameter["name"])
            if schema.get("type") == "integer":
                assert "minimum" in schema, (path, parameter["name"])
