"""What comes in is limited and checked before anything is done with it; nothing that is sent makes the service fail."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any
from urllib.parse import quote

import pytest

from reactor_memory.errors import InvalidInputError
from reactor_memory.features.sharing import messages
from reactor_memory.models import Message
from reactor_memory.server.app import create_app
from reactor_memory.wiring.service_container import ServiceContainer
from tests.scenes.tables import each_row
from tests.server.callers import Service, who_says_so

pytestmark = pytest.mark.anyio

JSON = {"Content-Type": "application/json"}


@pytest.fixture
async def conversation(service: Service) -> str:
    return await service.created(title="T")


def told(answer: Any) -> tuple[int, str, list[str]]:
    """Status, code and fields of a problem."""
    assert answer.headers["content-type"] == "application/problem+json", answer.text
    body = answer.json()
    assert body["status"] == answer.status_code
    return answer.status_code, body["code"], [entry["field"] for entry in body.get("errors", [])]


async def raw(service: Service, path: str, content: Any, **headers: str) -> Any:
    return await service.ask("POST", path, content=content, headers=JSON | headers)


async def test_without_a_quota_no_append_asks_what_is_held(
    service: Service, conversation: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[object] = []
    monkeypatch.setattr(messages, "check_room", lambda *args: asked.append(args))
    assert await service.said(conversation, "Hello")
    assert not asked


# -- sizes ------------------------------------------------------------------------------------------------------------


async def test_a_body_of_more_than_a_mebibyte_is_not_read(service: Service) -> None:
    answer = await raw(service, "/conversations", b'{"title": "' + b"x" * 1024 * 1024 + b'"}')
    assert told(answer) == (413, "too_large", [])


async def test_body_that_does_not_tell_its_length_is_cut_off(service: Service) -> None:
    sent = 0

    async def endless() -> AsyncIterator[bytes]:
        nonlocal sent
        yield b'{"title": "'
        for _ in range(10_000):
            sent += 65_536
            yield b"x" * 65_536

    answer = await raw(service, "/conversations", endless())
    assert told(answer) == (413, "too_large", [])
    assert sent <= 2 * 1024 * 1024 or "content-length" not in answer.request.headers


async def test_compressed_bodies_are_refused(service: Service) -> None:
    answer = await service.ask(
        "POST", "/conversations", content=b"\x1f\x8b", headers={**JSON, "Content-Encoding": "gzip"}
    )
    assert told(answer) == (415, "unsupported_media_type", [])


@pytest.mark.parametrize("media_type", ["text/plain", "application/x-www-form-urlencoded", "application/msgpack"])
async def test_other_media_types_are_refused(service: Service, media_type: str) -> None:
    answer = await service.ask("POST", "/conversations", content=b"{}", headers={"Content-Type": media_type})
    assert told(answer) == (415, "unsupported_media_type", [])


async def test_json_with_a_charset_is_json(service: Service) -> None:
    answer = await service.ask(
        "POST", "/conversations", content=b"{}", headers={"Content-Type": "application/json; charset=utf-8"}
    )
    assert answer.status_code == 201


async def test_a_message_has_a_largest_size(service: Service, conversation: str) -> None:
    path = f"/conversations/{conversation}/messages"
    fits = await service.post(path, {"content": "x" * 262_144})
    too_large = await service.post(path, {"content": "é" * 131_073})
    assert fits.status_code == 201
    assert told(too_large) == (413, "too_large", ["content"])


async def test_a_batch_has_a_largest_size(service: Service, conversation: str) -> None:
    agent = service.by("bot", service.user)
    message = {"role": "assistant", "content": "x"}
    path = f"/conversations/{conversation}/messages"
    assert (await agent.post(path, {"messages": [message] * 100})).status_code == 201
    assert told(await agent.post(path, {"messages": [message] * 101})) == (413, "too_large", ["messages"])
    assert told(await agent.post(path, {"messages": []})) == (422, "invalid", ["messages"])


def deep(levels: int) -> Any:
    return 1 if levels == 0 else {"a": deep(levels - 1)}


@pytest.mark.parametrize(
    "metadata",
    [
        {"a": "x" * 16_384},
        deep(9),
        {str(number): 1 for number in range(51)},
        {"reactor_memory.parent_message_id": "x"},
        {"a": "\0"},
        {"\0": 1},
        {"a": {"\0": 1}},
    ],
)
async def test_metadata_are_limited(service: Service, conversation: str, metadata: dict[str, Any]) -> None:
    """Everywhere, and all alike."""
    path = f"/conversations/{conversation}/messages"
    (said,) = await service.said(conversation, "hello")
    agent = service.by("bot", service.user)
    message = {"content": "x", "metadata": metadata}
    assert told(await service.post("/conversations", {"metadata": metadata})) == (422, "invalid", ["metadata"])
    assert told(await service.post(path, message)) == (422, "invalid", ["metadata"])
    assert told(await agent.post(path, {"messages": [{"role": "assistant"} | message]})) == (
        422,
        "invalid",
        ["messages[0].metadata"],
    )
    assert told(await service.post(f"{path}/{said}/fork", {"newMessage": message})) == (
        422,
        "invalid",
        ["newMessage.metadata"],
    )


async def test_metadata_within_the_limits_come_back(service: Service, conversation: str) -> None:
    metadata = {"deep": deep(7)} | {str(number): "é" for number in range(49)}
    answer = await service.post(f"/conversations/{conversation}/messages", {"content": "x", "metadata": metadata})
    assert (answer.status_code, answer.json()["metadata"]) == (201, metadata)


# -- JSON -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "content", [b"", b"{", b"nul", b"{}}", b'{"title": "\xff"}', b"\xef\xbb\xbf{}", b'{"title": NaN}']
)
async def test_what_is_no_json_is_malformed(service: Service, content: bytes) -> None:
    assert told(await raw(service, "/conversations", content))[:2] == (400, "malformed")


@pytest.mark.parametrize(
    "content",
    [
        b"[" * 500_000,
        b'{"metadata":' + b'{"a":' * 100_000 + b"1" + b"}" * 100_000 + b"}",
        b'{"metadata":{"a":' + b"[" * 100_000 + b"]" * 100_000 + b"}}",
        b'{"title": "\\ud800"}',
        b'{"title": "\\udc00\\ud800"}',
        b'{"metadata": {"a": 1e999}}',
        b'{"metadata": {"a": ' + b"9" * 5000 + b"}}",
    ],
)
async def test_bombs_and_halves_of_characters_are_refused(service: Service, content: bytes) -> None:
    status, code, _ = told(await raw(service, "/conversations", content))
    assert (status, code) == (422, "invalid")


@pytest.mark.parametrize("text", ["\0", "a\0b"])
async def test_nul_is_refused_wherever_text_goes(service: Service, conversation: str, text: str) -> None:
    path = f"/conversations/{conversation}"
    (said,) = await service.said(conversation, "hello")
    agent = service.by("bot", service.user)
    summary = {"title": "t", "summary": "s", "untilMessageId": said, "summarizedAt": "2026-01-01T00:00:00Z"}
    for caller, method, address, body in (
        (service, "POST", "/conversations", {"title": text}),
        (service, "POST", "/conversations", {"agentName": text}),
        (service, "PATCH", path, {"title": text}),
        (service, "POST", f"{path}/messages", {"content": text}),
        (service, "POST", f"{path}/messages", {"content": "x", "parentMessageId": text}),
        (service, "POST", f"{path}/messages/{said}/fork", {"title": text}),
        (service, "POST", f"{path}/messages/{said}/fork", {"newMessage": {"content": text}}),
        (service, "POST", f"{path}/memberships", {"userId": text, "accessLevel": "reader"}),
        (service, "POST", f"{path}/transfer-ownership", {"newOwnerUserId": text}),
        (agent, "POST", f"{path}/messages", {"messages": [{"role": "assistant", "content": text}]}),
        (agent, "POST", f"{path}/messages", {"messages": [{"role": "assistant", "content": "x", "name": text}]}),
        (agent, "POST", f"{path}/summaries", summary | {"untilMessageId": text}),
    ):
        answer = await caller.ask(method, address, body)
        assert answer.status_code == 422, (address, body, answer.text)
        assert answer.json()["errors"], (address, body)


# -- fields and parameters --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"titel": "T"}, "titel"),
        ({"title": 1}, "title"),
        ({"title": "x" * 501}, "title"),
        ({"metadata": []}, "metadata"),
        ({"ownerUserId": "eve"}, "ownerUserId"),
        ({"id": "mine"}, "id"),
        ([], "body"),
        ("text", "body"),
    ],
)
async def test_what_is_wrong_with_a_body_is_named(service: Service, body: Any, field: str) -> None:
    assert told(await service.post("/conversations", body)) == (422, "invalid", [field])


async def test_a_field_inside_is_named_with_the_way_to_it(service: Service, conversation: str) -> None:
    agent = service.by("bot", service.user)
    messages = [{"role": "assistant", "content": "x"}, {"role": "emperor", "content": "x"}]
    answer = await agent.post(f"/conversations/{conversation}/messages", {"messages": messages})
    assert told(answer) == (422, "invalid", ["messages[1].role"])
    assert "emperor" not in answer.text


@pytest.mark.parametrize("field", ["ownerUserId", "seq", "channel", "visibility", "id", "createdAt", "accessLevel"])
async def test_what_nobody_may_set_is_refused(service: Service, conversation: str, field: str) -> None:
    answer = await service.ask("PATCH", f"/conversations/{conversation}", {"title": "T", field: "x"})
    assert told(answer) == (422, "invalid", [field])
    answer = await service.post(f"/conversations/{conversation}/messages", {"content": "x", field: "x"})
    assert told(answer) == (422, "invalid", [field])


@pytest.mark.parametrize(
    ("query", "field"),
    [
        ("limit=0", "limit"),
        ("limit=201", "limit"),
        ("limit=x", "limit"),
        ("limit=1.5", "limit"),
        ("limit=-1", "limit"),
        ("limit=" + "9" * 400, "limit"),
        ("mode=branches", "mode"),
        ("offset=1", "offset"),
        ("Limit=1", "Limit"),
        ("query=%00", "query"),
        ("query=" + "x" * 1001, "query"),
        ("limit=1&after=", "after"),
    ],
)
async def test_what_is_wrong_with_a_query_is_named(service: Service, query: str, field: str) -> None:
    assert told(await service.get(f"/conversations?{query}")) == (400, "bad_parameter", [field])


async def test_an_own_name_of_a_parameter_is_not_its_name(service: Service, conversation: str) -> None:
    agent = service.by("bot", service.user)
    answer = await agent.get(f"/conversations/{conversation}/context?after_message_id=x")
    assert told(answer) == (400, "bad_parameter", ["after_message_id"])
    answer = await agent.get(f"/conversations/{conversation}/context?afterMessageId=" + "x" * 256)
    assert told(answer) == (400, "bad_parameter", ["afterMessageId"])


async def test_what_only_conversation_can_tell_of_a_query_is_named(service: Service, conversation: str) -> None:
    agent = service.by("bot", service.user)
    answer = await agent.get(f"/conversations/{conversation}/context?afterMessageId=absent")
    assert told(answer) == (400, "bad_parameter", ["afterMessageId"])


# -- addresses --------------------------------------------------------------------------------------------------------

STRANGE_IDS = [
    "%2e%2e",
    "..%2f..%2fetc%2fpasswd",
    "%00",
    "a%00b",
    "%0a",
    "%ff",
    "%ed%a0%80",
    "%25",
    "x" * 256,
    "'; drop table conversations; --",
    "~",
    "a~b",
    "%F0%9F%98%80",
    "null",
]


@pytest.mark.parametrize("strange", STRANGE_IDS)
async def test_strange_ids_lead_nowhere(service: Service, conversation: str, strange: str) -> None:
    agent = service.by("bot", service.user)
    message = {"content": "x"}
    for caller, method, path, body in (
        (service, "GET", f"/conversations/{strange}", None),
        (service, "PATCH", f"/conversations/{strange}", {"title": "T"}),
        (service, "DELETE", f"/conversations/{strange}", None),
        (service, "GET", f"/conversations/{strange}/messages", None),
        (service, "POST", f"/conversations/{strange}/messages", message),
        (service, "POST", f"/conversations/{conversation}/messages/{strange}/fork", {}),
        (service, "PATCH", f"/conversations/{conversation}/memberships/{strange}", {"accessLevel": "reader"}),
        (service, "DELETE", f"/conversations/{conversation}/memberships/{strange}", None),
        (service, "POST", f"/ownership-transfers/{strange}/accept", None),
        (agent, "GET", f"/conversations/{strange}/context", None),
        (agent, "POST", f"/conversations/{strange}/messages", {"messages": [{"role": "agent"} | message]}),
    ):
        answer = await caller.ask(method, path, body)
        assert answer.status_code in (404, 405), (method, path, answer.text)


async def answered(container: ServiceContainer, path: str, query: bytes = b"") -> int:
    """The status of the answer to an address that no client would send."""
    sent: list[Any] = []

    async def send(message: Any) -> None:
        sent.append(message)

    async def receive() -> Any:
        return {"type": "http.request", "body": b"", "more_body": False}

    scope: Any = {"type": "http", "method": "GET", "path": path, "query_string": query, "headers": []}
    await create_app(container, authenticator=who_says_so)(scope, receive, send)
    return sent[0]["status"]


async def test_an_address_without_end_is_refused_before_anybody_looks(container: ServiceContainer) -> None:
    assert await answered(container, f"/v1/user/conversations/{'x' * 1_000_000}") == 414
    assert await answered(container, "/v1/user/conversations", b"query=" + b"x" * 1_000_000) == 414
    assert await answered(container, "/v1/health") == 200


# -- ids of any form: each may be addressed, or is refused where it first appears -------------------------------------

ODD_IDS = [
    "spiffe://corp/ns/bob",
    "/",
    "//",
    "a/",
    "/a",
    "../b",
    "a/../b",
    "a/./b",
    "...",
    "a%2Fb",
    "%2F",
    "%252F",
    "a+b c",
    "?#;&=",
    "\\",
    "\ufffd/\U0001f600",
    "memberships/x",
]
REFUSED_IDS = [".", "..", "\u202ebob", "bob\u2066", "a\u200eb", "a\u2028b", "a\nb", "\x85", ""]


@each_row("odd", ODD_IDS)
async def test_a_member_of_any_id_is_changed_and_removed(service: Service, odd: str) -> None:
    conversation = await service.created()
    path = f"/conversations/{conversation}/memberships"
    address = f"{path}/{quote(odd, safe='')}"
    themselves = service.of(odd) if odd.isascii() else service  # a header of the tests cannot name the others
    for by in (service, themselves):
        shared = await service.post(path, {"userId": odd, "accessLevel": "reader"})
        assert (shared.status_code, shared.json()["userId"]) == (201, odd)
        changed = await service.ask("PATCH", address, {"accessLevel": "writer"})
        assert (changed.status_code, changed.json()["userId"]) == (200, odd)
        assert (await by.ask("DELETE", address)).status_code == 204
        assert [row["userId"] for row in (await service.get(path)).json()["data"]] == [service.user]
    assert (await service.get(f"/conversations/{conversation}")).status_code == 200


@each_row("odd", ODD_IDS)
async def test_a_conversation_of_any_id_is_reached_by_every_path(
    service: Service, container: ServiceContainer, odd: str
) -> None:
    name = f"{service.user}:{odd}"
    await container.conversation_manager().save_history(name, [Message.user("hello")], user_id=service.user)
    path = f"/conversations/{quote(name, safe='')}"
    (said,) = (await service.get(f"{path}/messages")).json()["data"]
    for way in ("", "/forks", "/memberships", "/audit"):
        assert (await service.get(path + way)).status_code == 200, way
    fork = await service.post(f"{path}/messages/{said['id']}/fork", {"newMessage": {"content": "other"}})
    assert fork.status_code == 201
    assert (await service.get(f"/conversations/{quote(fork.json()['id'], safe='')}")).json()["id"].startswith(name)
    assert (await service.ask("PATCH", path, {"title": "T"})).json()["id"] == name
    assert (await service.ask("DELETE", path)).status_code == 204


@each_row("refused", REFUSED_IDS)
async def test_an_id_that_no_path_can_hold_never_gets_in(
    service: Service, container: ServiceContainer, refused: str
) -> None:
    conversation = await service.created()
    path = f"/conversations/{conversation}"
    assert told(await service.post(f"{path}/memberships", {"userId": refused, "accessLevel": "reader"})) == (
        422,
        "invalid",
        ["userId"],
    )
    answer = await service.post(f"{path}/transfer-ownership", {"newOwnerUserId": refused})
    assert told(answer) == (422, "invalid", ["newOwnerUserId"])
    manager = container.conversation_manager()
    with pytest.raises(InvalidInputError) as caught:
        await manager.save_history(refused, [Message.user("x")])
    assert caught.value.field == "session_id"
    with pytest.raises(InvalidInputError) as caught:
        await manager.save_history("s", [Message.user("x")], user_id=refused)
    assert caught.value.field == "user_id"


@pytest.mark.parametrize("part", ["%2e", "%2e%2e", "%2E%2E", ".%2e"])
async def test_a_step_in_a_path_is_nobody(service: Service, conversation: str, part: str) -> None:
    answer = await service.ask("DELETE", f"/conversations/{conversation}/memberships/{part}")
    assert answer.status_code in (404, 405)
    assert (await service.get(f"/conversations/{conversation}")).status_code == 200
