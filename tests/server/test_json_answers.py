"""Our bodies go out as the framework would send them, in fewer steps."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest
from litestar.response import Response

from reactor_memory.features.sharing import bodies
from reactor_memory.server.json_answers import JsonAnswer

pytestmark = pytest.mark.anyio

ANSWERS: list[bodies.Answer] = [
    bodies.MessageList(data=[]),
    bodies.Deletion(is_scrubbed=False, left=["a", "ü \u2028 \x00 𝕏"]),
    bodies.TierSummaryList(
        data=[
            bodies.TierSummary(
                id="1",
                level="condensed",
                message_count=2,
                start_seq=1,
                end_seq=2,
                started_at=datetime(2026, 1, 1, tzinfo=UTC),
                ended_at=datetime(9999, 12, 31, 23, 59, 59, 999_999, tzinfo=UTC),
                created_at=datetime(2026, 1, 1, 0, 0, 0, 1, tzinfo=UTC),
                text='"<>\\',
            )
        ]
    ),
    bodies.ConversationContext(
        conversation_id="c", messages=[], next_after_message_id=None, tokens=0, report={"n": 1.5, "none": None}
    ),
    bodies.MessagePage(data=[], next_cursor=None),
]


async def sent(response: Any) -> tuple[int, dict[bytes, bytes], bytes]:
    messages: list[Any] = []

    async def send(message: Any) -> None:
        messages.append(message)

    answer = response.to_asgi_response(app=None, request=None, headers={}, cookies=[])
    await answer({"type": "http"}, None, send)
    assert not messages[-1].get("more_body")
    body = b"".join(each["body"] for each in messages[1:])
    return messages[0]["status"], dict(messages[0]["headers"]), body


@pytest.mark.parametrize("content", ANSWERS, ids=lambda each: type(each).__name__)
@pytest.mark.parametrize("status", [200, 201])
async def test_an_answer_is_sent_as_the_framework_does(content: bodies.Answer, status: int) -> None:
    ours = await sent(JsonAnswer(content, status_code=status, media_type="application/json"))
    assert ours == await sent(Response(content, status_code=status, media_type="application/json"))


@pytest.mark.parametrize(
    "more", [{"headers": {"location": "/c"}}, {"content": {"a": 1}}, {"content": None, "status_code": 204}]
)
async def test_what_else_is_sent_is_left_to_the_framework(more: dict[str, Any]) -> None:
    told: dict[str, Any] = {"content": ANSWERS[0], "status_code": 201} | more
    assert await sent(JsonAnswer(**told)) == await sent(Response(**told))
