"""The description of the interface (OpenAPI 3.1), made from the controllers and the bodies themselves.

``docs/openapi.json`` is this document.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Mapping
from functools import cache
from inspect import cleandoc
from typing import Any, TypeAlias

import msgspec
from litestar import Litestar
from litestar.openapi import OpenAPIConfig
from litestar.openapi.spec import Components, SecurityScheme, Tag

from reactor_memory.features.sharing import bodies
from reactor_memory.server import problems
from reactor_memory.server.problems import PROBLEM_JSON, Kind
from reactor_memory.server.request_ids import HEADER as REQUEST_ID
from reactor_memory.server.routes import routers

Document: TypeAlias = dict[str, Any]

VERSION = "1"

_CAPITAL = re.compile("([A-Z])")
_PARAMETER = re.compile(r"{(\w+)")

_DESCRIPTION = """\
Conversations that people and agents share. Errors are problem details (RFC 9457) with a stable `code`. Every `POST`
takes an `Idempotency-Key`. Of equal keys in a JSON object the last one counts; unknown fields and unknown parameters
are refused.
"""

_PARAMETERS: Document = {
    "OnBehalfOf": {
        "name": "X-On-Behalf-Of",
        "in": "header",
        "required": False,
        "description": "The user for whom an agent calls; its key needs the grant `on-behalf-of`.",
        "schema": {"type": "string", "minLength": 1, "maxLength": 255},
    },
    "IdempotencyKey": {
        "name": "Idempotency-Key",
        "in": "header",
        "required": False,
        "description": "Taken, and without effect: repeating the request changes nothing.",
        "schema": {"type": "string"},
    },
}

_EVERYWHERE = (problems.BAD_PARAMETER, problems.NOT_ACCEPTABLE, problems.URI_TOO_LONG, problems.INTERNAL)
_WITH_CALLER = (problems.UNAUTHENTICATED, problems.FORBIDDEN, problems.RATE_LIMITED, problems.UNAVAILABLE)
_WITH_PATH = (problems.NOT_FOUND,)
_WRITING = (problems.CONFLICT, problems.FULL)
_WITH_BODY = (problems.REQUEST_TIMEOUT, problems.TOO_LARGE, problems.UNSUPPORTED_MEDIA_TYPE, problems.INVALID)
_RETRIED = (problems.CONFLICT.status, problems.RATE_LIMITED.status, problems.UNAVAILABLE.status)

_BESIDE = {"searchMessages": (problems.NOT_SET_UP,)}
"""What some may be refused with, too."""

_Places: TypeAlias = dict[str, str]

_LINKS: dict[str, _Places] = {
    "createConversation": {"conversationId": "id"},
    "forkConversation": {"conversationId": "id"},
    "appendMessage": {"conversationId": "conversationId", "messageId": "id"},
    "shareConversation": {"conversationId": "conversationId", "userId": "userId"},
    "transferOwnership": {"transferId": "id"},
    "startResponse": {"conversationId": "conversationId", "responseId": "id"},
}
"""Where an answer holds what the paths of other operations ask for."""

_EXAMPLES: dict[str, Document] = {
    "createConversation": {"title": "Trip to Lisbon", "metadata": {"project": "travel"}},
    "updateConversation": {"title": "Trip to Porto"},
    "appendMessage": {"content": "Which hotel did we choose?"},
    "forkConversation": {"title": "By train", "newMessage": {"content": "And if we go by train?"}},
    "shareConversation": {"userId": "bob", "accessLevel": "writer"},
    "updateMembership": {"accessLevel": "reader"},
    "transferOwnership": {"newOwnerUserId": "bob"},
    "appendAgentMessages": {
        "messages": [
            {"role": "assistant", "content": "The one by the river."},
            {"role": "agent", "content": "budget: 900 EUR", "visibility": "agent"},
        ]
    },
    "createSummary": {
        "title": "Trip to Lisbon",
        "summary": "They fly on 3 May and stay in the hotel by the river.",
        "untilMessageId": "019a7f3e-0000-7000-8000-000000000001",
        "summarizedAt": "2026-05-03T10:00:00Z",
    },
}


@cache
def encoded_document() -> bytes:
    return msgspec.json.format(msgspec.json.encode(document()), indent=2) + b"\n"


def document() -> Document:
    """The whole description, alike wherever it is made."""
    described = _described_by_framework()
    components = described["components"]
    components["schemas"] = _schemas(components["schemas"])
    components["parameters"] = _PARAMETERS
    components["responses"] = {_name(kind): _response(kind) for kind in _DESCRIBED}
    components["headers"] = {
        "RequestId": {"description": "The id of the request, also in logs.", "schema": {"type": "string"}}
    }
    paths = {operation["operationId"]: path for path, _, operation in _operations(described)}
    for path, method, operation in _operations(described):
        _complete(path, method, operation)
        _link(operation, paths)
    return described


def _described_by_framework() -> Document:
    config = OpenAPIConfig(
        title="reactor-memory",
        version=VERSION,
        description=_DESCRIPTION,
        use_handler_docstrings=True,
        components=Components(security_schemes=_SCHEMES),
        security=[{"bearer": []}, {"apiKey": []}, {"bearer": [], "apiKey": []}],
        tags=[
            Tag(name="user", description="What users do themselves, or agents on their behalf."),
            Tag(name="agent", description="What agents do with their key."),
            Tag(name="system", description="For who runs the service."),
        ],
    )
    app = Litestar(route_handlers=routers(), openapi_config=config, logging_config=None)
    return app.openapi_schema.to_schema()


_SCHEMES: dict[str, Any] = {
    "bearer": SecurityScheme(type="http", scheme="bearer", bearer_format="JWT", description="A user."),
    "apiKey": SecurityScheme(
        type="apiKey",
        security_scheme_in="header",
        name="X-API-Key",
        description="An agent; with a bearer token, too, on behalf of this user.",
    ),
}


def _schemas(found: Document) -> Document:
    """The schemas of the bodies in the words of what decodes them, so that the two cannot differ."""
    types = [getattr(bodies, name) for name in sorted({*found, "Problem"}) if hasattr(bodies, name)]
    _, exact = msgspec.json.schema_components(types, ref_template="#/components/schemas/{name}")
    for schema in exact.values():
        if "description" in schema:  # a docstring: Python 3.13 stores it without its indentation, older ones with it
            schema["description"] = cleandoc(schema["description"])
    return dict(sorted({**found, **exact}.items()))


def _operations(described: Document) -> Iterator[tuple[str, str, Document]]:
    for path, item in described["paths"].items():
        for method, operation in item.items():
            yield path, method, operation


def _complete(path: str, method: str, operation: Document) -> None:
    is_public = "system" in operation["tags"]
    described = {status: answer for status, answer in operation["responses"].items() if status[0] in "1235"}
    if "204" in described:
        described["204"].pop("content", None)
    for answer in described.values():
        answer["headers"] = {**answer.get("headers", {}), REQUEST_ID: {"$ref": "#/components/headers/RequestId"}}
    kinds = _kinds(path, method, "requestBody" in operation, is_public)
    kinds += _BESIDE.get(operation["operationId"], ())
    failing = {str(kind.status): {"$ref": f"#/components/responses/{_name(kind)}"} for kind in kinds}
    operation["responses"] = dict(sorted((described | failing).items()))
    operation["summary"] = _CAPITAL.sub(r" \1", operation["operationId"]).capitalize()
    for parameter in operation.get("parameters", []):
        _simplify(parameter)
    operation.setdefault("parameters", [])
    if is_public:
        operation["security"] = []
    else:
        _add_parameters(method, operation)
    if example := _EXAMPLES.get(operation["operationId"]):
        operation["requestBody"]["content"]["application/json"]["example"] = example


def _link(operation: Document, paths: Mapping[str, str]) -> None:
    """What came out of an operation leads to all those whose paths ask for just that."""
    places = _LINKS.get(operation["operationId"])
    if places is None:
        return
    found = {name: f"$response.body#/{place}" for name, place in places.items()}
    targets = [name for name, path in paths.items() if {*_PARAMETER.findall(path)} == places.keys()]
    for status, answer in operation["responses"].items():
        if status[0] == "2":
            answer["links"] = {target: {"operationId": target, "parameters": found} for target in targets}


def _simplify(parameter: Document) -> None:
    """What may be left out is never null, and what is not said is not said."""
    for name in ("deprecated", "allowEmptyValue", "allowReserved"):
        parameter.pop(name, None)
    schema: Document = parameter["schema"]
    schema.pop("description", None)
    for choice in schema.pop("oneOf", []):
        schema.update({} if choice == {"type": "null"} else choice)


def _add_parameters(method: str, operation: Document) -> None:
    parameters = operation.setdefault("parameters", [])
    parameters.append({"$ref": "#/components/parameters/OnBehalfOf"})
    if method == "post" and not any(parameter.get("name") == "Idempotency-Key" for parameter in parameters):
        parameters.append({"$ref": "#/components/parameters/IdempotencyKey"})


def _kinds(path: str, method: str, has_body: bool, is_public: bool) -> tuple[Kind, ...]:
    kinds = _EVERYWHERE
    if not is_public:
        kinds += _WITH_CALLER
    if "{" in path:
        kinds += _WITH_PATH
    if method != "get":
        kinds += _WRITING
    return kinds + _WITH_BODY if has_body else kinds


_DESCRIBED = (*_EVERYWHERE, *_WITH_CALLER, *_WITH_PATH, *_WRITING, *_WITH_BODY, problems.NOT_SET_UP)


def _name(kind: Kind) -> str:
    return "".join(word.capitalize() for word in kind.code.split("_"))


def _response(kind: Kind) -> Document:
    headers: Document = {REQUEST_ID: {"$ref": "#/components/headers/RequestId"}}
    if kind.status in _RETRIED:
        headers["Retry-After"] = {"description": "Seconds.", "schema": {"type": "integer"}}
    if kind is problems.UNAUTHENTICATED:
        headers["WWW-Authenticate"] = {"schema": {"type": "string"}}
    example = {
        "type": "about:blank",
        "title": kind.title,
        "status": kind.status,
        "code": kind.code,
        "detail": kind.title,
        "requestId": "3f0d8c0a5b7e4d1f9a2b6c8e0f123456",
    }
    content = {PROBLEM_JSON: {"schema": {"$ref": "#/components/schemas/Problem"}, "example": example}}
    return {"description": kind.title, "headers": headers, "content": content}


if __name__ == "__main__":
    sys.stdout.buffer.write(encoded_document())
